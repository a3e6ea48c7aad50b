//! Code of the user's that panics: while it is polled, while it is dropped, in a waker.
//!
//! The panic of a task is its join error; any other one goes no further than the call that met it. The
//! thread goes on, and nobody behind the panic is forgotten.

mod support;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gmp::net::UdpSocket;
use gmp::runtime::Runtime;
use gmp::sync::{Notify, broadcast, mpsc, oneshot, watch};
use gmp::task;
use support::{PanickingWaker, bounded, current_thread, finish, run_task, runtime};

const BOTH: [fn() -> Runtime; 3] = [|| runtime(1), || runtime(2), current_thread];

#[track_caller]
fn assert_works(runtime: &Runtime) {
    run_task(runtime, async {
        task::spawn(async { task::yield_now().await })
            .await
            .unwrap();
        gmp::time::sleep(Duration::from_millis(1)).await;
        task::spawn_blocking(|| {}).await.unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = socket.local_addr().unwrap();
        socket.send_to(&[1], to).await.unwrap();
        socket.recv(&mut [0]).await.unwrap();
    });
}

/// Counts how many are alive, and panics when it is dropped.
struct Bomb(Arc<AtomicUsize>);

impl Bomb {
    fn new(alive: &Arc<AtomicUsize>) -> Bomb {
        alive.fetch_add(1, Ordering::Relaxed);
        Bomb(alive.clone())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        panic!("a destructor that panics");
    }
}

#[test]
fn a_task_that_panics_while_polled() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let alive = runtime.metrics().num_alive_tasks();
            for _ in 0..100 {
                let first = runtime.spawn(async { panic!("at once") });
                let later = runtime.spawn(async {
                    task::yield_now().await;
                    panic!("later {}", 7);
                });
                let job = runtime.spawn_blocking(|| panic!("in a job"));
                runtime.block_on(async {
                    for (task, text) in [(first, "at once"), (later, "later 7"), (job, "in a job")]
                    {
                        let error = task.await.unwrap_err();
                        assert!(error.is_panic());
                        assert_eq!(support::message(&*error.into_panic()), text);
                    }
                });
            }
            assert_works(&runtime);
            support::wait_until("the tasks are gone", || {
                runtime.metrics().num_alive_tasks() == alive
            });
            finish(runtime);
        }
    });
}

#[test]
fn a_main_future_that_panics_leaves_the_runtime_usable() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            for _ in 0..20 {
                let text = support::panics(|| {
                    runtime.block_on(async {
                        task::spawn(async {});
                        task::yield_now().await;
                        panic!("main")
                    })
                });
                assert_eq!(text, "main");
            }
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_future_that_panics_when_it_is_dropped_after_its_end() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let alive = Arc::new(AtomicUsize::new(0));
            let bomb = Bomb::new(&alive);
            let task = runtime.spawn(async move {
                let _bomb = bomb;
                task::yield_now().await;
            });
            let error = runtime.block_on(task).unwrap_err();
            assert!(error.is_panic());
            assert_eq!(alive.load(Ordering::Relaxed), 0);
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_future_that_panics_when_it_is_aborted() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let alive = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let bomb = Bomb::new(&alive);
                    runtime.spawn(async move {
                        let _bomb = bomb;
                        std::future::pending::<()>().await;
                    })
                })
                .collect();
            runtime.block_on(async { task::yield_now().await });
            for task in tasks {
                task.abort();
                let error = runtime.block_on(task).unwrap_err();
                // Cancelled, or the panic that the cancelling met: it ended.
                assert!(error.is_cancelled() || error.is_panic());
            }
            assert_eq!(alive.load(Ordering::Relaxed), 0);
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn an_output_that_panics_when_it_is_dropped() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let alive = Arc::new(AtomicUsize::new(0));
            for _ in 0..20 {
                let bomb = Bomb::new(&alive);
                // Nobody waits: the output is dropped where the task ends.
                drop(runtime.spawn(async move { bomb }));
                runtime.block_on(async { task::yield_now().await });
            }
            let bomb = Bomb::new(&alive);
            drop(runtime.spawn_blocking(move || bomb));
            assert_works(&runtime);
            runtime.block_on(async {
                while alive.load(Ordering::Relaxed) != 0 {
                    task::yield_now().await;
                }
            });
            // Dropped with the handle: who drops that does not meet the panic.
            let bomb = Bomb::new(&alive);
            let task = runtime.spawn(async move { bomb });
            runtime.block_on(async {
                while !task.is_finished() {
                    task::yield_now().await;
                }
            });
            assert_eq!(alive.load(Ordering::Relaxed), 1);
            drop(task);
            assert_eq!(alive.load(Ordering::Relaxed), 0);
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn tasks_that_panic_when_the_shutdown_drops_them() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let alive = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..50)
                .map(|i| {
                    let bomb = Bomb::new(&alive);
                    runtime.spawn(async move {
                        let _bomb = bomb;
                        match i % 2 {
                            0 => std::future::pending::<()>().await,
                            _ => gmp::time::sleep(Duration::from_secs(3_600)).await,
                        }
                    })
                })
                .collect();
            runtime.block_on(async { task::yield_now().await });
            drop(runtime);
            assert_eq!(alive.load(Ordering::Relaxed), 0, "all were dropped");
            assert!(tasks.iter().all(task::JoinHandle::is_finished));
        }
    });
}

