//! The clock of a runtime: the operating system's, unless somebody paused it.
//!
//! The clock is `std::time::Instant` (on Linux `CLOCK_MONOTONIC`, which stands still while the machine
//! is suspended). A *paused* clock stands still until it is advanced, or steps by itself to the next
//! deadline. It stands at a whole millisecond since its beginning, as the wheel counts: so a step to a
//! deadline does not go beyond that, and past others that are not due yet. Only a `current_thread`
//! runtime can pause its clock: with several threads nobody could say when there is nothing left to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Whether a clock of any runtime was ever paused.
///
/// While it is not, `Instant::now` needs neither the thread's runtime nor a lock. Relaxed: a thread
/// that learns of the pause by any means that orders memory sees the store as well.
static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

/// Whether `Instant::now` has to ask the current runtime for its clock.
#[inline]
pub(crate) fn is_any_simulated() -> bool {
    EVER_PAUSED.load(Ordering::Relaxed)
}

/// Why a call that concerns the paused clock is refused; tokio's reasons.
pub(crate) type Refusal = &'static str;

const NEEDS_CURRENT_THREAD: Refusal = "`time::pause()` requires the `current_thread` Tokio \
    runtime: the clock of a runtime with several threads cannot be paused";
const ALREADY_FROZEN: Refusal = "time is already frozen";
#[cfg(any(feature = "test-util", all(test, not(gmp_loom))))]
const NOT_FROZEN: Refusal = "time is not frozen";

#[derive(Debug)]
pub(crate) struct Clock {
    /// Whether `state` says what the time is: from the first pause on. Relaxed, as above.
    simulated: AtomicBool,
    pausable: bool,
    /// When it began.
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The time while the clock is paused, and when it last began to run.
    base: Instant,
    /// When the clock began to run, by the operating system's clock; `None` while it is paused.
    runs_since: Option<Instant>,
    /// How many blocking jobs keep the paused clock from stepping by itself.
    inhibitors: usize,
}

impl State {
    fn now(&self) -> Instant {
        match self.runs_since {
            Some(since) => self.base + since.elapsed(),
            None => self.base,
        }
    }

    fn steps_by_itself(&self) -> bool {
        self.runs_since.is_none() && self.inhibitors == 0
    }
}

impl Clock {
    pub(crate) fn new(pausable: bool) -> Self {
        let now = Instant::now();
        Clock {
            simulated: AtomicBool::new(false),
            pausable,
            start: now,
            state: Mutex::new(State {
                base: now,
                runs_since: Some(now),
                inhibitors: 0,
            }),
        }
    }

