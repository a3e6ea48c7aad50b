//! `Mutex`: exclusive access to a value, across awaits and first come, first served.
//!
//! A semaphore with one permit. Whoever holds the permit holds the value.

use std::cell::UnsafeCell;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use gmp_executor::context::block_on_thread;
use gmp_executor::wait::WaitReason;

use crate::batch_semaphore::Semaphore;
use crate::guard::{Permit, exclusive_guard};

#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// A mutex whose guard may be held across an await.
///
/// [`lock`](Mutex::lock) is asynchronous: it never blocks the thread. Access is given in the order in
/// which `lock` was called (first polled, to be exact), so that nobody starves; a task that unlocks
/// and locks again goes to the end of the queue.
///
/// # Which mutex to take
///
/// For plain data that is never locked across an await the mutex of the standard library is cheaper,
/// and perfectly right in asynchronous code. This one is for what has to stay locked while the task
/// waits: a connection that is in the middle of a request, for example. A task that owns the
/// connection and takes its requests from a channel is often better still.
///
/// # Panics
///
/// There is no poisoning: when a task panics while it holds the guard, the mutex is unlocked, and the
/// value is what the task left.
///
/// As `tokio::sync::Mutex`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use gmp::sync::Mutex;
///
/// #[gmp::main]
/// async fn main() {
///     let count = Arc::new(Mutex::new(0));
///     let tasks: Vec<_> = (0..5)
///         .map(|_| {
///             let count = count.clone();
///             gmp::spawn(async move {
///                 for _ in 0..10 {
///                     *count.lock().await += 1;
///                 }
///             })
///         })
///         .collect();
///     for task in tasks {
///         task.await.unwrap();
///     }
///     assert_eq!(*count.lock().await, 50);
/// }
/// ```
pub struct Mutex<T: ?Sized> {
    semaphore: Semaphore,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex owns its value; nothing in it belongs to a thread.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: one thread at a time reaches the value, and may take it away, hence `T: Send`.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> Mutex<T> {
    /// Makes an unlocked mutex.
    pub fn new(t: T) -> Self
    where
        T: Sized,
    {
        Mutex {
            semaphore: Semaphore::new(1),
            value: UnsafeCell::new(t),
        }
    }

    /// Makes an unlocked mutex, also in a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Mutex;
    ///
    /// static STATE: Mutex<u32> = Mutex::const_new(5);
    /// ```
    #[cfg(not(gmp_loom))]
    pub const fn const_new(t: T) -> Self
    where
        T: Sized,
    {
        Mutex {
            semaphore: Semaphore::const_new(1),
            value: UnsafeCell::new(t),
        }
    }

    /// Locks the mutex, waiting until it is this task's turn.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Mutex;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let mutex = Mutex::new(1);
    ///     let mut n = mutex.lock().await;
    ///     *n = 2;
    /// }
    /// ```
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        let acquired = self.semaphore.acquire(1, WaitReason::MutexLock).await;
        acquired.expect("the semaphore of a mutex is never closed");
        MutexGuard { lock: self }
    }

    /// Locks the mutex, putting the thread to sleep until it is its turn.
    ///
    /// For code that is synchronous, such as a job of `spawn_blocking`.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks. `spawn_blocking` and `block_in_place` are ways to
    /// call such code from a task.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gmp::sync::Mutex;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let mutex = Arc::new(Mutex::new(1));
    ///     let guard = mutex.lock().await;
    ///     let other = mutex.clone();
    ///     let job = gmp::task::spawn_blocking(move || *other.blocking_lock() = 2);
    ///     drop(guard);
    ///     job.await.unwrap();
    ///     assert_eq!(*mutex.lock().await, 2);
    /// }
    /// ```
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        block_on_thread(self.lock())
    }

    /// Locks the mutex, putting the thread to sleep until it is its turn; the guard owns a reference
    /// to the mutex.
    ///
    /// Otherwise as [`blocking_lock`](Mutex::blocking_lock).
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        block_on_thread(self.lock_owned())
    }

    /// Locks the mutex, waiting until it is this task's turn; the guard owns a reference to the mutex
    /// and is therefore `'static`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        let acquired = self.semaphore.acquire(1, WaitReason::MutexLock).await;
        acquired.expect("the semaphore of a mutex is never closed");
        OwnedMutexGuard { lock: Locked(self) }
    }

    /// Locks the mutex if nobody holds it or waits for it.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if somebody does.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        match self.semaphore.try_acquire(1) {
            Ok(()) => Ok(MutexGuard { lock: self }),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Locks the mutex if nobody holds it or waits for it; the guard owns a reference to the mutex.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if somebody does.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        match self.semaphore.try_acquire(1) {
            Ok(()) => Ok(OwnedMutexGuard { lock: Locked(self) }),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// The value, without locking: the mutex is borrowed mutably, so nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the mutex apart and returns the value.
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.value.into_inner()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(_) => debug.field("data", &format_args!("<locked>")),
        };
        debug.finish()
    }
}

