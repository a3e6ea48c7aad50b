//! Awaiting a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use async_task::{FallibleTask, Task};

use super::body::Output;
use super::{AbortHandle, Id, JoinError, Meta, Shard};
use crate::context;
use crate::coop;
use crate::seam;
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
    /// `None` once the result was taken.
    task: Option<FallibleTask<Result<Output<T>, JoinError>, Meta>>,
    /// Valid as long as `task` is there: both belong to the same allocation.
    meta: NonNull<Meta>,
    id: Id,
    owner: Arc<Shard>,
    /// The last waker that was not the polling task's own, and the same one under a guard.
    guarded: Option<Box<(Waker, Waker)>>,
}

/// A waker that may be anybody's: `async-task` would abort the process if it panicked.
struct Guarded(Waker);

impl Wake for Guarded {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        seam::wake_all([self.0.clone()]);
    }
}

// SAFETY: the handle is an `async_task::FallibleTask`, which is `Send` for `T: Send`, and a pointer
// to a `Meta`, which is `Sync`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: by reference one can only ask the metadata and the task's state, both `Sync`; the output
// comes out by `&mut` alone.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}
impl<T> std::panic::UnwindSafe for JoinHandle<T> {}
impl<T> std::panic::RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(crate) fn new(task: Task<Result<Output<T>, JoinError>, Meta>, owner: Arc<Shard>) -> Self {
        let meta = NonNull::from(task.metadata());
        let id = task.metadata().id();
        JoinHandle {
            task: Some(task.fallible()),
            meta,
            id,
            owner,
            guarded: None,
        }
    }

    fn guard(&mut self, waker: &Waker) -> &Waker {
        let stale = |pair: &Box<(Waker, Waker)>| !pair.0.will_wake(waker);
        if self.guarded.as_ref().is_none_or(stale) {
            let guarded = Waker::from(Arc::new(Guarded(waker.clone())));
            self.guarded = Some(Box::new((waker.clone(), guarded)));
        }
        &self.guarded.as_ref().expect("set above").1
    }

    fn meta(&self) -> Option<&Meta> {
        self.task.as_ref().map(|_| {
            // SAFETY: the metadata lives in the allocation that `self.task` keeps alive.
            unsafe { self.meta.as_ref() }
        })
    }

    /// Asks the task to end: its future is dropped the next time it would be polled.
    ///
    /// As in tokio, awaiting the handle then gives a cancelled [`JoinError`], unless the task
    /// completed before; a `spawn_blocking` job that has started cannot be aborted.
    pub fn abort(&self) {
        if let Some(meta) = self.meta() {
            self.owner.abort(meta.slot(), self.id);
        }
    }

    /// Whether the task is done. `abort` does not make it so at once.
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(FallibleTask::is_finished)
    }

    /// The id of the task.
    pub fn id(&self) -> Id {
        self.id
    }

    /// A handle that can abort the task and nothing else.
    ///
    /// # Panics
    ///
    /// After the handle has given its result.
    pub fn abort_handle(&self) -> AbortHandle {
        let meta = self
            .meta()
            .expect("JoinHandle used after it gave its result");
        AbortHandle {
            owner: self.owner.clone(),
            slot: meta.slot(),
            id: self.id,
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let coop = ready!(coop::poll_proceed(cx));
        let mut task = self
            .task
            .take()
            .expect("JoinHandle polled after completion");
        let polled = if context::is_own_waker(cx.waker()) {
            Pin::new(&mut task).poll(cx)
        } else {
            let waker = self.guard(cx.waker());
            Pin::new(&mut task).poll(&mut Context::from_waker(waker))
        };
        let Poll::Ready(result) = polled else {
            self.task = Some(task);
            wait::record(WaitReason::Join);
            return Poll::Pending;
        };
        coop.made_progress();
        drop(task);
        // `None`: the G was dropped without being run, by a shutdown.
        Poll::Ready(match result {
            Some(result) => result.map(Output::into_inner),
            None => Err(JoinError::cancelled(self.id)),
        })
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            // An output that nobody wanted is dropped here; `Output` swallows its panic.
            task.detach();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id).finish()
    }
}
