//! The ground of gmp.
pub mod context;
pub mod coop;
mod handle;
#[doc(hidden)]
pub mod loom;
pub mod seam;
pub mod task;
pub mod wait;
pub use handle::{Handle, TryCurrentError};
