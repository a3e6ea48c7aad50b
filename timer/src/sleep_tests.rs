//! `Sleep` on timers that the tests drive.

use std::sync::Weak;

use gmp_executor::seam::Timers;

use super::*;
use crate::coarse::{Coarse, LAG_MAX};
use crate::driver::TimerDriver;
use crate::test_support::{Count, MS, paused, poll};

/// A37: delays that overflowed, hit a marker or panicked in tokio, one after the other.
pub(crate) const DELAYS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_millis(1 << 31),
    Duration::from_millis(1 << 40),
    Duration::from_secs(u64::MAX / 10),
    Duration::MAX,
];

/// The same as deadlines, and the last one there is.
pub(crate) fn deadlines(driver: &TimerDriver) -> Vec<Instant> {
    let now = driver.now();
    let mut end = now;
    for bit in (0..64).rev() {
        end = end
            .checked_add(Duration::from_secs(1 << bit))
            .unwrap_or(end);
    }
    let mut deadlines: Vec<_> = DELAYS.iter().filter_map(|d| now.checked_add(*d)).collect();
    deadlines.extend([end, now - MS]);
    deadlines
}

/// Polls the future, and lets the paused clock step until it is ready.
fn finish(driver: &TimerDriver, sleep: &mut Pin<Box<Sleep>>) {
    let (count, waker) = Count::new();
    // What is farther than 584 million years counts as that: see `TICK_MAX`.
    let deadline = driver
        .now()
        .checked_add(Duration::from_millis(u64::MAX - 10_000))
        .map_or(sleep.deadline(), |end| end.min(sleep.deadline()));
    let was_past = driver.now() >= deadline;
    let mut polled = poll(sleep.as_mut(), &waker);
    assert_eq!(polled.is_ready(), was_past);
    while polled.is_pending() {
        assert!(driver.now() < deadline);
        assert!(driver.auto_advance());
        assert!(driver.fire(0) >= count.get());
        polled = poll(sleep.as_mut(), &waker);
    }
    assert!(driver.now() >= deadline);
    assert!(was_past || driver.now() < deadline + 20_000 * MS);
    assert!(sleep.is_elapsed());
}

#[test]
fn no_delay_is_too_long() {
    for delay in DELAYS {
        let driver = paused(1);
        finish(&driver, &mut driver.sleep(delay));
        let mut sleep = driver.sleep(MS);
        assert!(poll(sleep.as_mut(), Waker::noop()).is_pending());
        sleep.as_mut().reset(driver.now().after(delay));
        finish(&driver, &mut sleep);
        sleep.as_mut().reset(driver.now().after(delay));
        finish(&driver, &mut sleep);
    }
}

#[test]
fn no_deadline_is_too_far() {
    let count = deadlines(&paused(1)).len();
    for n in 0..count {
        let driver = paused(1);
        let deadline = deadlines(&driver)[n];
        let mut sleep = driver.sleep_until(deadline);
        assert_eq!(sleep.deadline(), deadline);
        // Beside a far one the others work.
        let mut near = driver.sleep(3 * MS);
        assert!(poll(sleep.as_mut(), Waker::noop()).is_pending() == (deadline > driver.now()));
        finish(&driver, &mut near);
        sleep.as_mut().reset(deadline);
        finish(&driver, &mut sleep);
    }
}

#[test]
fn a_deadline_in_the_past_is_ready_at_once() {
    let driver = paused(1);
    driver.pass(Duration::from_secs(1));
    for deadline in [
        driver.now(),
        driver.now() - MS,
        driver.now() - Duration::from_secs(9),
    ] {
        let mut sleep = driver.sleep_until(deadline);
        assert!(!sleep.is_elapsed(), "not before the first poll, as tokio");
        assert!(poll(sleep.as_mut(), Waker::noop()).is_ready());
        assert!(sleep.is_elapsed());
        assert!(poll(sleep.as_mut(), Waker::noop()).is_ready(), "and again");
    }
    assert_eq!(driver.park_timeout(0), None);
}

