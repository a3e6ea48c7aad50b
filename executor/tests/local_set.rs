//! `LocalSet`: tasks that stay on their thread.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use gmp_executor::task::{LocalSet, spawn, spawn_local, yield_now};
use gmp_executor::{Config, Flavor, Runtime};

fn runtimes() -> [Runtime; 2] {
    [
        Runtime::new(Config::new(Flavor::CurrentThread, 1)).expect("nothing to refuse"),
        Runtime::new(Config::new(Flavor::MultiThread, 2)).expect("threads"),
    ]
}

#[test]
fn tasks_that_are_not_send_run_on_their_thread() {
    for runtime in runtimes() {
        let here = std::thread::current().id();
        let set = LocalSet::new();
        let count = Rc::new(Cell::new(0));
        runtime.block_on(set.run_until(async {
            let tasks: Vec<_> = (0..100)
                .map(|_| {
                    let count = count.clone();
                    spawn_local(async move {
                        yield_now().await;
                        assert_eq!(std::thread::current().id(), here);
                        count.set(count.get() + 1);
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        }));
        assert_eq!(count.get(), 100);
    }
}

#[test]
fn awaiting_the_set_runs_it_to_its_end() {
    for runtime in runtimes() {
        let set = LocalSet::new();
        let count = Rc::new(Cell::new(0));
        let inner = count.clone();
        set.spawn_local(async move {
            let nested = inner.clone();
            spawn_local(async move {
                yield_now().await;
                nested.set(nested.get() + 1);
            });
            inner.set(inner.get() + 1);
        });
        runtime.block_on(set);
        assert_eq!(count.get(), 2);
    }
}

#[test]
fn a_wake_from_another_thread_arrives() {
    for runtime in runtimes() {
        let set = LocalSet::new();
        runtime.block_on(set.run_until(async {
            for _ in 0..500 {
                let remote = spawn(async { yield_now().await });
                spawn_local(remote)
                    .await
                    .expect("no panic")
                    .expect("no panic");
            }
        }));
    }
}

#[test]
fn dropping_the_set_drops_its_tasks_here() {
    struct Probe(Rc<Cell<usize>>);
    impl Drop for Probe {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let set = LocalSet::new();
    for _ in 0..10 {
        let probe = Probe(dropped.clone());
        set.spawn_local(async move {
            let _probe = probe;
            std::future::pending::<()>().await;
        });
    }
    let mut aborted = set.spawn_local(std::future::pending::<()>());
    drop(set);
    assert_eq!(dropped.get(), 10);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(&mut aborted).poll(&mut cx) {
        Poll::Ready(Err(error)) => assert!(error.is_cancelled()),
        other => panic!("{other:?}"),
    }
}

use std::future::Future;

#[test]
fn an_abort_from_another_thread_drops_the_future_here() {
    struct Probe(Arc<AtomicUsize>, std::thread::ThreadId);
    impl Drop for Probe {
        fn drop(&mut self) {
            assert_eq!(std::thread::current().id(), self.1);
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for runtime in runtimes() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let set = LocalSet::new();
        let probe = Probe(dropped.clone(), std::thread::current().id());
        runtime.block_on(set.run_until(async {
            let task = spawn_local(async move {
                let _probe = probe;
                std::future::pending::<()>().await;
            });
            yield_now().await;
            let abort = task.abort_handle();
            std::thread::spawn(move || abort.abort());
            assert!(task.await.expect_err("aborted").is_cancelled());
        }));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
#[should_panic(expected = "`spawn_local` called from outside of a `task::LocalSet`")]
fn spawn_local_outside_panics() {
    let [runtime, _] = runtimes();
    runtime.block_on(async {
        spawn_local(async {});
    });
}
