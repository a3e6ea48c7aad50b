//! The guards that own a reference to their lock, and are therefore `'static`.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::RwLock;
use crate::guard::{exclusive_guard, shared_guard};

/// The reference of a read guard, which gives its permit back before it goes.
pub(super) struct ReadLocked<T: ?Sized>(pub(super) Arc<RwLock<T>>);

impl<T: ?Sized> Drop for ReadLocked<T> {
    fn drop(&mut self) {
        self.0.semaphore.release(1);
    }
}

/// The reference of a write guard, which gives all permits back before it goes.
pub(super) struct WriteLocked<T: ?Sized>(pub(super) Arc<RwLock<T>>);

impl<T: ?Sized> Drop for WriteLocked<T> {
    fn drop(&mut self) {
        self.0.semaphore.release(self.0.max_readers as usize);
    }
}

impl<T: ?Sized> WriteLocked<T> {
    /// Gives all but one permit back, in one step: the lock is never free in between.
    fn downgrade(self) -> ReadLocked<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once; the original is neither used again nor dropped.
        let lock = unsafe { std::ptr::read(&this.0) };
        // The new owner first: it keeps its permit also if a waker panics.
        let lock = ReadLocked(lock);
        lock.0.semaphore.release(lock.0.max_readers as usize - 1);
        lock
    }
}

/// Shared access to the value of a locked [`RwLock`], or to a part of it, with a reference to the
/// lock; unlocks when dropped.
#[clippy::has_significant_drop]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    lock: ReadLocked<T>,
    data: *const U,
    _value: PhantomData<T>,
}

// SAFETY: the guard stands for a `&U` and an `Arc<RwLock<T>>`, which may drop the `T`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above; tokio asks for `U: Send` too, and so do we.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

shared_guard!([T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U> => U, |this| this.data);

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    pub(super) fn new(lock: ReadLocked<T>, data: *const U) -> Self {
        OwnedRwLockReadGuard {
            lock,
            data,
            _value: PhantomData,
        }
    }

    /// Narrows the guard to a part of the value; see [`RwLockReadGuard::map`](crate::RwLockReadGuard::map).
    #[inline]
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, V>
    where
        F: FnOnce(&U) -> &V,
    {
        let data: *const V = f(&*this);
        OwnedRwLockReadGuard::new(this.lock, data)
    }

    /// Narrows the guard to a part of the value, if `f` finds one.
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, V>, Self>
    where
        F: FnOnce(&U) -> Option<&V>,
    {
        match f(&*this) {
            Some(data) => {
                let data: *const V = data;
                Ok(OwnedRwLockReadGuard::new(this.lock, data))
            }
            None => Err(this),
        }
    }

    /// The lock that this guard locks.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.lock.0
    }
}

/// Exclusive access to the value of a locked [`RwLock`], with a reference to the lock; unlocks when
/// dropped.
#[clippy::has_significant_drop]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    lock: WriteLocked<T>,
    data: *mut T,
    _value: PhantomData<T>,
}

// SAFETY: the guard stands for a `&mut T` and an `Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync> Send for OwnedRwLockWriteGuard<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedRwLockWriteGuard<T> {}

exclusive_guard!([T: ?Sized] OwnedRwLockWriteGuard<T> => T, |this| this.data);

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    pub(super) fn new(lock: WriteLocked<T>) -> Self {
        let data = lock.0.value.get();
        OwnedRwLockWriteGuard {
            lock,
            data,
            _value: PhantomData,
        }
    }

    /// Narrows the guard to a part of the value; see
    /// [`RwLockWriteGuard::map`](crate::RwLockWriteGuard::map).
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        OwnedRwLockMappedWriteGuard::new(this.lock, data)
    }

    /// Narrows the guard to a part of the value, if `f` finds one.
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => {
                let data: *mut U = data;
                Ok(OwnedRwLockMappedWriteGuard::new(this.lock, data))
            }
            None => Err(this),
        }
    }

    /// Narrows the guard to a part of the value and turns it into a read guard, in one step; see
    /// [`RwLockWriteGuard::downgrade_map`](crate::RwLockWriteGuard::downgrade_map).
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let data: *const U = f(&*this);
        OwnedRwLockReadGuard::new(this.lock.downgrade(), data)
    }

    /// As [`downgrade_map`](OwnedRwLockWriteGuard::downgrade_map), if `f` finds a part.
    ///
    /// # Errors
    ///
    /// The guard itself, still exclusive, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this) {
            Some(data) => {
                let data: *const U = data;
                Ok(OwnedRwLockReadGuard::new(this.lock.downgrade(), data))
            }
            None => Err(this),
        }
    }

    /// Turns the guard into a mapped one of the whole value.
    #[inline]
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        OwnedRwLockWriteGuard::map(this, |value| value)
    }

    /// Turns the guard into a read guard, in one step: no writer comes in between.
    ///
    /// That lets the readers in that wait at the head of the queue, but none behind a writer.
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        let data = self.data;
        OwnedRwLockReadGuard::new(self.lock.downgrade(), data)
    }

    /// The lock that this guard locks.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.lock.0
    }
}

/// Exclusive access to a part of the value of a locked [`RwLock`], with a reference to the lock, made
/// by [`OwnedRwLockWriteGuard::map`]; unlocks when dropped.
///
/// It cannot be downgraded, as [`RwLockMappedWriteGuard`](crate::RwLockMappedWriteGuard).
#[clippy::has_significant_drop]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    lock: WriteLocked<T>,
    data: *mut U,
    _value: PhantomData<T>,
}

// SAFETY: the guard stands for a `&mut U` and an `Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Send
    for OwnedRwLockMappedWriteGuard<T, U>
{
}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync
    for OwnedRwLockMappedWriteGuard<T, U>
{
}

exclusive_guard!(
    [T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U> => U, |this| this.data
);

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    fn new(lock: WriteLocked<T>, data: *mut U) -> Self {
        OwnedRwLockMappedWriteGuard {
            lock,
            data,
            _value: PhantomData,
        }
    }

    /// Narrows the guard further; see [`RwLockWriteGuard::map`](crate::RwLockWriteGuard::map).
    #[inline]
    pub fn map<F, V: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, V>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        let data: *mut V = f(&mut *this);
        OwnedRwLockMappedWriteGuard::new(this.lock, data)
    }

    /// Narrows the guard further, if `f` finds a part.
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        match f(&mut *this) {
            Some(data) => {
                let data: *mut V = data;
                Ok(OwnedRwLockMappedWriteGuard::new(this.lock, data))
            }
            None => Err(this),
        }
    }

    /// The lock that this guard locks.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.lock.0
    }
}
