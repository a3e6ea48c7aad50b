//! What users of other runtimes report about time. The numbers are those of `docs/reports.md`; most of
//! these complaints are tests of the timer crate.

mod support;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gmp::net::UdpSocket;
use gmp::sync::{Mutex, Semaphore, broadcast, mpsc, watch};
use gmp::task;
use gmp::time::{sleep, timeout};
use support::{bounded, current_thread, finish, run_task, runtime};

const MS: Duration = Duration::from_millis(1);

/// A36: a timeout that was never polled took the lock of the one wheel, twice.
#[cfg(target_os = "linux")]
#[test]
fn timeouts_that_come_to_nothing_on_two_ps_wait_for_no_lock() {
    use support::syscalls::{in_traced_child, mark};
    const TIMEOUTS: u64 = 50_000;
    let test = "timeouts_that_come_to_nothing_on_two_ps_wait_for_no_lock";
    let Some(calls) = in_traced_child(test, || {
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
    }) else {
        return;
    };
    let futex = calls.of(&[libc::SYS_futex]);
    assert!(futex < TIMEOUTS / 100, "{calls:?}");
    assert!(calls.total() < TIMEOUTS / 20, "{calls:?}");
}

/// A38: never early, and on an idle runtime no more than the rounding to milliseconds late.
#[test]
fn sleeps_of_a_millisecond_are_a_millisecond_long() {
    bounded(|| {
        for runtime in [runtime(2), current_thread()] {
            let mut took: Vec<_> = runtime.block_on(async {
                let mut took = Vec::new();
                for _ in 0..300 {
                    let start = Instant::now();
                    sleep(MS).await;
                    took.push(start.elapsed());
                }
                took
            });
            took.sort_unstable();
            assert!(took[0] >= MS, "early: {:?}", took[0]);
            // Many are late when the machine is busy, but not all.
            assert!(took[60] < 3 * MS, "{took:?}");
            finish(runtime);
        }
    });
}

/// A42: 4,000 goroutines that reset their timers over and over kept the program from anything else.
#[test]
fn a_ticker_ticks_beside_thousands_of_timers_that_are_reset() {
    bounded(|| {
        for runtime in [runtime(1), runtime(2), current_thread()] {
            let stop = Arc::new(AtomicBool::new(false));
            let resets = Arc::new(AtomicUsize::new(0));
            let resetting: Vec<_> = (0..1_000)
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
            let passed = run_task(&runtime, async move {
                let mut interval = gmp::time::interval(10 * MS);
                let before = resets.load(Ordering::Relaxed);
                for _ in 0..10 {
                    interval.tick().await;
                }
                stop.store(true, Ordering::Relaxed);
                resets.load(Ordering::Relaxed) - before
            });
            // Each of the thousand comes once a millisecond at most: the ticker is not behind them all.
            assert!(passed > 0);
            runtime.block_on(async {
                for task in resetting {
                    task.await.unwrap();
                }
            });
            finish(runtime);
        }
    });
}

/// Ends when `greedy`, which never does by itself, is timed out.
async fn elapses<F: Future<Output = ()>>(greedy: F) {
    timeout(5 * MS, greedy).await.unwrap_err();
}

/// A44: the future inside finds something in each poll until its budget is spent, and the deadline was
/// never looked at, or with no budget left.
#[test]
fn a_timeout_fires_around_everything_that_is_always_ready() {
    bounded(|| {
        for runtime in [runtime(1), runtime(2), current_thread()] {
            runtime.block_on(async {
                let (sender, mut receiver) = mpsc::unbounded_channel();
                elapses(async {
                    loop {
                        sender.send(()).unwrap();
                        receiver.recv().await.unwrap();
                    }
                })
                .await;
                let (sender, mut receiver) = mpsc::channel(1);
                elapses(async {
                    loop {
                        sender.send(()).await.unwrap();
                        receiver.recv().await.unwrap();
                    }
                })
                .await;
                let (sender, mut receiver) = broadcast::channel(4);
                elapses(async {
                    loop {
                        sender.send(()).unwrap();
                        receiver.recv().await.unwrap();
                    }
                })
                .await;
                let (sender, mut receiver) = watch::channel(());
                elapses(async {
                    loop {
                        sender.send(()).unwrap();
                        receiver.changed().await.unwrap();
                    }
                })
                .await;
                let mutex = Mutex::new(());
                elapses(async {
                    loop {
                        drop(mutex.lock().await);
                    }
                })
                .await;
                let semaphore = Semaphore::new(1);
                elapses(async {
                    loop {
                        drop(semaphore.acquire().await.unwrap());
                    }
                })
                .await;
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let itself = socket.local_addr().unwrap();
                elapses(async {
                    loop {
                        socket.send_to(&[1], itself).await.unwrap();
                        socket.recv(&mut [0]).await.unwrap();
                    }
                })
                .await;
                elapses(async {
                    loop {
                        task::consume_budget().await;
                    }
                })
                .await;
                elapses(async {
                    loop {
                        sleep(Duration::ZERO).await;
                    }
                })
                .await;
                elapses(async {
                    loop {
                        task::yield_now().await;
                    }
                })
                .await;
            });
            finish(runtime);
        }
    });
}
