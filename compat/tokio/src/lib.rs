//! gmp under the name `tokio`.
pub use gmp::*;