/// A43: on one thread, a combinator that polls its child as long as that wakes itself kept the
/// driver from running, and the sleep inside from ending.
#[test]
fn a_deadline_that_passed_is_seen_without_the_driver() {
    let driver = TimerDriver::new(1, false, false);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(20 * MS);
    loop {
        let before = driver.now();
        if poll(sleep.as_mut(), &waker).is_ready() {
            break;
        }
        // The time before the poll: how long the poll takes, and the way to it, does not matter.
        assert!(
            before < sleep.deadline() + 60_000 * MS,
            "a deadline is missed"
        );
    }
    assert!(driver.now() >= sleep.deadline());
    assert_eq!(count.get(), 0, "nobody fired it");
    assert_eq!(driver.park_timeout(0), None);
    assert_eq!(driver.fire(0), 0);
}

/// The clock that lags does not make a first poll miss the deadline.
///
/// It lags further behind than it may when the machine that this one is a guest of does not run the CPU that
/// moves it on. Such a round says nothing.
#[test]
fn a_first_poll_after_the_deadline_is_ready() {
    let driver = TimerDriver::new(1, false, false);
    let start = Instant::from_std(std::time::Instant::now());
    let coarse = Coarse::since(start);
    for delay in [1, 16, 30] {
        loop {
            let mut sleep = driver.sleep(delay * MS);
            while driver.now() < sleep.deadline() {
                std::thread::sleep(MS);
            }
            // The clock never goes back: what the poll reads lags by no more than this.
            let lagging = coarse.elapsed();
            let lag = lagging.map_or(Duration::ZERO, |lagging| driver.now() - start - lagging);
            if lag > LAG_MAX {
                continue;
            }
            assert!(poll(sleep.as_mut(), Waker::noop()).is_ready());
            assert_eq!(driver.park_timeout(0), None);
            break;
        }
    }
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let driver = paused(1);
    let ((first, waker), (second, other)) = (Count::new(), Count::new());
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert!(poll(sleep.as_mut(), &other).is_pending());
    assert_eq!(Arc::strong_count(&first), 2, "let go of at once");
    assert_eq!(driver.run(MS), 1);
    assert_eq!((first.get(), second.get()), (0, 1));
    assert_eq!(Arc::strong_count(&second), 2);
    assert!(poll(sleep.as_mut(), &waker).is_ready());
}

#[test]
fn a_timer_that_is_dropped_lets_go_of_its_waker_and_wakes_nobody() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(Arc::strong_count(&count), 3);
    drop(sleep);
    assert_eq!(Arc::strong_count(&count), 2);
    assert_eq!(driver.run(2 * MS), 0);
    assert_eq!(count.get(), 0);
}

#[test]
fn a_timer_that_is_never_polled_is_unknown_to_the_driver() {
    let driver = paused(1);
    let sleep = driver.sleep(MS);
    assert_eq!(driver.park_timeout(0), None);
    assert_eq!(driver.run(2 * MS), 0);
    assert!(!sleep.is_elapsed());
}

#[test]
fn reset_moves_the_wake_up_without_another_poll() {
    let driver = paused(1);
    let start = driver.now();
    for (from, to) in [(100, 200), (200, 100), (100, 100), (1, 5_000), (5_000, 1)] {
        let begin = driver.now();
        let (count, waker) = Count::new();
        let mut sleep = driver.sleep(from * MS);
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        sleep.as_mut().reset(begin + to * MS);
        assert_eq!(sleep.deadline(), begin + to * MS);
        assert_eq!(driver.run(to * MS - MS), 0);
        assert!(!sleep.is_elapsed());
        assert_eq!(driver.run(MS), 1);
        assert_eq!(count.get(), 1);
        assert!(sleep.is_elapsed());
        assert!(poll(sleep.as_mut(), &waker).is_ready());
    }
    assert!(driver.now() > start);
}

#[test]
fn reset_to_the_past_wakes_who_waits() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(Duration::from_secs(60));
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    driver.run(50 * MS);
    sleep.as_mut().reset(driver.now() - 10 * MS);
    assert_eq!(count.get(), 1, "at once, as tokio");
    assert!(sleep.is_elapsed());
    assert_eq!(driver.fire(0), 0);
    assert!(poll(sleep.as_mut(), &waker).is_ready());

    sleep.as_mut().reset(driver.now() + MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    sleep.as_mut().reset(driver.now());
    assert!(poll(sleep.as_mut(), &waker).is_ready(), "or the next poll");
}

