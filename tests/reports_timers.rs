//! What users of other runtimes report about time. The numbers are those of `docs/reports.md`; most of
//! these complaints are tests of the timer crate.

mod support;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gmp::net::UdpSocket;
use gmp::runtime::Runtime;
use gmp::sync::{Mutex, Semaphore, broadcast, mpsc, watch};
use gmp::task;
use gmp::time::{sleep, timeout};
use support::{BusyWatch, bounded, current_thread, finish, in_some_round, run_task, runtime};

const MS: Duration = Duration::from_millis(1);

/// A36: a timeout that was never polled took the lock of the one wheel, twice.
#[cfg(target_os = "linux")]
#[test]
fn timeouts_that_come_to_nothing_on_two_ps_wait_for_no_lock() {
    use support::syscalls::{expect_calls, mark};
    const TIMEOUTS: u64 = 50_000;
    let test = "timeouts_that_come_to_nothing_on_two_ps_wait_for_no_lock";
    let body = || {
        let runtime = runtime(2);
        let create = || async {
            for i in 0..TIMEOUTS {
                timeout(Duration::from_secs(1), ready(())).await.unwrap();
                if i % 8 == 0 {
                    // Polled once, and dropped.
                    let _ = futures::poll!(std::pin::pin!(sleep(Duration::from_secs(1))));
                }
            }
        };
        let both = Arc::new(gmp::sync::Barrier::new(3));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let both = both.clone();
                runtime.spawn(async move {
                    both.wait().await;
                    create().await;
                    both.wait().await;
                })
            })
            .collect();
        runtime.block_on(async {
            mark();
            both.wait().await;
            both.wait().await;
            mark();
            for task in tasks {
                task.await.unwrap();
            }
        });
        finish(runtime);
    };
    expect_calls(test, body, |calls| {
        calls.of(&[libc::SYS_futex]) < TIMEOUTS / 100 && calls.total() < TIMEOUTS / 20
    });
}

/// A38: never early, and on an idle runtime no more than the rounding to milliseconds late.
#[test]
fn sleeps_of_a_millisecond_are_a_millisecond_long() {
    bounded(|| {
        for runtime in [runtime(2), current_thread()] {
            // Beside sleeps of the thread's own, which tell how late the machine is.
            let round = || {
                let (mut ours, mut threads) = (Vec::new(), Vec::new());
                runtime.block_on(async {
                    for _ in 0..100 {
                        let start = Instant::now();
                        sleep(MS).await;
                        ours.push(start.elapsed());
                        let start = Instant::now();
                        std::thread::sleep(MS);
                        threads.push(start.elapsed());
                    }
                });
                ours.sort_unstable();
                threads.sort_unstable();
                assert!(ours[0] >= MS, "early: {:?}", ours[0]);
                (ours[20], threads[20])
            };
            in_some_round(round, |&(ours, threads)| ours < threads + 2 * MS);
            finish(runtime);
        }
    });
}

/// A42: 4,000 goroutines that reset their timers over and over kept the program from anything else.
#[test]
fn a_ticker_ticks_beside_thousands_of_timers_that_are_reset() {
    // All of them are due at once. Where nothing is optimised, a poll of each of 4,000 takes more than 30 ms.
    const TASKS: usize = if cfg!(debug_assertions) { 1_000 } else { 4_000 };
    bounded(|| {
        for runtime in [runtime(1), runtime(2), current_thread()] {
            let stop = Arc::new(AtomicBool::new(false));
            let resets = Arc::new(AtomicUsize::new(0));
            let resetting: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (stop, resets) = (stop.clone(), resets.clone());
                    runtime.spawn(async move {
                        let mut sleep = std::pin::pin!(sleep(MS / 10));
                        while !stop.load(Ordering::Relaxed) {
                            sleep.as_mut().await;
                            let next = gmp::time::Instant::now() + MS / 10;
                            sleep.as_mut().reset(next);
                            resets.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            // The longest time from one tick to the next.
            let round = || {
                let resets = resets.clone();
                run_task(&runtime, async move {
                    let mut interval = gmp::time::interval(10 * MS);
                    let before = resets.load(Ordering::Relaxed);
                    let (mut ticks, mut longest) = (0, Duration::ZERO);
                    // Ticks that the machine was late for come all at once.
                    while ticks < 10 || resets.load(Ordering::Relaxed) == before {
                        let start = BusyWatch::start();
                        interval.tick().await;
                        longest = longest.max(start.elapsed());
                        ticks += 1;
                    }
                    longest
                })
            };
            in_some_round(round, |&longest| longest <= 30 * MS);
            stop.store(true, Ordering::Relaxed);
            runtime.block_on(async {
                for task in resetting {
                    task.await.unwrap();
                }
            });
            finish(runtime);
        }
    });
}

/// Ends when `greedy`, which never does by itself, is timed out, and in time.
fn elapses(runtime: &Runtime, mut greedy: impl AsyncFnMut()) {
    const LATE: Duration = Duration::from_millis(30);
    let mut round = async || {
        let start = BusyWatch::start();
        timeout(5 * MS, greedy()).await.unwrap_err();
        start.elapsed()
    };
    in_some_round(|| runtime.block_on(round()), |&took| took < 5 * MS + LATE);
}

/// A44: the future inside finds something in each poll until its budget is spent, and the deadline was
/// never looked at, or with no budget left.
#[test]
fn a_timeout_fires_around_everything_that_is_always_ready() {
    bounded(|| {
        for runtime in [runtime(1), runtime(2), current_thread()] {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            elapses(&runtime, async || {
                loop {
                    sender.send(()).unwrap();
                    receiver.recv().await.unwrap();
                }
            });
            let (sender, mut receiver) = mpsc::channel(1);
            elapses(&runtime, async || {
                // What the last round may have left.
                let _ = receiver.try_recv();
                loop {
                    sender.send(()).await.unwrap();
                    receiver.recv().await.unwrap();
                }
            });
            let (sender, mut receiver) = broadcast::channel(4);
            elapses(&runtime, async || {
                loop {
                    sender.send(()).unwrap();
                    receiver.recv().await.unwrap();
                }
            });
            let (sender, mut receiver) = watch::channel(());
            elapses(&runtime, async || {
                loop {
                    sender.send(()).unwrap();
                    receiver.changed().await.unwrap();
                }
            });
            let mutex = Mutex::new(());
            elapses(&runtime, async || {
                loop {
                    drop(mutex.lock().await);
                }
            });
            let semaphore = Semaphore::new(1);
            elapses(&runtime, async || {
                loop {
                    drop(semaphore.acquire().await.unwrap());
                }
            });
            let socket = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
            let itself = socket.local_addr().unwrap();
            elapses(&runtime, async || {
                loop {
                    socket.send_to(&[1], itself).await.unwrap();
                    socket.recv(&mut [0]).await.unwrap();
                }
            });
            elapses(&runtime, async || {
                loop {
                    task::consume_budget().await;
                }
            });
            elapses(&runtime, async || {
                loop {
                    sleep(Duration::ZERO).await;
                }
            });
            elapses(&runtime, async || {
                loop {
                    task::yield_now().await;
                }
            });
            finish(runtime);
        }
    });
}
