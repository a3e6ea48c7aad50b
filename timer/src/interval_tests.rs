//! `Interval` on timers that the tests drive.

use gmp_executor::seam::Timers;

use super::*;
use crate::driver::TimerDriver;
use crate::sleep::tests::{DELAYS, deadlines};
use crate::test_support::{Count, MS, paused};

fn interval_on(driver: &TimerDriver, start: Instant, period: Duration) -> Interval {
    Interval::new(
        Sleep::with_shard(start, driver.shard(0).clone()),
        clamp_delay(period),
    )
}

fn tick(interval: &mut Interval) -> Poll<Instant> {
    let (_, waker) = Count::new();
    interval.poll_tick(&mut Context::from_waker(&waker))
}

/// What is taken at once, in milliseconds since `start`.
fn ticks(interval: &mut Interval, start: Instant) -> Vec<u128> {
    std::iter::from_fn(|| match tick(interval) {
        Poll::Ready(due) => Some((due - start).as_millis()),
        Poll::Pending => None,
    })
    .collect()
}

/// A41: period 10 ms, a pause of 55 ms, then on.
#[test]
fn the_three_modes_after_a_pause() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for (mode, at_once, later) in [
        (Burst, &[10_u128, 20, 30, 40, 50][..], [60, 70, 80]),
        (Delay, &[10], [65, 75, 85]),
        (Skip, &[10], [60, 70, 80]),
    ] {
        let driver = paused(1);
        let start = driver.now();
        let mut interval = interval_on(&driver, start, 10 * MS);
        interval.set_missed_tick_behavior(mode);
        assert_eq!(interval.missed_tick_behavior(), mode);
        assert_eq!(ticks(&mut interval, start), [0]);
        driver.run(55 * MS);
        assert_eq!(ticks(&mut interval, start), at_once, "{mode:?}");
        let mut taken = Vec::new();
        for now in 56..=85 {
            driver.run(MS);
            let due = ticks(&mut interval, start);
            assert!(due.iter().all(|due| *due == now), "{mode:?}");
            taken.extend(due);
        }
        assert_eq!(taken, later, "{mode:?}");
    }
}

/// The table in the documentation of `MissedTickBehavior`.
#[test]
fn the_documented_example() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for (mode, taken_at) in [
        (Burst, [0, 170, 170, 170, 200, 250]),
        (Delay, [0, 170, 220, 270, 320, 370]),
        (Skip, [0, 170, 200, 250, 300, 350]),
    ] {
        let driver = paused(1);
        let start = driver.now();
        let mut interval = interval_on(&driver, start, 50 * MS);
        interval.set_missed_tick_behavior(mode);
        let mut taken = Vec::new();
        for now in 0..400_u32 {
            if !(10..170).contains(&now) {
                taken.extend(ticks(&mut interval, start).iter().map(|_| now));
            }
            driver.run(MS);
        }
        assert_eq!(taken[..6], taken_at, "{mode:?}");
    }
}

/// Late by five milliseconds is not missed, late by a nanosecond more is.
#[test]
fn a_little_late_is_not_missed() {
    for (late, next) in [
        (Duration::ZERO, 20 * MS),
        (5 * MS, 20 * MS),
        (
            5 * MS + Duration::from_nanos(1),
            25 * MS + Duration::from_nanos(1),
        ),
    ] {
        let driver = paused(1);
        let start = driver.now();
        let mut interval = interval_on(&driver, start + 10 * MS, 10 * MS);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        assert!(tick(&mut interval).is_pending());
        driver.run(10 * MS + late);
        assert_eq!(tick(&mut interval), Poll::Ready(start + 10 * MS));
        assert_eq!(interval.delay.deadline(), start + next);
    }
}

#[test]
fn after_a_jump_of_hours_each_mode_goes_on_its_way() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for (mode, count) in [(Burst, 481), (Delay, 1), (Skip, 1)] {
        let driver = paused(1);
        let start = driver.now();
        let minute = 60_000 * MS;
        let mut interval = interval_on(&driver, start, minute);
        interval.set_missed_tick_behavior(mode);
        assert!(tick(&mut interval).is_ready());
        driver.run(minute / 2);
        assert!(tick(&mut interval).is_pending());
        assert_eq!(driver.run(480 * minute), 1);
        let mut taken = ticks(&mut interval, start).len();
        if mode == Burst {
            taken += 1;
        }
        assert_eq!(taken, count, "{mode:?}");
    }
}

