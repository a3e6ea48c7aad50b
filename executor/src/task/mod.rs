//! G: tasks.
mod meta;
pub(crate) use meta::Meta;
mod join;
pub use join::{JoinError, JoinHandle};
