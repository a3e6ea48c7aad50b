//! What users of other runtimes report about tasks, wakers and the end of a runtime. The numbers are
//! those of `docs/reports.md`.

mod support;

use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex as StdMutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use gmp::runtime::{Handle, Runtime};
use gmp::sync::{Notify, mpsc, oneshot};
use gmp::task::{self, JoinHandle, LocalSet};
use support::child::{in_child, said};
use support::{Pipe, bounded, builder, current_thread, finish, run_task, runtime, wait_until};

const ALL: [fn() -> Runtime; 3] = [|| runtime(1), || runtime(2), current_thread];

/// Locks a mutex when it is dropped.
struct LocksInDrop {
    mutex: Arc<StdMutex<usize>>,
}

impl Drop for LocksInDrop {
    fn drop(&mut self) {
        *self.mutex.lock().unwrap() += 1;
    }
}

/// A48: a wake that polls or drops the task on the spot, or a shutdown that drops tasks under a lock, meets
/// locks that the caller holds.
#[test]
fn wakes_and_aborts_under_a_mutex_never_run_destructors_that_want_it() {
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let mutex = Arc::new(StdMutex::new(0));
            run_task(&runtime, {
                let mutex = mutex.clone();
                async move {
                    for _ in 0..200 {
                        let gate = Arc::new(Notify::new());
                        let waits = |aborted: bool| {
                            let locks = LocksInDrop {
                                mutex: mutex.clone(),
                            };
                            let gate = gate.clone();
                            task::spawn(async move {
                                let _locks = locks;
                                match aborted {
                                    true => pending().await,
                                    false => gate.notified().await,
                                }
                            })
                        };
                        let (woken, aborted) = (waits(false), waits(true));
                        task::yield_now().await;
                        {
                            let _guard = mutex.lock().unwrap();
                            gate.notify_one();
                            aborted.abort();
                        }
                        woken.await.unwrap();
                        assert!(aborted.await.unwrap_err().is_cancelled());
                    }
                }
            });
            assert_eq!(*mutex.lock().unwrap(), 400);
            finish(runtime);
        }
    });
}

/// A48, A55: the same while the runtime goes.
#[test]
fn a_shutdown_among_wakes_under_a_mutex_ends() {
    bounded(|| {
        for make in ALL {
            for _ in 0..50 {
                let runtime = make();
                let mutex = Arc::new(StdMutex::new(0));
                let gate = Arc::new(Notify::new());
                for _ in 0..10 {
                    let locks = LocksInDrop {
                        mutex: mutex.clone(),
                    };
                    let waits = gate.clone();
                    runtime.spawn(async move {
                        let _locks = locks;
                        loop {
                            waits.notified().await;
                        }
                    });
                }
                let waking = {
                    let (mutex, gate) = (mutex.clone(), gate.clone());
                    runtime.spawn(async move {
                        loop {
                            {
                                let _guard = mutex.lock().unwrap();
                                gate.notify_waiters();
                            }
                            task::yield_now().await;
                        }
                    })
                };
                runtime.block_on(async { task::yield_now().await });
                drop(runtime);
                assert!(waking.is_finished());
                assert_eq!(*mutex.lock().unwrap(), 10);
            }
        }
    });
}

/// Spawns when it is dropped, and tells what became of it.
struct SpawnsInDrop {
    handle: Handle,
    spawned: std_mpsc::Sender<JoinHandle<()>>,
}

impl Drop for SpawnsInDrop {
    fn drop(&mut self) {
        let _ = self.spawned.send(self.handle.spawn(async {}));
        let _ = self.spawned.send(self.handle.spawn_blocking(|| {}));
    }
}

/// A55: a task that is dropped by the shutdown spawns another, under a lock of its user's; it panicked,
/// and hung.
#[test]
fn what_is_spawned_by_the_shutdown_is_cancelled() {
    bounded(|| {
        for make in ALL {
            for _ in 0..50 {
                let runtime = make();
                let (spawned, all) = std_mpsc::channel();
                let mutex = Arc::new(StdMutex::new(0));
                for _ in 0..3 {
                    let spawns = SpawnsInDrop {
                        handle: runtime.handle().clone(),
                        spawned: spawned.clone(),
                    };
                    // Dropped in this order.
                    let locks = LocksInDrop {
                        mutex: mutex.clone(),
                    };
                    runtime.spawn(async move {
                        let _locks = locks;
                        let _spawns = spawns;
                        pending::<()>().await;
                    });
                }
                runtime.block_on(async { task::yield_now().await });
                drop(runtime);
                drop(spawned);
                let spawned: Vec<_> = all.iter().collect();
                assert_eq!(spawned.len(), 6);
                for task in spawned {
                    if let Err(error) = futures::executor::block_on(task) {
                        assert!(error.is_cancelled());
                    }
                }
                assert_eq!(*mutex.lock().unwrap(), 3);
            }
        }
    });
}

