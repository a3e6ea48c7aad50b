//! The operating system refuses threads: when the runtime is built, and later.
//!
//! A child process lowers its own limit on memory, so that no further stack fits.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gmp::runtime::{Builder, Runtime, RuntimeFlavor};
use gmp::task;
use support::child::{Outcome, in_child};
use support::{Pipe, bounded, run_task, threads, wait_until};

/// Large enough that a stack is what does not fit, and not something small.
const STACK: usize = 64 << 20;

fn builder(ps: usize) -> Builder {
    let mut builder = support::builder(ps);
    builder.thread_stack_size(STACK).thread_name("refused");
    builder
}

fn current_thread() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().thread_stack_size(STACK);
    builder
}

/// Runs `body` in a child for each kind of runtime: the stacks of one that has ended would fit again.
#[track_caller]
fn for_each_kind(test: &str, body: impl Fn(Builder)) -> Vec<Outcome> {
    let kind = |kind: &str| {
        let outcome = in_child(test, &[("KIND", kind)], || {
            body(match std::env::var("KIND").as_deref() {
                Ok("current thread") => current_thread(),
                ps => builder(ps.unwrap().parse().unwrap()),
            });
        });
        outcome.succeeded()
    };
    ["1", "2", "current thread"].map(kind).into()
}