    /// When it began.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if self.simulated.load(Ordering::Relaxed) {
            return self.state.lock().now();
        }
        Instant::now()
    }

    pub(crate) fn pause(&self) -> Result<(), Refusal> {
        if !self.pausable {
            return Err(NEEDS_CURRENT_THREAD);
        }
        let mut state = self.state.lock();
        if state.runs_since.is_none() {
            return Err(ALREADY_FROZEN);
        }
        state.base = self.next_millisecond(state.now());
        state.runs_since = None;
        self.simulated.store(true, Ordering::Relaxed);
        EVER_PAUSED.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The time itself if it is a whole millisecond.
    fn next_millisecond(&self, now: Instant) -> Instant {
        let beyond = (now - self.start).subsec_nanos() % 1_000_000;
        match beyond {
            0 => now,
            beyond => now + Duration::from_nanos(u64::from(1_000_000 - beyond)),
        }
    }

    #[cfg(any(feature = "test-util", all(test, not(gmp_loom))))]
    pub(crate) fn resume(&self) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.runs_since.is_some() {
            return Err(NOT_FROZEN);
        }
        state.runs_since = Some(Instant::now());
        Ok(())
    }

    /// Moves the paused clock. Panics when the sum is beyond what an `Instant` can hold.
    #[cfg(any(feature = "test-util", all(test, not(gmp_loom))))]
    #[track_caller]
    pub(crate) fn advance(&self, by: Duration) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.runs_since.is_some() {
            return Err(NOT_FROZEN);
        }
        state.base += by;
        Ok(())
    }

    /// Moves the paused clock, unless it may not step by itself or the time cannot be reached.
    pub(crate) fn step(&self, by: Duration) -> bool {
        let mut state = self.state.lock();
        match state.base.checked_add(by) {
            Some(base) if state.steps_by_itself() => {
                state.base = base;
                true
            }
            _ => false,
        }
    }

    /// Whether the clock is paused and no blocking job keeps it from stepping.
    pub(crate) fn steps_by_itself(&self) -> bool {
        self.simulated.load(Ordering::Relaxed) && self.state.lock().steps_by_itself()
    }

    /// Counts a blocking job in or out. Says whether the clock may step by itself again.
    pub(crate) fn inhibit(&self, inhibit: bool) -> bool {
        let mut state = self.state.lock();
        if inhibit {
            state.inhibitors += 1;
        } else {
            debug_assert!(state.inhibitors > 0, "more blocking jobs ended than began");
            state.inhibitors = state.inhibitors.saturating_sub(1);
        }
        !inhibit && state.steps_by_itself()
    }

    /// Sets the paused clock to any time, earlier ones too.
    #[cfg(all(test, not(gmp_loom)))]
    pub(crate) fn set(&self, now: Instant) {
        let mut state = self.state.lock();
        assert!(state.runs_since.is_none(), "the clock has to be paused");
        state.base = now;
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_paused_clock_stands_still_and_runs_on_from_there() {
        let clock = Clock::new(true);
        assert!(!clock.steps_by_itself());
        clock.pause().unwrap();
        let paused = clock.now();
        std::thread::sleep(MS);
        assert_eq!(clock.now(), paused);
        assert!(clock.steps_by_itself());
        clock.advance(Duration::from_secs(3600)).unwrap();
        assert_eq!(clock.now() - paused, Duration::from_secs(3600));
        clock.resume().unwrap();
        assert!(!clock.steps_by_itself());
        let resumed = clock.now();
        assert!(resumed - paused >= Duration::from_secs(3600));
        while clock.now() == resumed {
            std::thread::yield_now();
        }
        clock.pause().unwrap();
        assert_eq!(clock.now(), clock.now());
    }

    #[test]
    fn a_paused_clock_stands_at_a_whole_millisecond() {
        let clock = Clock::new(true);
        for _ in 0..10 {
            let before = clock.now();
            clock.pause().unwrap();
            let paused = clock.now();
            assert_eq!((paused - clock.start()).subsec_nanos() % 1_000_000, 0);
            assert!(paused >= before);
            clock.resume().unwrap();
        }
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let several = Clock::new(false);
        assert_eq!(several.pause(), Err(NEEDS_CURRENT_THREAD));
        let clock = Clock::new(true);
        assert_eq!(clock.resume(), Err(NOT_FROZEN));
        assert_eq!(clock.advance(MS), Err(NOT_FROZEN));
        assert!(!clock.step(MS));
        clock.pause().unwrap();
        assert_eq!(clock.pause(), Err(ALREADY_FROZEN));
    }

    #[test]
    fn blocking_jobs_keep_the_clock_from_stepping_but_not_from_being_advanced() {
        let clock = Clock::new(true);
        clock.pause().unwrap();
        let start = clock.now();
        assert!(!clock.inhibit(true));
        assert!(!clock.inhibit(true));
        assert!(!clock.step(MS));
        clock.advance(MS).unwrap();
        assert!(!clock.inhibit(false));
        assert!(!clock.steps_by_itself());
        assert!(clock.inhibit(false));
        assert!(clock.step(MS));
        assert_eq!(clock.now() - start, 2 * MS);
    }

    #[test]
    fn a_step_beyond_the_end_of_time_is_refused() {
        let clock = Clock::new(true);
        clock.pause().unwrap();
        let now = clock.now();
        assert!(!clock.step(Duration::MAX));
        assert_eq!(clock.now(), now);
    }

    #[test]
    #[should_panic = "overflow"]
    fn an_advance_beyond_the_end_of_time_panics() {
        let clock = Clock::new(true);
        clock.pause().unwrap();
        let _ = clock.advance(Duration::MAX);
    }
}
