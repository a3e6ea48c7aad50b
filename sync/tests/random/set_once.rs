//! The model of a `SetOnce`: a value, or none yet.

use std::sync::Arc;
use std::task::Poll;

use gmp_sync::SetOnce;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait,
    Poll(usize),
    PollAsAnother(usize),
    Drop(usize),
    Set(u32),
    Get,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Wait),
        4 => any::<usize>().prop_map(Step::Poll),
        2 => any::<usize>().prop_map(Step::PollAsAnother),
        2 => any::<usize>().prop_map(Step::Drop),
        1 => any::<u32>().prop_map(Step::Set),
        1 => Just(Step::Get),
    ]
}

fn run(steps: &[Step]) {
    let cell = Arc::new(SetOnce::new());
    let mut value = None;
    let mut waiters: Vec<Waiting<u32>> = Vec::new();
    for step in steps {
        let expected = value.map_or(Poll::Pending, Poll::Ready);
        match *step {
            Step::Wait => {
                let cell = cell.clone();
                let mut waiter = Waiting::new(async move { *cell.wait().await });
                assert_eq!(waiter.poll(), expected);
                if expected.is_pending() {
                    waiters.push(waiter);
                }
            }
            Step::Poll(number) | Step::PollAsAnother(number) => {
                let Some(at) = pick(number, waiters.len()) else {
                    continue;
                };
                let polled = match step {
                    Step::Poll(_) => waiters[at].poll(),
                    _ => waiters[at].poll_as_another(),
                };
                assert_eq!(polled, expected);
                if polled.is_ready() {
                    waiters.remove(at);
                }
            }
            Step::Drop(number) => {
                if let Some(at) = pick(number, waiters.len()) {
                    waiters.remove(at);
                }
            }
            Step::Set(new) => {
                let set = cell.set(new);
                assert_eq!(set.is_ok(), value.is_none());
                match set {
                    Ok(()) => value = Some(new),
                    Err(error) => assert_eq!(error.0, new),
                }
                waiters.iter_mut().for_each(|waiter| waiter.waking.wake());
            }
            Step::Get => assert_eq!(cell.get().copied(), value),
        }
        assert_eq!(cell.initialized(), value.is_some());
        waiters.iter().for_each(|waiter| waiter.waking.check());
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_cell_is_set_once_and_wakes_all(steps in vec(step(), 0..60)) {
        run(&steps);
    }
}
