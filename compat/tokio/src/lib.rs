//! gmp under the name `tokio`: for `[patch.crates-io]`, so that a whole dependency tree runs on gmp.
//!
//! Everything stands at tokio's paths; `docs/tokio.md` in the repository says how to swap and what differs.

pub use gmp::*;

#[cfg(feature = "macros")]
pub use gmp::macros::under_tokio::{main, test};

/// Empty, as tokio's: streams are in the crate `tokio-stream`.
pub mod stream {}
