//! Spawning onto the current runtime.

use std::future::Future;
use std::panic::Location;

use super::{BOX_ABOVE, JoinHandle};
use crate::context::{self, Entered};
use crate::handle::{Handle, TryCurrentError};

/// The current runtime's handle, or tokio's panic at the caller.
#[track_caller]
fn with_handle<R>(f: impl FnOnce(&Handle) -> R) -> R {
    match context::with_current(f) {
        Ok(result) => result,
        Err(error) => no_runtime(&error),
    }
}

#[cold]
#[track_caller]
fn no_runtime(error: &TryCurrentError) -> ! {
    panic!("{error}")
}

/// Spawns a task onto the current runtime; it starts at once, awaited or not.
///
/// As `tokio::spawn`. The task goes into the runnext slot of the P that spawns it: it runs next, unless
/// another one is spawned or woken before (Go's rule). There is no guarantee that it runs to its end:
/// a shutdown drops it.
///
/// # Panics
///
/// Outside a runtime.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let location = Location::caller();
    // Before it is moved any further: without optimisation each move is a copy on the stack.
    if size_of::<F>() > BOX_ABOVE {
        spawn_here(Box::pin(future), location)
    } else {
        spawn_here(future, location)
    }
}

#[inline]
#[track_caller]
fn spawn_here<F>(future: F, location: &'static Location<'static>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    with_handle(|handle| handle.spawn_named(future, None, location))
}

/// Runs a closure on a thread where it may block.
///
/// As `tokio::task::spawn_blocking`: such a job cannot be aborted once it has started, and a
/// runtime's shutdown waits for it.
///
/// # Panics
///
/// Outside a runtime.
#[track_caller]
pub fn spawn_blocking<F, R>(job: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let location = Location::caller();
    with_handle(|handle| handle.spawn_blocking_named(job, None, location))
}

/// Runs a closure that may block on this thread, and gives the P to another thread before.
///
/// As `tokio::task::block_in_place`, and Go's `entersyscallblock` and `handoffp`. Other code of the *same*
/// task (`join!`, `select!`) waits meanwhile. Outside a runtime, and on a thread of the blocking pool,
/// it just calls the closure. When it returns, the task goes on without a P until its poll ends.
///
/// # Panics
///
/// On a `current_thread` runtime, and inside a `LocalSet`: there is no other thread to go on.
#[track_caller]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    match context::entered() {
        Entered::No => return f(),
        Entered::Yes {
            block_in_place: false,
        } => panic!("can call blocking only when running on the multi-threaded runtime"),
        Entered::Yes {
            block_in_place: true,
        } => {}
    }
    // What this poll has deferred may be what the closure waits for.
    context::wake_deferred();
    hand_off();
    let _free = context::exit_runtime();
    f()
}

/// Gives the P of this thread, if it holds one, to another thread.
fn hand_off() {
    let handed = context::hot(|hot| {
        let m = hot.m()?;
        Some((m.hand_off()?, m.borrows(), m.shared_scheduler()))
    });
    match handed {
        Some((p, true, scheduler)) => scheduler.return_borrowed(p),
        Some((p, false, scheduler)) => {
            scheduler.ps[p].set_holder(None);
            scheduler.pool.hold(&scheduler, p);
        }
        None => {}
    }
}