/// A49: see `bad_input_panics` for the panics; here the handle of a task whose output panics in its drop.
/// A50: two tasks that await each other's handles kept each other alive.
#[test]
fn tasks_that_have_joined_each_other_are_freed() {
    /// Polls the other's handle once, so that it knows this task's waker, and then `end` says when to go on.
    async fn join_once(
        mut other: JoinHandle<Arc<()>>,
        token: Arc<()>,
        end: Arc<Notify>,
    ) -> Arc<()> {
        poll_fn(|cx| {
            let _ = Pin::new(&mut other).poll(cx);
            Poll::Ready(())
        })
        .await;
        end.notified().await;
        // The handle goes with the future, and with it the waker.
        token
    }
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let token = Arc::new(());
            for round in 0..300 {
                let end = Arc::new(Notify::new());
                let (give, taken) = oneshot::channel();
                let a = runtime.spawn({
                    let (token, end) = (token.clone(), end.clone());
                    async move { join_once(taken.await.unwrap(), token, end).await }
                });
                let b = runtime.spawn(join_once(a, token.clone(), end.clone()));
                give.send(b).ok().unwrap();
                runtime.block_on(async { task::yield_now().await });
                if round % 2 == 0 {
                    runtime.block_on(async {
                        while Arc::strong_count(&end) > 1 {
                            end.notify_waiters();
                            end.notify_one();
                            task::yield_now().await;
                        }
                    });
                }
            }
            drop(runtime);
            // The last reference may be a waker's in the hands of an M that has just dropped the task.
            wait_until("all is freed", || Arc::strong_count(&token) == 1);
        }
    });
}

/// A50: two that wait for each other for good end with the runtime, and their memory with them.
#[test]
fn tasks_that_wait_for_each_other_for_ever_end_with_the_runtime() {
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let token = Arc::new(());
            let held = Arc::new(StdMutex::new(Vec::new()));
            for _ in 0..100 {
                let (give, taken) = oneshot::channel::<JoinHandle<()>>();
                let first = token.clone();
                let a = runtime.spawn(async move {
                    let _first = first;
                    let other = taken.await.unwrap();
                    let _ = other.await;
                });
                let second = token.clone();
                let b = runtime.spawn(async move {
                    let _second = second;
                    let _ = a.await;
                });
                held.lock().unwrap().push(b.abort_handle());
                give.send(b).unwrap();
            }
            runtime.block_on(async { task::yield_now().await });
            drop(runtime);
            assert_eq!(Arc::strong_count(&token), 1, "the futures are dropped");
            assert!(held.lock().unwrap().iter().all(|task| task.is_finished()));
        }
    });
}

/// A52: a large future was moved by value, again and again, until the stack was full.
#[test]
fn a_large_future_is_spawned_on_a_small_stack() {
    async fn large<const SIZE: usize>() -> usize {
        let bytes = [1u8; SIZE];
        task::yield_now().await;
        bytes.iter().map(|&byte| usize::from(byte)).sum()
    }
    const SIZE: usize = 256 * 1024;
    // Here, where nothing is optimised, a caller keeps two copies or three of what it hands on.
    const STACK: usize = 2 << 20;
    let test = "a_large_future_is_spawned_on_a_small_stack";
    in_child(test, &[], || {
        let body = std::thread::Builder::new().stack_size(STACK);
        let body = body.spawn(|| {
            for make in ALL {
                let runtime = make();
                let task = runtime.spawn(large::<SIZE>());
                assert_eq!(runtime.block_on(task).unwrap(), SIZE);
                let nested = runtime.spawn(async {
                    let inner = task::spawn(large::<SIZE>());
                    inner.await.unwrap()
                });
                assert_eq!(runtime.block_on(nested).unwrap(), SIZE);
                assert_eq!(runtime.block_on(large::<SIZE>()), SIZE);
                finish(runtime);
            }
        });
        body.unwrap().join().unwrap();
    })
    .succeeded();
}

