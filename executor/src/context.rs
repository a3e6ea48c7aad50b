//! What a thread knows about the runtime it is in: thread-local state.
//!
//! Two parts. `Hot` holds plain cells without a destructor, so that reading it costs one
//! address computation and works in the destructors of other thread-locals. The rest (the entered
//! handles, the deferred wakers) has a destructor and may be gone; every access says what happens then.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::ptr;
use std::task::{Context, Poll, Waker};

use crate::coop::{self, Budget};
use crate::handle::{Handle, TryCurrentError};
use crate::m::M;
use crate::park::ThreadParker;
use crate::task::{self, Meta};

/// The cells that every leaf operation looks at.
pub(crate) struct Hot {
    /// The budget of the poll in progress.
    pub(crate) budget: Cell<Budget>,
    /// The metadata of the task being polled on this thread, or null.
    task: Cell<*const Meta>,
    /// The data pointer of the waker that the poll in progress was given, or null.
    waker_data: Cell<*const ()>,
    /// The M that this thread is, or null.
    m: Cell<*const M>,
    /// Whether somebody wakes what was deferred on this thread once the poll has returned.
    defers: Cell<bool>,
    /// Whether this thread drives async tasks, so that it must not block.
    entered: Cell<Entered>,
}

/// Whether a thread may block, or start to drive a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It drives nothing.
    No,
    /// It drives a runtime, inside `block_on` or as an M.
    Yes { block_in_place: bool },
}

impl Hot {
    #[inline]
    pub(crate) fn is_preempted(&self) -> bool {
        self.m().is_some_and(M::is_preempted)
    }

    #[inline]
    pub(crate) fn m(&self) -> Option<&M> {
        // SAFETY: the pointer is set for as long as the M lives further down this thread's stack (by
        // `enter_m`), and null otherwise.
        unsafe { self.m.get().as_ref() }
    }
}

thread_local! {
    static HOT: Hot = const {
        Hot {
            budget: Cell::new(Budget::unconstrained()),
            task: Cell::new(ptr::null()),
            waker_data: Cell::new(ptr::null()),
            m: Cell::new(ptr::null()),
            defers: Cell::new(false),
            entered: Cell::new(Entered::No),
        }
    };
    static HANDLES: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    static DEFERRED: RefCell<Vec<Waker>> = const { RefCell::new(Vec::new()) };
}

#[inline]
pub(crate) fn hot<R>(f: impl FnOnce(&Hot) -> R) -> R {
    HOT.with(f)
}

/// Puts a cell of [`Hot`] back to what it was.
#[must_use]
pub(crate) struct Restore<F: FnMut()>(F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Marks `meta`'s task as the one being polled (or dropped) on this thread, until the guard goes.
#[inline]
pub(crate) fn enter_task(meta: &Meta, waker_data: *const ()) -> impl Drop + use<> {
    let before = hot(|hot| (hot.task.replace(meta), hot.waker_data.replace(waker_data)));
    Restore(move || {
        hot(|hot| {
            hot.task.set(before.0);
            hot.waker_data.set(before.1);
        });
    })
}

/// Marks the thread as polling a future that is no task, with a waker that never panics.
pub(crate) fn enter_main(waker_data: *const ()) -> impl Drop + use<> {
    let before = hot(|hot| {
        (
            hot.task.replace(ptr::null()),
            hot.waker_data.replace(waker_data),
        )
    });
    Restore(move || {
        hot(|hot| {
            hot.task.set(before.0);
            hot.waker_data.set(before.1);
        });
    })
}

/// Makes `m` the M of this thread until the guard goes. Whatever is deferred has to be woken by it.
///
/// The guard borrows `m`, so that the pointer cannot outlive it.
pub(crate) fn enter_m(m: &M) -> impl Drop + use<'_> {
    let before = hot(|hot| (hot.m.replace(m), hot.defers.replace(true)));
    let m: &M = m;
    Restore(move || {
        let _borrowed = m;
        hot(|hot| {
            hot.m.set(before.0);
            hot.defers.set(before.1);
        });
    })
}

/// Calls `f` with the metadata of the task being polled on this thread, if there is one.
#[inline]
pub(crate) fn with_task<R>(f: impl FnOnce(&Meta) -> R) -> Option<R> {
    hot(|hot| {
        // SAFETY: the pointer is set for the duration of a poll or a drop of the task's future, by
        // whoever keeps the task's allocation alive over that time, and null otherwise.
        unsafe { hot.task.get().as_ref() }.map(f)
    })
}

/// Whether the waker is the one that the runtime gave to the poll in progress.
#[inline]
pub(crate) fn is_own_waker(waker: &Waker) -> bool {
    hot(|hot| hot.waker_data.get() == waker.data())
}

/// Wakes the waker when the poll in progress has returned. If it is that of the task being polled, that takes a
/// note and no reference.
pub(crate) fn defer(waker: &Waker) {
    if is_own_waker(waker) {
        // Where a task is dropped there is no waker of its own, and a stranger's data may be null, too.
        if !task::is_waker(waker) || with_task(Meta::wake_after_poll).is_none() {
            waker.wake_by_ref();
        }
        return;
    }
    let deferred = hot(|hot| hot.defers.get())
        && DEFERRED
            .try_with(|deferred| deferred.borrow_mut().push(waker.clone()))
            .is_ok();
    if !deferred {
        waker.wake_by_ref();
    }
}

