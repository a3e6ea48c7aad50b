//! What costs a thread, and what costs nothing: waiting tasks, blocking jobs, an idle runtime.
//!
//! From the articles' programs: 100 goroutines waiting on sockets cost no thread, 100 in `read(2)` cost 100,
//! which are reused. Go keeps them; gmp, as tokio, ends them after the keep-alive.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gmp::net::{TcpListener, TcpStream, UdpSocket};
use gmp::runtime::Runtime;
use gmp::task;
use support::child::in_child;
use support::{Pipe, bounded, builder, finish, in_rounds, threads, wait_until};

const MANY: usize = 100;

/// A runtime of two Ps whose threads have a name of their own.
///
/// None is taken away: where the machine is busy, a P may be that of a thread that the system did not run
/// for a while, and there is a thread more.
fn named(name: &str, keep_alive: Duration) -> Runtime {
    let mut builder = builder(2);
    builder.thread_name(name).thread_keep_alive(keep_alive);
    builder.retake_after(None).build().unwrap()
}

#[test]
fn tasks_that_wait_on_sockets_cost_no_thread() {
    bounded(|| {
        let runtime = named("on-sockets", Duration::from_secs(60));
        let waiting = Arc::new(AtomicUsize::new(0));
        let receivers = runtime.block_on(async {
            let mut receivers = Vec::new();
            for _ in 0..MANY {
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let address = socket.local_addr().unwrap();
                let waiting = waiting.clone();
                let task = task::spawn(async move {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    socket.recv(&mut [0]).await.unwrap();
                });
                receivers.push((task, address));
            }
            receivers
        });
        wait_until("all wait", || waiting.load(Ordering::Relaxed) == MANY);
        wait_until("the Ps are idle", || {
            runtime.metrics().num_idle_workers() == 2
        });
        assert_eq!(runtime.metrics().num_threads(), 2);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for (task, address) in receivers {
            sender.send_to(&[1], address).unwrap();
            runtime.block_on(task).unwrap();
        }
        finish(runtime);
    });
}

#[test]
fn tasks_that_wait_for_connections_streams_and_timers_cost_no_thread() {
    bounded(|| {
        let runtime = named("on-everything", Duration::from_secs(60));
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = task::spawn(async move {
                let mut streams = Vec::new();
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    streams.push(task::spawn(async move {
                        gmp::io::AsyncReadExt::read(&mut stream, &mut [0]).await
                    }));
                    if streams.len() == MANY {
                        return streams;
                    }
                }
            });
            let mut clients = Vec::new();
            for _ in 0..MANY {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            let readers = server.await.unwrap();
            let sleepers: Vec<_> = (0..MANY)
                .map(|_| task::spawn(gmp::time::sleep(Duration::from_millis(20))))
                .collect();
            assert_eq!(runtime.metrics().num_threads(), 2);
            for sleeper in sleepers {
                sleeper.await.unwrap();
            }
            drop(clients);
            for reader in readers {
                assert_eq!(reader.await.unwrap().unwrap(), 0);
            }
        });
        finish(runtime);
    });
}

/// A hundred jobs that block in `read(2)` at the same time.
fn hundred_blocking_reads(runtime: &Runtime) {
    let pipe = Arc::new(Pipe::new());
    let blocked = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = (0..MANY)
        .map(|_| {
            let (pipe, blocked) = (pipe.clone(), blocked.clone());
            runtime.spawn_blocking(move || {
                blocked.fetch_add(1, Ordering::Relaxed);
                pipe.read();
            })
        })
        .collect();
    wait_until("all block", || blocked.load(Ordering::Relaxed) == MANY);
    assert_eq!(runtime.metrics().num_blocking_threads(), MANY);
    pipe.write(MANY);
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}

#[test]
fn blocking_reads_cost_a_thread_each_and_the_threads_are_reused() {
    bounded(|| {
        let runtime = named("reads", Duration::from_secs(600));
        for _ in 0..3 {
            hundred_blocking_reads(&runtime);
            wait_until("the threads are idle", || {
                runtime.metrics().num_idle_threads() == MANY
            });
            // A thread gives itself its name when it first runs.
            wait_until("all have their names", || {
                threads::named("reads") >= MANY + 2
            });
            assert_eq!(threads::named("reads"), MANY + 2);
            assert_eq!(runtime.metrics().num_threads(), MANY + 2);
        }
        finish(runtime);
        wait_until("the threads end", || threads::named("reads") == 0);
    });
}