/// A53: the thread-locals of the runtime are gone when those of its user are dropped.
#[test]
fn what_belongs_to_a_runtime_may_be_dropped_with_a_thread() {
    type Kept = Box<dyn std::any::Any>;
    thread_local! {
        static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
    }
    fn keep(kept: impl std::any::Any) {
        KEPT.with(|all| all.borrow_mut().push(Box::new(kept)));
    }
    /// One thing that a thread keeps.
    fn things() -> Vec<fn(&'static Runtime)> {
        vec![
            |_| keep(runtime(2)),
            |_| keep(current_thread()),
            |_| {
                let runtime = runtime(1);
                runtime.spawn(pending::<()>());
                keep(runtime);
            },
            |_| {
                let local = LocalSet::new();
                local.spawn_local(pending::<()>());
                keep(local);
            },
            |shared| keep(shared.enter()),
            |shared| keep(shared.handle().clone()),
            |shared| keep(shared.spawn(pending::<()>())),
            |shared| keep(shared.spawn(async {})),
            |_| keep(mpsc::channel::<()>(1)),
            |_| keep(mpsc::unbounded_channel::<()>()),
            |_| keep(oneshot::channel::<()>()),
            |_| keep(gmp::sync::broadcast::channel::<()>(1)),
            |_| keep(gmp::sync::watch::channel(())),
            |shared| {
                let _context = shared.enter();
                let mut sleep = Box::pin(gmp::time::sleep(Duration::from_secs(60)));
                let mut cx = Context::from_waker(Waker::noop());
                assert!(sleep.as_mut().poll(&mut cx).is_pending());
                keep(sleep);
            },
            |shared| {
                let _context = shared.enter();
                keep(gmp::net::UnixStream::pair().unwrap());
            },
            |shared| {
                let mut set = task::JoinSet::new();
                set.spawn_on(pending::<()>(), shared.handle());
                keep(set);
            },
        ]
    }
    let test = "what_belongs_to_a_runtime_may_be_dropped_with_a_thread";
    let outcome = in_child(test, &[], || {
        let shared: &'static Runtime = Box::leak(Box::new(runtime(1)));
        for (i, thing) in things().into_iter().enumerate() {
            for first in [true, false] {
                let thread = std::thread::spawn(move || {
                    if first {
                        // The user's thread-local is made before the runtime's, and dropped after it.
                        KEPT.with(|_| {});
                    }
                    current_thread().block_on(async { task::yield_now().await });
                    thing(shared);
                });
                thread.join().unwrap_or_else(|_| panic!("thing {i}"));
            }
        }
    })
    .succeeded();
    assert_eq!(outcome.stderr, "");
}

/// A57: a blocking job that never ends: a drop waits for it, as in tokio, and the others do not.
#[test]
fn a_shutdown_with_a_timeout_does_not_wait_for_a_job_that_blocks() {
    bounded(|| {
        for make in ALL {
            for background in [true, false] {
                let runtime = make();
                let pipe = Arc::new(Pipe::new());
                let (blocks, blocked) = std_mpsc::channel();
                let job = runtime.spawn_blocking({
                    let pipe = pipe.clone();
                    move || {
                        blocks.send(()).unwrap();
                        pipe.read();
                    }
                });
                blocked.recv().unwrap();
                let start = Instant::now();
                match background {
                    true => runtime.shutdown_background(),
                    false => {
                        runtime.shutdown_timeout(Duration::from_millis(100));
                        assert!(start.elapsed() >= Duration::from_millis(100));
                    }
                }
                // It came back, and the job has not ended.
                assert!(!job.is_finished());
                pipe.write(1);
                futures::executor::block_on(job).unwrap();
            }
        }
    });
}

/// A57: whoever waits for the end of a runtime is told what for.
#[test]
fn jobs_that_hold_up_a_shutdown_are_named() {
    let test = "jobs_that_hold_up_a_shutdown_are_named";
    let outcome = in_child(test, &[("GMPDEBUG", "shutdown=1")], || {
        let block = |runtime: &Runtime| {
            let pipe = Arc::new(Pipe::new());
            let reader = pipe.clone();
            let (blocks, blocked) = std_mpsc::channel();
            println!("line {}", line!() + 1);
            drop(runtime.spawn_blocking(move || {
                blocks.send(()).unwrap();
                reader.read();
            }));
            blocked.recv().unwrap();
            pipe
        };
        let in_time = runtime(1);
        let pipe = block(&in_time);
        in_time.shutdown_timeout(Duration::from_millis(50));
        eprintln!("next");
        pipe.write(1);
        let waits = current_thread();
        let pipe = block(&waits);
        let release = std::thread::spawn(move || {
            let reports = || said().matches("held up by").count();
            wait_until("the drop says what it waits for", || reports() == 2);
            pipe.write(1);
        });
        drop(waits);
        release.join().unwrap();
        // One without jobs says nothing.
        eprintln!("next");
        drop(runtime(2));
    })
    .succeeded();
    let line = outcome.stdout.split_once("line ").unwrap().1;
    let line = line.split_whitespace().next().unwrap();
    let report = format!(
        "gmp: the shutdown is held up by a blocking job spawned at tests/reports_tasks.rs:{line}:"
    );
    let said: Vec<_> = outcome.stderr.split("next\n").collect();
    assert_eq!(said.len(), 3, "{outcome:#?}");
    for (said, times) in said.into_iter().zip([1, 1, 0]) {
        assert_eq!(said.matches(&report).count(), times, "{outcome:#?}");
        assert_eq!(said.lines().count(), times, "{outcome:#?}");
    }
}

