//! What users of other runtimes report about tasks that block, the blocking pool and threads. The
//! numbers are those of `docs/reports.md`.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

use gmp::runtime::{Handle, Runtime};
use gmp::sync::oneshot;
use gmp::task;
use gmp::time::{sleep, timeout};
use support::child::in_child;
use support::{Pipe, bounded, builder, compute, current_thread, finish, runtime, threads};
use support::{in_rounds, in_some_round, run_task, wait_until};

/// A16: as many tasks that block in a loop as there are Ps, and as many that sleep and count: "stop
/// worrying about blocking" was announced where the sleepers stood still.
#[test]
fn sleepers_tick_beside_as_many_tasks_that_block_in_a_loop() {
    const NAP: Duration = Duration::from_millis(5);
    bounded(|| {
        for ps in [1, 2] {
            let runtime = runtime(ps);
            let round = || {
                let stop = Arc::new(AtomicBool::new(false));
                let ticks: Arc<Vec<_>> = Arc::new((0..ps).map(|_| AtomicUsize::new(0)).collect());
                // Each time until every sleeper has ticked three times more.
                let blockers: Vec<_> = (0..ps)
                    .map(|_| {
                        let ticks = ticks.clone();
                        runtime.spawn(async move {
                            for _ in 0..5 {
                                for sleeper in ticks.iter() {
                                    let before = sleeper.load(Ordering::Relaxed);
                                    while sleeper.load(Ordering::Relaxed) < before + 3 {
                                        std::thread::sleep(Duration::from_millis(1));
                                    }
                                }
                                task::yield_now().await;
                            }
                        })
                    })
                    .collect();
                let sleepers: Vec<_> = (0..ps)
                    .map(|i| {
                        let (stop, ticks) = (stop.clone(), ticks.clone());
                        runtime.spawn(async move {
                            let mut latest = Duration::ZERO;
                            while !stop.load(Ordering::Relaxed) {
                                let start = Instant::now();
                                sleep(NAP).await;
                                latest = latest.max(start.elapsed() - NAP);
                                ticks[i].fetch_add(1, Ordering::Relaxed);
                            }
                            latest
                        })
                    })
                    .collect();
                for blocker in blockers {
                    runtime.block_on(blocker).unwrap();
                }
                stop.store(true, Ordering::Relaxed);
                let join = |sleeper: task::JoinHandle<Duration>| runtime.block_on(sleeper).unwrap();
                sleepers.into_iter().map(join).max().unwrap()
            };
            // How late the latest tick was.
            in_some_round(round, |&latest: &Duration| {
                latest < Duration::from_millis(100)
            });
            finish(runtime);
        }
    });
}

/// A17: nobody but the worker that had parked on the driver could look at sockets and timers, and that one
/// was blocked. A18: all workers wait for a std mutex that is held over something slow, and not even the
/// timeout around it fires.
#[test]
fn a_timeout_fires_while_all_ps_wait_for_a_std_mutex() {
    bounded(|| {
        for ps in [1, 2, 4] {
            // How long a timeout of 50 ms takes.
            in_some_round(
                || time_out_while_all_wait_for_a_std_mutex(ps),
                |&took| took < Duration::from_millis(100),
            );
        }
    });
}

fn time_out_while_all_wait_for_a_std_mutex(ps: usize) -> Duration {
    let runtime = runtime(ps);
    let mutex = Arc::new(StdMutex::new(()));
    let (held, is_held) = std_mpsc::channel();
    let (release, released) = std_mpsc::channel::<()>();
    let holder = std::thread::spawn({
        let mutex = mutex.clone();
        move || {
            let _guard = mutex.lock().unwrap();
            held.send(()).unwrap();
            released.recv().unwrap();
        }
    });
    is_held.recv().unwrap();
    let (blocks, blocked) = std_mpsc::channel();
    let waiters: Vec<_> = (0..ps)
        .map(|_| {
            let (mutex, blocks) = (mutex.clone(), blocks.clone());
            runtime.spawn(async move {
                blocks.send(()).unwrap();
                drop(mutex.lock().unwrap());
            })
        })
        .collect();
    waiters.iter().for_each(|_| blocked.recv().unwrap());
    let third = runtime.spawn(async {
        let start = Instant::now();
        let never = std::future::pending::<()>();
        timeout(Duration::from_millis(50), never).await.unwrap_err();
        start.elapsed()
    });
    // The mutex is held until it has fired.
    let took = runtime.block_on(third).unwrap();
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    release.send(()).unwrap();
    for waiter in waiters {
        runtime.block_on(waiter).unwrap();
    }
    holder.join().unwrap();
    finish(runtime);
    took
}

