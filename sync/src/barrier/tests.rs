//! What `Barrier` promises.

use super::*;
use crate::test_util::{Polled, polled, wait_until};
use gmp_executor::coop::with_full_budget;
use std::sync::Arc;

#[test]
fn the_last_to_arrive_lets_everybody_go() {
    let barrier = Barrier::new(3);
    let mut tasks = [(); 3].map(|()| polled(barrier.wait()));
    assert!(tasks[0].poll().is_pending());
    assert!(tasks[1].poll().is_pending());
    assert!(tasks[0].poll().is_pending());
    let leader = tasks[2].ready();
    assert!(leader.clone().is_leader());
    assert_eq!((tasks[0].woken(), tasks[1].woken()), (1, 1));
    assert!(!tasks[0].ready().is_leader());
    assert!(!tasks[1].ready().is_leader());
    assert_eq!(format!("{leader:?}"), "BarrierWaitResult(true)");
}

#[test]
fn zero_and_one_never_wait() {
    for size in [0, 1] {
        let barrier = Barrier::new(size);
        for _ in 0..3 {
            assert!(polled(barrier.wait()).ready().is_leader());
        }
    }
}

#[test]
fn it_is_used_again_and_again() {
    let barrier = Barrier::new(2);
    for _ in 0..5 {
        let mut first = polled(barrier.wait());
        assert!(first.poll().is_pending());
        assert!(polled(barrier.wait()).ready().is_leader());
        assert!(!first.ready().is_leader());
    }
}

/// A task that has not looked yet does not get mixed up with the next round.
#[test]
fn a_slow_task_belongs_to_its_round() {
    let barrier = Barrier::new(2);
    let mut slow = polled(barrier.wait());
    assert!(slow.poll().is_pending());
    polled(barrier.wait()).ready();
    let mut next = polled(barrier.wait());
    assert!(next.poll().is_pending());
    assert!(!slow.ready().is_leader());
    assert!(next.poll().is_pending());
    polled(barrier.wait()).ready();
    assert!(!next.ready().is_leader());
}

/// Not cancel safe: who was polled has arrived.
#[test]
fn a_dropped_future_has_arrived() {
    let barrier = Barrier::new(2);
    let mut dropped = polled(barrier.wait());
    assert!(dropped.poll().is_pending());
    drop(dropped);
    drop(barrier.wait());
    assert!(polled(barrier.wait()).ready().is_leader());
}

#[test]
fn more_tasks_than_places() {
    let barrier = Barrier::new(2);
    let mut tasks: Vec<_> = (0..7).map(|_| polled(barrier.wait())).collect();
    let ready = tasks.iter_mut().filter_map(|task| match task.poll() {
        std::task::Poll::Ready(result) => Some(result.is_leader()),
        std::task::Poll::Pending => None,
    });
    assert_eq!(ready.collect::<Vec<_>>(), [true; 3]);
    let woken: Vec<_> = tasks.iter().map(Polled::woken).collect();
    assert_eq!(woken, [1, 0, 1, 0, 1, 0, 0]);
}

#[test]
fn threads_meet_round_after_round() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 2_000;
    let barrier = Arc::new(Barrier::new(THREADS));
    let round = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (barrier, round) = (barrier.clone(), round.clone());
            std::thread::spawn(move || {
                let mut leads = 0;
                for expected in 0..ROUNDS {
                    assert_eq!(round.load(Ordering::SeqCst), expected);
                    if futures::executor::block_on(barrier.wait()).is_leader() {
                        leads += 1;
                        round.store(expected + 1, Ordering::SeqCst);
                    }
                    futures::executor::block_on(barrier.wait());
                }
                leads
            })
        })
        .collect();
    wait_until(|| threads.iter().all(|thread| thread.is_finished()));
    let leads: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(leads, ROUNDS);
}

#[test]
fn debug() {
    let barrier = Barrier::new(2);
    assert_eq!(format!("{barrier:?}"), "Barrier { size: 2, arrived: 0 }");
}

#[test]
fn it_consumes_budget_before_it_arrives() {
    let barrier = Barrier::new(1);
    with_full_budget(|| {
        for _ in 0..128 {
            assert!(polled(barrier.wait()).ready().is_leader());
        }
        let mut late = polled(barrier.wait());
        late.pending();
        assert_eq!(late.woken(), 1, "to be polled again, later");
        assert!(with_full_budget(|| late.ready()).is_leader());
    });
}