#[test]
fn blocking_threads_retire_after_the_keep_alive() {
    bounded(|| {
        let runtime = named("retires", Duration::from_millis(50));
        hundred_blocking_reads(&runtime);
        wait_until("the threads retire", || threads::named("retires") == 2);
        wait_until("and are not counted", || {
            runtime.metrics().num_threads() == 2
        });
        hundred_blocking_reads(&runtime);
        finish(runtime);
    });
}

#[test]
fn threads_for_ps_that_were_taken_away_are_reused_and_retire() {
    bounded(|| {
        let mut builder = builder(2);
        builder.thread_keep_alive(Duration::from_millis(500));
        let runtime = builder.thread_name("taken").build().unwrap();
        let metrics = runtime.metrics();
        let mut most = 0;
        for _ in 0..3 {
            let before = metrics.retake_count();
            let pipe = Arc::new(Pipe::new());
            let blocked = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    let (pipe, blocked) = (pipe.clone(), blocked.clone());
                    runtime.spawn(async move {
                        blocked.fetch_add(1, Ordering::Relaxed);
                        pipe.read();
                    })
                })
                .collect();
            wait_until("all block", || blocked.load(Ordering::Relaxed) == 8);
            let threads = threads::named("taken");
            // One a P, and one each time that a P was taken away in one round: six times or more, also from
            // a thread that the system did not run for a while. And what was in reserve, or come too late.
            most = most.max(metrics.retake_count() - before);
            assert!(
                (8..=5 + most as usize).contains(&threads),
                "{threads} for {most}"
            );
            pipe.write(8);
            for task in tasks {
                runtime.block_on(task).unwrap();
            }
            wait_until("the others are idle, or have retired", || {
                metrics.num_threads() == metrics.num_idle_threads() + 2
            });
        }
        wait_until("the threads retire", || threads::named("taken") == 2);
        finish(runtime);
    });
}

#[test]
fn no_more_blocking_threads_than_allowed() {
    bounded(|| {
        let mut builder = builder(1);
        builder.max_blocking_threads(3).thread_name("few");
        builder.retake_after(None);
        let runtime = builder.build().unwrap();
        let pipe = Arc::new(Pipe::new());
        let blocked = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..10)
            .map(|_| {
                let (pipe, blocked) = (pipe.clone(), blocked.clone());
                runtime.spawn_blocking(move || {
                    blocked.fetch_add(1, Ordering::Relaxed);
                    pipe.read();
                })
            })
            .collect();
        wait_until("three block", || blocked.load(Ordering::Relaxed) == 3);
        assert_eq!(runtime.metrics().blocking_queue_depth(), 7);
        // A thread gives itself its name when it first runs.
        wait_until("all have their names", || threads::named("few") >= 4);
        assert_eq!(threads::named("few"), 4);
        pipe.write(10);
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
        finish(runtime);
    });
}

/// Asserts that the other threads do nothing over `long`, once they have settled. Where the machine is busy, one that
/// has not settled may look as if it had.
#[track_caller]
fn assert_no_activity(long: Duration) {
    in_rounds(3, || activity(long), Vec::is_empty);
}

/// Which of the other threads did anything over `long`, once they have settled: how often they were
/// switched out, and for how long they used a CPU.
fn activity(long: Duration) -> Vec<String> {
    let read = || -> HashMap<u32, threads::Thread> {
        let threads = threads::others().into_iter();
        threads.map(|thread| (thread.id, thread)).collect()
    };
    let cpu = |threads: &HashMap<u32, threads::Thread>| -> u64 {
        threads.values().map(|thread| thread.cpu_ns).sum()
    };
    // Settled: the monitor takes a few looks before it sleeps.
    wait_until("the runtime settles", || {
        let before = cpu(&read());
        std::thread::sleep(Duration::from_millis(200));
        cpu(&read()) == before
    });
    let before = read();
    std::thread::sleep(long);
    let moved = read().into_values().filter_map(|after| {
        let Some(before) = before.get(&after.id) else {
            return Some(format!("{} ({}) has begun", after.name, after.id));
        };
        let switches = after.switches - before.switches;
        let cpu = Duration::from_nanos(after.cpu_ns - before.cpu_ns);
        (switches > 0 || !cpu.is_zero()).then(|| {
            format!(
                "{} ({}): {switches} switches, {cpu:?}",
                after.name, after.id
            )
        })
    });
    moved.collect()
}

