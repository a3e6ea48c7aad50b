//! The paused clock in a real runtime. Nothing here takes real time.

mod support;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use gmp_executor::task::{spawn, spawn_blocking, yield_now};
use gmp_timer::{
    Duration, Instant, advance, interval, interval_at, pause, resume, sleep, sleep_until, timeout,
};
use support::{MS, current, multi, panic_of, paused, watched, without_timers};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs on a `current_thread` runtime that begins with a paused clock.
fn run<F: Future>(future: F) -> F::Output {
    let runtime = paused();
    watched(|| runtime.block_on(future))
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn flag() -> (Arc<Flag>, Waker) {
    let flag = Arc::new(Flag::default());
    (flag.clone(), Waker::from(flag))
}

#[test]
fn the_clock_stands_still_and_steps_when_there_is_nothing_to_do() {
    run(async {
        let start = Instant::now();
        std::thread::sleep(2 * MS);
        assert_eq!(Instant::now(), start);
        for _ in 0..10 {
            yield_now().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
        sleep_until(start + 2 * HOUR).await;
        assert_eq!(start.elapsed(), 2 * HOUR);
    });
}

/// Two sleeps that are due at once wake at once, and a step does not pass over one that is due later.
#[test]
fn a_clock_that_is_paused_at_any_time_steps_to_deadlines_and_no_further() {
    let runtime = current();
    watched(|| {
        runtime.block_on(async {
            pause();
            let start = Instant::now();
            let (flag, waker) = flag();
            let mut cx = Context::from_waker(&waker);
            let mut other = pin!(sleep(2 * MS));
            assert!(other.as_mut().poll(&mut cx).is_pending());
            sleep(MS).await;
            assert_eq!(start.elapsed(), MS);
            assert!(other.as_mut().poll(&mut cx).is_pending());
            sleep_until(start + 2 * MS).await;
            assert_eq!(start.elapsed(), 2 * MS);
            assert!(flag.0.load(Ordering::SeqCst), "fired, too");
        });
    });
}

#[test]
fn a_long_time_passes_in_no_time_and_ends_at_the_deadline() {
    run(async {
        let start = Instant::now();
        let year = 365 * 24 * HOUR;
        for years in 1..=10 {
            sleep(year).await;
            assert_eq!(start.elapsed(), years * year);
        }
        sleep(Duration::MAX).await;
        assert!(start.elapsed() > 39 * year);
    });
}

#[test]
fn two_runs_are_the_same() {
    let once = || {
        run(async {
            let start = Instant::now();
            let mut random = 7_u64;
            let mut times = Vec::new();
            for _ in 0..2_000 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                sleep(Duration::from_nanos(random >> 34)).await;
                times.push(start.elapsed());
            }
            times
        })
    };
    let first = once();
    assert!(first.is_sorted());
    assert_eq!(first, once());
}

#[test]
fn tasks_wake_in_the_order_of_their_deadlines() {
    run(async {
        let order = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        let tasks = (0..100_u32).map(|n| {
            let order = order.clone();
            let delay = n * 37 % 100;
            spawn(async move {
                sleep(delay * MS).await;
                assert_eq!(start.elapsed(), delay * MS);
                order.lock().unwrap().push(delay);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        assert!(order.lock().unwrap().iter().copied().eq(0..100));
    });
}

#[test]
fn advance_wakes_what_it_passes_in_order_and_nothing_else() {
    run(async {
        let start = Instant::now();
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks = [30_u32, 10, 20, 40].map(|delay| {
            let order = order.clone();
            spawn(async move {
                sleep(delay * MS).await;
                order.lock().unwrap().push((delay, start.elapsed()));
            })
        });
        yield_now().await;
        advance(35 * MS).await;
        assert_eq!(start.elapsed(), 35 * MS, "in one step");
        for _ in 0..5 {
            yield_now().await;
        }
        let taken = [10, 20, 30].map(|delay| (delay, 35 * MS));
        assert_eq!(*order.lock().unwrap(), taken);
        for task in tasks {
            task.await.expect("no panic");
        }
        assert_eq!(start.elapsed(), 40 * MS);
    });
}

/// Before `advance` returns the timers are fired, and the clock has not stepped further.
#[test]
fn advance_fires_before_it_returns() {
    run(async {
        let (flag, waker) = flag();
        let mut cx = Context::from_waker(&waker);
        let mut sleep = pin!(sleep(MS));
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        for _ in 0..3 {
            advance(MS / 4).await;
            assert!(!flag.0.load(Ordering::SeqCst));
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
        }
        advance(MS / 4).await;
        assert!(flag.0.load(Ordering::SeqCst));
        assert!(sleep.as_mut().poll(&mut cx).is_ready());
    });
}

#[test]
fn advance_is_exact() {
    run(async {
        for nanos in [1, 999, 1_000, 51_592_000, 3_141_592_000] {
            let start = Instant::now();
            advance(Duration::from_nanos(nanos)).await;
            assert_eq!(start.elapsed(), Duration::from_nanos(nanos));
        }
    });
}

#[test]
fn advance_in_a_task_beside_a_sleeping_main() {
    run(async {
        let start = Instant::now();
        let task = spawn(async move {
            advance(10 * MS).await;
            start.elapsed()
        });
        sleep(5 * MS).await;
        assert!(start.elapsed() >= 5 * MS);
        assert_eq!(task.await.expect("no panic"), 10 * MS);
    });
}

#[test]
fn resume_goes_on_from_where_the_clock_stood() {
    let runtime = current();
    watched(|| {
        runtime.block_on(async {
            pause();
            let start = Instant::now();
            advance(HOUR).await;
            resume();
            assert!(start.elapsed() >= HOUR);
            let real = std::time::Instant::now();
            sleep(3 * MS).await;
            assert!(real.elapsed() >= 3 * MS, "by the real clock again");
            pause();
            let again = Instant::now();
            assert!(again - start >= HOUR + 3 * MS);
            std::thread::sleep(MS);
            assert_eq!(Instant::now(), again);
            sleep(HOUR).await;
            assert!(again.elapsed() >= HOUR && again.elapsed() <= HOUR + MS);
        });
    });
}

/// A69: a job on the blocking pool may take its time.
#[test]
fn the_clock_does_not_step_while_a_blocking_job_runs() {
    run(async {
        let start = Instant::now();
        let job = spawn_blocking(|| {
            std::thread::sleep(20 * MS);
            5
        });
        let result = timeout(100 * HOUR, job).await.expect("the job wins");
        assert_eq!(result.expect("no panic"), 5);
        assert_eq!(start.elapsed(), Duration::ZERO);
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn a_forgotten_blocking_job_lets_the_clock_go_when_it_ends() {
    run(async {
        let start = Instant::now();
        drop(spawn_blocking(|| std::thread::sleep(20 * MS)));
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn intervals_and_timeouts_go_by_the_paused_clock() {
    run(async {
        let start = Instant::now();
        let mut interval = interval_at(start, 300 * MS);
        for n in 0..100 {
            assert_eq!(interval.tick().await, start + n * 300 * MS);
            assert_eq!(start.elapsed(), n * 300 * MS);
        }
        interval.reset();
        advance(300 * MS).await;
        assert_eq!(interval.tick().await, Instant::now());
        let before = Instant::now();
        assert!(timeout(HOUR, pending::<()>()).await.is_err());
        assert_eq!(before.elapsed(), HOUR);
    });
}

/// A deadline a year away, cancelled, must not be a stop on the way of the clock.
#[test]
fn the_clock_does_not_stop_at_cancelled_timers() {
    run(async {
        let stops = Arc::new(AtomicU32::new(0));
        let start = Instant::now();
        for n in 1..50_u32 {
            let mut cancelled = Box::pin(sleep(n * 100 * MS));
            assert!(futures::poll!(cancelled.as_mut()).is_pending());
        }
        let seen = stops.clone();
        spawn(async move {
            sleep(HOUR).await;
            seen.fetch_add(1, Ordering::SeqCst);
        })
        .await
        .expect("no panic");
        assert_eq!(start.elapsed(), HOUR);
        assert_eq!(stops.load(Ordering::SeqCst), 1);
    });
}

/// The clock belongs to the runtime: another one on the same thread has its own.
#[test]
fn each_runtime_has_its_own_clock() {
    let (one, two, real) = (paused(), paused(), current());
    watched(|| {
        let start = one.block_on(async {
            let start = Instant::now();
            sleep(HOUR).await;
            start
        });
        assert!(one.block_on(async { Instant::now() - start }) == HOUR);
        assert!(two.block_on(async { Instant::now() - start }) < HOUR);
        assert!(real.block_on(async { Instant::now() - start }) < HOUR);
        assert!(start.elapsed() < HOUR, "outside");
        let _context = one.enter();
        assert_eq!(start.elapsed(), HOUR);
    });
}

/// As tokio's `tickspace`: the ticks of a timer are those of its own runtime's clock.
#[test]
fn reset_in_another_runtime_counts_by_the_own_clock() {
    let home = paused();
    std::thread::sleep(3 * MS);
    let other = paused();
    watched(|| {
        let _context = home.enter();
        let start = Instant::now();
        let mut sleep = Box::pin(sleep(MS));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let deadline = sleep.deadline();
        other.block_on(async { sleep.as_mut().reset(deadline + MS) });
        home.block_on(sleep);
        assert_eq!(start.elapsed(), 2 * MS);
    });
}

#[test]
fn a_sleep_is_elapsed_when_it_was_fired() {
    run(async {
        let mut sleep = pin!(sleep(10 * MS));
        assert!(!sleep.is_elapsed());
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        advance(9 * MS).await;
        assert!(!sleep.is_elapsed());
        advance(MS).await;
        assert!(sleep.is_elapsed());
        assert_eq!(futures::poll!(sleep.as_mut()), Poll::Ready(()));
    });
}

#[test]
fn panics_are_tokios() {
    let text_of = |f: &dyn Fn()| {
        let (text, file) = panic_of(f);
        (text, file == file!())
    };
    let outside = "time cannot be frozen from outside the Tokio runtime";
    assert_eq!(text_of(&pause), (outside.into(), false));
    assert_eq!(text_of(&|| pause()), (outside.into(), true));
    assert_eq!(text_of(&|| resume()), (outside.into(), true));
    let (text, _) = text_of(&|| futures::executor::block_on(advance(MS)));
    assert_eq!(text, outside);

    let runtime = current();
    let inside = |f: fn()| text_of(&|| runtime.block_on(async { f() }));
    assert_eq!(inside(|| resume()), ("time is not frozen".into(), true));
    let (text, _) = text_of(&|| runtime.block_on(advance(MS)));
    assert_eq!(text, "time is not frozen");
    let twice = inside(|| {
        pause();
        pause();
    });
    assert_eq!(twice, ("time is already frozen".into(), true));
    let (text, _) = text_of(&|| runtime.block_on(advance(Duration::MAX)));
    assert!(text.contains("overflow"), "{text}");

    let several = multi(2);
    let (text, is_here) = text_of(&|| several.block_on(async { pause() }));
    assert!(is_here && text.contains("requires the `current_thread` Tokio runtime"));
    let untimed = without_timers();
    let (text, _) = text_of(&|| untimed.block_on(async { pause() }));
    assert!(text.contains("timers are disabled"), "{text}");
}

#[test]
fn a_tick_taken_at_once_after_a_pause_of_the_program() {
    run(async {
        let start = Instant::now();
        let mut interval = interval(10 * MS);
        interval.tick().await;
        advance(55 * MS).await;
        for n in 1..=5 {
            assert_eq!(interval.tick().await, start + n * 10 * MS);
            assert_eq!(start.elapsed(), 55 * MS);
        }
        assert_eq!(interval.tick().await, start + 60 * MS);
        assert_eq!(start.elapsed(), 60 * MS);
    });
}
