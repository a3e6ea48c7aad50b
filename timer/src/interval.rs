//! Ticks at a fixed period.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::instant::{Instant, clamp_delay};
use crate::sleep::{Sleep, sleep_until};

/// A tick that is late by no more than this is not missed, as in tokio.
const LATENESS_MAX: Duration = Duration::from_millis(5);

/// Ticks once per `period`, the first time at once. As in tokio.
///
/// The same as [`interval_at(Instant::now(), period)`](interval_at). An interval counts from tick to
/// tick, so the time spent between two calls of [`tick`](Interval::tick) is part of the period: other than
/// with [`sleep`](crate::sleep()) in a loop. A period of more than about thirty years counts as thirty years.
///
/// # Panics
///
/// If `period` is zero; outside a runtime, and in one without timers.
///
/// # Examples
///
/// ```
/// use gmp::time::{Duration, interval};
///
/// #[gmp::main]
/// async fn main() {
///     let mut interval = interval(Duration::from_millis(10));
///     interval.tick().await; // at once
///     interval.tick().await; // 10 ms later
///     interval.tick().await; // 20 ms after the first
/// }
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert!(period > Duration::ZERO, "`period` must be non-zero.");
    Interval::new(sleep_until(Instant::now()), period)
}

/// Ticks once per `period`, the first time at `start`. As in tokio.
///
/// # Panics
///
/// If `period` is zero; outside a runtime, and in one without timers.
///
/// # Examples
///
/// ```
/// use gmp::time::{Duration, Instant, interval_at};
///
/// #[gmp::main]
/// async fn main() {
///     let start = Instant::now() + Duration::from_millis(50);
///     let mut interval = interval_at(start, Duration::from_millis(10));
///     interval.tick().await; // 50 ms from now
///     interval.tick().await; // 60 ms from now
/// }
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(period > Duration::ZERO, "`period` must be non-zero.");
    Interval::new(sleep_until(start), period)
}

/// What an [`Interval`] does after a missed tick.
///
/// A tick is missed when it is taken more than five milliseconds after it was due: the program was
/// busy, or did not call [`tick`](Interval::tick). With a period of 50 ms, a first tick at 0 and
/// a program that is busy from 10 ms until 170 ms, ticks come at:
///
/// | | |
/// | --- | --- |
/// | [`Burst`](MissedTickBehavior::Burst) | 170, 170, 170, 200, 250, … |
/// | [`Delay`](MissedTickBehavior::Delay) | 170, 220, 270, 320, … |
/// | [`Skip`](MissedTickBehavior::Skip) | 170, 200, 250, 300, … |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// Ticks as fast as possible until nothing is missing, then at multiples of the period from
    /// the start. The number of ticks is that of the periods. The default.
    #[default]
    Burst,

    /// Ticks a full period after the late tick was taken, and at multiples of the period from there.
    /// Ticks are never closer than a period; each late one moves those behind it.
    Delay,

    /// Leaves out what was missed and ticks at the next multiple of the period from the start.
    Skip,
}

impl MissedTickBehavior {
    /// When to tick next, `due` being the tick that was just taken, at `now`.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            MissedTickBehavior::Burst => due.after(period),
            MissedTickBehavior::Delay => now.after(period),
            MissedTickBehavior::Skip => {
                let into_period = (now - due).as_nanos() % period.as_nanos();
                let into_period = u64::try_from(into_period)
                    .expect("a period has at most thirty years of nanoseconds");
                now.after(period - Duration::from_nanos(into_period))
            }
        }
    }
}

/// Ticks at a fixed period; returned by [`interval`] and [`interval_at`].
///
/// It can be dropped at any time. [`reset`](Interval::reset) and its relatives say when the next tick
/// comes, whatever the [`MissedTickBehavior`]; what was missed until then is forgotten, and from there
/// it goes on with the period.
#[derive(Debug)]
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

impl Interval {
    pub(crate) fn new(first: Sleep, period: Duration) -> Interval {
        Interval {
            delay: Box::pin(first),
            period: clamp_delay(period),
            missed_tick_behavior: MissedTickBehavior::default(),
        }
    }

    /// Waits for the next tick and returns the time at which it was due.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick, ready with the time at which it was due.
    ///
    /// If it is pending, the task of the last call is woken when the tick is due. A call that is ready
    /// registers nobody for the tick after it.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(cx));
        let due = self.delay.deadline();
        let now = self.delay.now();
        let next = if now > due.after(LATENESS_MAX) {
            self.missed_tick_behavior.next(due, now, self.period)
        } else {
            due.after(self.period)
        };
        self.delay.as_mut().restart(next);
        Poll::Ready(due)
    }

    /// Sets the next tick to one period from now.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::time::{Duration, interval, sleep};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let mut interval = interval(Duration::from_millis(100));
    ///     interval.tick().await;
    ///     sleep(Duration::from_millis(50)).await;
    ///     interval.reset();
    ///     interval.tick().await; // 150 ms after the first
    /// }
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Sets the next tick to now.
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Sets the next tick to the time `after` from now, at most about thirty years.
    pub fn reset_after(&mut self, after: Duration) {
        let deadline = self.delay.now().after(after);
        self.reset_at(deadline);
    }

    /// Sets the next tick to `deadline`. If that has passed, the tick after it depends on the
    /// [`MissedTickBehavior`].
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// What happens after a missed tick.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what happens after a missed tick.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// The time from tick to tick.
    pub fn period(&self) -> Duration {
        self.period
    }
}

#[cfg(all(test, not(gmp_loom)))]
#[path = "interval_tests.rs"]
mod tests;
