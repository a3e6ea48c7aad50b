//! No queue keeps another one waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gmp_executor::task::yield_now;
use gmp_executor::{Config, Flavor, Runtime, task};

fn one_p() -> Runtime {
    Runtime::new(Config::new(Flavor::MultiThread, 1)).expect("a runtime")
}

fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Each poll here outlasts the time after which a busy P looks at the global queue. How many of them come
/// between the polls of the P's own tasks does not depend on how long they last.
#[test]
fn long_tasks_of_the_global_queue_do_not_keep_out_the_ps_own() {
    let runtime = one_p();
    let done = Arc::new(AtomicBool::new(false));
    let waiting = Arc::new(AtomicUsize::new(0));
    let computed = Arc::new(AtomicUsize::new(0));
    let local = runtime.handle().spawn({
        let (done, waiting) = (done.clone(), waiting.clone());
        async move {
            while waiting.load(Ordering::Relaxed) < 2 {
                yield_now().await;
            }
            let own = task::spawn(async {
                for _ in 0..10 {
                    yield_now().await;
                }
            });
            own.await.unwrap();
            done.store(true, Ordering::Relaxed);
        }
    });
    while !done.load(Ordering::Relaxed) {
        let computed_so_far = computed.load(Ordering::Relaxed);
        assert!(computed_so_far < 2_000, "the P's own tasks starve");
        if waiting.load(Ordering::Relaxed) < 50 {
            waiting.fetch_add(1, Ordering::Relaxed);
            let (waiting, computed) = (waiting.clone(), computed.clone());
            runtime.handle().spawn(async move {
                compute(Duration::from_millis(2));
                waiting.fetch_sub(1, Ordering::Relaxed);
                computed.fetch_add(1, Ordering::Relaxed);
            });
        }
        thread::yield_now();
    }
    runtime.block_on(local).unwrap();
}