/// Polls `future` once with a waker that panics; it has to wait.
async fn poll_with_panicking_waker<F: Future>(future: Pin<&mut F>) {
    let waker = Waker::from(Arc::new(PanickingWaker));
    let mut future = Some(future);
    poll_fn(|_| {
        let future = future.take().expect("polled once");
        let polled = future.poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Lets `wake` meet the panicking waker; whether the panic comes out is tokio's business and ours.
fn wake(wake: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wake));
}

/// Spawns a task that waits for `future`, and returns when it does.
async fn waiting<F>(future: F) -> task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (waits, it_waits) = oneshot::channel();
    let task = task::spawn(async move {
        let mut future = std::pin::pin!(future);
        assert!(futures::poll!(&mut future).is_pending());
        waits.send(()).unwrap();
        future.await
    });
    it_waits.await.unwrap();
    task
}

#[test]
fn a_panicking_waker_of_a_channel_or_notify_loses_nobody_behind_it() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            run_task(&runtime, async {
                // The bad one is in the middle of a queue of three.
                let notify = Arc::new(Notify::new());
                let notified = || {
                    let notify = notify.clone();
                    waiting(async move { notify.notified().await })
                };
                let before = notified().await;
                let mut bad = Box::pin(notify.notified());
                poll_with_panicking_waker(bad.as_mut()).await;
                let behind = notified().await;
                wake(|| notify.notify_waiters());
                before.await.unwrap();
                behind.await.unwrap();
                bad.await;

                // One at a time: the bad one, too, is told once.
                let mut bad = Box::pin(notify.notified());
                poll_with_panicking_waker(bad.as_mut()).await;
                let behind = notified().await;
                wake(|| notify.notify_one());
                wake(|| notify.notify_one());
                behind.await.unwrap();
                bad.await;

                let (sender, mut bad) = watch::channel(0);
                let mut good = sender.subscribe();
                let mut changed = Box::pin(bad.changed());
                poll_with_panicking_waker(changed.as_mut()).await;
                let waits = waiting(async move { good.changed().await }).await;
                wake(|| _ = sender.send(1));
                waits.await.unwrap().unwrap();

                let (sender, mut bad) = broadcast::channel(4);
                let mut good = sender.subscribe();
                let mut received = Box::pin(bad.recv());
                poll_with_panicking_waker(received.as_mut()).await;
                let waits = waiting(async move { good.recv().await }).await;
                wake(|| _ = sender.send(7));
                assert_eq!(waits.await.unwrap().unwrap(), 7);

                let (sender, mut bad) = oneshot::channel();
                poll_with_panicking_waker(Pin::new(&mut bad)).await;
                wake(|| _ = sender.send(7));
                assert_eq!(bad.await.unwrap(), 7);

                let (sender, mut bad) = mpsc::unbounded_channel();
                poll_with_panicking_waker(Box::pin(bad.recv()).as_mut()).await;
                wake(|| _ = sender.send(7));
                assert_eq!(bad.recv().await, Some(7));
            });
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_panicking_waker_of_a_timer_loses_no_other_timer() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            run_task(&runtime, async {
                let at = gmp::time::Instant::now() + Duration::from_millis(5);
                let mut bad = Vec::new();
                let mut good = Vec::new();
                for _ in 0..20 {
                    let mut sleep = Box::pin(gmp::time::sleep_until(at));
                    poll_with_panicking_waker(sleep.as_mut()).await;
                    bad.push(sleep);
                    good.push(task::spawn(async move { gmp::time::sleep_until(at).await }));
                }
                for task in good {
                    task.await.unwrap();
                }
                for sleep in bad {
                    sleep.await;
                }
            });
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_panicking_waker_of_a_socket_loses_no_other_socket() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            run_task(&runtime, async {
                let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                let mut bad = Vec::new();
                let mut good = Vec::new();
                for _ in 0..10 {
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    poll_with_panicking_waker(Box::pin(socket.readable()).as_mut()).await;
                    let waker = Waker::from(Arc::new(PanickingWaker));
                    let polled = socket.poll_recv_ready(&mut Context::from_waker(&waker));
                    assert!(polled.is_pending());
                    bad.push(socket);
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    let to = socket.local_addr().unwrap();
                    let waits = task::spawn(async move { socket.recv(&mut [0]).await });
                    good.push((waits, to));
                }
                task::yield_now().await;
                for (socket, (_, good)) in bad.iter().zip(&good) {
                    sender.send_to(&[1], socket.local_addr().unwrap()).unwrap();
                    sender.send_to(&[1], good).unwrap();
                }
                for (task, _) in good {
                    assert_eq!(task.await.unwrap().unwrap(), 1);
                }
                for socket in bad {
                    assert_eq!(socket.recv(&mut [0]).await.unwrap(), 1);
                }
            });
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_panicking_waker_of_a_join_handle_takes_no_thread_along() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            run_task(&runtime, async {
                for _ in 0..20 {
                    let gate = Arc::new(Notify::new());
                    let opened = gate.clone();
                    let mut task = task::spawn(async move {
                        opened.notified().await;
                        7
                    });
                    poll_with_panicking_waker(Pin::new(&mut task)).await;
                    gate.notify_one();
                    assert_eq!(task.await.unwrap(), 7);

                    let (open, opened) = std::sync::mpsc::channel::<()>();
                    let mut job = task::spawn_blocking(move || opened.recv().is_ok());
                    poll_with_panicking_waker(Pin::new(&mut job)).await;
                    open.send(()).unwrap();
                    assert!(job.await.unwrap());
                }
            });
            assert_works(&runtime);
            finish(runtime);
        }
    });
}
