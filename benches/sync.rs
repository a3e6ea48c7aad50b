//! Channels, locks, `select!`, `JoinSet` and `LocalSet` beside tokio's, on the same work in one run, and how
//! large each of them is.
//!
//! `cargo bench --bench sync [-- PATTERN…]`; `ROUNDS=15` for more samples, `-- size` for the sizes alone.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;

use common::{WORKERS, Workload, per_operation};

/// The sizes of one runtime's types and futures.
type Sizes = Vec<(&'static str, usize)>;

macro_rules! sizes {
    (types: [$($type:ty),* $(,)?], futures: [$($future:expr),* $(,)?]) => {{
        let mut sizes: Sizes = vec![$((stringify!($type), size_of::<$type>()),)*];
        $(sizes.push((stringify!($future), size_of_val(&$future)));)*
        sizes
    }};
}

macro_rules! on {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;
            use $rt::sync::{
                Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot,
                watch,
            };

            fn runtime() -> $rt::runtime::Runtime {
                $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
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

            async fn join(tasks: Vec<$rt::task::JoinHandle<()>>) {
                for task in tasks {
                    task.await.expect("a task");
                }
            }

            pub fn mpsc_bounded(senders: u64, capacity: usize) -> f64 {
                const N: u64 = 200_000;
                in_task(N, move || async move {
                    let (sender, mut receiver) = mpsc::channel(capacity);
                    let tasks = (0..senders).map(|_| {
                        let sender = sender.clone();
                        $rt::spawn(async move {
                            for i in 0..N / senders {
                                sender.send(i).await.expect("a receiver");
                            }
                        })
                    });
                    let tasks = tasks.collect();
                    drop(sender);
                    let mut sum = 0;
                    while let Some(i) = receiver.recv().await {
                        sum += i;
                    }
                    black_box(sum);
                    join(tasks).await;
                })
            }

            pub fn mpsc_unbounded(senders: u64) -> f64 {
                const N: u64 = 200_000;
                in_task(N, move || async move {
                    let (sender, mut receiver) = mpsc::unbounded_channel();
                    let tasks = (0..senders).map(|_| {
                        let sender = sender.clone();
                        $rt::spawn(async move {
                            for i in 0..N / senders {
                                sender.send(i).expect("a receiver");
                            }
                        })
                    });
                    let tasks = tasks.collect();
                    drop(sender);
                    let mut sum = 0;
                    while let Some(i) = receiver.recv().await {
                        sum += i;
                    }
                    black_box(sum);
                    join(tasks).await;
                })
            }

            /// Nobody waits: what a send and a receive cost by themselves.
            pub fn mpsc_same_task() -> f64 {
                const N: u64 = 500_000;
                in_task(N, || async {
                    let (sender, mut receiver) = mpsc::channel(64);
                    for i in 0..N {
                        sender.send(i).await.expect("a receiver");
                        black_box(receiver.recv().await);
                    }
                })
            }

            pub fn oneshot_same_task() -> f64 {
                const N: u64 = 500_000;
                in_task(N, || async {
                    for i in 0..N {
                        let (sender, receiver) = oneshot::channel();
                        sender.send(i).expect("a receiver");
                        black_box(receiver.await.expect("a value"));
                    }
                })
            }

            /// A request with a reply, over a channel for requests.
            pub fn oneshot_replies() -> f64 {
                const N: u64 = 100_000;
                in_task(N, || async {
                    let (requests, mut incoming) = mpsc::channel::<oneshot::Sender<u64>>(16);
                    let server = $rt::spawn(async move {
                        while let Some(reply) = incoming.recv().await {
                            reply.send(1).expect("it waits");
                        }
                    });
                    for _ in 0..N {
                        let (reply, receiver) = oneshot::channel();
                        requests.send(reply).await.expect("a server");
                        black_box(receiver.await.expect("a reply"));
                    }
                    drop(requests);
                    server.await.expect("the server");
                })
            }

            pub fn broadcast(senders: u64, receivers: u64) -> f64 {
                const N: u64 = 40_000;
                in_task(N, move || async move {
                    // As large as the work, so that nobody lags.
                    let (sender, receiver) = broadcast::channel(N as usize);
                    let mut tasks: Vec<_> = (0..receivers)
                        .map(|_| {
                            let mut receiver = sender.subscribe();
                            $rt::spawn(async move {
                                for _ in 0..N {
                                    black_box(receiver.recv().await.expect("a value"));
                                }
                            })
                        })
                        .collect();
                    drop(receiver);
                    tasks.extend((0..senders).map(|_| {
                        let sender = sender.clone();
                        $rt::spawn(async move {
                            for i in 0..N / senders {
                                sender.send(i).expect("a receiver");
                                if i % 16 == 0 {
                                    $rt::task::yield_now().await;
                                }
                            }
                        })
                    }));
                    join(tasks).await;
                })
            }

            pub fn watch(senders: u64, receivers: u64) -> f64 {
                const N: u64 = 40_000;
                in_task(N, move || async move {
                    let (sender, receiver) = watch::channel(0);
                    let mut tasks: Vec<_> = (0..receivers)
                        .map(|_| {
                            let mut receiver = receiver.clone();
                            $rt::spawn(async move {
                                while receiver.changed().await.is_ok() {
                                    black_box(*receiver.borrow_and_update());
                                }
                            })
                        })
                        .collect();
                    drop(receiver);
                    tasks.extend((0..senders).map(|_| {
                        let sender = sender.clone();
                        $rt::spawn(async move {
                            for i in 0..N / senders {
                                sender.send(i).expect("a receiver");
                                $rt::task::yield_now().await;
                            }
                        })
                    }));
                    drop(sender);
                    join(tasks).await;
                })
            }

            /// Nobody waits.
            pub fn watch_same_task() -> f64 {
                const N: u64 = 500_000;
                in_task(N, || async {
                    let (sender, mut receiver) = watch::channel(0);
                    for i in 0..N {
                        sender.send(i).expect("a receiver");
                        receiver.changed().await.expect("a sender");
                        black_box(*receiver.borrow_and_update());
                    }
                })
            }

            pub fn mutex(tasks: u64) -> f64 {
                const N: u64 = 200_000;
                in_task(N, move || async move {
                    let mutex = Arc::new(Mutex::new(0_u64));
                    let tasks = (0..tasks).map(|_| {
                        let mutex = mutex.clone();
                        $rt::spawn(async move {
                            for _ in 0..N / tasks {
                                *mutex.lock().await += 1;
                            }
                        })
                    });
                    join(tasks.collect()).await;
                })
            }

            /// A guard that is held across a yield, so that everybody else waits.
            pub fn mutex_held(tasks: u64) -> f64 {
                const N: u64 = 50_000;
                in_task(N, move || async move {
                    let mutex = Arc::new(Mutex::new(0_u64));
                    let tasks = (0..tasks).map(|_| {
                        let mutex = mutex.clone();
                        $rt::spawn(async move {
                            for _ in 0..N / tasks {
                                let mut guard = mutex.lock().await;
                                *guard += 1;
                                $rt::task::yield_now().await;
                            }
                        })
                    });
                    join(tasks.collect()).await;
                })
            }

            /// Every `writes`th operation is a write; 0 for none.
            pub fn rwlock(tasks: u64, writes: u64) -> f64 {
                const N: u64 = 200_000;
                in_task(N, move || async move {
                    let lock = Arc::new(RwLock::new(0_u64));
                    let tasks = (0..tasks).map(|_| {
                        let lock = lock.clone();
                        $rt::spawn(async move {
                            for i in 0..N / tasks {
                                if writes != 0 && i % writes == 0 {
                                    *lock.write().await += 1;
                                } else {
                                    black_box(*lock.read().await);
                                }
                            }
                        })
                    });
                    join(tasks.collect()).await;
                })
            }

            pub fn semaphore(tasks: u64, permits: usize, held: bool) -> f64 {
                let n: u64 = if held { 50_000 } else { 200_000 };
                in_task(n, move || async move {
                    let semaphore = Arc::new(Semaphore::new(permits));
                    let tasks = (0..tasks).map(|_| {
                        let semaphore = semaphore.clone();
                        $rt::spawn(async move {
                            for _ in 0..n / tasks {
                                let permit = semaphore.acquire().await.expect("open");
                                if held {
                                    $rt::task::yield_now().await;
                                }
                                drop(permit);
                            }
                        })
                    });
                    join(tasks.collect()).await;
                })
            }

            /// Nobody waits.
            pub fn notify_same_task() -> f64 {
                const N: u64 = 500_000;
                in_task(N, || async {
                    let notify = Notify::new();
                    for _ in 0..N {
                        notify.notify_one();
                        notify.notified().await;
                    }
                })
            }

            pub fn notify_ping_pong() -> f64 {
                const N: u64 = 100_000;
                in_task(N, || async {
                    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
                    let (pinged, ponged) = (ping.clone(), pong.clone());
                    let task = $rt::spawn(async move {
                        for _ in 0..N {
                            pinged.notified().await;
                            pong.notify_one();
                        }
                    });
                    for _ in 0..N {
                        ping.notify_one();
                        ponged.notified().await;
                    }
                    task.await.expect("the task");
                })
            }

            pub fn notify_waiters() -> f64 {
                const WAITERS: usize = 1000;
                const ROUNDS: u64 = 100;
                in_task(WAITERS as u64 * ROUNDS, || async {
                    let notify = Arc::new(Notify::new());
                    for _ in 0..ROUNDS {
                        let (sender, mut waiting) = mpsc::channel(WAITERS);
                        let tasks = (0..WAITERS).map(|_| {
                            let (notify, sender) = (notify.clone(), sender.clone());
                            $rt::spawn(async move {
                                let notified = notify.notified();
                                sender.send(()).await.expect("a receiver");
                                notified.await;
                            })
                        });
                        let tasks = tasks.collect();
                        for _ in 0..WAITERS {
                            waiting.recv().await;
                        }
                        notify.notify_waiters();
                        join(tasks).await;
                    }
                })
            }

            /// Four channels, each filled by a task.
            pub fn select_four() -> f64 {
                const N: u64 = 100_000;
                in_task(N, || async {
                    let mut tasks = Vec::new();
                    let mut channel = || {
                        let (sender, receiver) = mpsc::channel(16);
                        tasks.push($rt::spawn(async move {
                            for i in 0..N / 4 {
                                sender.send(i).await.expect("a receiver");
                            }
                        }));
                        receiver
                    };
                    let (mut a, mut b) = (channel(), channel());
                    let (mut c, mut d) = (channel(), channel());
                    let mut sum = 0;
                    loop {
                        $rt::select! {
                            Some(i) = a.recv() => sum += i,
                            Some(i) = b.recv() => sum += i,
                            Some(i) = c.recv() => sum += i,
                            Some(i) = d.recv() => sum += i,
                            else => break,
                        }
                    }
                    black_box(sum);
                    join(tasks).await;
                })
            }

            pub fn join_set() -> f64 {
                const TASKS: u64 = 10_000;
                in_task(TASKS, || async {
                    let mut set = $rt::task::JoinSet::new();
                    for i in 0..TASKS {
                        set.spawn(async move { i });
                    }
                    let mut sum = 0;
                    while let Some(i) = set.join_next().await {
                        sum += i.expect("a task");
                    }
                    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
                })
            }

            pub fn local_set_ping_pong() -> f64 {
                const N: u64 = 100_000;
                let runtime = $rt::runtime::Builder::new_current_thread()
                    .build()
                    .expect("a runtime");
                let local = $rt::task::LocalSet::new();
                let trips = |count: u64| {
                    local.block_on(&runtime, async move {
                        let (ping, mut pinged) = mpsc::channel(1);
                        let (pong, mut ponged) = mpsc::channel(1);
                        let task = $rt::task::spawn_local(async move {
                            while let Some(i) = pinged.recv().await {
                                pong.send(i).await.expect("it waits");
                            }
                        });
                        let main = $rt::task::spawn_local(async move {
                            for i in 0..count {
                                ping.send(i).await.expect("it waits");
                                black_box(ponged.recv().await);
                            }
                        });
                        main.await.expect("a task");
                        task.await.expect("a task");
                    });
                };
                trips(N / 10);
                per_operation(N, || trips(N))
            }

            pub fn sizes() -> Sizes {
                let semaphore = Arc::new(Semaphore::new(1));
                let mutex = Arc::new(Mutex::new(0_u64));
                let rwlock = Arc::new(RwLock::new(0_u64));
                let notify = Arc::new(Notify::new());
                let barrier = Barrier::new(1);
                let once = OnceCell::<u64>::new();
                let set_once = SetOnce::<u64>::new();
                let (bounded, mut bounded_receiver) = mpsc::channel::<u64>(1);
                let (unbounded, mut unbounded_receiver) = mpsc::unbounded_channel::<u64>();
                let (mut one, _one_receiver) = oneshot::channel::<u64>();
                let (broad, mut broad_receiver) = broadcast::channel::<u64>(1);
                let (last, mut last_receiver) = watch::channel(0_u64);
                sizes! {
                    types: [
                        Semaphore, Mutex<()>, Mutex<u64>, RwLock<()>, RwLock<u64>, Notify, Barrier,
                        OnceCell<u64>, SetOnce<u64>,
                        mpsc::Sender<u64>, mpsc::Receiver<u64>, mpsc::WeakSender<u64>,
                        mpsc::OwnedPermit<u64>, mpsc::UnboundedSender<u64>, mpsc::UnboundedReceiver<u64>,
                        oneshot::Sender<u64>, oneshot::Receiver<u64>,
                        broadcast::Sender<u64>, broadcast::Receiver<u64>,
                        watch::Sender<u64>, watch::Receiver<u64>,
                        $rt::sync::SemaphorePermit<'static>, $rt::sync::OwnedSemaphorePermit,
                        $rt::sync::MutexGuard<'static, u64>, $rt::sync::OwnedMutexGuard<u64>,
                        $rt::sync::RwLockReadGuard<'static, u64>, $rt::sync::RwLockWriteGuard<'static, u64>,
                        $rt::sync::futures::Notified<'static>, $rt::sync::futures::OwnedNotified,
                        $rt::task::JoinHandle<u64>, $rt::task::AbortHandle, $rt::task::JoinSet<u64>,
                        $rt::task::LocalSet,
                        $rt::time::Sleep, $rt::time::Interval, $rt::time::Timeout<std::future::Ready<u8>>,
                    ],
                    futures: [
                        semaphore.acquire(), semaphore.acquire_many(2),
                        semaphore.clone().acquire_owned(), mutex.lock(), mutex.clone().lock_owned(),
                        rwlock.read(), rwlock.write(), rwlock.clone().read_owned(),
                        rwlock.clone().write_owned(), notify.notified(), barrier.wait(),
                        once.get_or_init(|| std::future::ready(1)), set_once.wait(),
                        bounded.send(1), bounded.reserve(), bounded.clone().reserve_owned(),
                        bounded.closed(), bounded_receiver.recv(),
                        unbounded.closed(), unbounded_receiver.recv(), one.closed(),
                        broad.closed(), broad_receiver.recv(), last.closed(), last_receiver.changed(),
                        last_receiver.wait_for(|_| true),
                        $rt::task::yield_now(), $rt::task::consume_budget(),
                    ]
                }
            }
        }
    };
}