/// A57: as above, the drop.
#[test]
fn a_drop_waits_for_a_job_that_blocks() {
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let pipe = Arc::new(Pipe::new());
            let (blocks, blocked) = std_mpsc::channel();
            let job = runtime.spawn_blocking({
                let pipe = pipe.clone();
                move || {
                    blocks.send(()).unwrap();
                    pipe.read();
                }
            });
            blocked.recv().unwrap();
            let dropped = Arc::new(AtomicBool::new(false));
            let drops = std::thread::spawn({
                let dropped = dropped.clone();
                move || {
                    drop(runtime);
                    dropped.store(true, Ordering::Relaxed);
                }
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!dropped.load(Ordering::Relaxed));
            pipe.write(1);
            drops.join().unwrap();
            assert!(job.is_finished());
        }
    });
}

/// A58: a P in the hands of a task in `block_in_place` was forgotten by the shutdown.
#[test]
fn a_runtime_is_dropped_while_its_ps_are_handed_off() {
    bounded(|| {
        for ps in [1, 2] {
            for round in 0..150 {
                let runtime = builder(ps).build().unwrap();
                let inside = Arc::new(AtomicUsize::new(0));
                let tasks: Vec<_> = (0..ps + 1)
                    .map(|_| {
                        let inside = inside.clone();
                        runtime.spawn(async move {
                            loop {
                                task::block_in_place(|| {
                                    inside.fetch_add(1, Ordering::Relaxed);
                                    std::thread::sleep(Duration::from_micros(100));
                                });
                                task::yield_now().await;
                            }
                        })
                    })
                    .collect();
                if round % 2 == 0 {
                    wait_until("one is inside", || inside.load(Ordering::Relaxed) > 0);
                }
                drop(runtime);
                assert!(tasks.iter().all(JoinHandle::is_finished));
            }
        }
    });
}

/// A58: a blocking job that is handed in during the shutdown was never run, and its handle never ready.
#[test]
fn a_job_that_comes_during_the_shutdown_is_run_or_cancelled() {
    bounded(|| {
        for make in ALL {
            for _ in 0..50 {
                let runtime = make();
                let handle = runtime.handle().clone();
                let go = Arc::new(AtomicBool::new(false));
                let submits = std::thread::spawn({
                    let go = go.clone();
                    move || {
                        let mut jobs = Vec::new();
                        while !go.load(Ordering::Relaxed) || jobs.len() < 20 {
                            jobs.push(handle.spawn_blocking(|| {}));
                        }
                        jobs
                    }
                });
                std::thread::yield_now();
                drop(runtime);
                go.store(true, Ordering::Relaxed);
                for job in submits.join().unwrap() {
                    if let Err(error) = futures::executor::block_on(job) {
                        assert!(error.is_cancelled());
                    }
                }
            }
        }
    });
}

/// A58: what a job does in its runtime's last moments is an error or a panic of its own, and no hang.
#[test]
fn a_job_that_outlives_its_runtime_can_still_use_its_handle() {
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let (go, gone) = std_mpsc::channel::<()>();
            let (runs, running) = std_mpsc::channel();
            let job = runtime.spawn_blocking(move || {
                runs.send(()).unwrap();
                gone.recv().unwrap();
                let handle = Handle::current();
                let task = handle.spawn(async {});
                let task = handle.block_on(task);
                let blocking = handle.block_on(handle.spawn_blocking(|| {}));
                let slept = support::panics(|| {
                    handle.block_on(gmp::time::sleep(Duration::from_secs(3_600)));
                });
                (task, blocking, slept)
            });
            running.recv().unwrap();
            runtime.shutdown_background();
            go.send(()).unwrap();
            let (task, blocking, slept) = futures::executor::block_on(job).unwrap();
            assert!(task.unwrap_err().is_cancelled());
            assert!(blocking.is_ok() || blocking.unwrap_err().is_cancelled());
            assert!(slept.contains("shut"), "{slept}");
        }
    });
}

