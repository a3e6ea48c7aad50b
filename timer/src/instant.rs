//! A point in time by the clock of the runtime, which tests can pause.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use gmp_executor::context;

use crate::clock;
use crate::driver::TimerDriver;

/// What an unreasonably long delay counts as: about thirty years.
///
/// tokio's figure. Longer delays overflow the clocks of some systems (100 years on FreeBSD).
const DELAY_MAX: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The delay, or about thirty years if it is longer.
pub(crate) fn clamp_delay(delay: Duration) -> Duration {
    delay.min(DELAY_MAX)
}

/// A measurement of a clock that never goes back, for use with [`Duration`].
///
/// As `tokio::time::Instant`: a [`std::time::Instant`] whose [`now`](Instant::now) asks the clock of the
/// current runtime, so that `pause` and `advance` have an effect on it. The clock is that of
/// [`std::time::Instant`]; on Linux it does not count the time for which the machine was suspended.
///
/// Subtracting a later instant from an earlier one gives zero. Adding a duration panics when the
/// sum cannot be represented, as with the standard library's type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    std: std::time::Instant,
}

impl Instant {
    /// The current time, by the clock of the runtime that the calling thread is in.
    ///
    /// Outside a runtime, and in a runtime whose clock was never paused, it is the operating system's.
    ///
    /// # Examples
    ///
    /// ```
    /// let before = gmp_timer::Instant::now();
    /// assert!(gmp_timer::Instant::now() >= before);
    /// ```
    #[inline]
    pub fn now() -> Instant {
        if clock::is_any_simulated() {
            return simulated_now();
        }
        Instant::from_std(std::time::Instant::now())
    }

    /// Wraps an instant of the standard library.
    pub fn from_std(std: std::time::Instant) -> Instant {
        Instant { std }
    }

    /// The instant of the standard library inside.
    pub fn into_std(self) -> std::time::Instant {
        self.std
    }

    /// The time from `earlier` to this instant, or zero if `earlier` is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// The time from `earlier` to this instant, or `None` if `earlier` is later.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.std.checked_duration_since(earlier.std)
    }

    /// The time from `earlier` to this instant, or zero if `earlier` is later.
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// The time from this instant until now, or zero if it is in the future.
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// The instant `duration` later, or `None` if it cannot be represented.
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_add(duration).map(Instant::from_std)
    }

    /// The instant `duration` earlier, or `None` if it cannot be represented.
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_sub(duration).map(Instant::from_std)
    }

    /// The instant `delay` later, a delay beyond thirty years or beyond the end of time cut short.
    ///
    /// The one place where the timers saturate: whatever a user gives as a delay goes through here.
    pub(crate) fn after(self, delay: Duration) -> Instant {
        self.checked_add(clamp_delay(delay)).unwrap_or(self)
    }
}

#[cold]
fn simulated_now() -> Instant {
    let simulated = context::with_current(|handle| TimerDriver::of(handle).map(TimerDriver::now));
    match simulated {
        Ok(Some(now)) => now,
        _ => Instant::from_std(std::time::Instant::now()),
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Instant {
        Instant::from_std(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> std::time::Instant {
        instant.into_std()
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant::from_std(self.std + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant::from_std(self.std - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn arithmetic_is_that_of_std_and_saturates_where_tokio_does() {
        let std = std::time::Instant::now();
        let early = Instant::from_std(std);
        let late = early + SECOND;
        assert_eq!(late.into_std(), std + SECOND);
        assert_eq!(late - SECOND, early);
        assert_eq!(late - early, SECOND);
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(early.duration_since(late), Duration::ZERO);
        assert_eq!(late.duration_since(early), SECOND);
        assert_eq!(early.checked_duration_since(late), None);
        assert_eq!(late.checked_duration_since(early), Some(SECOND));
        assert_eq!(early.saturating_duration_since(late), Duration::ZERO);
        assert_eq!(early.checked_add(SECOND), Some(late));
        assert_eq!(early.checked_add(Duration::MAX), None);
        assert_eq!(late.checked_sub(SECOND), Some(early));
        assert_eq!(late.checked_sub(Duration::MAX), None);
        let mut moved = early;
        moved += SECOND;
        assert_eq!(moved, late);
        moved -= SECOND;
        assert_eq!(moved, early);
        assert!(early < late);
        assert_eq!(std::time::Instant::from(Instant::from(std)), std);
        assert_eq!(format!("{early:?}"), format!("{std:?}"));
    }

    #[test]
    fn outside_a_runtime_it_is_the_time_of_std() {
        let before = std::time::Instant::now();
        let now = Instant::now();
        assert!(now.into_std() >= before);
        assert_eq!((now + SECOND).elapsed(), Duration::ZERO);
        assert!((now - SECOND).elapsed() >= SECOND);
    }

    #[test]
    fn long_delays_are_cut_short() {
        let now = Instant::now();
        assert_eq!(now.after(SECOND), now + SECOND);
        assert_eq!(now.after(Duration::MAX), now + DELAY_MAX);
        let mut end = now;
        for bit in (0..64).rev() {
            let further = end.checked_add(Duration::from_secs(1 << bit));
            end = further.unwrap_or(end);
        }
        assert_eq!(end.after(Duration::MAX), end);
    }
}