/// Gives every part of a runtime something to do, and leaves it idle with tasks that wait.
fn use_and_leave(runtime: &Runtime) {
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        task::spawn(async move {
            let mut streams = Vec::new();
            loop {
                streams.push(listener.accept().await.unwrap());
            }
        });
        let stream = TcpStream::connect(address).await.unwrap();
        task::spawn(async move {
            let mut stream = stream;
            let _ = gmp::io::AsyncReadExt::read(&mut stream, &mut [0]).await;
        });
        let spawned: Vec<_> = (0..1_000)
            .map(|_| {
                task::spawn(async {
                    task::yield_now().await;
                    gmp::time::sleep(Duration::from_millis(2)).await;
                })
            })
            .collect();
        for task in spawned {
            task.await.unwrap();
        }
        task::spawn_blocking(|| {}).await.unwrap();
        task::spawn(gmp::time::sleep(Duration::from_secs(3_600)));
        task::spawn(std::future::pending::<()>());
    });
}

#[test]
fn an_idle_runtime_makes_no_wake_ups() {
    let outcome = in_child("an_idle_runtime_makes_no_wake_ups", &[], || {
        // The thread of the blocking pool is not to end while it is watched.
        let mut builder = builder(4);
        builder.thread_keep_alive(Duration::from_secs(600));
        let runtime = builder.build().unwrap();
        use_and_leave(&runtime);
        assert_no_activity(Duration::from_secs(2));
        drop(runtime);
    });
    outcome.succeeded();
}

#[test]
fn a_main_future_that_waits_makes_no_wake_ups() {
    let outcome = in_child("a_main_future_that_waits_makes_no_wake_ups", &[], || {
        for current_thread in [false, true] {
            let (stop, stopped) = gmp::sync::oneshot::channel::<()>();
            let body = std::thread::spawn(move || {
                let mut builder = match current_thread {
                    true => gmp::runtime::Builder::new_current_thread(),
                    false => builder(2),
                };
                builder
                    .enable_all()
                    .thread_keep_alive(Duration::from_secs(600));
                let runtime = builder.build().unwrap();
                use_and_leave(&runtime);
                runtime.block_on(stopped).unwrap();
            });
            assert_no_activity(Duration::from_secs(2));
            stop.send(()).unwrap();
            body.join().unwrap();
            // A thread that ends may hide another from who lists them.
            wait_until("the monitor ends", || threads::named("gmp-monitor") == 0);
        }
    });
    outcome.succeeded();
}

#[test]
fn a_lone_ticker_costs_little_more_than_its_ticks() {
    let test = "a_lone_ticker_costs_little_more_than_its_ticks";
    let outcome = in_child(test, &[], || {
        let runtime = support::runtime(4);
        let ticks = Arc::new(AtomicUsize::new(0));
        let count = ticks.clone();
        runtime.spawn(async move {
            let mut interval = gmp::time::interval(Duration::from_millis(100));
            loop {
                interval.tick().await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let waits = || -> u64 { threads::others().iter().map(|t| t.waits).sum() };
        wait_until("it ticks", || ticks.load(Ordering::Relaxed) >= 3);
        let round = || {
            let before = (ticks.load(Ordering::Relaxed), waits());
            wait_until("it goes on", || {
                ticks.load(Ordering::Relaxed) >= before.0 + 20
            });
            waits() - before.1
        };
        // A wake-up of the M, and the monitor's few looks until it sleeps again; a thief now and then.
        in_rounds(3, round, |&waits| waits <= 20 * 10);
        drop(runtime);
    });
    outcome.succeeded();
}
