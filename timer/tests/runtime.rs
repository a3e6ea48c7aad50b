//! Timers in a real runtime, by the real clock.

mod support;

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use gmp_executor::seam::Timers;
use gmp_executor::task::{spawn, yield_now};
use gmp_executor::{Flavor, coop};
use gmp_timer::error::Elapsed;
use gmp_timer::{Duration, Instant, interval, sleep, sleep_until, timeout, timeout_at};
use support::{MS, current, multi, panic_of, watched, with_driver, without_timers};

const HOUR: Duration = Duration::from_secs(3600);

/// A38: never early, and on an idle runtime not much later than the next millisecond.
#[test]
fn sleeps_of_a_millisecond() {
    for runtime in [current(), multi(1), multi(2)] {
        watched(|| {
            runtime.block_on(async {
                for _ in 0..200 {
                    let begin = Instant::now();
                    sleep(MS).await;
                    assert!(begin.elapsed() >= MS);
                }
            });
        });
    }
}

#[test]
fn many_tasks_sleep_on_all_ps_and_none_wakes_early() {
    for runtime in [current(), multi(2), multi(4)] {
        watched(|| {
            runtime.block_on(async {
                let tasks = (0..2_000_u32).map(|n| {
                    spawn(async move {
                        for round in 0..5 {
                            let begin = Instant::now();
                            let delay = (n * 7 + round) % 23 * MS / 2;
                            sleep(delay).await;
                            assert!(begin.elapsed() >= delay);
                        }
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await.expect("no panic");
                }
            });
        });
    }
}

/// A43 and A5: the task is always ready, so the runtime is never idle.
#[test]
fn a_task_that_wakes_itself_does_not_starve_its_timer() {
    struct Starving<F>(F);
    impl<F: Future<Output = ()> + Unpin> Future for Starving<F> {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let polled = Pin::new(&mut self.0).poll(cx);
            cx.waker().wake_by_ref();
            polled
        }
    }
    for runtime in [current(), multi(1), multi(4)] {
        watched(|| {
            runtime.block_on(async {
                let deadline = Instant::now() + 10 * MS;
                Starving(Box::pin(sleep_until(deadline))).await;
                assert!(Instant::now() >= deadline);
            });
        });
    }
}

/// A43: a combinator that polls its child within one poll for as long as the child wakes it.
#[test]
fn a_combinator_that_never_returns_sees_the_deadline() {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let runtime = current();
    watched(|| {
        runtime.block_on(async {
            let begin = Instant::now();
            let mut inner = Box::pin(async {
                let mut sleep = pin!(sleep(20 * MS));
                poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    sleep.as_mut().poll(cx)
                })
                .await;
            });
            poll_fn(|_| {
                let flag = Arc::new(Flag(AtomicBool::new(true)));
                let waker = Waker::from(flag.clone());
                while flag.0.swap(false, Ordering::SeqCst) {
                    if inner
                        .as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .is_ready()
                    {
                        return Poll::Ready(());
                    }
                }
                unreachable!("the child wakes itself in each poll")
            })
            .await;
            assert!(begin.elapsed() >= 20 * MS);
        });
    });
}

/// A44.
#[test]
fn a_timeout_around_a_greedy_future_elapses() {
    for runtime in [current(), multi(2)] {
        watched(|| {
            let result = runtime.block_on(async {
                timeout(50 * MS, async {
                    loop {
                        coop::consume_budget().await;
                    }
                })
                .await
            });
            let _: Elapsed = result.expect_err("the loop has no end");
        });
    }
}

