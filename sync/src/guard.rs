//! What the guards of `Mutex` and `RwLock` have in common.

use crate::batch_semaphore::Semaphore;

/// Implements `Deref`, `Debug` and `Display` for a guard. The expression is a raw pointer to the data.
macro_rules! shared_guard {
    ([$($generics:tt)*] $guard:ty => $target:ident, |$this:ident| $pointer:expr) => {
        impl<$($generics)*> std::ops::Deref for $guard {
            type Target = $target;

            fn deref(&self) -> &$target {
                let $this = self;
                // SAFETY: the guard holds the lock, so the data stays where it is and nobody else
                // has a mutable reference to it.
                unsafe { &*$pointer }
            }
        }

        impl<$($generics)*> std::fmt::Debug for $guard
        where
            $target: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($generics)*> std::fmt::Display for $guard
        where
            $target: std::fmt::Display,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&**self, f)
            }
        }
    };
}

/// As [`shared_guard`], with `DerefMut`.
macro_rules! exclusive_guard {
    ([$($generics:tt)*] $guard:ty => $target:ident, |$this:ident| $pointer:expr) => {
        crate::guard::shared_guard!([$($generics)*] $guard => $target, |$this| $pointer);

        impl<$($generics)*> std::ops::DerefMut for $guard {
            fn deref_mut(&mut self) -> &mut $target {
                let $this = self;
                // SAFETY: the guard holds the lock for itself alone, and is borrowed mutably.
                unsafe { &mut *$pointer }
            }
        }
    };
}

pub(crate) use {exclusive_guard, shared_guard};

/// Permits of a lock's semaphore, given back when this is dropped: what a guard holds the lock with.
/// A guard that consists of this and a pointer can be taken apart and put together as another one.
pub(crate) struct Permits<'a> {
    pub(crate) semaphore: &'a Semaphore,
    pub(crate) count: u32,
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.semaphore.release(self.count as usize);
    }
}

/// One permit, without a word for the number.
pub(crate) struct Permit<'a>(pub(crate) &'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl<'a> Permits<'a> {
    /// Gives all but one back, in one step: the lock is never free in between.
    pub(crate) fn downgrade(self) -> Permit<'a> {
        let Permits { semaphore, count } = *std::mem::ManuallyDrop::new(self);
        // The new owner first: it keeps its permit also if a waker panics.
        let permit = Permit(semaphore);
        semaphore.release(count as usize - 1);
        permit
    }
}