#[test]
fn reset_between_firing_and_polling_waits_again() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.run(MS), 1);
    sleep.as_mut().reset(driver.now() + 5 * MS);
    assert!(!sleep.is_elapsed());
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.run(5 * MS), 1);
    assert_eq!(count.get(), 2);
    assert!(poll(sleep.as_mut(), &waker).is_ready());
}

#[test]
fn reset_before_the_first_poll_and_after_the_end() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    sleep.as_mut().reset(driver.now() + 10 * MS);
    driver.run(MS);
    assert!(!sleep.is_elapsed());
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.run(9 * MS), 1);
    assert!(poll(sleep.as_mut(), &waker).is_ready());
    sleep.as_mut().reset(driver.now() + 10 * MS);
    assert!(!sleep.is_elapsed());
    driver.run(10 * MS);
    assert!(sleep.is_elapsed(), "even without a poll, as tokio");
    assert_eq!(count.get(), 1);
}

#[test]
fn restart_forgets_who_waits() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    sleep.as_mut().restart(driver.now() + 2 * MS);
    assert_eq!(driver.run(5 * MS), 0);
    assert_eq!(count.get(), 0);
    assert!(!sleep.is_elapsed());
    assert!(poll(sleep.as_mut(), &waker).is_ready());
}

#[test]
fn a_timer_may_outlive_its_runtime() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let (mut polled, unpolled) = (driver.sleep(MS), driver.sleep(MS));
    assert!(poll(polled.as_mut(), &waker).is_pending());
    driver.shutdown();
    let gone = Arc::downgrade(&driver);
    drop(driver);
    assert!(Weak::upgrade(&gone).is_none());
    drop((polled, unpolled));
    assert_eq!(count.get(), 1);
}

#[test]
fn a_waker_that_panics_when_cloned_leaves_no_trace() {
    use std::task::{RawWaker, RawWakerVTable};
    fn clone(_: *const ()) -> RawWaker {
        std::panic::resume_unwind(Box::new("a waker's panic"));
    }
    const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, |_| (), |_| (), |_| ());
    // SAFETY: the functions ignore the pointer, and keep nothing.
    let panics = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) };
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    for registered in [false, true] {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            poll(sleep.as_mut(), &panics)
        }));
        assert!(polled.is_err());
        assert_eq!(driver.park_timeout(0).is_some(), registered);
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    assert_eq!(driver.run(MS), 1);
    assert_eq!(count.get(), 1);
}

#[test]
#[should_panic = "there is no reactor running"]
fn a_sleep_is_made_in_a_runtime() {
    drop(sleep(MS));
}

#[test]
fn the_future_is_small_and_has_the_auto_traits_of_tokios() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Sleep>();
    is_send_and_sync::<Instant>();
    assert!(size_of::<Sleep>() <= 40);
}

/// Compiles only while the type does not have the trait: otherwise both implementations apply.
macro_rules! assert_not {
    ($auto:path: $($type:ty),*) => {{
        trait Ambiguous<A> {
            fn check() {}
        }
        struct Has;
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + $auto> Ambiguous<Has> for T {}
        $(<$type as Ambiguous<_>>::check();)*
    }};
}

#[test]
fn what_tokios_types_are_not_ours_are_not() {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    use crate::{Interval, Timeout};
    assert_not!(Unpin: Sleep, Timeout<()>);
    assert_not!(UnwindSafe: Sleep, Timeout<()>, Interval);
    assert_not!(RefUnwindSafe: Sleep, Timeout<()>, Interval);
}

#[test]
fn debug_shows_the_deadline_and_no_cycle() {
    let driver = paused(1);
    let sleep = driver.sleep(MS);
    let text = format!("{sleep:?} {driver:?} {:?}", driver.shard(0));
    assert!(text.contains("deadline") && text.len() < 300, "{text}");
}
