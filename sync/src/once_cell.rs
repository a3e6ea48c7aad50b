//! `OnceCell`: a value made once, by an asynchronous operation.
//!
//! Whoever holds the one permit of the semaphore may fill the slot. Filling it closes the semaphore,
//! so that everybody who waits for the permit learns that the value is there. An attempt that fails
//! gives the permit to the next.

use std::error::Error;
use std::fmt;
use std::future::Future;

use gmp_executor::wait::WaitReason;

use crate::batch_semaphore::{Semaphore, TryAcquireError};
use crate::once_slot::OnceSlot;

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// A cell that is written once, typically a global that needs an asynchronous operation to be made.
///
/// As `tokio::sync::OnceCell`.
///
/// # Examples
///
/// ```
/// use gmp::sync::OnceCell;
///
/// static ANSWER: OnceCell<u32> = OnceCell::const_new();
///
/// async fn answer() -> &'static u32 {
///     ANSWER.get_or_init(|| async { 6 * 7 }).await
/// }
///
/// #[gmp::main]
/// async fn main() {
///     assert_eq!(*answer().await, 42);
/// }
/// ```
pub struct OnceCell<T> {
    slot: OnceSlot<T>,
    /// One permit while the slot is empty and nobody fills it; closed once it is filled.
    semaphore: Semaphore,
}

impl<T> OnceCell<T> {
    /// Makes an empty cell.
    pub fn new() -> Self {
        OnceCell {
            slot: OnceSlot::new(None),
            semaphore: Semaphore::new(1),
        }
    }

    /// Makes an empty cell, also in a `static`.
    #[cfg(not(gmp_loom))]
    pub const fn const_new() -> Self {
        OnceCell {
            slot: OnceSlot::const_empty(),
            semaphore: Semaphore::const_new(1),
        }
    }

    /// Makes a cell that holds `value`, or an empty one for `None`.
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(OnceCell::new, OnceCell::from)
    }

    /// Makes a cell that holds `value`, also in a `static`.
    #[cfg(not(gmp_loom))]
    pub const fn const_new_with(value: T) -> Self {
        OnceCell {
            slot: OnceSlot::const_filled(value),
            semaphore: Semaphore::const_new_closed(),
        }
    }

    /// Whether the cell holds a value.
    pub fn initialized(&self) -> bool {
        self.slot.is_set()
    }

    /// The value, or `None` if the cell is empty.
    pub fn get(&self) -> Option<&T> {
        self.slot.get()
    }

    /// The value, or `None` if the cell is empty. Needs no lock, since the cell is borrowed mutably.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.slot.get_mut()
    }

    /// Fills the cell if it is empty.
    ///
    /// # Errors
    ///
    /// [`SetError::AlreadyInitializedError`] if it holds a value;
    /// [`SetError::InitializingError`] if somebody is making one right now. Both give `value` back.
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        if self.initialized() {
            return Err(SetError::AlreadyInitializedError(value));
        }
        match self.semaphore.try_acquire(1) {
            Ok(()) => {
                self.fill(value, Attempt(&self.semaphore));
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => Err(SetError::InitializingError(value)),
            Err(TryAcquireError::Closed) => Err(SetError::AlreadyInitializedError(value)),
        }
    }

    /// The value; if the cell is empty, `init` makes it.
    ///
    /// If another task is making it, this waits for it and returns its value. If the operation is
    /// cancelled or panics, the attempt is void, and one of those who wait makes the next.
    ///
    /// An `init` that calls `get_or_init` of the same cell waits for itself, for ever.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops what `init` returned. The cell stays as it is.
    pub async fn get_or_init<F, Fut>(&self, init: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        if let Some(value) = self.get() {
            return value;
        }
        match self.attempt().await {
            Ok(attempt) => self.fill(init().await, attempt),
            Err(value) => value,
        }
    }

    /// The value; if the cell is empty, `init` makes it, or fails to.
    ///
    /// As [`get_or_init`](OnceCell::get_or_init); an attempt that returns an error is void too.
    ///
    /// # Errors
    ///
    /// The error of `init`. The errors of other tasks' attempts are theirs alone.
    ///
    /// # Cancel safety
    ///
    /// As for [`get_or_init`](OnceCell::get_or_init).
    pub async fn get_or_try_init<E, F, Fut>(&self, init: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        match self.attempt().await {
            Ok(attempt) => {
                let value = init().await?;
                Ok(self.fill(value, attempt))
            }
            Err(value) => Ok(value),
        }
    }

    /// Waits for the right to fill the cell, or for the value if somebody else fills it.
    async fn attempt(&self) -> Result<Attempt<'_>, &T> {
        match self.semaphore.acquire(1, WaitReason::OnceCell).await {
            Ok(()) => Ok(Attempt(&self.semaphore)),
            Err(_) => Err(self.get().expect("the semaphore is closed by filling")),
        }
    }

    fn fill(&self, value: T, attempt: Attempt<'_>) -> &T {
        // SAFETY: the attempt holds the only permit, and while there is one the slot is empty: it
        // is not given back once the slot is filled.
        let value = unsafe { self.slot.fill(value) };
        std::mem::forget(attempt);
        self.semaphore.close();
        value
    }

    /// The value, or `None` if the cell is empty.
    pub fn into_inner(mut self) -> Option<T> {
        self.slot.take()
    }

    /// Takes the value out and leaves the cell empty, ready to be filled anew.
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }
}

/// The right to fill the cell, given back when the attempt comes to nothing.
struct Attempt<'a>(&'a Semaphore);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        OnceCell::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        OnceCell {
            slot: OnceSlot::new(Some(value)),
            semaphore: Semaphore::new_closed(),
        }
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        OnceCell::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell")
            .field("value", &self.get())
            .finish()
    }
}

/// Error returned by [`OnceCell::set`], with the value that was not set.
#[derive(Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// The cell already held a value.
    AlreadyInitializedError(T),

    /// Somebody was making a value.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Whether the cell already held a value.
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, SetError::AlreadyInitializedError(_))
    }

    /// Whether somebody was making a value.
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, SetError::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetError::AlreadyInitializedError(_) => "AlreadyInitializedError",
            SetError::InitializingError(_) => "InitializingError",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}
