//! The budget reaches through everything that polls for others: a loop that always finds something ready ends
//! its poll all the same, and what runs beside it gets its turn. The numbers are those of `docs/reports.md`.
//!
//! `reports_timers` has a timeout around each primitive by itself.

mod support;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use gmp::runtime::Runtime;
use gmp::sync::{
    Barrier, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch,
};
use gmp::task;
use gmp::time::{interval, timeout};
use support::{bounded, current_thread, finish, runtime};

const MS: Duration = Duration::from_millis(1);

/// On each kind of runtime, in the main future and in a task.
fn everywhere<F, T>(test: T)
where
    F: Future<Output = ()> + Send + 'static,
    T: Fn() -> F + Send + 'static,
{
    bounded(move || {
        let makes: [fn() -> Runtime; 3] = [|| runtime(1), || runtime(2), current_thread];
        for make in makes {
            let runtime = make();
            runtime.block_on(test());
            let task = runtime.spawn(test());
            runtime.block_on(task).expect("the test in a task");
            finish(runtime);
        }
    });
}

/// Ends when `greedy`, which never does by itself, is timed out.
async fn elapses<F: Future<Output = ()>>(greedy: F) {
    timeout(5 * MS, greedy).await.unwrap_err();
}

/// A44: what `reports_timers` leaves out.
#[test]
fn a_timeout_fires_around_the_other_primitives() {
    everywhere(|| async {
        elapses(async {
            loop {
                let (sender, receiver) = oneshot::channel();
                sender.send(()).unwrap();
                receiver.await.unwrap();
            }
        })
        .await;
        let notify = Notify::new();
        elapses(async {
            loop {
                notify.notify_one();
                notify.notified().await;
            }
        })
        .await;
        let lock = RwLock::new(());
        elapses(async {
            loop {
                drop(lock.read().await);
                drop(lock.write().await);
            }
        })
        .await;
        let barrier = Barrier::new(1);
        elapses(async {
            loop {
                barrier.wait().await;
            }
        })
        .await;
        elapses(async {
            loop {
                let cell = OnceCell::new();
                cell.get_or_init(|| std::future::ready(1)).await;
            }
        })
        .await;
        let set = SetOnce::new_with(Some(1));
        elapses(async {
            loop {
                set.wait().await;
            }
        })
        .await;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut buffer = Vec::new();
        elapses(async {
            loop {
                sender.send(()).unwrap();
                receiver.recv_many(&mut buffer, 4).await;
                buffer.clear();
            }
        })
        .await;
    });
}

/// A44 through `select!`, fair and biased, over channels that are never empty.
#[test]
fn a_timeout_fires_around_a_select_that_is_always_ready() {
    everywhere(|| async {
        let (sender, mut receiver) = mpsc::channel(4);
        let (unbounded, mut unbounded_receiver) = mpsc::unbounded_channel();
        let (broadcast, mut broadcast_receiver) = broadcast::channel(4);
        let (watch, mut watch_receiver) = watch::channel(0);
        let semaphore = Semaphore::new(1);
        let fill = || {
            let _ = sender.try_send(());
            unbounded.send(()).unwrap();
            broadcast.send(()).unwrap();
            watch.send(1).unwrap();
        };
        elapses(async {
            loop {
                fill();
                gmp::select! {
                    message = receiver.recv() => message.unwrap(),
                    message = unbounded_receiver.recv() => message.unwrap(),
                    _ = broadcast_receiver.recv() => {}
                    changed = watch_receiver.changed() => changed.unwrap(),
                    permit = semaphore.acquire() => drop(permit.unwrap()),
                }
            }
        })
        .await;
        elapses(async {
            loop {
                fill();
                gmp::select! {
                    biased;
                    message = receiver.recv() => message.unwrap(),
                    message = unbounded_receiver.recv() => message.unwrap(),
                    else => unreachable!(),
                }
            }
        })
        .await;
    });
}

