//! Awaiting a task.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker, ready};

use super::cell::{self, Header};
use super::{AbortHandle, Id, JoinError};
use crate::coop;
use crate::wait::{self, WaitReason};

/// Owns the permission to await a task.
///
/// As `tokio::task::JoinHandle`: dropping it *detaches* the task, which goes on. Awaiting gives the
/// task's output, or a [`JoinError`] when it panicked or was cancelled.
///
/// # Cancel safety
///
/// `&mut JoinHandle` is a future too, and may be dropped and awaited again.
///
/// # Panics
///
/// Polling it after it has given its result panics.
pub struct JoinHandle<T> {
    /// A reference to a task whose output is a `T`.
    header: NonNull<Header>,
    marker: PhantomData<T>,
}

// SAFETY: through the handle one gets at the output, which is a `T: Send`; the rest of a task is
// reached through its atomic state.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: by reference one can only ask and abort; the output comes out by `&mut` alone.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}
impl<T> std::panic::UnwindSafe for JoinHandle<T> {}
impl<T> std::panic::RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Takes over the reference that is counted for the handle.
    pub(super) fn new(header: NonNull<Header>) -> Self {
        JoinHandle {
            header,
            marker: PhantomData,
        }
    }

    fn task(&self) -> &Header {
        // SAFETY: the handle's reference keeps the task alive.
        unsafe { self.header.as_ref() }
    }

    /// Asks the task to end: its future is dropped the next time it would be polled.
    ///
    /// As in tokio, awaiting the handle then gives a cancelled [`JoinError`], unless the task
    /// completed before; a `spawn_blocking` job that has started cannot be aborted.
    pub fn abort(&self) {
        // SAFETY: the handle has a reference.
        unsafe { cell::abort(self.header) }
    }

    /// Whether the task is done. `abort` does not make it so at once.
    pub fn is_finished(&self) -> bool {
        self.task().state.is_complete()
    }

    /// The id of the task.
    pub fn id(&self) -> Id {
        self.task().meta().id()
    }

    /// A handle that can abort the task and nothing else.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::new(self.header)
    }

    /// Leaves the waker for the task's end; `false` if it has ended.
    fn register(&mut self, waker: &Waker) -> bool {
        let identity = Some((waker.data(), waker.vtable()));
        // SAFETY: this is the handle, and by `&mut`.
        let registered = unsafe { cell::registered_waker(self.header) };
        let state = &self.task().state;
        if state.has_join_waker() {
            // The waker in the slot keeps its data alive, so the same identity is the same waker.
            if *registered == identity {
                return true;
            }
            if !state.unset_join_waker() {
                return false;
            }
        }
        // SAFETY: JOIN_WAKER is clear and the task not complete with it: rule 3.
        let slot = unsafe { cell::join_waker_slot(self.header) };
        *slot = Some(waker.clone());
        if !state.set_join_waker() {
            *slot = None;
            return false;
        }
        *registered = identity;
        true
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let coop = ready!(coop::poll_proceed(cx));
        if !self.task().state.is_complete() && self.register(cx.waker()) {
            wait::record(WaitReason::Join);
            return Poll::Pending;
        }
        coop.made_progress();
        // SAFETY: the task is complete, its output a `T`, and this is its handle (rule 2).
        Poll::Ready(unsafe { cell::output_of(self.header) })
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let left = self.task().state.drop_join_handle();
        if left.drop_output {
            // SAFETY: COMPLETE was seen with JOIN_INTEREST set: rule 2.
            unsafe { cell::discard_output(self.header) }
        }
        if left.drop_waker {
            // SAFETY: JOIN_WAKER was cleared before COMPLETE: rule 3.
            unsafe { *cell::join_waker_slot(self.header) = None }
        }
        // SAFETY: the handle's reference, which is not used any more.
        unsafe { cell::drop_reference(self.header) }
    }
}

impl<T: fmt::Debug> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("id", &self.id())
            .finish()
    }
}
