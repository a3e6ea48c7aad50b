//! How late a ticker of 1 ms is beside tasks that block their threads or compute, and what it costs that
//! such tasks lose their P.
//!
//! `cargo bench --bench stalls [-- PATTERN…]`; `ROUNDS=5` for more samples. A sample lasts a second or two.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::time::{Duration, Instant};

use common::{WORKERS, Workload};

/// How long a task of the background holds its thread.
const HOLD: Duration = Duration::from_millis(100);

fn block() {
    std::thread::sleep(HOLD);
}

fn compute() {
    let start = Instant::now();
    while start.elapsed() < HOLD {
        std::hint::spin_loop();
    }
}

macro_rules! tokio_like {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;

            /// The 99th percentile of the ticker's lateness in milliseconds, beside `tasks` that call `hold` and
            /// then yield, over and over.
            pub fn lateness(tasks: usize, hold: fn()) -> f64 {
                const TICKS: u64 = 500;
                const TICK: Duration = Duration::from_millis(1);
                let runtime = $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime");
                let mut late = runtime.block_on(async {
                    for _ in 0..tasks {
                        $rt::spawn(async move {
                            loop {
                                hold();
                                $rt::task::yield_now().await;
                            }
                        });
                    }
                    let ticker = $rt::spawn(async {
                        let end = Instant::now() + Duration::from_secs(5);
                        let mut late = Vec::new();
                        while (late.len() as u64) < TICKS && Instant::now() < end {
                            let due = Instant::now() + TICK;
                            $rt::time::sleep_until(due.into()).await;
                            late.push(common::nanos(due.elapsed()) / 1e6);
                        }
                        late
                    });
                    ticker.await.expect("the ticker")
                });
                runtime.shutdown_timeout(Duration::from_secs(5));
                late.sort_by(f64::total_cmp);
                late[late.len() * 99 / 100]
            }
        }
    };
}

tokio_like!(on_gmp, gmp);
tokio_like!(on_tokio, tokio);

fn workload(name: &'static str, tasks: usize, hold: fn()) -> Workload {
    Workload {
        name,
        unit: "ms",
        peers: vec![
            (
                "gmp",
                Box::new(move || on_gmp::lateness(tasks, hold)) as common::Sample,
            ),
            ("tokio", Box::new(move || on_tokio::lateness(tasks, hold))),
        ],
    }
}

fn main() {
    common::run(vec![
        workload("1 ms ticker, p99, alone", 0, block),
        workload("1 ms ticker, p99, 2 tasks block", 2, block),
        workload("1 ms ticker, p99, 8 tasks block", 8, block),
        workload("1 ms ticker, p99, 2 tasks compute", 2, compute),
        workload("1 ms ticker, p99, 8 tasks compute", 8, compute),
    ]);
}