/// A44, A45 through `FuturesUnordered`, which polls a child that woke itself again at once.
#[test]
fn a_timeout_fires_around_a_collection_that_is_always_ready() {
    everywhere(|| async {
        let semaphore = Arc::new(Semaphore::new(4));
        let mut collection = FuturesUnordered::new();
        let acquire = || {
            let semaphore = semaphore.clone();
            async move { drop(semaphore.acquire_owned().await.unwrap()) }
        };
        for _ in 0..16 {
            collection.push(acquire());
        }
        elapses(async {
            while collection.next().await.is_some() {
                collection.push(acquire());
            }
        })
        .await;
        // Children that never end, each in a loop of its own.
        let greedy = |number: usize| {
            let semaphore = semaphore.clone();
            async move {
                let (sender, mut receiver) = mpsc::channel(1);
                loop {
                    sender.send(number).await.unwrap();
                    receiver.recv().await.unwrap();
                    drop(semaphore.acquire().await.unwrap());
                }
            }
        };
        let mut endless: FuturesUnordered<_> = (0..200).map(greedy).collect();
        elapses(async {
            endless.next().await;
        })
        .await;
    });
}

/// A46: `join!` polled the greedy branch first, each time, and nothing was left for the ticker.
#[test]
fn a_ticker_ticks_beside_a_greedy_branch_of_join_and_select() {
    everywhere(|| async {
        let stop = AtomicBool::new(false);
        let semaphore = Semaphore::new(1);
        let greedy = async {
            while !stop.load(Ordering::Relaxed) {
                drop(semaphore.acquire().await.unwrap());
            }
        };
        let ticks = async {
            let mut ticker = interval(10 * MS);
            for _ in 0..5 {
                ticker.tick().await;
            }
            stop.store(true, Ordering::Relaxed);
        };
        gmp::join!(greedy, ticks);
        let greedy = async {
            loop {
                drop(semaphore.acquire().await.unwrap());
            }
        };
        let ticks = async {
            let mut ticker = interval(MS);
            for _ in 0..5 {
                ticker.tick().await;
            }
        };
        // Not biased: there the first branch has the budget to itself, as in tokio.
        gmp::select! {
            () = greedy => unreachable!(),
            () = ticks => {}
        }
    });
}

/// A task that is greedy through `select!` shares its P with others.
#[test]
fn a_greedy_select_lets_other_tasks_run() {
    bounded(|| {
        let runtime = current_thread();
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            let (stop, mut stopped) = oneshot::channel();
            let other = task::spawn(async move { stop.send(()).unwrap() });
            let greedy = task::spawn(async move {
                loop {
                    sender.send(()).unwrap();
                    gmp::select! {
                        biased;
                        _ = receiver.recv() => {}
                        _ = &mut stopped => unreachable!("the other branch is ready"),
                    }
                    if stopped.try_recv().is_ok() {
                        break;
                    }
                }
            });
            greedy.await.unwrap();
            other.await.unwrap();
        });
        finish(runtime);
    });
}

/// A poll that lasts ends its task's slice at the next leaf, but not inside a `block_on` of somebody else's, which
/// would wait for ever.
#[test]
fn a_foreign_block_on_in_a_task_goes_on_after_its_slice() {
    bounded(|| {
        for make in [|| runtime(1), || runtime(2)] {
            let runtime = make();
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    runtime.spawn(async {
                        futures::executor::block_on(async {
                            for _ in 0..3 {
                                gmp::time::sleep(30 * MS).await;
                            }
                        });
                    })
                })
                .collect();
            for task in tasks {
                runtime.block_on(task).expect("the task");
            }
            finish(runtime);
        }
    });
}

/// With a waker that is not the task's, what is ready is ready, however long the poll has lasted.
#[test]
fn what_is_ready_is_ready_for_a_foreign_waker_after_a_long_poll() {
    use futures::FutureExt;
    bounded(|| {
        let runtime = runtime(2);
        let task = runtime.spawn(async {
            for _ in 0..5 {
                let (sender, mut receiver) = mpsc::channel(1);
                sender.try_send(7).unwrap();
                // Something has to wait for the P.
                task::spawn(async {});
                std::thread::sleep(25 * MS);
                assert_eq!(receiver.recv().now_or_never(), Some(Some(7)));
            }
        });
        runtime.block_on(task).expect("the task");
        finish(runtime);
    });
}
