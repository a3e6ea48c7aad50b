//! What a G polls: the user's future, with its panics caught and its abort obeyed.

use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_task::{Builder, Runnable, ScheduleInfo, WithInfo};
use pin_project_lite::pin_project;

use super::meta::State;
use super::{Id, JoinError, JoinHandle, Meta, Shard, Target};
use crate::context;
use crate::runnext::Slotted;

/// A goroutine's counterpart: a spawned future that is runnable.
pub(crate) type G = Runnable<Meta>;

impl Slotted for G {
    fn into_raw(self) -> NonNull<()> {
        Runnable::into_raw(self)
    }

    unsafe fn from_raw(raw: NonNull<()>) -> G {
        // SAFETY: the caller passes on a pointer of `into_raw`, once.
        unsafe { Runnable::from_raw(raw) }
    }
}

/// Which pool a task belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpawnKind {
    Async,
    Blocking { mandatory: bool },
}

/// Everything about a task but its future.
pub(crate) struct Spawn {
    pub(crate) owner: Arc<Shard>,
    pub(crate) id: Id,
    pub(crate) location: &'static Location<'static>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) kind: SpawnKind,
}

/// Futures beyond this size are boxed before they are moved for the first time, so that a spawn
/// takes little of the caller's stack (tokio's limit).
pub(crate) const BOX_ABOVE: usize = 16 * 1024;

/// Makes a task. The `G` is the caller's to submit; it is `None` when the owner is closed, and the
/// handle then says cancelled.
///
/// # Safety
///
/// Either the future and its output are `Send`, or the caller sees to it that the `G` is run and
/// dropped on the thread that calls this. Either way they are `'static`.
pub(crate) unsafe fn new_g<F: Future>(
    spec: Spawn,
    future: F,
) -> (Option<G>, JoinHandle<F::Output>) {
    let mut meta = Meta::new(&spec.owner, spec.id, spec.location, spec.name);
    if let SpawnKind::Blocking { mandatory } = spec.kind {
        meta = meta.blocking(mandatory);
    }
    let builder = Builder::new().metadata(meta);
    // SAFETY: the schedule function is `Send + Sync + 'static`; for the future the caller vouches.
    let (g, task) = unsafe {
        builder.spawn_unchecked(
            |meta| Body {
                meta,
                future: Some(future),
            },
            WithInfo(schedule),
        )
    };
    let registered = spec.owner.insert(&g);
    let handle = JoinHandle::new(task, spec.owner);
    (registered.then_some(g), handle)
}

/// Called by `async-task` when a G becomes runnable.
fn schedule(g: G, info: ScheduleInfo) {
    let meta = g.metadata();
    meta.set_state(State::Runnable);
    // SAFETY: the `Runnable` is in hand, so the task cannot become DONE.
    match unsafe { meta.owner() }.target() {
        Target::Local(local) => {
            let local: *const _ = local;
            // SAFETY: the G keeps its owner and so `local` alive until it is queued, and `ready`
            // touches its `self` after that only through a reference of its own, or on the set's
            // thread, where the set itself is alive.
            unsafe { (*local).ready(g) }
        }
        Target::Scheduler(scheduler) => {
            let scheduler: *const _ = Arc::as_ptr(scheduler);
            crate::scheduler::ready(scheduler, g, info.woken_while_running);
        }
    }
}

/// An output whose drop swallows a panic: nobody is there to whom it could go.
pub(crate) struct Output<T>(ManuallyDrop<T>);

impl<T> Output<T> {
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the value is taken out once, and `this` runs no destructor that would touch it.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Output<T> {
    fn drop(&mut self) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: dropped once, here; `into_inner` does not come by.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }));
    }
}

pin_project! {
    struct Body<'a, F> {
        meta: &'a Meta,
        // `None` once the future is dropped.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Body<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            // A panic here has no handle to go to: the task is being dropped without having run to
            // its end, by a shutdown.
            let _ = this.drop_future();
        }
    }
}

/// The task's future is gone: its registry entry has to go too, now or with others.
fn retire(meta: &Meta) {
    if !meta.done() {
        return;
    }
    // SAFETY: the caller is still inside the poll or the drop that made the task DONE, and the
    // entry, which only this function has leave to take out, was made by a shard that waits for it.
    let shard = unsafe { meta.owner() };
    let swept = context::hot(|hot| match shard.target() {
        Target::Local(_) => false,
        Target::Scheduler(scheduler) => hot
            .m()
            .filter(|m| std::ptr::eq(m.scheduler(), Arc::as_ptr(scheduler)))
            .is_some_and(|m| {
                // SAFETY: the M's thread owns the runtime's shards, and outlives the M.
                unsafe { m.sweep.add(meta) };
                true
            }),
    });
    if !swept {
        shard.remove(meta.slot());
    }
}

impl<F> Body<'_, F> {
    /// Drops the future, inside the task's context, and takes the task out of the registry.
    fn drop_future(self: Pin<&mut Self>) -> Result<(), Box<dyn Any + Send>> {
        let mut this = self.project();
        let mut dropped = Ok(());
        if this.future.is_some() {
            let _task = context::enter_task(this.meta, std::ptr::null());
            dropped = catch_unwind(AssertUnwindSafe(|| this.future.set(None)));
            if dropped.is_err() {
                // The value is gone as far as it ever will be; do not run its destructor again.
                // `Pin::set` has already overwritten the slot when the destructor unwinds.
                debug_assert!(this.future.is_none());
            }
        }
        retire(this.meta);
        dropped
    }
}

impl<F: Future> Future for Body<'_, F> {
    type Output = Result<Output<F::Output>, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let meta = self.meta;
        if meta.is_aborted() {
            return Poll::Ready(Err(match self.drop_future() {
                Ok(()) => JoinError::cancelled(meta.id()),
                Err(payload) => JoinError::panicked(meta.id(), payload),
            }));
        }
        meta.poll_begins();
        let polled = {
            let _task = context::enter_task(meta, cx.waker().data());
            let future = self.as_mut().project().future;
            catch_unwind(AssertUnwindSafe(|| {
                let future = future.as_pin_mut();
                future.expect("a G is not polled after it is done").poll(cx)
            }))
        };
        match polled {
            Ok(Poll::Pending) => {
                meta.set_state(State::Waiting);
                Poll::Pending
            }
            Ok(Poll::Ready(output)) => Poll::Ready(match self.drop_future() {
                Ok(()) => Ok(Output(ManuallyDrop::new(output))),
                Err(payload) => Err(JoinError::panicked(meta.id(), payload)),
            }),
            Err(payload) => {
                // The first panic is the one to report.
                let _ = self.drop_future();
                Poll::Ready(Err(JoinError::panicked(meta.id(), payload)))
            }
        }
    }
}
