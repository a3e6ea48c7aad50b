//! The driver by hand: the tests are the executor.

use std::sync::atomic::AtomicUsize;
use std::sync::{Barrier, Mutex as StdMutex};
use std::task::{Poll, Wake};
use std::thread;

use super::*;
use crate::test_support::{Count, MS, paused, poll};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn without_timers_there_is_nothing_to_wait_for() {
    let driver = paused(2);
    for p in 0..3 {
        assert_eq!(driver.park_timeout(p), None);
        assert!(!driver.is_due(p));
        assert_eq!(driver.fire(p), 0);
    }
    assert!(!driver.auto_advance());
}

#[test]
fn a_p_waits_for_its_own_timers_only() {
    let driver = TimerDriver::new(2, false, false);
    let (count, waker) = Count::new();
    let deadline = driver.now() + HOUR;
    let mut sleep = driver.sleep_on(1, deadline);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.park_timeout(0), None);
    let before = driver.now();
    let timeout = driver.park_timeout(1).expect("P 1 has a timer");
    assert!(
        timeout <= deadline + MS - before,
        "to the millisecond after it"
    );
    assert!(timeout >= deadline - driver.now(), "not earlier");
    assert!(!driver.is_due(1));
    drop(sleep);
    assert_eq!(driver.park_timeout(1), None);
    assert_eq!(count.get(), 0);
}

#[test]
fn never_early_and_rounded_up_to_the_millisecond() {
    let us = Duration::from_micros(1);
    let driver = paused(1);
    driver.pass(300 * us);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.run(MS - us), 0);
    assert!(!sleep.is_elapsed() && poll(sleep.as_mut(), &waker).is_pending());
    assert_eq!(driver.run(us), 0, "the deadline is within a millisecond");
    assert!(!driver.is_due(0));
    assert_eq!(driver.run(700 * us), 1);
    assert_eq!(count.get(), 1);
    assert!(sleep.is_elapsed() && poll(sleep.as_mut(), &waker).is_ready());
}

#[test]
fn a_runtime_waits_for_the_rest_of_the_time_only() {
    let driver = paused(1);
    driver.inhibit_auto_advance(true);
    let (_, waker) = Count::new();
    let mut sleep = driver.sleep(10 * MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    driver.pass(Duration::from_micros(9_250));
    assert_eq!(driver.park_timeout(0), Some(Duration::from_micros(750)));
    driver.pass(MS);
    assert_eq!(driver.park_timeout(0), Some(Duration::ZERO));
    assert!(driver.is_due(0));
}

/// Records its number in a list that is shared.
struct Recorder(usize, Arc<StdMutex<Vec<usize>>>);

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn wakes_in_the_order_of_deadlines_across_batches() {
    let driver = paused(1);
    let order = Arc::new(StdMutex::new(Vec::new()));
    let mut sleeps = Vec::new();
    for n in 0..200_usize {
        // Each millisecond twice, in a shuffled order.
        let millis = (n * 37 % 100) as u32;
        let mut sleep = driver.sleep((millis + 1) * MS);
        let waker = Waker::from(Arc::new(Recorder(n, order.clone())));
        assert!(poll(sleep.as_mut(), &waker).is_pending());
        sleeps.push((sleep, millis));
    }
    assert_eq!(driver.run(HOUR), 200);
    let order = order.lock().unwrap();
    let millis = order.iter().map(|n| (sleeps[*n].1, *n)).collect::<Vec<_>>();
    assert_eq!(millis.len(), 200);
    assert!(millis.is_sorted(), "by deadline, then by registration");
}

/// A waker must not be woken, and another thread must not be kept waiting, under the lock: this one
/// registers, resets and drops timers of the same P.
struct Meddler {
    driver: Arc<TimerDriver>,
    sleep: StdMutex<Option<std::pin::Pin<Box<crate::Sleep>>>>,
    wakes: AtomicUsize,
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        let mut sleep = self.driver.sleep(HOUR);
        assert!(poll(sleep.as_mut(), Waker::noop()).is_pending());
        sleep.as_mut().reset(self.driver.now() + 2 * HOUR);
        *self.sleep.lock().unwrap() = Some(sleep);
    }
}