/// Counts the polls of a future.
struct Counted<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicUsize>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.future.as_mut().poll(cx)
    }
}

/// A45: past the budget each child waits and wakes itself, and the collection polled all of them again:
/// ten thousand took milliseconds, a hundred and sixty thousand seconds.
#[test]
fn a_collection_of_many_futures_polls_each_a_few_times() {
    use futures::stream::{FuturesUnordered, StreamExt};
    bounded(|| {
        for make in ALL {
            let runtime = make();
            for many in [1_000, 10_000] {
                let polls = run_task(&runtime, async move {
                    let polls = Arc::new(AtomicUsize::new(0));
                    let mutex = Arc::new(gmp::sync::Mutex::new(0));
                    let mut locks: FuturesUnordered<_> = (0..many)
                        .map(|_| {
                            let mutex = mutex.clone();
                            Counted {
                                future: Box::pin(async move { *mutex.lock().await += 1 }),
                                polls: polls.clone(),
                            }
                        })
                        .collect();
                    while locks.next().await.is_some() {}
                    assert_eq!(*mutex.lock().await, many);
                    polls.load(Ordering::Relaxed)
                });
                assert!(polls <= 4 * many, "{polls} polls of {many}");
            }
            let joined = run_task(&runtime, async {
                let tasks = (0..1_000).map(|i| task::spawn(async move { i }));
                futures::future::join_all(tasks).await.len()
            });
            assert_eq!(joined, 1_000);
            finish(runtime);
        }
    });
}

/// A51: an abort takes effect at the next await, a dropped handle detaches, and a task's children are
/// nobody's but their handles'.
#[test]
fn an_abort_waits_for_the_poll_and_leaves_children_alone() {
    bounded(|| {
        for ps in [1, 2] {
            let runtime = runtime(ps);
            let pipe = Arc::new(Pipe::new());
            let (blocks, blocked) = std_mpsc::channel();
            let (reader, ends) = (pipe.clone(), Arc::new(AtomicBool::new(false)));
            let (end, child_ends) = (Arc::new(Notify::new()), ends.clone());
            let waits = end.clone();
            let parent = runtime.spawn(async move {
                drop(task::spawn(async move {
                    waits.notified().await;
                    child_ends.store(true, Ordering::Relaxed);
                }));
                blocks.send(()).unwrap();
                reader.read();
                task::yield_now().await;
                unreachable!("aborted before");
            });
            blocked.recv().unwrap();
            parent.abort();
            assert!(!parent.is_finished(), "its poll goes on");
            pipe.write(1);
            assert!(runtime.block_on(parent).unwrap_err().is_cancelled());
            end.notify_one();
            wait_until("the child ends", || ends.load(Ordering::Relaxed));
            finish(runtime);
        }
    });
}

/// A54: a task that was spawned into a `LocalSet` from outside `run_until` did not wake it.
#[test]
fn a_local_set_sees_what_is_spawned_beside_it() {
    bounded(|| {
        for make in ALL {
            let runtime = make();
            let local = LocalSet::new();
            runtime.block_on(async {
                gmp::select! {
                    () = local.run_until(pending::<()>()) => unreachable!(),
                    spawned = async {
                        task::yield_now().await;
                        local.spawn_local(async { 7 }).await
                    } => assert_eq!(spawned.unwrap(), 7),
                }
            });
            // A wake under somebody else's guard.
            let other = current_thread();
            let _guard = other.enter();
            local.block_on(&runtime, async {
                let sleeper = task::spawn_local(async {
                    gmp::time::sleep(Duration::ZERO).await;
                    task::yield_now().await;
                    8
                });
                assert_eq!(sleeper.await.unwrap(), 8);
            });
            // Dropping it ends, though its tasks wake each other.
            let gate = Arc::new(Notify::new());
            for _ in 0..3 {
                let gate = gate.clone();
                local.spawn_local(async move {
                    loop {
                        gate.notify_waiters();
                        gate.notified().await;
                    }
                });
            }
            local.block_on(&runtime, async { task::yield_now().await });
            drop(local);
            finish(runtime);
        }
    });
}
