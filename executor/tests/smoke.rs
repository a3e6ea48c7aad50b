//! The executor without sockets and timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use gmp_executor::task::{block_in_place, spawn, spawn_blocking, yield_now};
use gmp_executor::{Config, Flavor, Runtime};

fn multi(procs: usize) -> Runtime {
    Runtime::new(Config::new(Flavor::MultiThread, procs)).expect("threads")
}

fn current() -> Runtime {
    Runtime::new(Config::new(Flavor::CurrentThread, 1)).expect("nothing to refuse")
}

#[test]
fn tasks_run_and_are_joined() {
    for runtime in [current(), multi(1), multi(2), multi(4)] {
        let sum = runtime.block_on(async {
            let tasks: Vec<_> = (0..1000u64)
                .map(|i| {
                    spawn(async move {
                        yield_now().await;
                        i
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await.expect("no panic");
            }
            sum
        });
        assert_eq!(sum, 999 * 500);
    }
}

#[test]
fn spawn_from_tasks() {
    for runtime in [current(), multi(2)] {
        let count = Arc::new(AtomicUsize::new(0));
        let inner = count.clone();
        runtime.block_on(async move {
            spawn(async move {
                let tasks: Vec<_> = (0..10_000)
                    .map(|_| {
                        let count = inner.clone();
                        spawn(async move { count.fetch_add(1, Ordering::Relaxed) })
                    })
                    .collect();
                for task in tasks {
                    task.await.expect("no panic");
                }
            })
            .await
            .expect("no panic");
        });
        assert_eq!(count.load(Ordering::Relaxed), 10_000);
    }
}

#[test]
fn panics_and_aborts_become_join_errors() {
    for runtime in [current(), multi(2)] {
        runtime.block_on(async {
            let error = spawn(async { panic!("oh no") }).await.expect_err("panics");
            assert!(error.is_panic());
            assert_eq!(
                error.to_string(),
                format!("task {} panicked with message \"oh no\"", error.id())
            );
            let task = spawn(std::future::pending::<()>());
            task.abort();
            assert!(task.await.expect_err("aborted").is_cancelled());
        });
    }
}

#[test]
fn blocking_jobs() {
    for runtime in [current(), multi(2)] {
        runtime.block_on(async {
            let jobs: Vec<_> = (0..200)
                .map(|i| {
                    spawn_blocking(move || {
                        std::thread::sleep(Duration::from_millis(1));
                        i
                    })
                })
                .collect();
            for (i, job) in jobs.into_iter().enumerate() {
                assert_eq!(job.await.expect("no panic"), i);
            }
        });
    }
}

/// Has one task wait for another in the way of `block`, with one P, until a round took the P away at most
/// `retakes` times.
///
/// The P is also taken from a poll that the system does not run for a while. That happens in some rounds, and
/// a poll that loses its P oftener than it should does so in all.
fn one_waits_for_the_other(
    retakes: u64,
    block: impl Fn(&Receiver<i32>) -> i32 + Copy + Send + 'static,
) {
    for _ in 0..100 {
        let runtime = multi(1);
        runtime.block_on(async {
            let (send, receive) = channel();
            let blocked = spawn(async move { block(&receive) });
            let other = spawn(async move { send.send(7).expect("receiver") });
            assert_eq!(blocked.await.expect("no panic"), 7);
            other.await.expect("no panic");
        });
        if runtime.handle().metrics().retake_count() <= retakes {
            return;
        }
    }
    panic!("more than {retakes} retakes in every round");
}

#[test]
fn a_blocked_task_loses_its_p() {
    one_waits_for_the_other(1, |receive| receive.recv().expect("sent"));
}

#[test]
fn block_in_place_hands_the_p_off() {
    one_waits_for_the_other(0, |receive| {
        block_in_place(|| receive.recv().expect("sent"))
    });
}

#[test]
fn shutdown_drops_every_task() {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for round in 0..200 {
        let runtime = if round % 2 == 0 { multi(2) } else { current() };
        let dropped = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let count = Count(dropped.clone());
            runtime.handle().spawn(async move {
                let _count = count;
                std::future::pending::<()>().await;
            });
        }
        drop(runtime);
        assert_eq!(dropped.load(Ordering::SeqCst), 100);
    }
}

#[test]
fn a_handle_is_an_executor_of_the_futures_crate() {
    use futures_task::{FutureObj, Spawn};
    for runtime in [current(), multi(2)] {
        let handle = runtime.handle().clone();
        let ran = Arc::new(AtomicUsize::new(0));
        let task = {
            let ran = ran.clone();
            async move {
                yield_now().await;
                ran.fetch_add(1, Ordering::Relaxed);
            }
        };
        let executor: &dyn Spawn = &handle;
        executor.spawn_obj(FutureObj::new(Box::new(task))).unwrap();
        runtime.block_on(async {
            while ran.load(Ordering::Relaxed) == 0 {
                yield_now().await;
            }
        });
        assert!(executor.status().is_ok());
        drop(runtime);
        let late = executor.spawn_obj(FutureObj::new(Box::new(async {})));
        assert!(late.unwrap_err().is_shutdown());
    }
}
