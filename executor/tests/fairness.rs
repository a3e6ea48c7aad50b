//! No queue keeps another one waiting, and what was readied first runs first.

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use gmp_executor::seam::{Timers, wake_all};
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

/// Timers in groups, of which each look fires one, from the first time on that the P goes idle. The first group takes
/// its time, as if the system did not run the M for a while.
#[derive(Debug, Default)]
struct Groups {
    groups: Mutex<VecDeque<Vec<Waker>>>,
    idle: AtomicBool,
    taken_time: AtomicBool,
}

impl Groups {
    /// Waits for the group to be fired.
    async fn wait(&self, group: usize) {
        let mut waits = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut waits, true) {
                return Poll::Ready(());
            }
            let mut groups = self.groups.lock().unwrap();
            if groups.len() <= group {
                groups.resize(group + 1, Vec::new());
            }
            groups[group].push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Timers for Groups {
    fn park_timeout(&self, _p: usize) -> Option<Duration> {
        let more = !self.groups.lock().unwrap().is_empty();
        self.idle.store(more, Ordering::Relaxed);
        more.then_some(Duration::ZERO)
    }

    fn is_due(&self, _p: usize) -> bool {
        false
    }

    fn fire(&self, _p: usize) -> usize {
        if !self.idle.load(Ordering::Relaxed) {
            return 0;
        }
        if !self.taken_time.swap(true, Ordering::Relaxed) {
            // Long enough for the monitor to look. If it is late nothing is shown, and nothing fails.
            thread::sleep(Duration::from_millis(100));
        }
        let group = self.groups.lock().unwrap().pop_front();
        wake_all(group.unwrap_or_default())
    }

    fn auto_advance(&self) -> bool {
        false
    }

    fn inhibit_auto_advance(&self, _inhibit: bool) {}

    fn shutdown(&self) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The monitor takes the rest, and the time before the next poll begins, for no part of a slice that lasts: what the
/// end of the rest readied alone, and is in runnext, runs before those that the next look puts into the queue.
#[test]
fn what_ends_the_rest_of_a_p_begins_a_slice() {
    let timers = Arc::new(Groups::default());
    let mut config = Config::new(Flavor::MultiThread, 1);
    config.timers = Some(timers.clone());
    config.retake_after = None;
    config.event_interval = 1;
    let runtime = Runtime::new(config).expect("a runtime");
    let (log, logged) = mpsc::channel();
    runtime.handle().spawn(async move {
        for (name, group) in [('a', 0), ('b', 1), ('c', 1)] {
            let (timers, log) = (timers.clone(), log.clone());
            task::spawn(async move {
                timers.wait(group).await;
                log.send(name).unwrap();
            });
        }
    });
    let next = |_| logged.recv_timeout(Duration::from_secs(180));
    let order: String = (0..3).map(|i| next(i).expect("it runs")).collect();
    assert!(order == "abc" || order == "acb", "{order}");
}
