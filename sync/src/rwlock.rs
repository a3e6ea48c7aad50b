//! `RwLock`: shared or exclusive access to a value, across awaits and first come, first served.
//!
//! A semaphore with as many permits as there may be readers. A reader holds one permit, a writer all
//! of them; since the semaphore serves its waiters in order, a writer that waits keeps later readers
//! out and is not starved.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use gmp_executor::context::block_on_thread;
use gmp_executor::wait::WaitReason;

use crate::batch_semaphore::Semaphore;
use crate::guard::{Permit, Permits};
use crate::mutex::TryLockError;

mod guards;
mod owned_guards;

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

pub use guards::{RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard};
pub use owned_guards::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard};
use owned_guards::{ReadLocked, WriteLocked};

/// tokio's limit.
const MAX_READERS: u32 = u32::MAX >> 3;

/// A lock that many may hold for reading, or one for writing, also across an await.
///
/// Fair, or *write-preferring*: whoever waits stands in one queue, first come, first served. A read
/// lock is not given out before every write lock that was asked for earlier has come and gone, so
/// that readers cannot starve writers. The price: a task that holds a read lock and asks for another
/// waits for ever if a writer asked in between.
///
/// The guards give access to the value (`Deref`, and `DerefMut` for writers) and unlock when they are
/// dropped. There is no poisoning.
///
/// As `tokio::sync::RwLock`.
///
/// # Examples
///
/// ```
/// use gmp::sync::RwLock;
///
/// #[gmp::main]
/// async fn main() {
///     let lock = RwLock::new(5);
///     {
///         let first = lock.read().await;
///         let second = lock.read().await;
///         assert_eq!(*first + *second, 10);
///     }
///     *lock.write().await += 1;
///     assert_eq!(*lock.read().await, 6);
/// }
/// ```
pub struct RwLock<T: ?Sized> {
    semaphore: Semaphore,
    /// How many permits the semaphore has: the most readers, and what a writer takes.
    max_readers: u32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock owns its value; nothing in it belongs to a thread.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers share the value (hence `T: Sync`), a writer may take it away (hence `T: Send`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> RwLock<T> {
    /// Makes an unlocked lock.
    pub fn new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock::with_max_readers(value, MAX_READERS)
    }

    /// Makes an unlocked lock that at most `max_reads` readers hold at a time.
    ///
    /// # Panics
    ///
    /// If `max_reads` is zero or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        assert_ne!(max_reads, 0, "a RwLock may not be created with 0 readers");
        assert!(
            max_reads <= MAX_READERS,
            "a RwLock may not be created with more than {MAX_READERS} readers"
        );
        RwLock {
            semaphore: Semaphore::new(max_reads as usize),
            max_readers: max_reads,
            value: UnsafeCell::new(value),
        }
    }

    /// Makes an unlocked lock, also in a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::RwLock;
    ///
    /// static SETTINGS: RwLock<u32> = RwLock::const_new(5);
    /// ```
    #[cfg(not(gmp_loom))]
    pub const fn const_new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock::const_with_max_readers(value, MAX_READERS)
    }

    /// Makes an unlocked lock that at most `max_reads` readers hold at a time, also in a `static`.
    ///
    /// # Panics
    ///
    /// If `max_reads` is zero or more than `u32::MAX >> 3`; in a `static`, an error of the compiler.
    #[cfg(not(gmp_loom))]
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        assert!(max_reads != 0, "a RwLock may not be created with 0 readers");
        assert!(
            max_reads <= MAX_READERS,
            "a RwLock may not be created with more than u32::MAX >> 3 readers"
        );
        RwLock {
            semaphore: Semaphore::const_new(max_reads as usize),
            max_readers: max_reads,
            value: UnsafeCell::new(value),
        }
    }

    /// Locks for reading, waiting until no writer holds the lock or was there first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        self.acquire(1, WaitReason::RwLockRead).await;
        self.read_guard()
    }

    /// Locks for reading, putting the thread to sleep until it may.
    ///
    /// For code that is synchronous, such as a job of `spawn_blocking`.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks. `spawn_blocking` and `block_in_place` are ways to
    /// call such code from a task.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        block_on_thread(self.read())
    }

    /// Locks for reading, waiting until no writer holds the lock or was there first; the guard owns a
    /// reference to the lock and is therefore `'static`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        self.acquire(1, WaitReason::RwLockRead).await;
        self.owned_read_guard()
    }

    /// Locks for reading if no writer holds the lock and nobody waits.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(self.read_guard())
    }

    /// Locks for reading if no writer holds the lock and nobody waits; the guard owns a reference to
    /// the lock.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.try_acquire(1)?;
        Ok(self.owned_read_guard())
    }

    /// Locks for writing, waiting until nobody holds the lock or was there first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.acquire(self.max_readers, WaitReason::RwLockWrite)
            .await;
        self.write_guard()
    }

    /// Locks for writing, putting the thread to sleep until it may.
    ///
    /// For code that is synchronous, such as a job of `spawn_blocking`.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks. `spawn_blocking` and `block_in_place` are ways to
    /// call such code from a task.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        block_on_thread(self.write())
    }

    /// Locks for writing, waiting until nobody holds the lock or was there first; the guard owns a
    /// reference to the lock and is therefore `'static`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        self.acquire(self.max_readers, WaitReason::RwLockWrite)
            .await;
        OwnedRwLockWriteGuard::new(WriteLocked(self))
    }

    /// Locks for writing if nobody holds the lock or waits for it.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.try_acquire(self.max_readers)?;
        Ok(self.write_guard())
    }

    /// Locks for writing if nobody holds the lock or waits for it; the guard owns a reference to the
    /// lock.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] otherwise.
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.try_acquire(self.max_readers)?;
        Ok(OwnedRwLockWriteGuard::new(WriteLocked(self)))
    }

    /// The value, without locking: the lock is borrowed mutably, so nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the lock apart and returns the value.
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.value.into_inner()
    }

    async fn acquire(&self, permits: u32, reason: WaitReason) {
        let acquired = self.semaphore.acquire(permits as usize, reason).await;
        acquired.expect("the semaphore of a lock is never closed");
    }

    fn try_acquire(&self, permits: u32) -> Result<(), TryLockError> {
        let acquired = self.semaphore.try_acquire(permits as usize);
        acquired.map_err(|_| TryLockError(()))
    }

    /// The caller has acquired one permit.
    fn read_guard(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard {
            permit: Permit(&self.semaphore),
            data: self.value.get(),
            _shared: PhantomData,
        }
    }

    /// The caller has acquired one permit.
    fn owned_read_guard(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        let data = self.value.get();
        OwnedRwLockReadGuard::new(ReadLocked(self), data)
    }

    /// The caller has acquired all permits.
    fn write_guard(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard {
            permits: Permits {
                semaphore: &self.semaphore,
                count: self.max_readers,
            },
            data: self.value.get(),
            _exclusive: PhantomData,
        }
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(_) => debug.field("data", &format_args!("<locked>")),
        };
        debug.finish()
    }
}