/// Allows the process `more` bytes of address space beyond what it uses; `None` for any amount.
fn limit(more: Option<usize>) {
    let soft = more.map_or(libc::RLIM_INFINITY, |more| {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').next().unwrap().parse().unwrap();
        (pages * 4096 + more) as u64
    });
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the pointer is to a limit of this function's.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Refuses stacks, and nothing smaller, once the threads of `runtime` have what they need.
fn refuse(runtime: &Runtime) {
    if runtime.handle().runtime_flavor() == RuntimeFlavor::MultiThread {
        let ps = runtime.metrics().num_workers();
        wait_until("all have begun", || {
            runtime.metrics().num_idle_workers() == ps && threads::named("gmp-monitor") == 1
        });
    }
    limit(Some(STACK / 2));
}

#[track_caller]
fn assert_works(runtime: &Runtime) {
    run_task(runtime, async {
        task::spawn(async {}).await.unwrap();
        gmp::time::sleep(Duration::from_millis(1)).await;
        let socket = gmp::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket
            .send_to(&[1], socket.local_addr().unwrap())
            .await
            .unwrap();
        socket.recv(&mut [0]).await.unwrap();
    });
}

#[test]
fn a_stack_that_fits_nowhere_is_an_error_of_build() {
    bounded(|| {
        for ps in [1, 4] {
            let error = support::builder(ps)
                .thread_stack_size(1 << 47)
                .thread_name("too-large")
                .build()
                .expect_err("no thread has such a stack");
            assert!(error.raw_os_error().is_some(), "{error:?}");
        }
        assert_eq!(threads::named("too-large"), 0);
    });
}

/// A25: at build time an error, and nothing stays behind.
#[test]
fn refused_threads_are_an_error_of_build() {
    // None, some, and all but the last.
    for fit in ["0", "1", "3"] {
        let test = "refused_threads_are_an_error_of_build";
        let outcome = in_child(test, &[("FIT", fit)], || {
            let fit: usize = std::env::var("FIT").unwrap().parse().unwrap();
            limit(Some(fit * (STACK + (1 << 20)) + STACK / 2));
            let error = builder(4).build().expect_err("the fourth does not fit");
            assert!(error.raw_os_error().is_some(), "{error:?}");
            wait_until("the others end", || threads::named("refused") == 0);
            limit(None);
            assert_works(&builder(4).build().unwrap());
        });
        outcome.succeeded();
    }
}

/// A25: later, jobs are run by the threads that there are.
#[test]
fn blocking_jobs_make_do_with_one_thread() {
    for_each_kind("blocking_jobs_make_do_with_one_thread", |mut builder| {
        let runtime = builder.build().unwrap();
        runtime.block_on(runtime.spawn_blocking(|| {})).unwrap();
        refuse(&runtime);
        let threads = runtime.metrics().num_threads();
        for _ in 0..10 {
            let done = Arc::new(AtomicUsize::new(0));
            let jobs: Vec<_> = (0..20)
                .map(|_| {
                    let done = done.clone();
                    runtime.spawn_blocking(move || {
                        std::thread::sleep(Duration::from_millis(1));
                        done.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            runtime.block_on(async {
                for job in jobs {
                    job.await.unwrap();
                }
            });
            assert_eq!(done.load(Ordering::Relaxed), 20);
        }
        assert_eq!(runtime.metrics().num_threads(), threads);
        assert_works(&runtime);
    });
}

/// A25: a job for which there is no thread at all waits until there can be one.
#[test]
fn a_blocking_job_without_a_thread_is_not_lost() {
    let test = "a_blocking_job_without_a_thread_is_not_lost";
    let outcomes = for_each_kind(test, |mut builder| {
        let runtime = builder.build().unwrap();
        refuse(&runtime);
        let job = runtime.spawn_blocking(|| 7);
        assert_works(&runtime);
        assert!(!job.is_finished());
        let relief = std::thread::Builder::new().stack_size(128 * 1024);
        let relief = relief.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            limit(None);
        });
        assert_eq!(runtime.block_on(job).unwrap(), 7);
        relief.unwrap().join().unwrap();
    });
    for outcome in outcomes {
        let said = outcome.stderr.matches("cannot start a thread").count();
        assert_eq!(said, 1, "once is enough: {outcome:#?}");
    }
}

#[test]
fn a_blocking_job_without_a_thread_does_not_outlive_the_shutdown() {
    let test = "a_blocking_job_without_a_thread_does_not_outlive_the_shutdown";
    for_each_kind(test, |mut builder| {
        let runtime = builder.build().unwrap();
        refuse(&runtime);
        let job = runtime.spawn_blocking(|| 7);
        drop(runtime);
        // The stack of a thread that has ended may have come in time for the job.
        match futures::executor::block_on(job) {
            Ok(result) => assert_eq!(result, 7),
            Err(error) => assert!(error.is_cancelled()),
        }
    });
}

#[test]
fn a_blocked_task_keeps_its_p_when_there_is_no_thread_for_it() {
    let test = "a_blocked_task_keeps_its_p_when_there_is_no_thread_for_it";
    in_child(test, &[], || {
        let runtime = builder(1).build().unwrap();
        refuse(&runtime);
        let pipe = Arc::new(Pipe::new());
        let reader = pipe.clone();
        let (blocks, blocked) = std::sync::mpsc::channel();
        let task = runtime.spawn(async move {
            blocks.send(()).unwrap();
            reader.read();
        });
        blocked.recv().unwrap();
        let behind = runtime.spawn(async {});
        std::thread::sleep(Duration::from_millis(100));
        pipe.write(1);
        runtime.block_on(task).unwrap();
        runtime.block_on(behind).unwrap();
        assert_works(&runtime);
        // And with a thread for it, it is taken away.
        limit(None);
        let reader = pipe.clone();
        let task = runtime.spawn(async move { reader.read() });
        assert_works(&runtime);
        pipe.write(1);
        runtime.block_on(task).unwrap();
        drop(runtime);
    })
    .succeeded();
}

#[test]
fn block_in_place_works_without_a_thread_to_hand_the_p_to() {
    let test = "block_in_place_works_without_a_thread_to_hand_the_p_to";
    in_child(test, &[], || {
        let runtime = builder(2).build().unwrap();
        refuse(&runtime);
        for _ in 0..10 {
            let tasks: Vec<_> = (0..5)
                .map(|i| {
                    runtime.spawn(async move {
                        task::yield_now().await;
                        let i = task::block_in_place(|| i);
                        task::yield_now().await;
                        i
                    })
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(runtime.block_on(task).unwrap(), i);
            }
        }
        assert_works(&runtime);
        limit(None);
        assert_works(&runtime);
    })
    .succeeded();
}