on!(on_gmp, gmp);
on!(on_tokio, tokio);

macro_rules! workload {
    ($name:literal, $function:ident($($argument:expr),*)) => {
        Workload {
            name: $name,
            unit: "ns",
            peers: vec![
                ("gmp", Box::new(|| on_gmp::$function($($argument),*)) as common::Sample),
                ("tokio", Box::new(|| on_tokio::$function($($argument),*))),
            ],
        }
    };
}

/// The sizes side by side; those more than a quarter above tokio's are marked.
fn print_sizes() {
    println!("\nsizes in bytes");
    for ((what, gmp), (_, tokio)) in on_gmp::sizes().into_iter().zip(on_tokio::sizes()) {
        let what = what.replace("gmp::", "");
        let mark = if gmp * 4 > tokio * 5 {
            "  <- larger"
        } else {
            ""
        };
        println!("{what:<50} gmp {gmp:>5}  tokio {tokio:>5}{mark}");
    }
}

fn main() {
    common::run(vec![
        workload!("mpsc, one task", mpsc_same_task()),
        workload!("mpsc bounded 1:1", mpsc_bounded(1, 64)),
        workload!("mpsc bounded 1:1, capacity 1", mpsc_bounded(1, 1)),
        workload!("mpsc bounded 8:1", mpsc_bounded(8, 64)),
        workload!("mpsc unbounded 1:1", mpsc_unbounded(1)),
        workload!("mpsc unbounded 8:1", mpsc_unbounded(8)),
        workload!("oneshot, one task", oneshot_same_task()),
        workload!("oneshot, replies", oneshot_replies()),
        workload!("broadcast 1:1", broadcast(1, 1)),
        workload!("broadcast 8:1", broadcast(8, 1)),
        workload!("broadcast 1:8", broadcast(1, 8)),
        workload!("watch, one task", watch_same_task()),
        workload!("watch 1:1", watch(1, 1)),
        workload!("watch 8:1", watch(8, 1)),
        workload!("watch 1:8", watch(1, 8)),
        workload!("mutex, uncontended", mutex(1)),
        workload!("mutex, 8 tasks", mutex(8)),
        workload!("mutex, 8 tasks, held", mutex_held(8)),
        workload!("rwlock, read, uncontended", rwlock(1, 0)),
        workload!("rwlock, write, uncontended", rwlock(1, 1)),
        workload!("rwlock, 8 readers", rwlock(8, 0)),
        workload!("rwlock, 8 tasks, 1 write in 10", rwlock(8, 10)),
        workload!("rwlock, 8 writers", rwlock(8, 1)),
        workload!("semaphore, uncontended", semaphore(1, 1, false)),
        workload!("semaphore, 8 tasks", semaphore(8, 2, false)),
        workload!("semaphore, 8 tasks, held", semaphore(8, 2, true)),
        workload!("notify, one task", notify_same_task()),
        workload!("notify, ping-pong", notify_ping_pong()),
        workload!("notify, 1000 waiters", notify_waiters()),
        workload!("select, four channels", select_four()),
        workload!("join set, 10,000 tasks", join_set()),
        workload!("local set, ping-pong", local_set_ping_pong()),
    ]);
    let mut patterns = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    if patterns.next().is_none_or(|pattern| pattern == "size") {
        print_sizes();
    }
}
