//! The locks among real tasks: the budget, fairness, and many hands on several Ps.

#![cfg(not(gmp_loom))]

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use gmp_executor::{Config, Flavor, Runtime, task};
use gmp_sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce};

fn current_thread() -> Runtime {
    Runtime::new(Config::new(Flavor::CurrentThread, 1)).unwrap()
}

fn multi_thread(procs: usize) -> Runtime {
    Runtime::new(Config::new(Flavor::MultiThread, procs)).unwrap()
}

/// Runs a test on a thread of its own, within a bound far above need.
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    let ended = wait.recv_timeout(Duration::from_secs(600));
    if ended.is_err() && !thread.is_finished() {
        panic!("still not done");
    }
    thread.join().unwrap();
}

/// A task that never has to wait for its locks lets others run all the same.
#[test]
fn a_greedy_task_lets_others_run() {
    async fn until_stopped<F: Future>(mut operation: impl FnMut() -> F) {
        let stop = Arc::new(AtomicBool::new(false));
        let other = stop.clone();
        let stopper = task::spawn(async move { other.store(true, Ordering::Relaxed) });
        while !stop.load(Ordering::Relaxed) {
            operation().await;
        }
        stopper.await.unwrap();
    }
    watched(|| {
        current_thread().block_on(async {
            task::spawn(async {
                let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
                let (semaphore, notify) = (Semaphore::new(1), Notify::new());
                until_stopped(|| mutex.lock()).await;
                until_stopped(|| lock.read()).await;
                until_stopped(|| lock.write()).await;
                until_stopped(|| semaphore.acquire()).await;
                until_stopped(|| {
                    notify.notify_one();
                    notify.notified()
                })
                .await;
            })
            .await
            .unwrap();
        });
    });
}

/// Counts the polls of a future.
struct Counted<F>(Pin<Box<F>>, Rc<Cell<usize>>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.set(self.1.get() + 1);
        self.0.as_mut().poll(cx)
    }
}

/// Many locks of one mutex in a `FuturesUnordered`: once the budget is spent, it must not poll all of
/// them again and again.
#[test]
fn many_futures_in_one_task_are_polled_a_few_times_each() {
    watched(|| {
        for count in [1_000, 10_000] {
            let polls = Rc::new(Cell::new(0));
            current_thread().block_on(async {
                let mutex = Mutex::new(0);
                let locks: FuturesUnordered<_> = (0..count)
                    .map(|_| Counted(Box::pin(async { *mutex.lock().await += 1 }), polls.clone()))
                    .collect();
                assert_eq!(locks.collect::<Vec<_>>().await.len(), count);
                assert_eq!(mutex.into_inner(), count);
            });
            assert!(polls.get() <= 4 * count, "{} polls", polls.get());
        }
    });
}