#[test]
fn resets_set_the_next_tick() {
    type Reset = fn(&mut Interval, Instant);
    let cases: [(Reset, u128); 5] = [
        (|interval, _| interval.reset(), 350),
        (|interval, _| interval.reset_immediately(), 50),
        (|interval, _| interval.reset_after(20 * MS), 70),
        (|interval, start| interval.reset_at(start + 90 * MS), 90),
        (|interval, start| interval.reset_at(start + 990 * MS), 990),
    ];
    for polled in [false, true] {
        for (reset, next) in cases {
            let driver = paused(1);
            let start = driver.now();
            let mut interval = interval_on(&driver, start, 300 * MS);
            assert_eq!(ticks(&mut interval, start)[..], [0][..]);
            driver.run(50 * MS);
            if polled {
                assert!(tick(&mut interval).is_pending());
            }
            reset(&mut interval, start);
            let mut taken = Vec::new();
            for now in 50..=1_300_u32 {
                let due = ticks(&mut interval, start);
                assert!(due.iter().all(|due| *due == u128::from(now)));
                taken.extend(due);
                driver.run(MS);
            }
            assert_eq!(taken[..2], [next, next + 300]);
        }
    }
}

/// A37, for intervals: `Duration::MAX` panicked in tick, reset, reset_after and each mode.
#[test]
fn no_period_is_too_long() {
    use MissedTickBehavior::{Burst, Delay, Skip};
    for mode in [Burst, Delay, Skip] {
        for delay in DELAYS {
            let driver = paused(1);
            let period = delay.max(Duration::from_nanos(1));
            let mut interval = interval_on(&driver, driver.now(), period);
            interval.set_missed_tick_behavior(mode);
            assert!(interval.period() <= period);
            assert!(tick(&mut interval).is_ready());
            for _ in 0..3 {
                driver.auto_advance();
                driver.run(20 * MS);
                let _ = tick(&mut interval);
                interval.reset();
                interval.reset_after(delay);
                let _ = tick(&mut interval);
                interval.reset_immediately();
                assert!(tick(&mut interval).is_ready());
            }
        }
    }
}

#[test]
fn no_start_is_too_far() {
    for n in 0..deadlines(&paused(1)).len() {
        let driver = paused(1);
        let start = deadlines(&driver)[n];
        let mut interval = interval_on(&driver, start, Duration::MAX);
        let _ = tick(&mut interval);
        interval.reset_at(start);
        assert_eq!(tick(&mut interval).is_ready(), start <= driver.now());
    }
}

#[test]
fn a_ready_tick_registers_nobody_for_the_next() {
    let driver = paused(1);
    let mut interval = interval_on(&driver, driver.now(), 10 * MS);
    assert!(tick(&mut interval).is_ready());
    assert_eq!(driver.park_timeout(0), None);
    assert_eq!(driver.run(20 * MS), 0);
}

#[test]
fn a_tick_that_is_dropped_is_not_lost() {
    let driver = paused(1);
    let start = driver.now();
    let mut interval = interval_on(&driver, start + MS, 10 * MS);
    let mut future = Box::pin(interval.tick());
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut cx).is_pending());
    drop(future);
    driver.run(2 * MS);
    assert_eq!(count.get(), 1);
    assert_eq!(tick(&mut interval), Poll::Ready(start + MS));
}

#[test]
#[should_panic = "`period` must be non-zero."]
fn a_period_of_zero_panics() {
    let _ = interval(Duration::ZERO);
}

#[test]
#[should_panic = "`period` must be non-zero."]
fn a_period_of_zero_panics_with_a_start_too() {
    let _ = interval_at(Instant::now(), Duration::ZERO);
}

#[test]
fn auto_traits_and_the_default() {
    fn is_send_sync_unpin<T: Send + Sync + Unpin>() {}
    is_send_sync_unpin::<Interval>();
    assert_eq!(MissedTickBehavior::default(), MissedTickBehavior::Burst);
}
