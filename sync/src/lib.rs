//! Channels and locks of gmp.
//!
//! tokio's API (`tokio::sync`), re-exported by the facade as `gmp::sync`. Everything here consumes
//! the budget of the task that uses it and records what the task waits for, but for a `OnceCell` that
//! is set already; no lock of this crate is held while somebody else's code runs, such as a waker's.
//!
//! The ground: `wait_list` (the intrusive queue of waiters), `batch_semaphore` (the fair counting
//! semaphore, under the locks and the bounded channel) and `notify` (one permit and a queue).

mod barrier;
mod batch_semaphore;
pub mod broadcast;
mod guard;
pub mod mpsc;
mod mutex;
mod notify;
mod once_cell;
mod once_slot;
pub mod oneshot;
mod primitives;
mod rwlock;
mod semaphore;
mod set_once;
#[cfg(test)]
mod test_util;
mod wait_list;
pub mod watch;

pub use barrier::{Barrier, BarrierWaitResult};
pub use batch_semaphore::{AcquireError, TryAcquireError};
pub use mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use notify::Notify;
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
pub use set_once::{SetOnce, SetOnceError};

/// Futures that have a name.
pub mod futures {
    pub use crate::notify::{Notified, OwnedNotified};
}