#[test]
fn timeouts_in_a_runtime() {
    for runtime in [current(), multi(2)] {
        watched(|| {
            runtime.block_on(async {
                assert_eq!(timeout(Duration::ZERO, async { 1 }).await, Ok(1));
                assert_eq!(timeout(Duration::MAX, async { 2 }).await, Ok(2));
                let late = timeout_at(Instant::now() - HOUR, async { 3 }).await;
                assert_eq!(late, Ok(3));
                let begin = Instant::now();
                assert!(timeout(10 * MS, pending::<()>()).await.is_err());
                assert!(begin.elapsed() >= 10 * MS);
                let longer = timeout(HOUR, sleep(5 * MS)).await;
                assert_eq!(longer, Ok(()));
                assert!(timeout(5 * MS, sleep(HOUR)).await.is_err());
            });
        });
    }
}

#[test]
fn an_interval_keeps_its_grid() {
    let runtime = multi(2);
    watched(|| {
        runtime.block_on(async {
            let mut interval = interval(5 * MS);
            let first = interval.tick().await;
            for n in 1..20 {
                assert_eq!(interval.tick().await, first + n * 5 * MS);
                assert!(Instant::now() >= first + n * 5 * MS);
            }
        });
    });
}

/// The deadline is registered with a P whose M waits for a later one, or without a timeout at all.
#[test]
fn a_timer_from_a_foreign_thread_breaks_a_wait_that_is_too_long() {
    for runtime in [multi(1), multi(4)] {
        watched(|| {
            runtime.spawn_and_wait();
            for _ in 0..20 {
                let in_context = {
                    let _context = runtime.enter();
                    Box::pin(sleep(2 * MS))
                };
                // Outside any runtime: through the handle that the timers keep.
                futures::executor::block_on(in_context);
                let _context = runtime.enter();
                futures::executor::block_on(sleep(2 * MS));
            }
        });
    }
}