#[test]
fn a_waker_may_use_the_timers_it_is_woken_by() {
    let driver = paused(1);
    let meddler = Arc::new(Meddler {
        driver: driver.clone(),
        sleep: StdMutex::new(None),
        wakes: AtomicUsize::new(0),
    });
    let waker = Waker::from(meddler.clone());
    let mut sleeps = (0..40).map(|_| driver.sleep(MS)).collect::<Vec<_>>();
    for sleep in &mut sleeps {
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    assert_eq!(driver.run(MS), 40);
    assert_eq!(meddler.wakes.load(Ordering::SeqCst), 40);
    *meddler.sleep.lock().unwrap() = None;
}

/// As tokio's drop_from_waker_drop: the waker that a timer holds owns another timer.
#[test]
fn a_waker_that_is_dropped_may_drop_timers() {
    struct Owner(#[expect(dead_code)] StdMutex<std::pin::Pin<Box<crate::Sleep>>>);
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let driver = paused(1);
    let mut inner = driver.sleep(HOUR);
    assert!(poll(inner.as_mut(), Waker::noop()).is_pending());
    let waker = Waker::from(Arc::new(Owner(StdMutex::new(inner))));
    let mut outer = driver.sleep(HOUR);
    assert!(poll(outer.as_mut(), &waker).is_pending());
    drop(waker);
    // The only waker is replaced by another, which drops it.
    assert!(poll(outer.as_mut(), Waker::noop()).is_pending());
    drop(outer);
    assert_eq!(driver.park_timeout(0), None);
}

#[test]
fn a_waker_that_panics_does_not_take_the_others_along() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker's panic"));
        }
    }
    let driver = paused(1);
    let (count, waker) = Count::new();
    let panics = Waker::from(Arc::new(Panics));
    let mut sleeps = (0..100).map(|_| driver.sleep(MS)).collect::<Vec<_>>();
    for (n, sleep) in sleeps.iter_mut().enumerate() {
        let waker = if n % 3 == 0 { &panics } else { &waker };
        assert!(poll(sleep.as_mut(), waker).is_pending());
    }
    assert_eq!(driver.run(MS), 100);
    assert_eq!(count.get(), 66);
}

#[test]
fn dropping_the_earliest_leaves_no_timer_behind() {
    let driver = paused(1);
    driver.inhibit_auto_advance(true);
    let (count, waker) = Count::new();
    let (mut first, mut second) = (driver.sleep(10 * MS), driver.sleep(30 * MS));
    assert!(poll(first.as_mut(), &waker).is_pending());
    assert!(poll(second.as_mut(), &waker).is_pending());
    drop(first);
    driver.pass(10 * MS);
    assert!(!driver.is_due(0), "what seems due is looked up");
    assert_eq!(driver.fire(0), 0);
    assert_eq!(driver.park_timeout(0), Some(20 * MS));
    drop(second);
    assert_eq!(driver.park_timeout(0), None);
    assert_eq!(driver.run(HOUR), 0);
    assert_eq!(count.get(), 0);
}

/// A39: the clock of a virtual machine was seen to step back; an assertion killed the worker.
#[test]
fn a_clock_that_steps_back_fires_nothing_early() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let start = driver.now();
    let mut random = 1_u64;
    let mut latest = 0;
    for round in 0..2_000_u64 {
        let mut sleep = driver.sleep(5 * MS);
        let mut polled = poll(sleep.as_mut(), &waker);
        let before = count.get();
        while polled.is_pending() {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            // Two steps forward, up to five milliseconds back.
            latest += random >> 62;
            let now = latest.saturating_sub(random >> 33 & 7).saturating_add(1);
            driver
                .clock()
                .set((start + Duration::from_millis(now)).into_std());
            let fired = driver.fire(0);
            assert_eq!(count.get() - before, fired);
            if fired > 0 {
                let elapsed = start + Duration::from_millis(latest + 1);
                assert!(elapsed >= sleep.deadline(), "round {round}");
            }
            let _ = driver.park_timeout(0);
            polled = poll(sleep.as_mut(), &waker);
        }
    }
}