/// Wakes what the last poll deferred. To be called outside a poll.
#[inline]
pub(crate) fn wake_deferred() {
    let _ = DEFERRED.try_with(|deferred| {
        if !deferred.borrow().is_empty() {
            let wakers = std::mem::take(&mut *deferred.borrow_mut());
            crate::seam::wake_all(wakers);
        }
    });
}

/// Calls `f` with the handle of the runtime this thread is in.
///
/// # Errors
///
/// Outside a runtime, or when the thread-local that holds it is gone.
#[inline]
pub fn with_current<R>(f: impl FnOnce(&Handle) -> R) -> Result<R, TryCurrentError> {
    let current = |handles: &RefCell<Vec<Handle>>| {
        let handles = handles.borrow();
        handles.last().map(f)
    };
    match HANDLES.try_with(current) {
        Ok(Some(result)) => Ok(result),
        Ok(None) => Err(TryCurrentError::no_context()),
        Err(_) => Err(TryCurrentError::thread_local_destroyed()),
    }
}

/// Makes `handle` current; the depth is what [`pop_handle`] wants back. `None` when the thread-local
/// is gone.
pub(crate) fn push_handle(handle: Handle) -> Option<usize> {
    HANDLES
        .try_with(|handles| {
            let mut handles = handles.borrow_mut();
            handles.push(handle);
            handles.len()
        })
        .ok()
}

/// Undoes the push that gave `depth`.
#[track_caller]
pub(crate) fn pop_handle(depth: usize) {
    let popped = HANDLES.try_with(|handles| {
        let mut handles = handles.borrow_mut();
        (handles.len() == depth).then(|| handles.pop())
    });
    // Outside the borrow: the last handle may drop a good deal.
    match popped {
        Ok(None) if !std::thread::panicking() => panic!(
            "`EnterGuard` values dropped out of order. Guards returned by `Handle::enter()` must \
             be dropped in the reverse order as they were acquired."
        ),
        // The thread-local is gone: the thread ends, and so does what it was in.
        _ => {}
    }
}

pub(crate) fn entered() -> Entered {
    hot(|hot| hot.entered.get())
}

/// Marks the thread as driving a runtime until the guard goes; `None` if it drives one already.
pub(crate) fn enter_runtime(block_in_place: bool) -> Option<impl Drop + use<>> {
    hot(|hot| {
        if hot.entered.get() != Entered::No {
            return None;
        }
        hot.entered.set(Entered::Yes { block_in_place });
        let budget = hot.budget.get();
        Some(Restore(move || {
            self::hot(|hot| {
                hot.entered.set(Entered::No);
                hot.budget.set(budget);
            });
        }))
    })
}

/// Marks the thread as free to block until the guard goes: user code inside `block_in_place`, or a
/// blocking job.
pub(crate) fn exit_runtime() -> impl Drop + use<> {
    let before = hot(|hot| {
        (
            hot.entered.replace(Entered::No),
            hot.budget.replace(Budget::unconstrained()),
            hot.defers.replace(false),
        )
    });
    Restore(move || {
        hot(|hot| {
            hot.entered.set(before.0);
            hot.budget.set(before.1);
            hot.defers.set(before.2);
        });
    })
}

/// Forbids `block_in_place` on this thread until the guard goes: a `LocalSet` is being driven.
pub(crate) fn disallow_block_in_place() -> impl Drop + use<> {
    let before = entered();
    if let Entered::Yes { .. } = before {
        hot(|hot| {
            hot.entered.set(Entered::Yes {
                block_in_place: false,
            });
        });
    }
    Restore(move || hot(|hot| hot.entered.set(before)))
}

/// The words in which tokio says that a thread must not block.
pub(crate) const MUST_NOT_BLOCK: &str = "Cannot block the current thread from within a runtime. \
     This happens because a function attempted to block the current thread while the thread is \
     being used to drive asynchronous tasks.";

/// Polls a future on this thread, which sleeps while the future waits. For the `blocking_*` methods.
///
/// # Panics
///
/// On a thread that drives async tasks; see `spawn_blocking` and `block_in_place` for ways out.
#[track_caller]
pub fn block_on_thread<F: Future>(future: F) -> F::Output {
    let Some(_entered) = enter_runtime(false) else {
        panic!("{MUST_NOT_BLOCK}");
    };
    park_on(future)
}

/// Polls a future on this thread, parking it while the future waits.
pub(crate) fn park_on<F: Future>(future: F) -> F::Output {
    let parker = ThreadParker::new();
    let waker = parker.waker();
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        let polled = {
            let _main = enter_main(waker.data());
            coop::with_full_budget(|| future.as_mut().poll(&mut cx))
        };
        if let Poll::Ready(output) = polled {
            return output;
        }
        parker.park();
    }
}

/// Tells threads apart; for spreading work over shards.
pub(crate) fn thread_hash() -> usize {
    let token = thread_token();
    (token >> 6) ^ (token >> 14)
}

/// Names this thread among those that are alive: the address of a thread-local of its own.
#[inline]
pub(crate) fn thread_token() -> usize {
    hot(|hot| ptr::from_ref(hot) as usize)
}

/// The index of the P that this thread holds, if it is a worker of a runtime.
///
/// As `tokio::runtime::worker_index`. A task that waits, or blocks for long, may go on with another P.
pub fn worker_index() -> Option<usize> {
    hot(|hot| hot.m().filter(|m| !m.borrows()).and_then(M::p_index))
}
