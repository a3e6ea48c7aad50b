//! `SetOnce`: a value set once, that tasks wait for.
//!
//! The lock of the `Notify` decides who sets it. A waiter makes its `Notified` before it looks at
//! the slot: either it sees the value, or the `notify_waiters` that follows the value reaches it.

use std::error::Error;
use std::fmt;

use gmp_executor::wait::WaitReason;

use crate::notify::Notify;
use crate::once_slot::OnceSlot;
use crate::primitives::proceed;

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// A cell that is set once, and lets tasks wait until it is: an event with a value.
///
/// As `tokio::sync::SetOnce`. To have the value made by the first who asks for it, see
/// [`OnceCell`](crate::OnceCell).
///
/// # Examples
///
/// ```
/// use gmp::sync::SetOnce;
///
/// static PORT: SetOnce<u16> = SetOnce::const_new();
///
/// #[gmp::main]
/// async fn main() {
///     gmp::spawn(async { PORT.set(8080) });
///     assert_eq!(*PORT.wait().await, 8080);
///     assert!(PORT.set(80).is_err());
/// }
/// ```
pub struct SetOnce<T> {
    slot: OnceSlot<T>,
    notify: Notify,
}

impl<T> SetOnce<T> {
    /// Makes an empty cell.
    pub fn new() -> Self {
        SetOnce {
            slot: OnceSlot::new(None),
            notify: Notify::new(),
        }
    }

    /// Makes an empty cell, also in a `static`.
    #[cfg(not(gmp_loom))]
    pub const fn const_new() -> Self {
        SetOnce {
            slot: OnceSlot::const_empty(),
            notify: Notify::const_new(),
        }
    }

    /// Makes a cell that holds `value`, or an empty one for `None`.
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(SetOnce::new, SetOnce::from)
    }

    /// Makes a cell that holds `value`, also in a `static`.
    #[cfg(not(gmp_loom))]
    pub const fn const_new_with(value: T) -> Self {
        SetOnce {
            slot: OnceSlot::const_filled(value),
            notify: Notify::const_new(),
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

    /// Sets the value if the cell is empty, and wakes everybody who waits for it.
    ///
    /// # Errors
    ///
    /// [`SetOnceError`], with `value`, if the cell holds a value already; [`get`](SetOnce::get)
    /// gives that from then on.
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        if self.initialized() {
            return Err(SetOnceError(value));
        }
        let mut value = Some(value);
        self.notify.notify_waiters_if(|| {
            if self.initialized() {
                return false;
            }
            if let Some(value) = value.take() {
                // SAFETY: the slot is empty, and is filled here only, under the notify's lock.
                unsafe { self.slot.fill(value) };
            }
            true
        });
        match value {
            Some(value) => Err(SetOnceError(value)),
            None => Ok(()),
        }
    }

    /// The value, or `None` if the cell is empty.
    pub fn into_inner(mut self) -> Option<T> {
        self.slot.take()
    }

    /// Waits until the cell holds a value; at once if it does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn wait(&self) -> &T {
        if let Some(value) = self.get() {
            proceed().await;
            return value;
        }
        loop {
            let notified = self.notify.notified_for(WaitReason::OnceCell);
            if let Some(value) = self.get() {
                return value;
            }
            notified.await;
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        SetOnce::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        SetOnce {
            slot: OnceSlot::new(Some(value)),
            notify: Notify::new(),
        }
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        SetOnce::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce")
            .field("value", &self.get())
            .finish()
    }
}

/// Error returned by [`SetOnce::set`]: the cell held a value already. Gives back the one not set.
#[derive(Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetOnceError")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}
