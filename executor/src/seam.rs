//! What the executor needs from outside: a poller of I/O readiness and a set of timers, one of each a P.
//!
//! The executor knows neither sockets nor clocks. `gmp-net` implements [`Netpoll`], `gmp-timer`
//! implements [`Timers`], and tests put simulated ones underneath. The doc comments here are the
//! contract; both traits follow the list of functions at the top of Go's `netpoll.go` and what Go's
//! `proc.go` asks of a P's timers.
//!
//! Both kinds of source *wake wakers* while they are polled. The executor calls `poll` and `fire`
//! with batching switched on for the thread, so that the tasks woken arrive at the tail of the P's
//! queue in order instead of displacing one another from runnext. A waker may be anybody's and may
//! panic: an implementation holds no lock while it wakes, and wakes the rest when one panics
//! ([`wake_all`] does that).
//!
//! `p` is the index of a P, below the `procs` that the runtime was built with. Whoever holds no P
//! may pass any index.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Duration;

/// Readiness of file descriptors: a poller a P.
pub trait Netpoll: Any + Debug + Send + Sync {
    /// Polls the poller of P `p` and wakes whoever waited for what became ready.
    ///
    /// With `None` it waits until something is ready or [`notify`](Netpoll::notify) was called;
    /// with `Some(Duration::ZERO)` it does not wait. `by` is the P that the caller holds, which
    /// differs from `p` when a thief polls for somebody else; sources may move there.
    ///
    /// At most one thread waits in one poller at a time; others may poll it without waiting
    /// meanwhile. Returns how many wakers it woke.
    ///
    /// # Errors
    ///
    /// What the operating system said; an interrupted wait is no error.
    fn poll(&self, p: usize, by: usize, timeout: Option<Duration>) -> io::Result<usize>;

    /// Makes the `poll` of P `p` that waits now, or else the next one that would wait, return.
    fn notify(&self, p: usize);

    /// Whether the poller of P `p` has sources, so that somebody has to look at it.
    ///
    /// A hint that may lag behind for a source that is being registered or dropped right now.
    fn has_sources(&self, p: usize) -> bool;

    /// Every registered source fails from now on, and everybody who waits is woken to see it.
    fn shutdown(&self);

    /// For the sockets, which find their own implementation behind the current runtime's handle.
    fn as_any(&self) -> &dyn Any;
}

/// Deadlines: a set of timers a P.
pub trait Timers: Any + Debug + Send + Sync {
    /// How long the M of P `p` may sleep before it has to call [`fire`](Timers::fire);
    /// `None` when there is no deadline. A paused clock that may advance by itself says zero.
    fn park_timeout(&self, p: usize) -> Option<Duration>;

    /// Whether P `p` has a timer that is due. Costs one atomic load when it has no timers.
    fn is_due(&self, p: usize) -> bool;

    /// Fires what is due on P `p` and returns how many wakers it woke. Cheap when nothing is due.
    fn fire(&self, p: usize) -> usize;

    /// Called by a `current_thread` runtime when its netpoll found nothing, nobody woke a task and
    /// there is nothing to run: a paused clock steps to the next deadline. Says whether it did.
    fn auto_advance(&self) -> bool;

    /// Counts the blocking jobs during which a paused clock must not step by itself, until those who wait for
    /// them are woken: one more with `true`, one fewer with `false`.
    fn inhibit_auto_advance(&self, inhibit: bool);

    /// Every timer fails from now on: sleepers are woken, and new ones panic or fail as documented.
    fn shutdown(&self);

    /// For the timers, which find their own implementation behind the current runtime's handle.
    fn as_any(&self) -> &dyn Any;
}

/// Wakes every waker, the rest too when one of them panics; returns how many there were.
///
/// A panic of a waker is swallowed: it is the business of whoever made the waker, and the wake-ups
/// behind it must not be lost.
pub fn wake_all(wakers: impl IntoIterator<Item = Waker>) -> usize {
    let mut woken = 0;
    for waker in wakers {
        woken += 1;
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
    woken
}
