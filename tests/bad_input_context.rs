//! Calls from where they cannot work: outside a runtime, inside one, with figures that make no sense.
//!
//! Each is tokio's panic or a clear error, and leaves the runtime as it was.

mod support;

use std::time::Duration;

use gmp::net::{TcpListener, TcpStream, UdpSocket};
use gmp::runtime::{Builder, Handle, Runtime};
use gmp::task;
use support::child::in_child;
use support::{bounded, current_thread, finish, panics, run_task, runtime};

const BOTH: [fn() -> Runtime; 2] = [|| runtime(2), current_thread];

/// The runtime still does what a runtime does.
#[track_caller]
fn assert_works(runtime: &Runtime) {
    run_task(runtime, async {
        task::spawn(async {}).await.unwrap();
        gmp::time::sleep(Duration::from_millis(1)).await;
        task::spawn_blocking(|| {}).await.unwrap();
        UdpSocket::bind("127.0.0.1:0").await.unwrap();
    });
}

const NO_RUNTIME: &str = "must be called from the context of a Tokio 1.x runtime";
const NESTED: &str = "Cannot start a runtime from within a runtime";

#[track_caller]
fn assert_says(message: &str, words: &str) {
    assert!(message.contains(words), "{message:?} lacks {words:?}");
}

#[test]
fn outside_a_runtime_everything_that_needs_one_says_so() {
    bounded(|| {
        assert!(Handle::try_current().unwrap_err().is_missing_context());
        assert_says(&Handle::try_current().unwrap_err().to_string(), NO_RUNTIME);
        let calls: [fn(); 6] = [
            || drop(Handle::current()),
            || drop(task::spawn(async {})),
            || drop(task::spawn_blocking(|| {})),
            || drop(gmp::time::sleep(Duration::ZERO)),
            || drop(gmp::time::interval(Duration::from_secs(1))),
            || drop(gmp::time::timeout(Duration::ZERO, async {})),
        ];
        for call in calls {
            assert_says(&panics(call), NO_RUNTIME);
        }
        use futures::executor::block_on;
        let sockets: [fn(); 3] = [
            || drop(block_on(TcpListener::bind("127.0.0.1:0"))),
            || drop(block_on(TcpStream::connect("127.0.0.1:1"))),
            || drop(block_on(UdpSocket::bind("127.0.0.1:0"))),
        ];
        for call in sockets {
            assert_says(&panics(call), NO_RUNTIME);
        }
    });
}

#[test]
fn the_context_ends_with_its_guard() {
    bounded(|| {
        let runtime = runtime(1);
        {
            let _context = runtime.enter();
            assert!(Handle::try_current().is_ok());
            drop(task::spawn(async {}));
        }
        assert!(Handle::try_current().is_err());
        assert_says(&panics(|| drop(task::spawn(async {}))), NO_RUNTIME);
        finish(runtime);
    });
}

#[test]
fn without_io_and_time_their_users_say_what_to_enable() {
    bounded(|| {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder.worker_threads(1).build().unwrap();
            let text =
                panics(|| runtime.block_on(async { gmp::time::sleep(Duration::ZERO).await }));
            assert_says(&text, "enable_time");
            let text = panics(|| drop(runtime.block_on(UdpSocket::bind("127.0.0.1:0"))));
            assert_says(&text, "enable_io");
            runtime.block_on(async { task::spawn(async {}).await.unwrap() });
        }
    });
}

#[test]
fn block_on_inside_block_on_panics_and_the_outer_one_goes_on() {
    bounded(|| {
        for make in BOTH {
            let (outer, inner) = (make(), make());
            outer.block_on(async {
                assert_says(&panics(|| inner.block_on(async {})), NESTED);
                assert_says(&panics(|| inner.handle().block_on(async {})), NESTED);
                let same = Handle::current();
                assert_says(&panics(|| same.block_on(async {})), NESTED);
                task::spawn(async {}).await.unwrap();
            });
            assert_works(&outer);
            assert_works(&inner);
            finish(outer);
            finish(inner);
        }
    });
}

#[test]
fn block_on_inside_a_task_panics_and_becomes_its_join_error() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let task = runtime.spawn(async { Handle::current().block_on(async {}) });
            let error = runtime.block_on(task).unwrap_err();
            assert!(error.is_panic());
            assert_says(&support::message(&*error.into_panic()), NESTED);
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn blocking_methods_inside_a_task_say_what_is_wrong() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            run_task(&runtime, async {
                let (_sender, receiver) = gmp::sync::oneshot::channel::<()>();
                let text = panics(|| drop(receiver.blocking_recv()));
                assert_says(
                    &text,
                    "Cannot block the current thread from within a runtime",
                );
                let (_sender, mut receiver) = gmp::sync::mpsc::channel::<String>(1);
                let text = panics(|| drop(receiver.blocking_recv()));
                assert_says(
                    &text,
                    "Cannot block the current thread from within a runtime",
                );
            });
            finish(runtime);
        }
    });
}

#[test]
fn block_on_works_in_spawn_blocking_and_in_block_in_place() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            let job = runtime.spawn_blocking(|| {
                let handle = Handle::current();
                handle.block_on(async { task::spawn(async { 7 }).await.unwrap() })
            });
            assert_eq!(runtime.block_on(job).unwrap(), 7);
            finish(runtime);
        }
        let runtime = runtime(1);
        let seven = run_task(&runtime, async {
            task::block_in_place(|| {
                let handle = Handle::current();
                handle.block_on(async { task::spawn(async { 7 }).await.unwrap() })
            })
        });
        assert_eq!(seven, 7);
        finish(runtime);
    });
}

