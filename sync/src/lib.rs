//! Channels and locks of gmp.
//!
//! tokio's API (`tokio::sync`), re-exported by the facade as `gmp::sync`. Everything here consumes
//! the budget of the task that uses it and records what the task waits for; no lock of this crate is
//! held while somebody else's code runs, such as a waker's.
//!
//! The ground: `wait_list` (the intrusive queue of waiters) and `batch_semaphore` (the fair
//! counting semaphore), on which the locks and the bounded channel stand.

mod batch_semaphore;
mod primitives;
#[cfg(test)]
mod test_util;
mod wait_list;

pub use batch_semaphore::{AcquireError, TryAcquireError};
