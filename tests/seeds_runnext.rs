//! Runnext: the latest task goes first, and never starves the others.
//!
//! From the articles' programs: one P and ten goroutines started in a loop run in the order 9 0 1 … 8.
//! What was made ready last is hot in the cache; the price is that two tasks that wake each other could
//! keep the P for ever, and that a task that respawns itself could keep the global queue waiting.
//!
//! The runtimes here have one P, which is never taken away: with more threads there is no order.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gmp::runtime::{Handle, Runtime};
use gmp::sync::{Notify, mpsc, oneshot};
use gmp::task;
use support::{bounded, current_thread, finish, one_thread, run_task};

/// Less than a slice. The monitor ends slices after 10 ms, whoever had the CPU meanwhile, and with its
/// slice runnext loses its precedence; so an order is checked only if the machine let it come about.
const WITHIN_A_SLICE: Duration = Duration::from_millis(4);

/// In which order things happened.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<usize>>>);

impl Log {
    fn add(&self, what: usize) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Ten rounds in which `round` was not interrupted for long; each must log `expected`.
fn expect_order(runtime: &Runtime, expected: &[usize], round: impl Fn(&Runtime, Log) -> Duration) {
    let mut undisturbed = 0;
    for _ in 0..10_000 {
        let log = Log::default();
        let took = round(runtime, log.clone());
        let order = log.take();
        if took < WITHIN_A_SLICE {
            assert_eq!(order, expected, "after {took:?}");
            undisturbed += 1;
            if undisturbed == 10 {
                return;
            }
        }
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    }
    panic!("ten thousand rounds, and only {undisturbed} undisturbed ones");
}

fn both_flavours() -> [Runtime; 2] {
    [one_thread(), current_thread()]
}

const LAST_FIRST: [usize; 10] = [9, 0, 1, 2, 3, 4, 5, 6, 7, 8];
const IN_ORDER: [usize; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Spawns ten and returns how long it took until the last had run.
async fn spawn_ten(log: Log) -> Duration {
    let start = Instant::now();
    let spawn = |i| {
        let log = log.clone();
        task::spawn(async move { log.add(i) })
    };
    let handles: Vec<_> = (0..10).map(spawn).collect();
    for handle in handles {
        handle.await.unwrap();
    }
    start.elapsed()
}

#[test]
fn ten_spawned_by_a_task_run_last_first_then_in_order() {
    bounded(|| {
        for runtime in both_flavours() {
            expect_order(&runtime, &LAST_FIRST, |runtime, log| {
                run_task(runtime, spawn_ten(log))
            });
            finish(runtime);
        }
    });
}

#[test]
fn ten_spawned_by_the_main_future_of_a_current_thread_runtime_as_well() {
    bounded(|| {
        let runtime = current_thread();
        expect_order(&runtime, &LAST_FIRST, |runtime, log| {
            runtime.block_on(spawn_ten(log))
        });
        finish(runtime);
    });
}

#[test]
fn without_runnext_ten_run_in_order() {
    bounded(|| {
        let mut builder = support::builder(1);
        let runtime = builder.retake_after(None).disable_lifo_slot().build();
        let runtime = runtime.unwrap();
        expect_order(&runtime, &IN_ORDER, |runtime, log| {
            run_task(runtime, spawn_ten(log))
        });
        finish(runtime);
    });
}

/// Ten tasks wait, and are woken in a loop.
async fn wake_ten(log: Log) -> Duration {
    let waiting = Arc::new(AtomicUsize::new(0));
    let (senders, handles): (Vec<_>, Vec<_>) = (0..10)
        .map(|i| {
            let (log, waiting) = (log.clone(), waiting.clone());
            let (sender, receiver) = oneshot::channel::<()>();
            let handle = task::spawn(async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                receiver.await.unwrap();
                log.add(i);
            });
            (sender, handle)
        })
        .unzip();
    while waiting.load(Ordering::Relaxed) < 10 {
        task::yield_now().await;
    }
    let start = Instant::now();
    for sender in senders {
        sender.send(()).unwrap();
    }
    for handle in handles {
        handle.await.unwrap();
    }
    start.elapsed()
}

#[test]
fn ten_woken_by_a_task_run_last_first_then_in_order() {
    bounded(|| {
        for runtime in both_flavours() {
            expect_order(&runtime, &LAST_FIRST, |runtime, log| {
                run_task(runtime, wake_ten(log))
            });
            finish(runtime);
        }
    });
}

/// Ten tasks sleep, the one with the latest deadline first; all are due when the P gets to its timers.
/// Returns whether all slept before the first was due.
async fn sleep_ten(log: Log) -> bool {
    let start = gmp::time::Instant::now();
    let asleep = Arc::new(AtomicUsize::new(0));
    let sleep = |i| {
        let (log, asleep) = (log.clone(), asleep.clone());
        let deadline = start + Duration::from_millis(10 + i as u64);
        task::spawn(async move {
            asleep.fetch_add(1, Ordering::Relaxed);
            gmp::time::sleep_until(deadline).await;
            log.add(i);
        })
    };
    let handles: Vec<_> = (0..10).rev().map(sleep).collect();
    while asleep.load(Ordering::Relaxed) < 10 {
        task::yield_now().await;
    }
    let all_slept = start.elapsed() < Duration::from_millis(10);
    while start.elapsed() < Duration::from_millis(25) {
        std::thread::sleep(Duration::from_millis(5));
    }
    for handle in handles {
        handle.await.unwrap();
    }
    all_slept
}

#[test]
fn a_batch_of_due_timers_runs_in_the_order_of_the_deadlines() {
    bounded(|| {
        for runtime in both_flavours() {
            // Undisturbed are those rounds in which all ten were due at once, and in which the P was taken away from the
            // task that blocks it at most: a sleeper whose thread the system does not run loses it, too, and logs late.
            expect_order(&runtime, &IN_ORDER, |runtime, log| {
                let retakes = || runtime.metrics().retake_count();
                let (start, before) = (Instant::now(), retakes());
                let all_slept = run_task(runtime, sleep_ten(log));
                match all_slept && retakes() - before <= 1 {
                    true => start.elapsed().saturating_sub(Duration::from_millis(35)),
                    false => Duration::MAX,
                }
            });
            finish(runtime);
        }
    });
}

/// Two tasks that wake each other until told to stop; counts their turns.
fn wake_each_other(turns: &Arc<AtomicUsize>, stop: &Arc<AtomicBool>) {
    let (to_a, mut from_b) = mpsc::unbounded_channel::<()>();
    let (to_b, mut from_a) = mpsc::unbounded_channel::<()>();
    to_a.send(()).unwrap();
    let (count, end) = (turns.clone(), stop.clone());
    task::spawn(async move {
        while !end.load(Ordering::Relaxed) && from_b.recv().await.is_some() {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = to_b.send(());
        }
    });
    let (count, end) = (turns.clone(), stop.clone());
    task::spawn(async move {
        while !end.load(Ordering::Relaxed) && from_a.recv().await.is_some() {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = to_a.send(());
        }
    });
}

#[test]
fn a_pair_that_wakes_each_other_leaves_turns_to_a_third() {
    bounded(|| {
        for runtime in both_flavours() {
            let turns = Arc::new(AtomicUsize::new(0));
            let stop = Arc::new(AtomicBool::new(false));
            let (count, end) = (turns.clone(), stop.clone());
            run_task(&runtime, async move {
                wake_each_other(&count, &end);
                while count.load(Ordering::Relaxed) < 100 {
                    task::yield_now().await;
                }
                // This task is the third: what it costs it to get a turn.
                for _ in 0..1_000 {
                    let before = count.load(Ordering::Relaxed);
                    task::yield_now().await;
                    let waited = count.load(Ordering::Relaxed) - before;
                    assert!(waited <= 100, "{waited} hand-overs went before");
                }
                end.store(true, Ordering::Relaxed);
            });
            finish(runtime);
        }
    });
}

#[test]
fn a_pair_that_wakes_each_other_leaves_turns_to_timers_sockets_and_the_global_queue() {
    bounded(|| {
        for runtime in both_flavours() {
            let turns = Arc::new(AtomicUsize::new(0));
            let stop = Arc::new(AtomicBool::new(false));
            let (count, end) = (turns.clone(), stop.clone());
            runtime.block_on(async {
                task::spawn(async move { wake_each_other(&count, &end) });
                gmp::time::sleep(Duration::from_millis(3)).await;
                let sleeper = task::spawn(gmp::time::sleep(Duration::from_millis(3)));
                sleeper.await.unwrap();
                task::spawn(echo_once()).await.unwrap();
                from_a_thread().await;
            });
            stop.store(true, Ordering::Relaxed);
            assert!(turns.load(Ordering::Relaxed) > 0);
            finish(runtime);
        }
    });
}

/// A datagram there and back.
async fn echo_once() {
    let a = gmp::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let b = gmp::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
    let echo = task::spawn(async move {
        let mut byte = [0];
        b.recv_from(&mut byte).await.unwrap();
        b.send_to(&byte, to_a).await.unwrap();
    });
    a.send_to(&[7], to_b).await.unwrap();
    let mut byte = [0];
    a.recv_from(&mut byte).await.unwrap();
    assert_eq!(byte, [7]);
    echo.await.unwrap();
}

/// A task that a thread without a P spawns: it comes by way of the global queue.
async fn from_a_thread() {
    let handle = Handle::current();
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        handle.spawn(async move { sender.send(()).unwrap() });
    });
    receiver.await.unwrap();
    thread.join().unwrap();
}

