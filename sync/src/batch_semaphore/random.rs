//! Random programs, step by step against a model in plain words.

use proptest::prelude::*;

use super::*;
use crate::test_util::{Polled, polled};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Make a future and poll it.
    Acquire(usize),
    Poll(usize),
    Drop(usize),
    Release(usize),
    TryAcquire(usize),
    Forget(usize),
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waiting { needed: usize },
    Served,
    Refused,
    Done,
}

#[derive(Default)]
struct Model {
    free: usize,
    is_closed: bool,
    /// What each future asked for, what became of it, and how often it was woken.
    futures: Vec<(usize, State, usize)>,
}

impl Model {
    fn release(&mut self, mut permits: usize) {
        for (_, state, woken) in &mut self.futures {
            let State::Waiting { needed } = state else {
                continue;
            };
            let part = permits.min(*needed);
            permits -= part;
            *needed -= part;
            if *needed > 0 {
                return;
            }
            *state = State::Served;
            *woken += 1;
        }
        self.free += permits;
    }

    fn acquire(&mut self, permits: usize) -> Poll<bool> {
        if self.is_closed {
            self.futures.push((permits, State::Done, 0));
            return Poll::Ready(false);
        }
        let part = permits.min(self.free);
        self.free -= part;
        let (state, polled) = match permits - part {
            0 => (State::Done, Poll::Ready(true)),
            needed => (State::Waiting { needed }, Poll::Pending),
        };
        self.futures.push((permits, state, 0));
        polled
    }

    fn poll(&mut self, at: usize) -> Poll<bool> {
        let (permits, state, _) = self.futures[at];
        if let State::Waiting { .. } = state {
            return Poll::Pending;
        }
        self.futures[at].1 = State::Done;
        match state {
            State::Refused => Poll::Ready(false),
            State::Served if self.is_closed => {
                self.release(permits);
                Poll::Ready(false)
            }
            _ => Poll::Ready(true),
        }
    }

    fn drop(&mut self, at: usize) {
        let (permits, state, _) = self.futures[at];
        self.futures[at].1 = State::Done;
        match state {
            State::Waiting { needed } => self.release(permits - needed),
            State::Served => self.release(permits),
            State::Refused | State::Done => {}
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        for at in 0..self.futures.len() {
            let (permits, State::Waiting { needed }, _) = self.futures[at] else {
                continue;
            };
            self.futures[at].1 = State::Refused;
            self.futures[at].2 += 1;
            // It gives its part back when it is told; here that is at once, see `run`.
            self.free += permits - needed;
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..6usize;
    let permits = 0..5usize;
    prop_oneof![
        60 => permits.clone().prop_map(Step::Acquire),
        40 => at.clone().prop_map(Step::Poll),
        30 => at.prop_map(Step::Drop),
        60 => permits.clone().prop_map(Step::Release),
        20 => permits.clone().prop_map(Step::TryAcquire),
        10 => permits.prop_map(Step::Forget),
        2 => Just(Step::Close),
    ]
}

fn is_ok<T, E>(polled: Poll<Result<T, E>>) -> Poll<bool> {
    polled.map(|result| result.is_ok())
}

fn run(permits: usize, steps: &[Step]) {
    let semaphore = Semaphore::new(permits);
    let mut futures: Vec<Option<Polled<Acquire<'_>>>> = Vec::new();
    let mut model = Model {
        free: permits,
        ..Model::default()
    };
    for step in steps {
        // A step on a future is one on the youngest six.
        let count = futures.len();
        let index = |at: usize| count.checked_sub(at + 1);
        match *step {
            Step::Acquire(permits) => {
                let mut future = polled(semaphore.acquire(permits, WaitReason::SemaphoreAcquire));
                let polled = is_ok(future.poll());
                assert_eq!(polled, model.acquire(permits));
                futures.push(polled.is_pending().then_some(future));
            }
            Step::Poll(at) => {
                let Some(at) = index(at) else { continue };
                if let Some(future) = &mut futures[at] {
                    let polled = is_ok(future.poll());
                    assert_eq!(polled, model.poll(at));
                    if polled.is_ready() {
                        futures[at] = None;
                    }
                }
            }
            Step::Drop(at) => {
                let Some(at) = index(at) else { continue };
                if futures[at].take().is_some() {
                    model.drop(at);
                }
            }
            Step::Release(permits) => {
                semaphore.release(permits);
                model.release(permits);
            }
            Step::TryAcquire(permits) => {
                let expected = match model.free >= permits {
                    _ if model.is_closed => Err(TryAcquireError::Closed),
                    true => Ok(()),
                    false => Err(TryAcquireError::NoPermits),
                };
                if expected.is_ok() {
                    model.free -= permits;
                }
                assert_eq!(semaphore.try_acquire(permits), expected);
            }
            Step::Forget(permits) => {
                let forgotten = permits.min(model.free);
                model.free -= forgotten;
                assert_eq!(semaphore.forget_permits(permits), forgotten);
            }
            Step::Close => {
                semaphore.close();
                model.close();
                for (at, future) in futures.iter_mut().enumerate() {
                    if let (State::Refused, Some(waiter)) = (model.futures[at].1, &mut *future) {
                        assert_eq!(is_ok(waiter.poll()), Poll::Ready(false));
                        assert_eq!(waiter.woken(), model.futures[at].2);
                        *future = None;
                    }
                }
            }
        }
        assert_eq!(semaphore.available_permits(), model.free);
        assert_eq!(semaphore.is_closed(), model.is_closed);
        for (future, (_, _, woken)) in futures.iter().zip(&model.futures) {
            assert!(
                future
                    .as_ref()
                    .is_none_or(|future| future.woken() == *woken)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn random_programs(permits in 0..8usize, steps in prop::collection::vec(step(), 0..100)) {
        run(permits, &steps);
    }
}
