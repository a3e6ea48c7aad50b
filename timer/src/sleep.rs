//! A future that is ready when a deadline has passed.
//!
//! States of a [`Sleep`], and what it has in the wheel of its shard:
//!
//! - `Unpolled`: nothing. Making such a timer and dropping it takes no lock.
//! - `Reset`: nothing; it was given a new deadline before its first poll, or after it elapsed.
//! - `Registered`: an entry, which the driver fires at the deadline.
//! - `Elapsed`: nothing any more; it was polled after the deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use gmp_executor::coop;
use gmp_executor::wait::{self, WaitReason};
use pin_project_lite::pin_project;

use crate::driver::{Polled, Shard};
use crate::instant::Instant;
use crate::wheel::Key;

const SHUTTING_DOWN: &str = "A Tokio 1.x context was found, but it is being shutdown.";

/// Waits until `duration` has passed, as in tokio.
///
/// The resolution is a millisecond: the future is ready at the first full millisecond (since the runtime
/// began) after the duration, and never earlier. A duration of zero is ready at the first poll. One of
/// more than about thirty years counts as thirty years.
///
/// To do something regularly, use [`interval`](crate::interval()).
///
/// # Cancel safety
///
/// Dropping the future removes the timer.
///
/// # Panics
///
/// Outside a runtime, and in one without timers (`enable_time` was not called on its builder). As in
/// tokio the function itself panics, not the future: `runtime.block_on(sleep(d))` calls it outside,
/// `runtime.block_on(async { sleep(d).await })` does not.
///
/// # Examples
///
/// ```
/// use gmp::time::{Duration, sleep};
///
/// #[gmp::main]
/// async fn main() {
///     sleep(Duration::from_millis(100)).await;
///     println!("100 ms have passed");
/// }
/// ```
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::new(Instant::now().after(duration))
}

/// Waits until `deadline`, as in tokio. A deadline in the past is ready at the first poll.
///
/// Apart from the argument it is the same as [`sleep`].
///
/// # Cancel safety
///
/// Dropping the future removes the timer.
///
/// # Panics
///
/// Outside a runtime, and in one without timers; see [`sleep`].
///
/// # Examples
///
/// ```
/// use gmp::time::{Duration, Instant, sleep_until};
///
/// #[gmp::main]
/// async fn main() {
///     sleep_until(Instant::now() + Duration::from_millis(100)).await;
///     println!("100 ms have passed");
/// }
/// ```
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline)
}

#[derive(Clone, Copy, Debug)]
enum State {
    Unpolled,
    Reset,
    Registered(Key),
    Elapsed,
}

pin_project! {
    /// Future returned by [`sleep`] and [`sleep_until`].
    ///
    /// Ready when the deadline has passed, and from then on each time it is polled. It belongs to the
    /// runtime in which it was made, wherever it is polled. As in tokio it is not `Unpin`: to poll
    /// it by hand or in a `select!`, pin it first.
    ///
    /// A poll after the deadline completes even if the runtime had no time to look at its timers.
    ///
    /// # Panics
    ///
    /// Polling panics once the runtime of the timer was shut down; who waits for a timer at that moment
    /// is woken. As in tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::time::{Duration, Instant, sleep};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let sleep = sleep(Duration::from_millis(10));
    ///     gmp::pin!(sleep);
    ///     sleep.as_mut().await;
    ///     sleep.as_mut().reset(Instant::now() + Duration::from_millis(20));
    ///     sleep.await;
    /// }
    /// ```
    #[project(!Unpin)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Sleep {
        deadline: Instant,
        shard: Arc<Shard>,
        state: State,
    }

    impl PinnedDrop for Sleep {
        fn drop(this: Pin<&mut Self>) {
            this.unregister();
        }
    }
}

impl Sleep {
    #[track_caller]
    pub(crate) fn new(deadline: Instant) -> Sleep {
        Sleep::with_shard(deadline, Shard::current())
    }