/// Spawns itself again until told to stop, as in the article on the global queue.
fn respawn(turns: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    task::spawn(async move {
        turns.fetch_add(1, Ordering::Relaxed);
        if !stop.load(Ordering::Relaxed) {
            respawn(turns, stop);
        }
    });
}

#[test]
fn tasks_that_respawn_themselves_do_not_starve_the_global_queue() {
    bounded(|| {
        for runtime in both_flavours() {
            run_task(&runtime, async {
                let turns = Arc::new(AtomicUsize::new(0));
                let stop = Arc::new(AtomicBool::new(false));
                respawn(turns.clone(), stop.clone());
                respawn(turns.clone(), stop.clone());
                for _ in 0..100 {
                    let (count, handle) = (turns.clone(), Handle::current());
                    // Joined in the poll, so that it is queued before another turn is counted.
                    let before = turns.load(Ordering::Relaxed);
                    let global = std::thread::spawn(move || {
                        handle.spawn(async move { count.load(Ordering::Relaxed) })
                    });
                    let ran_after = global.join().unwrap().await.unwrap() - before;
                    assert!(ran_after <= 130, "{ran_after} turns went before");
                }
                stop.store(true, Ordering::Relaxed);
            });
            finish(runtime);
        }
    });
}

#[test]
fn tasks_that_respawn_themselves_on_every_p_starve_nobody() {
    bounded(|| {
        for ps in [1, 2, 4] {
            let runtime = support::runtime(ps);
            let turns = Arc::new(AtomicUsize::new(0));
            let stop = Arc::new(AtomicBool::new(false));
            {
                let _context = runtime.enter();
                for _ in 0..2 * ps {
                    respawn(turns.clone(), stop.clone());
                }
            }
            for _ in 0..20 {
                runtime.block_on(async {
                    task::spawn(async {}).await.unwrap();
                    from_a_thread().await;
                    task::spawn(gmp::time::sleep(Duration::from_millis(1)))
                        .await
                        .unwrap();
                    task::spawn(echo_once()).await.unwrap();
                });
            }
            stop.store(true, Ordering::Relaxed);
            finish(runtime);
        }
    });
}

#[test]
fn a_task_that_only_yields_starves_nobody() {
    bounded(|| {
        for runtime in both_flavours() {
            let stop = Arc::new(AtomicBool::new(false));
            let end = stop.clone();
            runtime.block_on(async {
                let yielder = task::spawn(async move {
                    while !end.load(Ordering::Relaxed) {
                        task::yield_now().await;
                    }
                });
                let woken = Arc::new(Notify::new());
                let waiter = task::spawn({
                    let woken = woken.clone();
                    async move { woken.notified().await }
                });
                task::spawn(gmp::time::sleep(Duration::from_millis(1)))
                    .await
                    .unwrap();
                task::spawn(echo_once()).await.unwrap();
                from_a_thread().await;
                woken.notify_one();
                waiter.await.unwrap();
                stop.store(true, Ordering::Relaxed);
                yielder.await.unwrap();
            });
            finish(runtime);
        }
    });
}
