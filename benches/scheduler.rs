//! The scheduler beside tokio's, smol's and Go's, on the same work in one run.
//!
//! `cargo bench --bench scheduler [-- PATTERN…]`; `ROUNDS=15` for more samples. Go is a peer if `go` is in the
//! path, or `GO` names it.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::time::Duration;

use common::{WORKERS, Workload, per_operation};

macro_rules! tokio_like {
    ($module:ident, $rt:ident $(, $setting:ident($value:expr))?) => {
        #[allow(dead_code, reason = "not every peer runs every workload")]
        mod $module {
            use super::*;
            use std::future::Future;
            use std::pin::Pin;
            use $rt::sync::oneshot;

            fn runtime() -> $rt::runtime::Runtime {
                $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    $(.$setting($value))?
                    .build()
                    .expect("a runtime")
            }

            /// Runs `work` in a task, after a warm-up of the same.
            fn in_task<F, W>(operations: u64, work: W) -> f64
            where
                W: Fn() -> F,
                F: Future<Output = ()> + Send + 'static,
            {
                let runtime = runtime();
                runtime.block_on(async { $rt::spawn(work()).await.expect("the work") });
                per_operation(operations, || {
                    runtime.block_on(async { $rt::spawn(work()).await.expect("the work") });
                })
            }

            async fn spawn_and_join(tasks: u64) {
                let tasks: Vec<_> = (0..tasks).map(|i| $rt::spawn(async move { i })).collect();
                for task in tasks {
                    task.await.expect("a task");
                }
            }

            pub fn spawn_join() -> f64 {
                const N: u64 = 100_000;
                in_task(N, || spawn_and_join(N))
            }

            pub fn spawn_join_main() -> f64 {
                const N: u64 = 100_000;
                let runtime = runtime();
                runtime.block_on(spawn_and_join(N));
                per_operation(N, || runtime.block_on(spawn_and_join(N)))
            }

            pub fn spawn_join_foreign() -> f64 {
                const N: u64 = 100_000;
                let runtime = runtime();
                let run = || {
                    let spawn = |i| runtime.spawn(async move { i });
                    let tasks: Vec<_> = (0..N).map(spawn).collect();
                    runtime.block_on(async {
                        for task in tasks {
                            task.await.expect("a task");
                        }
                    });
                };
                run();
                per_operation(N, run)
            }

            pub fn yields() -> f64 {
                const TASKS: u64 = 1000;
                const YIELDS: u64 = 200;
                in_task(TASKS * YIELDS, || async {
                    let tasks: Vec<_> = (0..TASKS)
                        .map(|_| {
                            $rt::spawn(async {
                                for _ in 0..YIELDS {
                                    $rt::task::yield_now().await;
                                }
                            })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("a task");
                    }
                })
            }

            async fn round_trip() {
                let (ping, pinged) = oneshot::channel();
                let (pong, ponged) = oneshot::channel();
                $rt::spawn(async move {
                    pinged.await.expect("ping");
                    pong.send(()).expect("pong");
                });
                ping.send(()).expect("ping");
                ponged.await.expect("pong");
            }

            pub fn ping_pong(pairs: u64) -> f64 {
                let trips = 100_000 / pairs;
                in_task(trips * pairs, move || async move {
                    let pairs: Vec<_> = (0..pairs)
                        .map(|_| {
                            $rt::spawn(async move {
                                for _ in 0..trips {
                                    round_trip().await;
                                }
                            })
                        })
                        .collect();
                    for pair in pairs {
                        pair.await.expect("a pair");
                    }
                })
            }

            pub fn ping_pong_main() -> f64 {
                const TRIPS: u64 = 20_000;
                let runtime = runtime();
                per_operation(TRIPS, || {
                    runtime.block_on(async {
                        for _ in 0..TRIPS {
                            round_trip().await;
                        }
                    });
                })
            }

            pub fn channel_ping_pong(pairs: u64) -> f64 {
                let trips = 100_000 / pairs;
                in_task(trips * pairs, move || async move {
                    let pairs: Vec<_> = (0..pairs)
                        .map(|_| {
                            $rt::spawn(async move {
                                let (ping, mut pinged) = $rt::sync::mpsc::channel::<u64>(1);
                                let (pong, mut ponged) = $rt::sync::mpsc::channel::<u64>(1);
                                let echo = $rt::spawn(async move {
                                    while let Some(i) = pinged.recv().await {
                                        pong.send(i).await.expect("pong");
                                    }
                                });
                                for i in 0..trips {
                                    ping.send(i).await.expect("ping");
                                    ponged.recv().await.expect("pong");
                                }
                                drop(ping);
                                echo.await.expect("the echo");
                            })
                        })
                        .collect();
                    for pair in pairs {
                        pair.await.expect("a pair");
                    }
                })
            }

            pub fn chained_spawn() -> f64 {
                const HOPS: u64 = 100_000;
                fn hop(left: u64, done: oneshot::Sender<()>) {
                    if left == 0 {
                        done.send(()).expect("the end");
                    } else {
                        $rt::spawn(async move { hop(left - 1, done) });
                    }
                }
                in_task(HOPS, || async {
                    let (done, end) = oneshot::channel();
                    hop(HOPS, done);
                    end.await.expect("the end");
                })
            }

            fn skynet_node(number: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
                Box::pin(async move {
                    if leaves == 1 {
                        return number;
                    }
                    let leaves = leaves / 10;
                    let children: Vec<_> = (0..10)
                        .map(|i| $rt::spawn(skynet_node(number + i * leaves, leaves)))
                        .collect();
                    let mut sum = 0;
                    for child in children {
                        sum += child.await.expect("a child");
                    }
                    sum
                })
            }

            /// Milliseconds for a tree of a million leaves.
            pub fn skynet() -> f64 {
                in_task(1_000_000, || async {
                    assert_eq!(skynet_node(0, 1_000_000).await, 499_999_500_000);
                })
            }

            pub fn blocking() -> f64 {
                const JOBS: u64 = 20_000;
                in_task(JOBS, || async {
                    let jobs: Vec<_> = (0..JOBS)
                        .map(|i| $rt::task::spawn_blocking(move || i))
                        .collect();
                    for job in jobs {
                        job.await.expect("a job");
                    }
                })
            }

            /// Timeouts of a server: each of `tasks` makes timers that do not fire.
            pub fn timers(tasks: u64) -> f64 {
                const TIMERS: u64 = 100_000;
                async fn make(timers: u64) {
                    for _ in 0..timers {
                        let sleep = $rt::time::sleep(Duration::from_secs(10));
                        let mut sleep = std::pin::pin!(sleep);
                        std::future::poll_fn(|cx| {
                            assert!(sleep.as_mut().poll(cx).is_pending());
                            std::task::Poll::Ready(())
                        })
                        .await;
                    }
                }
                in_task(TIMERS, move || async move {
                    let tasks: Vec<_> = (0..tasks)
                        .map(|_| $rt::spawn(make(TIMERS / tasks)))
                        .collect();
                    for task in tasks {
                        task.await.expect("a task");
                    }
                })
            }

            pub fn mutex() -> f64 {
                const TASKS: u64 = 100;
                const LOCKS: u64 = 1000;
                in_task(TASKS * LOCKS, || async {
                    let mutex = std::sync::Arc::new($rt::sync::Mutex::new(0));
                    let tasks: Vec<_> = (0..TASKS)
                        .map(|_| {
                            let mutex = mutex.clone();
                            $rt::spawn(async move {
                                for _ in 0..LOCKS {
                                    *mutex.lock().await += 1;
                                }
                            })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("a task");
                    }
                })
            }
        }
    };
}

tokio_like!(on_gmp, gmp);
tokio_like!(on_tokio, tokio);
tokio_like!(without_retake, gmp, retake_after(None));

/// The same with smol's crates. Where the others take a oneshot, which it has none of, a channel of one.
mod on_smol {
    use super::*;
    use std::future::Future;
    use std::sync::Arc;

    use async_executor::Executor;
    use common::with_smol;
    use smol::channel::{Sender, bounded};
    use smol::future;

    fn in_task<F, W>(operations: u64, work: W) -> f64
    where
        W: Fn(Arc<Executor<'static>>) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut figure = 0.0;
        with_smol(|executor| {
            future::block_on(executor.spawn(work(executor.clone())));
            figure = per_operation(operations, || {
                future::block_on(executor.spawn(work(executor.clone())));
            });
        });
        figure
    }

    async fn spawn_and_join(executor: Arc<Executor<'static>>, tasks: u64) {
        let tasks: Vec<_> = (0..tasks)
            .map(|i| executor.spawn(async move { i }))
            .collect();
        for task in tasks {
            task.await;
        }
    }

    pub fn spawn_join() -> f64 {
        const N: u64 = 100_000;
        in_task(N, |executor| spawn_and_join(executor, N))
    }

    pub fn spawn_join_main() -> f64 {
        const N: u64 = 100_000;
        let mut figure = 0.0;
        with_smol(|executor| {
            future::block_on(spawn_and_join(executor.clone(), N));
            figure = per_operation(N, || {
                future::block_on(spawn_and_join(executor.clone(), N));
            });
        });
        figure
    }

    pub fn spawn_join_foreign() -> f64 {
        const N: u64 = 100_000;
        let mut figure = 0.0;
        with_smol(|executor| {
            let run = || {
                let spawn = |i| executor.spawn(async move { i });
                let tasks: Vec<_> = (0..N).map(spawn).collect();
                future::block_on(async {
                    for task in tasks {
                        task.await;
                    }
                });
            };
            run();
            figure = per_operation(N, run);
        });
        figure
    }

    pub fn yields() -> f64 {
        const TASKS: u64 = 1000;
        const YIELDS: u64 = 200;
        in_task(TASKS * YIELDS, |executor| async move {
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    executor.spawn(async {
                        for _ in 0..YIELDS {
                            future::yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
        })
    }

    async fn round_trip(executor: &Executor<'static>) {
        let (ping, pinged) = bounded(1);
        let (pong, ponged) = bounded(1);
        executor
            .spawn(async move {
                pinged.recv().await.expect("ping");
                pong.send(()).await.expect("pong");
            })
            .detach();
        ping.send(()).await.expect("ping");
        ponged.recv().await.expect("pong");
    }

    pub fn ping_pong(pairs: u64) -> f64 {
        let trips = 100_000 / pairs;
        in_task(trips * pairs, move |executor| async move {
            let pair = |_| {
                let own = executor.clone();
                executor.spawn(async move {
                    for _ in 0..trips {
                        round_trip(&own).await;
                    }
                })
            };
            let pairs: Vec<_> = (0..pairs).map(pair).collect();
            for pair in pairs {
                pair.await;
            }
        })
    }

    pub fn ping_pong_main() -> f64 {
        const TRIPS: u64 = 20_000;
        let mut figure = 0.0;
        with_smol(|executor| {
            figure = per_operation(TRIPS, || {
                future::block_on(async {
                    for _ in 0..TRIPS {
                        round_trip(executor).await;
                    }
                });
            });
        });
        figure
    }

    pub fn channel_ping_pong(pairs: u64) -> f64 {
        let trips = 100_000 / pairs;
        in_task(trips * pairs, move |executor| async move {
            let pair = |_| {
                let own = executor.clone();
                executor.spawn(async move {
                    let (ping, pinged) = bounded::<u64>(1);
                    let (pong, ponged) = bounded::<u64>(1);
                    let echo = own.spawn(async move {
                        while let Ok(i) = pinged.recv().await {
                            pong.send(i).await.expect("pong");
                        }
                    });
                    for i in 0..trips {
                        ping.send(i).await.expect("ping");
                        ponged.recv().await.expect("pong");
                    }
                    drop(ping);
                    echo.await;
                })
            };
            let pairs: Vec<_> = (0..pairs).map(pair).collect();
            for pair in pairs {
                pair.await;
            }
        })
    }

    pub fn chained_spawn() -> f64 {
        const HOPS: u64 = 100_000;
        fn hop(executor: Arc<Executor<'static>>, left: u64, done: Sender<()>) {
            if left == 0 {
                done.try_send(()).expect("the end");
            } else {
                let own = executor.clone();
                executor
                    .spawn(async move { hop(own, left - 1, done) })
                    .detach();
            }
        }
        in_task(HOPS, |executor| async move {
            let (done, end) = bounded(1);
            hop(executor, HOPS, done);
            end.recv().await.expect("the end");
        })
    }

    pub fn timers(tasks: u64) -> f64 {
        const TIMERS: u64 = 100_000;
        async fn make(timers: u64) {
            for _ in 0..timers {
                let mut timer = smol::Timer::after(Duration::from_secs(10));
                future::poll_fn(|cx| {
                    assert!(std::pin::Pin::new(&mut timer).poll(cx).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
            }
        }
        in_task(TIMERS, move |executor| async move {
            let tasks: Vec<_> = (0..tasks)
                .map(|_| executor.spawn(make(TIMERS / tasks)))
                .collect();
            for task in tasks {
                task.await;
            }
        })
    }

    pub fn mutex() -> f64 {
        const TASKS: u64 = 100;
        const LOCKS: u64 = 1000;
        in_task(TASKS * LOCKS, |executor| async move {
            let mutex = Arc::new(smol::lock::Mutex::new(0));
            let task = |_| {
                let mutex = mutex.clone();
                executor.spawn(async move {
                    for _ in 0..LOCKS {
                        *mutex.lock().await += 1;
                    }
                })
            };
            let tasks: Vec<_> = (0..TASKS).map(task).collect();
            for task in tasks {
                task.await;
            }
        })
    }

    fn skynet_node(
        executor: Arc<Executor<'static>>,
        number: u64,
        leaves: u64,
    ) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
        Box::pin(async move {
            if leaves == 1 {
                return number;
            }
            let leaves = leaves / 10;
            let children: Vec<_> = (0..10)
                .map(|i| executor.spawn(skynet_node(executor.clone(), number + i * leaves, leaves)))
                .collect();
            let mut sum = 0;
            for child in children {
                sum += child.await;
            }
            sum
        })
    }

    pub fn skynet() -> f64 {
        in_task(1_000_000, |executor| async move {
            assert_eq!(skynet_node(executor, 0, 1_000_000).await, 499_999_500_000);
        })
    }

    pub fn blocking() -> f64 {
        const JOBS: u64 = 20_000;
        in_task(JOBS, |_| async {
            let jobs: Vec<_> = (0..JOBS).map(|i| smol::unblock(move || i)).collect();
            for job in jobs {
                job.await;
            }
        })
    }
}

macro_rules! workload {
    ($name:literal, $unit:literal, $function:ident($($argument:expr)?)) => {
        Workload {
            name: $name,
            unit: $unit,
            peers: vec![
                ("gmp", Box::new(|| on_gmp::$function($($argument)?)) as common::Sample),
                ("tokio", Box::new(|| on_tokio::$function($($argument)?))),
                ("smol", Box::new(|| on_smol::$function($($argument)?))),
            ],
        }
    };
}

/// What taking Ps away costs those who never lose one.
fn retake(name: &'static str, on: fn() -> f64, off: fn() -> f64) -> Workload {
    Workload {
        name,
        unit: "ns",
        peers: vec![
            ("gmp", Box::new(on) as common::Sample),
            ("without retake", Box::new(off)),
        ],
    }
}

fn main() {
    common::run(vec![
        workload!("spawn and join", "ns", spawn_join()).beside_go("spawn and join"),
        workload!("spawn and join, in block_on", "ns", spawn_join_main()),
        workload!("spawn and join, from outside", "ns", spawn_join_foreign()),
        workload!("yield, 1000 tasks", "ns", yields()).beside_go("yield"),
        workload!("ping-pong, oneshots, 1000 pairs", "ns", ping_pong(1000))
            .beside_go("oneshots, 1000 pairs"),
        workload!("ping-pong, oneshots, 1 pair", "ns", ping_pong(1)).beside_go("oneshots, 1 pair"),
        workload!("ping-pong, main and a task", "ns", ping_pong_main()),
        workload!(
            "ping-pong, channels, 1000 pairs",
            "ns",
            channel_ping_pong(1000)
        )
        .beside_go("channels, 1000 pairs"),
        workload!("ping-pong, channels, 1 pair", "ns", channel_ping_pong(1))
            .beside_go("channels, 1 pair"),
        workload!("chained spawn", "ns", chained_spawn()).beside_go("chained spawn"),
        workload!("skynet, a million leaves", "ms/M", skynet()).beside_go("skynet"),
        workload!("blocking jobs", "ns", blocking()),
        workload!("timers made and dropped, 100 tasks", "ns", timers(100))
            .beside_go("timers, 100 tasks"),
        workload!("timers made and dropped, 1 task", "ns", timers(1)).beside_go("timers, 1 task"),
        workload!("mutex, 100 tasks", "ns", mutex()).beside_go("mutex"),
        retake(
            "retake, spawn and join",
            on_gmp::spawn_join,
            without_retake::spawn_join,
        ),
        retake("retake, yield", on_gmp::yields, without_retake::yields),
        retake("retake, skynet", on_gmp::skynet, without_retake::skynet),
    ]);
}