    pub(crate) fn with_shard(deadline: Instant, shard: Arc<Shard>) -> Sleep {
        Sleep {
            deadline,
            shard,
            state: State::Unpolled,
        }
    }

    /// When the future is or was ready.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the deadline has passed. As in tokio, `false` for a new future before its first poll.
    pub fn is_elapsed(&self) -> bool {
        match self.state {
            State::Unpolled => false,
            State::Reset => self.now() >= self.deadline,
            State::Registered(key) => self.shard.is_fired(key) || self.now() >= self.deadline,
            State::Elapsed => true,
        }
    }

    /// Sets another deadline, before or after the future was ready.
    ///
    /// A task that waits for the future is woken at the new deadline, without polling it again: at once
    /// if that has passed. Takes constant time.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let me = self.project();
        *me.deadline = deadline;
        let State::Registered(key) = *me.state else {
            *me.state = State::Reset;
            return;
        };
        let waker = match me.shard.until(deadline) {
            Some((tick, _)) => match Shard::reset(me.shard, key, tick) {
                Ok(key) => {
                    *me.state = State::Registered(key);
                    return;
                }
                // The runtime is gone, which the task that waits has to see.
                Err(waker) => waker,
            },
            None => me.shard.remove(key),
        };
        *me.state = State::Reset;
        waker.into_iter().for_each(Waker::wake);
    }

    /// Sets another deadline and forgets who waits: as new.
    pub(crate) fn restart(mut self: Pin<&mut Self>, deadline: Instant) {
        self.as_mut().unregister();
        let me = self.project();
        *me.deadline = deadline;
        *me.state = State::Unpolled;
    }

    /// The time by the clock of the timer's runtime.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.shard.now()
    }

    fn unregister(self: Pin<&mut Self>) {
        let me = self.project();
        if let State::Registered(key) = *me.state {
            *me.state = State::Elapsed;
            drop(me.shard.remove(key));
        }
    }

    /// The part of a poll that the budget does not concern.
    #[inline]
    fn poll_deadline(mut self: Pin<&mut Self>, waker: &Waker) -> Poll<()> {
        assert!(!self.shard.is_closed(), "{SHUTTING_DOWN}");
        let polled = match self.state {
            State::Elapsed => return Poll::Ready(()),
            State::Unpolled | State::Reset => return self.poll_first(waker),
            State::Registered(key) => self.shard.poll(key, waker),
        };
        if polled == Polled::Fired {
            *self.project().state = State::Elapsed;
            return Poll::Ready(());
        }
        // The driver fires the timer when it gets to it, but it does not get to it while a
        // combinator polls the same future again and again within one poll of the task.
        if self.now() >= self.deadline {
            self.as_mut().unregister();
            return Poll::Ready(());
        }
        if polled == Polled::WakesAnother {
            return self.poll_with_another(waker.clone());
        }
        Poll::Pending
    }

    #[inline]
    fn poll_first(self: Pin<&mut Self>, waker: &Waker) -> Poll<()> {
        let me = self.project();
        let Some((tick, now)) = me.shard.until(*me.deadline) else {
            *me.state = State::Elapsed;
            return Poll::Ready(());
        };
        let mut waker = Some(waker.clone());
        match Shard::register(me.shard, tick, now, &mut waker) {
            Some(key) => *me.state = State::Registered(key),
            None => panic!("{SHUTTING_DOWN}"),
        }
        Poll::Pending
    }

    fn poll_with_another(self: Pin<&mut Self>, waker: Waker) -> Poll<()> {
        let me = self.project();
        if let State::Registered(key) = *me.state
            && me.shard.set_waker(key, waker) == Polled::Fired
        {
            *me.state = State::Elapsed;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let coop = ready!(coop::poll_proceed(cx));
        match self.poll_deadline(cx.waker()) {
            Poll::Ready(()) => {
                coop.made_progress();
                Poll::Ready(())
            }
            Poll::Pending => {
                wait::record(WaitReason::Sleep);
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(gmp_loom)))]
#[path = "sleep_tests.rs"]
pub(crate) mod tests;