#[test]
fn block_in_place_on_a_current_thread_runtime_panics() {
    bounded(|| {
        let runtime = current_thread();
        runtime.block_on(async {
            let text = panics(|| task::block_in_place(|| {}));
            assert_says(
                &text,
                "can call blocking only when running on the multi-threaded",
            );
        });
        assert_works(&runtime);
        finish(runtime);
    });
}

#[test]
fn zero_of_anything_is_refused_by_name() {
    let text = panics(|| _ = Builder::new_multi_thread().worker_threads(0));
    assert_says(&text, "Worker threads cannot be set to 0");
    let text = panics(|| _ = Builder::new_multi_thread().max_blocking_threads(0));
    assert_says(&text, "Max blocking threads cannot be set to 0");
    let text = panics(|| _ = Builder::new_multi_thread().global_queue_interval(0));
    assert_says(&text, "0");
    let text = panics(|| drop(gmp::sync::mpsc::channel::<()>(0)));
    assert_says(&text, "mpsc bounded channel requires buffer > 0");
    bounded(|| {
        let runtime = runtime(1);
        let _context = runtime.enter();
        let text = panics(|| drop(gmp::time::interval(Duration::ZERO)));
        assert_says(&text, "`period` must be non-zero");
    });
}

#[test]
fn gmpmaxprocs_that_is_no_number_is_named() {
    let test = "gmpmaxprocs_that_is_no_number_is_named";
    for (value, good) in [("0", false), ("x", false), ("-1", false), ("3", true)] {
        let outcome = in_child(test, &[("GMPMAXPROCS", value)], || {
            let ps = std::env::var("GMPMAXPROCS").unwrap();
            if ps == "3" {
                let runtime = Builder::new_multi_thread().build().unwrap();
                assert_eq!(runtime.metrics().num_workers(), 3);
                return;
            }
            let text = panics(|| drop(Builder::new_multi_thread().build()));
            assert_says(&text, "GMPMAXPROCS");
            // What the program says goes first.
            let runtime = support::runtime(2);
            assert_eq!(runtime.metrics().num_workers(), 2);
            assert_works(&runtime);
        });
        let outcome = outcome.succeeded();
        assert!(!good || outcome.stderr.is_empty(), "{outcome:#?}");
    }
}

const IN_ASYNC: &str = "Cannot drop a runtime in a context where blocking is not allowed";

/// A56: a library's runtime is dropped on an error path, and nobody knows which one it was.
#[test]
fn a_runtime_dropped_inside_a_task_panics_and_says_what_to_do() {
    bounded(|| {
        for make in BOTH {
            let outer = runtime(2);
            let inner = make();
            let handle = inner.handle().clone();
            let running = inner.spawn(std::future::pending::<()>());
            let task = outer.spawn(async move { drop(inner) });
            let result = outer.block_on(task);
            if let Err(error) = result {
                let text = support::message(&*error.into_panic());
                assert_says(&text, IN_ASYNC);
                assert_says(&text, "shutdown_background");
                assert_says(&text, "built at tests/support/mod.rs:");
            } else {
                panic!("no panic");
            }
            // Shut down all the same: nothing is left running, and new tasks are cancelled.
            assert!(outer.block_on(running).unwrap_err().is_cancelled());
            let late = handle.spawn(async {});
            assert!(outer.block_on(late).unwrap_err().is_cancelled());
            assert_works(&outer);
            finish(outer);
        }
    });
}

/// A56.
#[test]
fn a_runtime_dropped_by_the_main_future_or_by_its_own_task_panics_and_shuts_down() {
    bounded(|| {
        let outer = runtime(1);
        let inner = runtime(1);
        let text = panics(|| outer.block_on(async move { drop(inner) }));
        assert_says(&text, IN_ASYNC);
        assert_works(&outer);
        // Its own task is the last to hold it.
        let (give, given) = gmp::sync::oneshot::channel::<Runtime>();
        let own = runtime(1);
        let handle = own.handle().clone();
        let task = own.spawn(async move {
            let own = given.await.unwrap();
            assert_says(&panics(|| drop(own)), IN_ASYNC);
        });
        give.send(own).unwrap();
        outer.block_on(task).unwrap();
        let late = handle.spawn(async {});
        assert!(outer.block_on(late).unwrap_err().is_cancelled());
        finish(outer);
    });
}

/// A56: the ways that the message names.
#[test]
fn a_runtime_can_be_given_up_inside_a_task() {
    bounded(|| {
        for make in BOTH {
            let outer = runtime(2);
            let (background, in_time, in_blocking) = (make(), make(), make());
            let tasks = [
                background.spawn(std::future::pending::<()>()),
                in_blocking.spawn(std::future::pending::<()>()),
            ];
            run_task(&outer, async move {
                background.shutdown_background();
                in_time.shutdown_timeout(Duration::ZERO);
                let drops = task::spawn_blocking(move || drop(in_blocking));
                drops.await.unwrap();
            });
            for task in tasks {
                assert!(outer.block_on(task).unwrap_err().is_cancelled());
            }
            assert_works(&outer);
            finish(outer);
        }
    });
}