/// A40: the machine was suspended, or the clock jumped.
#[test]
fn a_jump_forward_fires_each_timer_once() {
    let driver = paused(1);
    let start = driver.now();
    let (count, waker) = Count::new();
    let mut sleeps = (1..=500)
        .map(|n| driver.sleep_until(start + n * Duration::from_secs(60)))
        .collect::<Vec<_>>();
    for sleep in &mut sleeps {
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    assert_eq!(driver.run(8 * HOUR), 480);
    assert_eq!(driver.fire(0), 0);
    assert_eq!(count.get(), 480);
    let ready = sleeps
        .iter_mut()
        .filter_map(|sleep| poll(sleep.as_mut(), &waker).is_ready().then_some(()));
    assert_eq!(ready.count(), 480);
    assert_eq!(driver.run(20 * 60_000 * MS), 20);
}

/// A42: 4,000 goroutines that reset a timer of 100 µs kept a program from doing anything else.
#[test]
fn timers_that_are_reset_for_ever_starve_nobody() {
    let driver = paused(1);
    let us = Duration::from_micros(1);
    let (_, waker) = Count::new();
    let (ticks, ticker_waker) = Count::new();
    let mut resets = (0..4_000)
        .map(|_| driver.sleep(100 * us))
        .collect::<Vec<_>>();
    for sleep in &mut resets {
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    let mut ticker = driver.sleep(10 * MS);
    assert!(poll(ticker.as_mut(), &ticker_waker).is_pending());
    for round in 1..=1_000_usize {
        driver.run(50 * us);
        for sleep in resets.iter_mut().skip(round % 10).step_by(10) {
            sleep.as_mut().reset(driver.now() + 100 * us);
            assert!(poll(sleep.as_mut(), &waker).is_pending());
        }
        assert_eq!(ticks.get(), round * 50 / 10_000);
        if ticker.is_elapsed() {
            ticker.as_mut().reset(driver.now() + 10 * MS);
            assert!(poll(ticker.as_mut(), &ticker_waker).is_pending());
        }
    }
}

#[test]
fn resets_to_later_deadlines_cost_one_look_not_one_each() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let mut sleep = driver.sleep(10 * MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    for n in 0..1_000 {
        sleep.as_mut().reset(driver.now() + (n + 11) * MS);
    }
    assert_eq!(driver.run(10 * MS), 0);
    assert!(!driver.is_due(0), "the deadline is known exactly again");
    assert_eq!(driver.run(999 * MS), 0);
    assert_eq!(driver.run(MS), 1);
    assert_eq!(count.get(), 1);
}

#[test]
fn the_paused_clock_steps_to_the_next_deadline_of_any_p() {
    let driver = paused(2);
    let start = driver.now();
    let (count, waker) = Count::new();
    let mut near = driver.sleep_on(1, start + 70 * MS);
    let mut far = driver.sleep_on(0, start + HOUR);
    assert!(poll(near.as_mut(), &waker).is_pending());
    assert!(poll(far.as_mut(), &waker).is_pending());
    assert_eq!(driver.park_timeout(0), Some(Duration::ZERO));
    assert!(driver.auto_advance());
    assert_eq!(driver.now() - start, 70 * MS);
    assert!(!driver.auto_advance(), "what is due is fired first");
    assert_eq!((driver.fire(0), driver.fire(1)), (0, 1));
    assert!(driver.auto_advance());
    assert_eq!(driver.now() - start, HOUR);
    assert_eq!(driver.fire(0), 1);
    assert!(!driver.auto_advance(), "nothing is left");
    assert_eq!(count.get(), 2);
}

#[test]
fn the_paused_clock_does_not_step_to_a_timer_that_was_dropped() {
    let driver = paused(1);
    let start = driver.now();
    let (_, waker) = Count::new();
    let mut sleeps = (1..=100).map(|n| driver.sleep(n * MS)).collect::<Vec<_>>();
    for sleep in &mut sleeps {
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    sleeps.truncate(99);
    sleeps.drain(..98);
    assert!(driver.auto_advance());
    assert_eq!(driver.now() - start, 99 * MS);
}

#[test]
fn blocking_jobs_keep_the_paused_clock_from_stepping() {
    let driver = paused(1);
    let (_, waker) = Count::new();
    let start = driver.now();
    let mut sleep = driver.sleep(HOUR);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    driver.inhibit_auto_advance(true);
    assert!(!driver.auto_advance());
    assert_eq!(driver.park_timeout(0), Some(HOUR), "real time, as tokio");
    driver.inhibit_auto_advance(false);
    assert!(driver.auto_advance());
    assert_eq!(driver.now() - start, HOUR);
}

#[test]
fn a_running_clock_does_not_step() {
    let driver = TimerDriver::new(1, true, false);
    let (_, waker) = Count::new();
    let mut sleep = driver.sleep(HOUR);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert!(!driver.auto_advance());
    driver.clock().pause().unwrap();
    assert!(driver.auto_advance());
    driver.clock().resume().unwrap();
    assert!(!driver.auto_advance());
    assert!(driver.is_due(0));
}

/// tokio's clock moves in whole milliseconds, so the fraction at which it was paused stays.
#[test]
fn the_paused_clock_steps_in_whole_milliseconds() {
    let driver = paused(1);
    let start = driver.now();
    let (_, waker) = Count::new();
    let us = Duration::from_micros(1);
    driver.pass(300 * us);
    let mut sleep = driver.sleep(MS);
    assert!(poll(sleep.as_mut(), &waker).is_pending());
    assert!(driver.auto_advance());
    assert_eq!(driver.now() - start, 2_300 * us);
}

#[test]
#[should_panic = "`current_thread`"]
fn only_one_thread_may_begin_with_a_paused_clock() {
    let _ = TimerDriver::new(4, false, true);
}

#[test]
fn shutdown_wakes_who_waits_and_refuses_who_comes() {
    let driver = paused(2);
    let (count, waker) = Count::new();
    let mut sleeps = (0..100)
        .map(|n| driver.sleep_on(n % 2, driver.now() + HOUR * n as u32 + MS))
        .collect::<Vec<_>>();
    for sleep in &mut sleeps {
        assert!(poll(sleep.as_mut(), &waker).is_pending());
    }
    let mut unpolled = driver.sleep(HOUR);
    driver.shutdown();
    assert_eq!(count.get(), 100);
    assert_eq!(driver.park_timeout(0), None);
    sleeps[0].as_mut().reset(driver.now() + HOUR);
    let attempts = [&mut sleeps[0], &mut unpolled];
    for sleep in attempts {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            poll(sleep.as_mut(), &waker)
        }));
        let panic = polled.expect_err("the runtime is gone");
        let text = panic.downcast_ref::<String>().expect("a formatted message");
        assert!(text.contains("shutdown"), "{text}");
    }
    driver.shutdown();
    drop(sleeps);
    assert_eq!(count.get(), 100);
}

