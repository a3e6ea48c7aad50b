//! Memory and idle CPU. Each sample is a process of its own, so that no peer inherits another's heap.
//!
//! `cargo bench --bench footprint [-- PATTERN…]`; `ROUNDS=15` for more samples. Linux only.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{WORKERS, Workload};

const TASKS: u64 = 200_000;
const AN_HOUR: Duration = Duration::from_secs(3600);

/// Resident memory of this process in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a proc file system");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    1024.0
        * kib
            .and_then(|kib| kib.parse::<f64>().ok())
            .expect("a line VmRSS")
}

/// CPU time of this process so far, in milliseconds.
fn cpu_ms() -> f64 {
    // SAFETY: `rusage` is plain data, for which zeroes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to `usage` alone.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) }, 0);
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    ms(usage.ru_utime) + ms(usage.ru_stime)
}

/// Waits until `started` has counted every task.
fn wait_for(started: &AtomicU64, tasks: u64) {
    while started.load(Ordering::Relaxed) < tasks {
        std::thread::sleep(Duration::from_millis(1));
    }
}

macro_rules! tokio_like {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;

            fn runtime() -> $rt::runtime::Runtime {
                $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime")
            }

            pub fn sleeping() -> f64 {
                let runtime = runtime();
                let started = Arc::new(AtomicU64::new(0));
                let spawn = |tasks: u64| {
                    for _ in 0..tasks {
                        let started = started.clone();
                        runtime.spawn(async move {
                            started.fetch_add(1, Ordering::Relaxed);
                            $rt::time::sleep(AN_HOUR).await;
                        });
                    }
                };
                spawn(1000);
                wait_for(&started, 1000);
                let before = resident();
                spawn(TASKS);
                wait_for(&started, 1000 + TASKS);
                let bytes = (resident() - before) / TASKS as f64;
                runtime.shutdown_background();
                bytes
            }

            pub fn ticker() -> f64 {
                let runtime = runtime();
                let before = cpu_ms();
                runtime.block_on(async {
                    let mut ticks = $rt::time::interval(Duration::from_millis(10));
                    let ticker = $rt::spawn(async move {
                        for _ in 0..500 {
                            ticks.tick().await;
                        }
                    });
                    ticker.await.expect("the ticker");
                });
                cpu_ms() - before
            }

            pub fn sleeps() -> f64 {
                const SLEEPS: u64 = 100_000;
                let runtime = runtime();
                let tasks: Vec<_> = runtime.block_on(async {
                    (0..SLEEPS)
                        .map(|i| {
                            $rt::spawn(async move {
                                let due = Instant::now() + Duration::from_micros(500_000 + i * 10);
                                $rt::time::sleep_until(due.into()).await;
                                common::nanos(due.elapsed()) / 1e3
                            })
                        })
                        .collect()
                });
                let mut late: Vec<f64> = runtime.block_on(async {
                    let mut late = Vec::new();
                    for task in tasks {
                        late.push(task.await.expect("a task"));
                    }
                    late
                });
                late.sort_by(f64::total_cmp);
                late[late.len() / 2]
            }
        }
    };
}

tokio_like!(on_gmp, gmp);
tokio_like!(on_tokio, tokio);

mod on_smol {
    use super::*;

    pub fn sleeping() -> f64 {
        let executor: &'static _ = Box::leak(Box::new(smol::Executor::new()));
        for _ in 0..WORKERS {
            std::thread::spawn(|| smol::block_on(executor.run(std::future::pending::<()>())));
        }
        let started = Arc::new(AtomicU64::new(0));
        let spawn = |tasks: u64| {
            for _ in 0..tasks {
                let started = started.clone();
                let task = executor.spawn(async move {
                    started.fetch_add(1, Ordering::Relaxed);
                    smol::Timer::after(AN_HOUR).await;
                });
                task.detach();
            }
        };
        spawn(1000);
        wait_for(&started, 1000);
        let before = resident();
        spawn(TASKS);
        wait_for(&started, 1000 + TASKS);
        (resident() - before) / TASKS as f64
    }
}

type Measurement = fn() -> f64;

/// What a child process can be asked to measure.
const SAMPLES: [(&str, Measurement); 7] = [
    ("gmp sleeping", on_gmp::sleeping),
    ("tokio sleeping", on_tokio::sleeping),
    ("smol sleeping", on_smol::sleeping),
    ("gmp ticker", on_gmp::ticker),
    ("tokio ticker", on_tokio::ticker),
    ("gmp sleeps", on_gmp::sleeps),
    ("tokio sleeps", on_tokio::sleeps),
];

const CHILD: &str = "GMP_BENCH_SAMPLE";

fn in_child(sample: &'static str) -> common::Sample {
    Box::new(move || {
        let program = std::env::current_exe().expect("this program");
        common::number_from(Command::new(program).env(CHILD, sample))
    })
}

fn main() {
    if let Ok(wanted) = std::env::var(CHILD) {
        let sample = SAMPLES.iter().find(|(name, _)| *name == wanted);
        println!("{}", sample.expect("one of the samples").1());
        return;
    }
    common::run(vec![
        Workload {
            name: "resident memory per sleeping task",
            unit: "B",
            peers: vec![
                ("gmp", in_child("gmp sleeping")),
                ("tokio", in_child("tokio sleeping")),
                ("smol", in_child("smol sleeping")),
            ],
        },
        Workload {
            name: "100,000 sleeps, median lateness",
            unit: "us",
            peers: vec![
                ("gmp", in_child("gmp sleeps")),
                ("tokio", in_child("tokio sleeps")),
            ],
        },
        Workload {
            name: "a 10 ms ticker for 5 s, CPU",
            unit: "ms",
            peers: vec![
                ("gmp", in_child("gmp ticker")),
                ("tokio", in_child("tokio ticker")),
            ],
        },
    ]);
}
