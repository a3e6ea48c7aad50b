//! The model of a barrier: how many have arrived in this round, and which futures wait for its end.

use std::sync::Arc;
use std::task::Poll;

use gmp_sync::{Barrier, BarrierWaitResult};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait,
    Poll(usize),
    PollAsAnother(usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Wait),
        3 => any::<usize>().prop_map(Step::Poll),
        1 => any::<usize>().prop_map(Step::PollAsAnother),
        1 => any::<usize>().prop_map(Step::Drop),
    ]
}

struct Waiter {
    future: Waiting<BarrierWaitResult>,
    is_released: bool,
}

fn run(size: usize, steps: &[Step]) {
    let barrier = Arc::new(Barrier::new(size));
    let mut waiters: Vec<Waiter> = Vec::new();
    let mut arrived = 0;
    for step in steps {
        match *step {
            Step::Wait => {
                let barrier = barrier.clone();
                let mut future = Waiting::new(async move { barrier.wait().await });
                let polled = future.poll();
                arrived += 1;
                if arrived >= size {
                    arrived = 0;
                    let Poll::Ready(result) = polled else {
                        panic!("the last to arrive waits");
                    };
                    assert!(result.is_leader());
                    for waiter in &mut waiters {
                        waiter.is_released = true;
                        waiter.future.waking.wake();
                    }
                } else {
                    assert!(polled.is_pending());
                    waiters.push(Waiter {
                        future,
                        is_released: false,
                    });
                }
            }
            Step::Poll(number) | Step::PollAsAnother(number) => {
                let Some(at) = pick(number, waiters.len()) else {
                    continue;
                };
                let waiter = &mut waiters[at];
                let polled = match step {
                    Step::Poll(_) => waiter.future.poll(),
                    _ => waiter.future.poll_as_another(),
                };
                assert_eq!(polled.is_ready(), waiter.is_released);
                if let Poll::Ready(result) = polled {
                    assert!(!result.is_leader(), "one leader a round");
                    waiters.remove(at);
                }
            }
            // Whoever gives up has arrived all the same.
            Step::Drop(number) => {
                let Some(at) = pick(number, waiters.len()) else {
                    continue;
                };
                waiters.remove(at);
            }
        }
        waiters
            .iter()
            .for_each(|waiter| waiter.future.waking.check());
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_barrier_is_a_count(size in 0..5_usize, steps in vec(step(), 0..80)) {
        run(size, &steps);
    }
}