/// Threads register, poll, reset and drop timers while others fire them: each timer that was
/// pending and not dropped is woken, and the wheels are empty in the end.
#[test]
fn registering_resetting_and_dropping_while_others_fire() {
    const THREADS: usize = 4;
    const ROUNDS: u32 = 20_000;
    let driver = TimerDriver::new(2, false, false);
    let done = Arc::new(AtomicBool::new(false));
    let begin = Arc::new(Barrier::new(THREADS + 2));
    let firing = (0..2).map(|p| {
        let (driver, done, begin) = (driver.clone(), done.clone(), begin.clone());
        thread::spawn(move || {
            begin.wait();
            while !done.load(Ordering::SeqCst) {
                // Each fires both, as a thief would.
                driver.fire(p);
                driver.fire(1 - p);
                thread::yield_now();
            }
        })
    });
    let firing = firing.collect::<Vec<_>>();
    let users = (0..THREADS).map(|user| {
        let (driver, begin) = (driver.clone(), begin.clone());
        thread::spawn(move || {
            begin.wait();
            let mut random = user as u64 + 1;
            let mut kept = Vec::new();
            for _ in 0..ROUNDS {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                let choice = random >> 40;
                let (count, waker) = Count::new();
                let deadline = driver.now() + Duration::from_micros(choice % 3_000);
                let mut sleep = driver.sleep_on((choice % 2) as usize, deadline);
                if poll(sleep.as_mut(), &waker).is_ready() {
                    continue;
                }
                match choice % 7 {
                    0 => drop(sleep),
                    1 => {
                        sleep.as_mut().reset(deadline + 2 * MS);
                        kept.push((sleep, count, waker));
                    }
                    2 => {
                        sleep.as_mut().reset(driver.now() - MS);
                        drop(sleep);
                    }
                    3 => {
                        // Woken by the first waker or by the second, never by none.
                        let (count, waker) = Count::new();
                        if poll(sleep.as_mut(), &waker).is_pending() {
                            kept.push((sleep, count, waker));
                        }
                    }
                    _ => kept.push((sleep, count, waker)),
                }
                if kept.len() > 500 {
                    kept.drain(..400).for_each(wait_for);
                }
            }
            kept.into_iter().for_each(wait_for);
        })
    });
    let users = users.collect::<Vec<_>>();
    users.into_iter().for_each(|user| user.join().unwrap());
    done.store(true, Ordering::SeqCst);
    firing.into_iter().for_each(|thread| thread.join().unwrap());
    for p in 0..2 {
        driver.fire(p);
        assert_eq!(driver.park_timeout(p), None);
    }
}

/// Waits until the timer has woken its waker, then polls it.
fn wait_for((mut sleep, count, waker): (std::pin::Pin<Box<crate::Sleep>>, Arc<Count>, Waker)) {
    let begin = std::time::Instant::now();
    while count.get() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(600), "a lost wake-up");
        thread::sleep(MS / 4);
    }
    assert_eq!(count.get(), 1);
    assert_eq!(poll(sleep.as_mut(), &waker), Poll::Ready(()));
}

#[test]
fn shutdown_beside_registrations_leaves_nobody_waiting() {
    for _ in 0..200 {
        let driver = TimerDriver::new(1, false, false);
        let begin = Arc::new(Barrier::new(2));
        let user = {
            let (driver, begin) = (driver.clone(), begin.clone());
            thread::spawn(move || {
                let (count, waker) = Count::new();
                begin.wait();
                let mut pending = Vec::new();
                for _ in 0..100 {
                    let mut sleep = driver.sleep(HOUR);
                    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        poll(sleep.as_mut(), &waker)
                    }));
                    match polled {
                        Ok(polled) => assert!(polled.is_pending()),
                        Err(_) => break,
                    }
                    pending.push(sleep);
                }
                (pending, count)
            })
        };
        begin.wait();
        driver.shutdown();
        let (pending, count) = user.join().unwrap();
        assert_eq!(count.get(), pending.len());
    }
}