/// Error of the methods that lock only if they need not wait: [`Mutex::try_lock`],
/// [`RwLock::try_read`](crate::RwLock::try_read) and [`RwLock::try_write`](crate::RwLock::try_write).
#[derive(Debug)]
pub struct TryLockError(pub(crate) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl Error for TryLockError {}

/// Access to the value of a locked [`Mutex`]; unlocks when dropped. May be held across an await.
#[clippy::has_significant_drop]
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
}

// SAFETY: sharing the guard shares the value, hence `T: Sync`.
unsafe impl<T: ?Sized + Send + Sync> Sync for MutexGuard<'_, T> {}

exclusive_guard!(['a, T: ?Sized] MutexGuard<'a, T> => T, |this| this.lock.value.get());

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Narrows the guard to a part of the value.
    ///
    /// An associated function, so as not to hide a method of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::{Mutex, MutexGuard};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let pair = Mutex::new((1, "one"));
    ///     let mut number = MutexGuard::map(pair.lock().await, |pair| &mut pair.0);
    ///     *number = 2;
    /// }
    /// ```
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        this.into_mapped(data)
    }

    /// Narrows the guard to a part of the value, if `f` finds one.
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => {
                let data: *mut U = data;
                Ok(this.into_mapped(data))
            }
            None => Err(this),
        }
    }

    fn into_mapped<U: ?Sized>(self, data: *mut U) -> MappedMutexGuard<'a, U> {
        let permit = Permit(&self.lock.semaphore);
        mem::forget(self);
        MappedMutexGuard {
            permit,
            data,
            _exclusive: PhantomData,
        }
    }

    /// The mutex that this guard locks.
    #[inline]
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.lock
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.semaphore.release(1);
    }
}

/// Access to a part of the value of a locked [`Mutex`], made by [`MutexGuard::map`]; unlocks when
/// dropped.
#[clippy::has_significant_drop]
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    permit: Permit<'a>,
    data: *mut T,
    _exclusive: PhantomData<&'a mut T>,
}

// SAFETY: the guard stands for a `&mut T`.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}

exclusive_guard!(['a, T: ?Sized] MappedMutexGuard<'a, T> => T, |this| this.data);

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// Narrows the guard further; see [`MutexGuard::map`].
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        MappedMutexGuard {
            permit: this.permit,
            data,
            _exclusive: PhantomData,
        }
    }

    /// Narrows the guard further, if `f` finds a part; see [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => Ok(MappedMutexGuard {
                data,
                permit: this.permit,
                _exclusive: PhantomData,
            }),
            None => Err(this),
        }
    }
}

/// The reference of an owned guard, which unlocks the mutex before it goes.
struct Locked<T: ?Sized>(Arc<Mutex<T>>);

impl<T: ?Sized> Drop for Locked<T> {
    fn drop(&mut self) {
        self.0.semaphore.release(1);
    }
}

/// Access to the value of a locked [`Mutex`], with a reference to the mutex; unlocks when dropped.
///
/// As [`MutexGuard`], but `'static`: it keeps the mutex alive.
#[clippy::has_significant_drop]
pub struct OwnedMutexGuard<T: ?Sized> {
    lock: Locked<T>,
}

// SAFETY: sharing the guard shares the value, hence `T: Sync`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

exclusive_guard!([T: ?Sized] OwnedMutexGuard<T> => T, |this| this.lock.0.value.get());

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// Narrows the guard to a part of the value; see [`MutexGuard::map`].
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        OwnedMappedMutexGuard {
            lock: this.lock,
            data,
        }
    }

    /// Narrows the guard to a part of the value, if `f` finds one; see [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => Ok(OwnedMappedMutexGuard {
                data,
                lock: this.lock,
            }),
            None => Err(this),
        }
    }

    /// The mutex that this guard locks.
    #[inline]
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.lock.0
    }
}

/// Access to a part of the value of a locked [`Mutex`], with a reference to the mutex, made by
/// [`OwnedMutexGuard::map`]; unlocks when dropped.
#[clippy::has_significant_drop]
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    lock: Locked<T>,
    data: *mut U,
}

// SAFETY: the guard stands for a `&mut U` and an `Arc<Mutex<T>>`, which may drop the `T`.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: as above; sharing it gives `&U`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

exclusive_guard!(
    [T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U> => U, |this| this.data
);

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// Narrows the guard further; see [`MutexGuard::map`].
    #[inline]
    pub fn map<S, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, S>
    where
        F: FnOnce(&mut U) -> &mut S,
    {
        let data: *mut S = f(&mut *this);
        OwnedMappedMutexGuard {
            lock: this.lock,
            data,
        }
    }

    /// Narrows the guard further, if `f` finds a part; see [`MutexGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<S, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, S>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match f(&mut *this) {
            Some(data) => Ok(OwnedMappedMutexGuard {
                data,
                lock: this.lock,
            }),
            None => Err(this),
        }
    }
}
