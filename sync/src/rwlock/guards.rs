//! The guards that borrow their lock.

use std::marker::PhantomData;

use crate::guard::{Permit, Permits, exclusive_guard, shared_guard};

/// Shared access to the value of a locked [`RwLock`](crate::RwLock), or to a part of it; unlocks when
/// dropped.
#[clippy::has_significant_drop]
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    pub(super) permit: Permit<'a>,
    pub(super) data: *const T,
    pub(super) _shared: PhantomData<&'a T>,
}

// SAFETY: the guard stands for a `&T`.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above; tokio asks for `Send` too, and so do we.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

shared_guard!(['a, T: ?Sized] RwLockReadGuard<'a, T> => T, |this| this.data);

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// Narrows the guard to a part of the value.
    ///
    /// An associated function, so as not to hide a method of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::{RwLock, RwLockReadGuard};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let pair = RwLock::new((1, "one"));
    ///     let number = RwLockReadGuard::map(pair.read().await, |pair| &pair.0);
    ///     assert_eq!(*number, 1);
    /// }
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let data: *const U = f(&*this);
        RwLockReadGuard {
            permit: this.permit,
            data,
            _shared: PhantomData,
        }
    }

    /// Narrows the guard to a part of the value, if `f` finds one.
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this) {
            Some(data) => Ok(RwLockReadGuard {
                data,
                permit: this.permit,
                _shared: PhantomData,
            }),
            None => Err(this),
        }
    }
}

/// Exclusive access to the value of a locked [`RwLock`](crate::RwLock); unlocks when dropped.
#[clippy::has_significant_drop]
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    pub(super) permits: Permits<'a>,
    pub(super) data: *mut T,
    pub(super) _exclusive: PhantomData<&'a mut T>,
}

// SAFETY: the guard stands for a `&mut T`, which may become a `&T` (hence `T: Sync`).
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockWriteGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockWriteGuard<'_, T> {}

exclusive_guard!(['a, T: ?Sized] RwLockWriteGuard<'a, T> => T, |this| this.data);

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Narrows the guard to a part of the value.
    ///
    /// An associated function, so as not to hide a method of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::{RwLock, RwLockWriteGuard};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let pair = RwLock::new((1, "one"));
    ///     *RwLockWriteGuard::map(pair.write().await, |pair| &mut pair.0) = 2;
    ///     assert_eq!(pair.read().await.0, 2);
    /// }
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        RwLockMappedWriteGuard {
            permits: this.permits,
            data,
            _exclusive: PhantomData,
        }
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
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => Ok(RwLockMappedWriteGuard {
                data,
                permits: this.permits,
                _exclusive: PhantomData,
            }),
            None => Err(this),
        }
    }

    /// Narrows the guard to a part of the value and turns it into a read guard, in one step.
    ///
    /// `f` runs before others may read; it gets no `&mut T`, lest it keep one.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::{RwLock, RwLockWriteGuard};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let pair = RwLock::new((1, "one"));
    ///     let number = RwLockWriteGuard::downgrade_map(pair.write().await, |pair| &pair.0);
    ///     assert_eq!(pair.read().await.0, *number);
    /// }
    /// ```
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let data: *const U = f(&*this);
        this.into_read(data)
    }

    /// As [`downgrade_map`](RwLockWriteGuard::downgrade_map), if `f` finds a part.
    ///
    /// # Errors
    ///
    /// The guard itself, still exclusive, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this) {
            Some(data) => {
                let data: *const U = data;
                Ok(this.into_read(data))
            }
            None => Err(this),
        }
    }

    /// Turns the guard into a mapped one of the whole value.
    #[inline]
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockWriteGuard::map(this, |value| value)
    }

    /// Turns the guard into a read guard, in one step: no writer comes in between.
    ///
    /// That lets the readers in that wait at the head of the queue, but none behind a writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::RwLock;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let lock = RwLock::new(1);
    ///     let guard = lock.write().await.downgrade();
    ///     assert_eq!(*guard, *lock.read().await);
    /// }
    /// ```
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let data = self.data;
        self.into_read(data)
    }

    fn into_read<U: ?Sized>(self, data: *const U) -> RwLockReadGuard<'a, U> {
        RwLockReadGuard {
            permit: self.permits.downgrade(),
            data,
            _shared: PhantomData,
        }
    }
}

/// Exclusive access to a part of the value of a locked [`RwLock`](crate::RwLock), made by
/// [`RwLockWriteGuard::map`]; unlocks when dropped.
///
/// It cannot be downgraded: the part may have been reached through a `Cell`'s `&mut`, of which a
/// reader could make a second one.
#[clippy::has_significant_drop]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    permits: Permits<'a>,
    data: *mut T,
    _exclusive: PhantomData<&'a mut T>,
}

// SAFETY: the guard stands for a `&mut T`.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

exclusive_guard!(['a, T: ?Sized] RwLockMappedWriteGuard<'a, T> => T, |this| this.data);

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// Narrows the guard further; see [`RwLockWriteGuard::map`].
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let data: *mut U = f(&mut *this);
        RwLockMappedWriteGuard {
            permits: this.permits,
            data,
            _exclusive: PhantomData,
        }
    }

    /// Narrows the guard further, if `f` finds a part; see [`RwLockWriteGuard::try_map`].
    ///
    /// # Errors
    ///
    /// The guard itself, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this) {
            Some(data) => Ok(RwLockMappedWriteGuard {
                data,
                permits: this.permits,
                _exclusive: PhantomData,
            }),
            None => Err(this),
        }
    }
}
