//! A clock that lags behind and costs a quarter: enough to know that a deadline is far away.
//!
//! Linux keeps the time of the last clock tick of the kernel where a program can read it without
//! reading the hardware. It lags by up to a tick: 10 ms where the kernel is built for 100 ticks
//! a second, mostly 4 ms or less. Elsewhere there is no such clock, and the answer is always `None`.

use std::time::Duration;

use crate::instant::Instant;

/// By how much the clock may lag, and half of that again.
pub(crate) const LAG_MAX: Duration = Duration::from_millis(15);

/// The beginning of what is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coarse(
    /// The kernel's time at or after the beginning; so what is measured is never too much.
    Option<Duration>,
);

impl Coarse {
    /// Begins after `start`, which is a time of the operating system's clock that has passed.
    pub(crate) fn since(_start: Instant) -> Coarse {
        Coarse(imp::precise())
    }

    /// How long ago the beginning was, at least: the truth is up to [`LAG_MAX`] more.
    #[inline]
    pub(crate) fn elapsed(self) -> Option<Duration> {
        Some(imp::coarse()?.saturating_sub(self.0?))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    use std::time::Duration;

    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// The clock that `std::time::Instant` reads here.
    pub(super) fn precise() -> Option<Duration> {
        duration(clock_gettime(ClockId::Monotonic))
    }

    #[inline]
    pub(super) fn coarse() -> Option<Duration> {
        duration(clock_gettime(ClockId::MonotonicCoarse))
    }

    #[inline]
    fn duration(time: Timespec) -> Option<Duration> {
        let secs = u64::try_from(time.tv_sec).ok()?;
        let nanos = u32::try_from(time.tv_nsec).ok()?;
        Some(Duration::new(secs, nanos))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod imp {
    use std::time::Duration;

    pub(super) fn precise() -> Option<Duration> {
        None
    }

    pub(super) fn coarse() -> Option<Duration> {
        None
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_lags_but_never_runs_ahead() {
        let start = Instant::from_std(std::time::Instant::now());
        let coarse = Coarse::since(start);
        for _ in 0..50_000 {
            let Some(elapsed) = coarse.elapsed() else {
                return;
            };
            let truth = std::time::Instant::now() - start.into_std();
            assert!(elapsed <= truth, "{elapsed:?} {truth:?}");
        }
    }

    #[test]
    fn it_goes_on() {
        let start = Instant::from_std(std::time::Instant::now());
        let coarse = Coarse::since(start);
        while coarse.elapsed().is_some_and(|elapsed| elapsed < LAG_MAX) {
            let truth = std::time::Instant::now() - start.into_std();
            assert!(truth < Duration::from_secs(600), "it stands still");
        }
    }
}
