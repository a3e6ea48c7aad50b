//! The model of a semaphore: how many permits are free, and who waits for how many more, in which order.

use std::sync::Arc;
use std::task::Poll;

use gmp_sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire(u32),
    Poll(usize),
    PollAsAnother(usize),
    GiveUp(usize),
    TryAcquire(u32),
    Release(usize),
    Forget(usize),
    Split(usize, usize),
    Merge(usize, usize),
    AddPermits(usize),
    ForgetPermits(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    prop_oneof![
        60 => (0..5_u32).prop_map(Step::Acquire),
        40 => at().prop_map(Step::Poll),
        10 => at().prop_map(Step::PollAsAnother),
        20 => at().prop_map(Step::GiveUp),
        20 => (0..5_u32).prop_map(Step::TryAcquire),
        50 => at().prop_map(Step::Release),
        5 => at().prop_map(Step::Forget),
        20 => (at(), 0..5_usize).prop_map(|(at, permits)| Step::Split(at, permits)),
        10 => (at(), at()).prop_map(|(at, other)| Step::Merge(at, other)),
        10 => (0..4_usize).prop_map(Step::AddPermits),
        10 => (0..4_usize).prop_map(Step::ForgetPermits),
        2 => Just(Step::Close),
    ]
}

struct Waiter {
    future: Waiting<Result<OwnedSemaphorePermit, AcquireError>>,
    asked: usize,
    /// What it has been given so far: all that it asked for once it was woken, unless it was closed out.
    given: usize,
}

impl Waiter {
    fn is_served(&self) -> bool {
        self.given == self.asked
    }
}

struct World {
    semaphore: Arc<Semaphore>,
    free: usize,
    is_closed: bool,
    waiters: Vec<Waiter>,
    permits: Vec<OwnedSemaphorePermit>,
}

impl World {
    fn new(permits: usize) -> World {
        World {
            semaphore: Arc::new(Semaphore::new(permits)),
            free: permits,
            is_closed: false,
            waiters: Vec::new(),
            permits: Vec::new(),
        }
    }

    /// Permits go to the oldest who waits until it has all that it asked for, then to the next.
    fn release(&mut self, mut permits: usize) {
        let waiting = self.waiters.iter_mut().filter(|waiter| !waiter.is_served());
        for waiter in waiting.take_while(|_| !self.is_closed) {
            let part = permits.min(waiter.asked - waiter.given);
            permits -= part;
            waiter.given += part;
            if !waiter.is_served() {
                return;
            }
            waiter.future.waking.wake();
        }
        self.free += permits;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Acquire(count) => self.acquire(count),
            Step::Poll(number) | Step::PollAsAnother(number) => {
                if let Some(at) = pick(number, self.waiters.len()) {
                    self.poll(at, matches!(step, Step::PollAsAnother(_)));
                }
            }
            Step::GiveUp(number) => {
                if let Some(at) = pick(number, self.waiters.len()) {
                    let Waiter { future, given, .. } = self.waiters.remove(at);
                    drop(future);
                    self.release(given);
                }
            }
            Step::TryAcquire(count) => self.try_acquire(count),
            Step::AddPermits(count) => {
                self.semaphore.add_permits(count);
                self.release(count);
            }
            Step::ForgetPermits(count) => {
                let forgotten = count.min(self.free);
                self.free -= forgotten;
                assert_eq!(self.semaphore.forget_permits(count), forgotten);
            }
            Step::Close => {
                self.semaphore.close();
                if !self.is_closed {
                    self.is_closed = true;
                    self.waiters
                        .iter_mut()
                        .for_each(|waiter| waiter.future.waking.wake());
                }
            }
            Step::Release(number)
            | Step::Forget(number)
            | Step::Split(number, _)
            | Step::Merge(number, _) => {
                if let Some(at) = pick(number, self.permits.len()) {
                    self.use_permit(at, step);
                }
            }
        }
        assert_eq!(self.semaphore.available_permits(), self.free);
        assert_eq!(self.semaphore.is_closed(), self.is_closed);
        self.waiters
            .iter()
            .for_each(|waiter| waiter.future.waking.check());
    }

    fn acquire(&mut self, count: u32) {
        let acquire = self.semaphore.clone().acquire_many_owned(count);
        let mut future = Waiting::new(acquire);
        let polled = future.poll();
        let asked = count as usize;
        match polled {
            Poll::Ready(Err(_)) => assert!(self.is_closed),
            Poll::Ready(Ok(permit)) => {
                assert!(!self.is_closed && self.free >= asked);
                self.free -= asked;
                self.permits.push(permit);
            }
            Poll::Pending => {
                assert!(!self.is_closed && self.free < asked);
                let given = std::mem::take(&mut self.free);
                self.waiters.push(Waiter {
                    future,
                    asked,
                    given,
                });
            }
        }
    }

    fn poll(&mut self, at: usize, as_another: bool) {
        let waiter = &mut self.waiters[at];
        let polled = match as_another {
            false => waiter.future.poll(),
            true => waiter.future.poll_as_another(),
        };
        match polled {
            Poll::Pending => assert!(!self.is_closed && !waiter.is_served()),
            Poll::Ready(Ok(permit)) => {
                assert!(!self.is_closed && waiter.is_served());
                assert_eq!(permit.num_permits(), waiter.asked);
                self.permits.push(permit);
                self.waiters.remove(at);
            }
            Poll::Ready(Err(_)) => {
                assert!(self.is_closed);
                let given = self.waiters.remove(at).given;
                self.release(given);
            }
        }
    }

    fn try_acquire(&mut self, count: u32) {
        let asked = count as usize;
        match self.semaphore.clone().try_acquire_many_owned(count) {
            Ok(permit) => {
                assert!(!self.is_closed && self.free >= asked);
                self.free -= asked;
                self.permits.push(permit);
            }
            Err(TryAcquireError::Closed) => assert!(self.is_closed),
            Err(TryAcquireError::NoPermits) => assert!(!self.is_closed && self.free < asked),
        }
    }

    fn use_permit(&mut self, at: usize, step: Step) {
        match step {
            Step::Release(_) => {
                let permit = self.permits.swap_remove(at);
                let count = permit.num_permits();
                drop(permit);
                self.release(count);
            }
            Step::Forget(_) => self.permits.swap_remove(at).forget(),
            Step::Split(_, count) => {
                let held = self.permits[at].num_permits();
                match self.permits[at].split(count) {
                    None => assert!(count > held),
                    Some(part) => {
                        assert_eq!(part.num_permits(), count);
                        assert_eq!(self.permits[at].num_permits(), held - count);
                        self.permits.push(part);
                    }
                }
            }
            Step::Merge(_, other) => {
                let permit = self.permits.swap_remove(at);
                if let Some(other) = pick(other, self.permits.len()) {
                    let sum = permit.num_permits() + self.permits[other].num_permits();
                    self.permits[other].merge(permit);
                    assert_eq!(self.permits[other].num_permits(), sum);
                } else {
                    self.permits.push(permit);
                }
            }
            _ => unreachable!("not a use of a permit"),
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_semaphore_is_a_count_and_a_queue(permits in 0..8_usize, steps in vec(step(), 0..120)) {
        let mut world = World::new(permits);
        for step in steps {
            world.step(step);
        }
    }
}
