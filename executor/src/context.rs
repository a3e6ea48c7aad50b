//! What a thread knows about the runtime it is in: thread-local state.
//!
//! Two parts. [`Hot`] holds plain cells without a destructor, so that reading it costs one
//! address computation and works in the destructors of other thread-locals. The rest (the entered
//! handles, the deferred wakers) has a destructor and may be gone; every access says what happens then.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use crate::coop::Budget;
use crate::handle::{Handle, TryCurrentError};
use crate::task::Meta;

/// The cells that every leaf operation looks at.
pub(crate) struct Hot {
    /// The budget of the poll in progress.
    pub(crate) budget: Cell<Budget>,
    /// The metadata of the task being polled on this thread, or null.
    task: Cell<*const Meta>,
    /// The data pointer of the waker that the task being polled was given, or null.
    waker_data: Cell<*const ()>,
    /// Whether somebody wakes what was deferred on this thread once the poll has returned.
    defers: Cell<bool>,
}

impl Hot {
    pub(crate) fn is_preempted(&self) -> bool {
        false
    }
}

thread_local! {
    static HOT: Hot = const {
        Hot {
            budget: Cell::new(Budget::unconstrained()),
            task: Cell::new(std::ptr::null()),
            waker_data: Cell::new(std::ptr::null()),
            defers: Cell::new(false),
        }
    };
    static HANDLES: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    static DEFERRED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

#[inline]
pub(crate) fn hot<R>(f: impl FnOnce(&Hot) -> R) -> R {
    HOT.with(f)
}

/// Calls `f` with the metadata of the task being polled on this thread, if there is one.
#[inline]
pub(crate) fn with_task<R>(f: impl FnOnce(&Meta) -> R) -> Option<R> {
    hot(|hot| {
        let task = hot.task.get();
        // SAFETY: the pointer is set for the duration of a poll or a drop of the task's future, by
        // whoever keeps the task's allocation alive over that time, and null otherwise.
        unsafe { task.as_ref() }.map(f)
    })
}

/// Wakes the waker: at once if it is the polled task's own, else when the task's poll has returned.
pub(crate) fn defer(waker: &Waker) {
    let deferred = hot(|hot| hot.defers.get() && hot.waker_data.get() != waker.data())
        && DEFERRED
            .try_with(|deferred| deferred.borrow_mut().push(waker.clone()))
            .is_ok();
    if !deferred {
        waker.wake_by_ref();
    }
}

/// Calls `f` with the handle of the runtime this thread is in.
///
/// # Errors
///
/// Outside a runtime, or when the thread-local that holds it is gone.
pub fn with_current<R>(f: impl FnOnce(&Handle) -> R) -> Result<R, TryCurrentError> {
    match HANDLES.try_with(|handles| handles.borrow().last().map(f)) {
        Ok(Some(result)) => Ok(result),
        Ok(None) => Err(TryCurrentError::no_context()),
        Err(_) => Err(TryCurrentError::thread_local_destroyed()),
    }
}