/// A21: a signal that a runtime sends to threads makes system calls fail that never failed before, and
/// may be one that the program uses.
#[test]
fn no_signal_is_handled_that_was_not_before() {
    let test = "no_signal_is_handled_that_was_not_before";
    in_child(test, &[], || {
        let handled = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let sets = status
                .lines()
                .filter(|line| line.starts_with("SigCgt:") || line.starts_with("SigIgn:"));
            sets.map(String::from).collect::<Vec<_>>()
        };
        let before = handled();
        assert_eq!(before.len(), 2);
        let runtime = runtime(2);
        run_task(&runtime, async {
            let metrics = Handle::current().metrics();
            while metrics.retake_count() == 0 {
                let ran = Arc::new(AtomicBool::new(false));
                let behind = task::spawn({
                    let ran = ran.clone();
                    async move { ran.store(true, Ordering::Relaxed) }
                });
                task::spawn(async {}).await.unwrap();
                std::thread::sleep(Duration::from_millis(30));
                behind.await.unwrap();
                assert!(ran.load(Ordering::Relaxed));
                let others: Vec<_> = (0..4)
                    .map(|_| task::spawn(async { compute(Duration::from_millis(30), || false) }))
                    .collect();
                for other in others {
                    other.await.unwrap();
                }
            }
            task::spawn_blocking(|| {}).await.unwrap();
        });
        assert_eq!(handled(), before);
        drop(runtime);
        assert_eq!(handled(), before);
    })
    .succeeded();
}

/// A22: pools sized by the host's cores in a container with one are throttled.
#[test]
fn there_are_as_many_ps_as_cpus_this_process_may_use() {
    let test = "there_are_as_many_ps_as_cpus_this_process_may_use";
    in_child(test, &[], || {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the set is plain bits, of which none may be set.
        let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a set of the given size, which is this function's.
        let got = unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) };
        assert_eq!(got, 0);
        let is_allowed = |cpu| {
            // SAFETY: `cpu` is below the size of the set.
            unsafe { libc::CPU_ISSET(cpu, &allowed) }
        };
        let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| is_allowed(cpu));
        // SAFETY: as above.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `first` is below the size of the set.
        unsafe { libc::CPU_SET(first.expect("this runs somewhere"), &mut one) };
        // SAFETY: the pointer is to a set of the given size.
        let set = unsafe { libc::sched_setaffinity(0, size, &raw const one) };
        assert_eq!(set, 0);
        let runtime = gmp::runtime::Builder::new_multi_thread().build().unwrap();
        assert_eq!(runtime.metrics().num_workers(), 1);
    })
    .succeeded();
}

/// Sends so many requests to a task, one after another, each with a channel for the reply.
async fn round_trips(trips: u64, begin: impl FnOnce()) {
    let (requests, mut incoming) = gmp::sync::mpsc::unbounded_channel::<oneshot::Sender<()>>();
    task::spawn(async move {
        while let Some(reply) = incoming.recv().await {
            reply.send(()).unwrap();
        }
    });
    let trip = async || {
        let (reply, answer) = oneshot::channel();
        requests.send(reply).unwrap();
        answer.await.unwrap();
    };
    for _ in 0..100 {
        trip().await;
    }
    begin();
    for _ in 0..trips {
        trip().await;
    }
}

