//! Exhaustive models. Each says which bug it would find.

use gmp_executor::loom::{Arc, thread};

use super::*;
use crate::test_util::block_on;

/// Would find: a task that misses the end of its round, or that takes the end of the previous round
/// for its own.
#[test]
fn model_two_rounds() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let barrier = Arc::new(Barrier::new(2));
        let other = barrier.clone();
        let thread = thread::spawn(move || [(); 2].map(|()| block_on(other.wait()).is_leader()));
        let here = [(); 2].map(|()| block_on(barrier.wait()).is_leader());
        let there = thread.join().unwrap();
        assert!(here[0] != there[0] && here[1] != there[1]);
    });
}

/// Would find: the same when four tasks meet at a barrier for two.
#[test]
fn model_more_tasks_than_places() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let barrier = Arc::new(Barrier::new(2));
        let threads = [(); 2].map(|()| {
            let barrier = barrier.clone();
            thread::spawn(move || block_on(barrier.wait()).is_leader())
        });
        // Two arrivals here, one on each thread: two rounds, whoever meets whom.
        let (first, second) = block_on(futures::future::join(barrier.wait(), barrier.wait()));
        let mut leaders = usize::from(first.is_leader()) + usize::from(second.is_leader());
        for thread in threads {
            leaders += usize::from(thread.join().unwrap());
        }
        assert_eq!(leaders, 2);
    });
}