/// The main future has borrowed a P while the M that looks after its timers wakes up, fires one, and goes to
/// sleep again, for good as it believes. A timer that the main future starts then has to wake it.
#[test]
fn a_timer_started_while_the_one_before_it_fires_is_not_slept_through() {
    let runtime = multi(1);
    watched(|| {
        for round in 0..20 {
            runtime.block_on(async {
                let fired = Arc::new(Flag(AtomicBool::new(false)));
                let mut first = pin!(sleep((1 + round % 5) * MS));
                let waker = Waker::from(fired.clone());
                if first
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
                {
                    // Too slow a thread: the other rounds do it.
                    return;
                }
                // Gives the P back and borrows it again.
                let (sender, receiver) = futures::channel::oneshot::channel();
                let thread = thread::spawn(move || sender.send(()).expect("it waits"));
                receiver.await.expect("it is sent");
                while !fired.0.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                sleep(MS).await;
                thread.join().expect("it has sent");
            });
        }
    });
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

trait SpawnAndWait {
    /// Leaves a task that waits for an hour.
    fn spawn_and_wait(&self);
}

impl SpawnAndWait for gmp_executor::Runtime {
    fn spawn_and_wait(&self) {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.handle().spawn(async move {
            let mut sleep = pin!(sleep(HOUR));
            let mut sender = Some(sender);
            poll_fn(|cx| {
                let polled = sleep.as_mut().poll(cx);
                if let Some(sender) = sender.take() {
                    sender.send(()).expect("the test waits");
                }
                polled
            })
            .await;
        });
        receiver.recv().expect("the task was polled");
    }
}

/// A timer is polled here and there: by tasks that are stolen, on the main thread, on foreign ones.
#[test]
fn a_timer_moves_with_who_polls_it() {
    let runtime = multi(4);
    watched(|| {
        let tasks = (0..200_u32)
            .map(|n| {
                runtime.handle().spawn(async move {
                    let mut sleep = Box::pin(sleep(HOUR));
                    for round in 0..50_u32 {
                        assert!(futures::poll!(sleep.as_mut()).is_pending());
                        yield_now().await;
                        let delay = (n + round) % 7 * MS / 4;
                        let begin = Instant::now();
                        sleep.as_mut().reset(begin + delay);
                        if round % 3 == 0 {
                            // On another task, and most likely another P.
                            let moved = spawn(async move {
                                sleep.as_mut().await;
                                Some(sleep)
                            });
                            sleep = moved.await.expect("no panic").expect("it comes back");
                        } else {
                            sleep.as_mut().await;
                        }
                        assert!(begin.elapsed() >= delay);
                        sleep.as_mut().reset(Instant::now() + HOUR);
                    }
                    Some(sleep)
                })
            })
            .collect::<Vec<_>>();
        for task in tasks {
            let sleep = futures::executor::block_on(task).expect("no panic");
            let mut sleep = sleep.expect("it comes back");
            sleep.as_mut().reset(Instant::now() + 2 * MS);
            futures::executor::block_on(sleep);
        }
    });
}

/// A timer belongs to the runtime in which it was made, not to that in which it is polled.
#[test]
fn a_timer_of_another_runtime() {
    let (home, other) = (multi(2), current());
    watched(|| {
        let mut sleep = {
            let _context = home.enter();
            Box::pin(sleep(5 * MS))
        };
        let begin = Instant::now();
        other.block_on(async {
            sleep.as_mut().reset(begin + 10 * MS);
            sleep.as_mut().await;
        });
        assert!(begin.elapsed() >= 10 * MS);
        sleep.as_mut().reset(Instant::now() + HOUR);
        other.block_on(async { assert!(futures::poll!(sleep.as_mut()).is_pending()) });
        drop(home);
        let (text, _) = panic_of(|| other.block_on(sleep));
        assert!(text.contains("is being shutdown"), "{text}");
    });
}

#[test]
fn who_waits_when_the_runtime_ends_is_woken_and_panics() {
    for flavor in [Flavor::CurrentThread, Flavor::MultiThread] {
        let (runtime, _driver) = with_driver(flavor, 1, false);
        watched(|| {
            let mut sleep = {
                let _context = runtime.enter();
                Box::pin(sleep(HOUR))
            };
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiter = thread::spawn(move || {
                let wait = poll_fn(|cx| {
                    let polled = sleep.as_mut().poll(cx);
                    let _ = sender.send(());
                    polled
                });
                futures::executor::block_on(wait);
            });
            receiver.recv().expect("it was polled");
            drop(runtime);
            let panic = waiter.join().expect_err("the runtime is gone");
            let text = panic.downcast_ref::<String>().expect("a formatted message");
            assert!(text.contains("is being shutdown"), "{text}");
        });
    }
}

#[test]
fn a_runtime_that_ended_leaves_nothing_behind() {
    for (flavor, procs) in [(Flavor::CurrentThread, 1), (Flavor::MultiThread, 2)] {
        let (runtime, driver) = with_driver(flavor, procs, false);
        watched(|| {
            runtime.block_on(async {
                drop(spawn(sleep(HOUR)));
                sleep(MS).await;
            });
            drop(runtime);
            assert_eq!(driver.park_timeout(0), None);
            // The threads have ended but may not have let go of everything.
            while Arc::strong_count(&driver) > 1 {
                thread::yield_now();
            }
        });
    }
}

#[test]
fn panics_say_what_to_do_and_where() {
    let here = |(text, file): (String, String)| {
        assert_eq!(file, file!(), "{text}");
        text
    };
    let outside: [fn(); 3] = [
        || drop(sleep(MS)),
        || drop(timeout(MS, pending::<()>())),
        || drop(interval(MS)),
    ];
    for make in outside {
        // The location is that of the closures above.
        let text = here(panic_of(make));
        assert!(text.contains("there is no reactor running"), "{text}");
        let runtime = without_timers();
        let text = here(panic_of(|| runtime.block_on(async { make() })));
        assert!(text.contains("timers are disabled"), "{text}");
        assert!(text.contains("enable_time"), "{text}");
    }
    let text = here(panic_of(|| drop(interval(Duration::ZERO))));
    assert_eq!(text, "`period` must be non-zero.");
}