/// First come, first served, also between a task that locks again at once and one that waits.
#[test]
fn tasks_take_turns() {
    watched(|| {
        let turns = current_thread().block_on(async {
            let turns = Arc::new(Mutex::new(Vec::new()));
            let start = Arc::new(Barrier::new(3));
            let tasks = [0, 1, 2].map(|number| {
                let (turns, start) = (turns.clone(), start.clone());
                task::spawn(async move {
                    start.wait().await;
                    for _ in 0..10 {
                        let mut guard = turns.lock().await;
                        guard.push(number);
                        task::yield_now().await;
                    }
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
            Arc::into_inner(turns).unwrap().into_inner()
        });
        // Once the first three have locked, everybody waits for the other two.
        for turn in turns.windows(3).take(25) {
            assert!(
                turn[0] != turn[1] && turn[1] != turn[2] && turn[0] != turn[2],
                "{turns:?}"
            );
        }
    });
}

#[test]
fn a_mutex_on_several_ps() {
    watched(|| {
        let runtime = multi_thread(4);
        let total = runtime.block_on(async {
            let mutex = Arc::new(Mutex::new(0));
            let tasks: Vec<_> = (0..16)
                .map(|_| {
                    let mutex = mutex.clone();
                    task::spawn(async move {
                        for round in 0..500 {
                            let mut guard = mutex.lock().await;
                            let before = *guard;
                            if round % 50 == 0 {
                                task::yield_now().await;
                            }
                            *guard = before + 1;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            *mutex.lock().await
        });
        assert_eq!(total, 16 * 500);
    });
}

#[test]
fn a_rwlock_on_several_ps() {
    watched(|| {
        let runtime = multi_thread(4);
        runtime.block_on(async {
            let lock = Arc::new(RwLock::with_max_readers((0u32, 0u32), 3));
            let tasks: Vec<_> = (0..12)
                .map(|number| {
                    let lock = lock.clone();
                    task::spawn(async move {
                        for _ in 0..300 {
                            if number % 4 == 0 {
                                let mut guard = lock.write().await;
                                guard.0 += 1;
                                task::yield_now().await;
                                guard.1 += 1;
                                let guard = guard.downgrade();
                                assert_eq!(guard.0, guard.1);
                            } else {
                                let guard = lock.read().await;
                                assert_eq!(guard.0, guard.1);
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*lock.read().await, (900, 900));
        });
    });
}

/// A channel for several receivers, as in the documentation of `Notified::enable`.
#[test]
fn notify_on_several_ps() {
    const VALUES: usize = 2_000;

    #[derive(Default)]
    struct Channel {
        values: parking_lot::Mutex<Vec<usize>>,
        sent: Notify,
    }

    impl Channel {
        async fn recv(&self) -> usize {
            let mut sent = std::pin::pin!(self.sent.notified());
            loop {
                sent.as_mut().enable();
                if let Some(value) = self.values.lock().pop() {
                    return value;
                }
                sent.as_mut().await;
                sent.set(self.sent.notified());
            }
        }
    }

    watched(|| {
        let runtime = multi_thread(4);
        let received = runtime.block_on(async {
            let channel = Arc::new(Channel::default());
            let sum = Arc::new(AtomicUsize::new(0));
            let receivers: Vec<_> = (0..4)
                .map(|_| {
                    let (channel, sum) = (channel.clone(), sum.clone());
                    task::spawn(async move {
                        for _ in 0..VALUES / 2 {
                            sum.fetch_add(channel.recv().await, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let senders: Vec<_> = (0..2)
                .map(|_| {
                    let channel = channel.clone();
                    task::spawn(async move {
                        for value in 0..VALUES {
                            channel.values.lock().push(value);
                            channel.sent.notify_one();
                            if value % 7 == 0 {
                                task::yield_now().await;
                            }
                        }
                    })
                })
                .collect();
            for task in senders.into_iter().chain(receivers) {
                task.await.unwrap();
            }
            sum.load(Ordering::Relaxed)
        });
        assert_eq!(received, VALUES * (VALUES - 1));
    });
}

#[test]
fn cells_on_several_ps() {
    watched(|| {
        let runtime = multi_thread(4);
        runtime.block_on(async {
            for _ in 0..100 {
                let once = Arc::new(OnceCell::new());
                let set = Arc::new(SetOnce::new());
                let attempts = Arc::new(AtomicUsize::new(0));
                let tasks: Vec<_> = (0..8)
                    .map(|number| {
                        let (once, set) = (once.clone(), set.clone());
                        let attempts = attempts.clone();
                        task::spawn(async move {
                            let value = *once
                                .get_or_init(|| async {
                                    attempts.fetch_add(1, Ordering::Relaxed);
                                    task::yield_now().await;
                                    number
                                })
                                .await;
                            if value == number {
                                set.set(value).unwrap();
                            }
                            assert_eq!(*set.wait().await, value);
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
                assert_eq!(attempts.load(Ordering::Relaxed), 1);
            }
        });
    });
}

/// Guards move between threads with their tasks, and tasks that are aborted give up their places.
#[test]
fn aborted_tasks_leave_the_queue() {
    watched(|| {
        let runtime = multi_thread(2);
        runtime.block_on(async {
            let semaphore = Arc::new(Semaphore::new(2));
            for round in 0..200 {
                let tasks: Vec<_> = (0..6)
                    .map(|number| {
                        let semaphore = semaphore.clone();
                        task::spawn(async move {
                            let _permit = semaphore.acquire_many(number % 2 + 1).await.unwrap();
                            task::yield_now().await;
                        })
                    })
                    .collect();
                tasks[round % 6].abort();
                tasks[(round + 1) % 6].abort();
                for task in tasks {
                    let _ = task.await;
                }
                assert_eq!(semaphore.available_permits(), 2);
            }
        });
    });
}