/// A23: request and reply between the future of `block_on` and a task cost two switches of threads, and
/// were 17 times as slow as between two tasks.
#[cfg(target_os = "linux")]
#[test]
fn the_main_future_talks_to_a_task_without_system_calls() {
    use support::syscalls::{expect_calls, mark};
    const TRIPS: u64 = 5_000;
    let test = "the_main_future_talks_to_a_task_without_system_calls";
    let body = || {
        for runtime in [runtime(2), current_thread()] {
            runtime.block_on(async {
                round_trips(TRIPS, mark).await;
                mark();
            });
        }
    };
    // Four a trip otherwise. Where the machine is busy, no P may be idle for a while.
    expect_calls(test, body, |calls| calls.total() < 2 * TRIPS / 50);
}

/// The CPU time that the process has used.
fn cpu_time_of_all() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of this function's.
    let got = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(got, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A23: the ratio, of the CPU time that all threads use. In a process of its own, where nobody else uses any.
#[test]
fn the_main_future_talks_to_a_task_at_the_cost_of_two_tasks() {
    const TRIPS: u64 = 20_000;
    let test = "the_main_future_talks_to_a_task_at_the_cost_of_two_tasks";
    in_child(test, &[], || {
        let cost = |run: &dyn Fn()| {
            let before = cpu_time_of_all();
            run();
            cpu_time_of_all() - before
        };
        for runtime in [runtime(2), current_thread()] {
            let round = || {
                let main = cost(&|| runtime.block_on(round_trips(TRIPS, || {})));
                let tasks = cost(&|| run_task(&runtime, round_trips(TRIPS, || {})));
                (main, tasks)
            };
            in_rounds(3, round, |&(main, tasks)| 2 * main <= 3 * tasks);
            finish(runtime);
        }
    })
    .succeeded();
}

/// How often the calling thread has waited for something; to have lost its CPU to another is no wait.
fn waits() -> i64 {
    // SAFETY: zeroes are a valid value of the type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of this function's.
    let got = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    assert_eq!(got, 0);
    usage.ru_nvcsw
}

/// How often eight threads wait in all while they submit empty blocking jobs, with `around` around each.
fn submit(around: impl Fn(&mut dyn FnMut()) + Sync) -> i64 {
    const JOBS: usize = 100_000;
    let runtime = runtime(2);
    let done = Arc::new(AtomicUsize::new(0));
    let waited = std::thread::scope(|scope| {
        let submits = || {
            let before = waits();
            for _ in 0..JOBS / 8 {
                let done = done.clone();
                let job = move || _ = done.fetch_add(1, Ordering::Relaxed);
                let mut job = Some(job);
                around(&mut || drop(runtime.spawn_blocking(job.take().expect("once"))));
            }
            waits() - before
        };
        let all = [(); 8].map(|()| scope.spawn(submits));
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    wait_until("all have run", || done.load(Ordering::Relaxed) == JOBS);
    finish(runtime);
    waited
}

/// A24: threads that submit blocking jobs fought for the pool's lock: 16 of them were 18 times as slow
/// as one.
#[test]
fn many_threads_submit_blocking_jobs_about_as_fast_as_few() {
    bounded(|| {
        // What else they wait for, such as memory, they wait for beside a lock of this test's, too.
        let lock = StdMutex::new(());
        let locked = |submit: &mut dyn FnMut()| {
            let _guard = lock.lock().unwrap();
            submit();
        };
        let round = || {
            let without = (0..5).map(|_| submit(|submit| submit())).sum::<i64>();
            (without, (0..5).map(|_| submit(locked)).sum::<i64>())
        };
        in_some_round(round, |&(without, with)| 16 * without < with);
    });
}

/// A24: a job that is submitted while the last thread that the pool may have is about to stop looking.
#[test]
fn no_job_is_forgotten_by_a_pool_with_all_its_threads() {
    bounded(|| {
        // One thread of each, so that no later job makes up for a forgotten one.
        let runtime = builder(1).max_blocking_threads(1).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        // As often as this takes some seconds: where the machine is busy, each time may take milliseconds.
        let end = Instant::now() + Duration::from_secs(5);
        for i in 1..=50_000 {
            if Instant::now() > end {
                break;
            }
            let job = ran.clone();
            drop(runtime.spawn_blocking(move || job.store(i, Ordering::Relaxed)));
            let start = Instant::now();
            while ran.load(Ordering::Relaxed) < i {
                std::hint::spin_loop();
                assert!(
                    start.elapsed() < support::STUCK_AFTER / 2,
                    "job {i} is lost"
                );
            }
            // Now the thread is on its way to its seat; the next job comes at a different place each time.
            (0..i % 97).for_each(|_| std::hint::spin_loop());
        }
        finish(runtime);
    });
}

/// Blocks all of a pool of two with jobs that need the pool themselves.
fn pool_that_waits_for_itself(runtime: &Runtime) {
    let here = Arc::new(std::sync::Barrier::new(2));
    let jobs: Vec<_> = (0..2)
        .map(|_| {
            let here = here.clone();
            runtime.spawn_blocking(move || {
                here.wait();
                Handle::current()
                    .block_on(async { gmp::fs::read("/proc/self/status").await.unwrap().len() })
            })
        })
        .collect();
    runtime.block_on(async {
        for job in jobs {
            assert!(job.await.unwrap() > 0);
        }
    });
}

/// A26: closures in the pool wait in `block_on` for something that needs a thread of the pool, of which
/// there is none left. The pool says so, once, and goes on.
#[test]
fn a_pool_whose_jobs_all_wait_for_the_pool_goes_on() {
    let test = "a_pool_whose_jobs_all_wait_for_the_pool_goes_on";
    let outcome = in_child(test, &[], || {
        for flavor in ["multi", "current"] {
            let mut builder = match flavor {
                "multi" => builder(1),
                _ => gmp::runtime::Builder::new_current_thread(),
            };
            let runtime = builder
                .enable_all()
                .max_blocking_threads(2)
                .build()
                .unwrap();
            for _ in 0..2 {
                pool_that_waits_for_itself(&runtime);
            }
            finish(runtime);
        }
    })
    .succeeded();
    let report = "gmp: all 2 threads of the blocking pool wait in block_on, and";
    let once_each = outcome.stderr.matches(report).count() == 2;
    let says_what_to_do = outcome.stderr.contains("see Builder::max_blocking_threads");
    assert!(once_each && says_what_to_do, "{outcome:#?}");
}

/// A27: blocked tasks made thousands of threads, which were never given back.
#[test]
fn threads_for_blocked_tasks_are_bounded_and_the_bound_is_reported_once() {
    let test = "threads_for_blocked_tasks_are_bounded_and_the_bound_is_reported_once";
    let outcome = in_child(test, &[], || {
        let mut builder = builder(1);
        builder
            .max_extra_threads(3)
            .thread_name("bounded")
            .thread_keep_alive(Duration::from_millis(100));
        let runtime = builder.build().unwrap();
        for _ in 0..2 {
            let pipe = Arc::new(Pipe::new());
            let blocked = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let (pipe, blocked) = (pipe.clone(), blocked.clone());
                    runtime.spawn(async move {
                        blocked.fetch_add(1, Ordering::Relaxed);
                        pipe.read();
                    })
                })
                .collect();
            // One a P, and three more.
            wait_until("four block", || blocked.load(Ordering::Relaxed) == 4);
            // Long enough for the monitor to take another P away, if it would.
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(blocked.load(Ordering::Relaxed), 4);
            assert_eq!(threads::named("bounded"), 4);
            pipe.write(20);
            for task in tasks {
                runtime.block_on(task).unwrap();
            }
            wait_until("the threads retire", || threads::named("bounded") == 1);
        }
        finish(runtime);
    })
    .succeeded();
    assert_eq!(
        outcome.stderr.matches("Builder::max_extra_threads").count(),
        1,
        "{outcome:#?}"
    );
}

/// A27: two hundred tasks that each block for a while.
#[test]
fn two_hundred_tasks_that_block_end_and_leave_no_thread_behind() {
    bounded(|| {
        let mut builder = builder(2);
        builder
            .thread_name("two-hundred")
            .thread_keep_alive(Duration::from_millis(200));
        let runtime = builder.build().unwrap();
        let nap = |_| runtime.spawn(async { std::thread::sleep(Duration::from_millis(50)) });
        let tasks: Vec<_> = (0..200).map(nap).collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        wait_until("the threads retire", || threads::named("two-hundred") == 2);
        finish(runtime);
    });
}
