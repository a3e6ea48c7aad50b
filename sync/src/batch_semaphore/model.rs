//! Exhaustive models. Each says which bug it would find.

use std::pin::pin;

use gmp_executor::loom::{Arc, thread};

use super::*;
use crate::primitives::UnsafeCell;
use crate::test_util::{block_on, poll_once};

const REASON: WaitReason = WaitReason::SemaphoreAcquire;

fn acquire(semaphore: &Semaphore, permits: usize) -> Result<(), AcquireError> {
    block_on(semaphore.acquire(permits, REASON))
}

/// A value that loom lets one thread at a time touch.
struct Guarded {
    semaphore: Semaphore,
    value: UnsafeCell<usize>,
}

// SAFETY: the value is touched by whoever holds the only permit; the model checks just that.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

impl Guarded {
    fn add_one(&self) {
        self.value.with_mut(|value| {
            // SAFETY: the caller holds the only permit.
            unsafe { *value += 1 }
        });
    }
}

/// Would find: permits added between the attempt and the queue, missed by the waiter; a hand-over
/// through the queue, or through the word, that does not carry what the previous holder did; a node
/// touched after its owner was told.
#[test]
fn model_one_permit_is_a_lock() {
    loom::model(|| {
        let shared = Arc::new(Guarded {
            semaphore: Semaphore::new(1),
            value: UnsafeCell::new(0),
        });
        let other = shared.clone();
        let thread = thread::spawn(move || {
            acquire(&other.semaphore, 1).unwrap();
            other.add_one();
            other.semaphore.release(1);
        });
        acquire(&shared.semaphore, 1).unwrap();
        shared.add_one();
        shared.semaphore.release(1);
        thread.join().unwrap();
        assert_eq!(shared.semaphore.available_permits(), 1);
        shared.value.with(|value| {
            // SAFETY: nobody else is left.
            assert_eq!(unsafe { *value }, 2);
        });
    });
}

/// Would find: a waiter that looks before it is woken, and sees that it was served but not what the
/// releaser did, or goes while the releaser still has its node.
///
/// The waiter's look is on the other thread because loom does not try every order on its own.
#[test]
fn model_served_before_it_is_woken() {
    loom::model(|| {
        let shared: &'static Guarded = Box::leak(Box::new(Guarded {
            semaphore: Semaphore::new(0),
            value: UnsafeCell::new(0),
        }));
        let mut waiter = Box::pin(shared.semaphore.acquire(1, REASON));
        assert!(poll_once(waiter.as_mut()).is_pending());
        // With somebody behind it in the queue nothing but `needed` tells it.
        let mut behind = Box::pin(shared.semaphore.acquire(1, REASON));
        assert!(poll_once(behind.as_mut()).is_pending());
        let thread = thread::spawn(move || {
            if poll_once(waiter.as_mut()).is_ready() {
                shared.add_one();
            }
        });
        shared.add_one();
        shared.semaphore.release(1);
        thread.join().unwrap();
    });
}

/// Would find: the same among three, where a waiter queues behind another one.
#[test]
fn model_three_contend() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let shared = Arc::new(Guarded {
            semaphore: Semaphore::new(1),
            value: UnsafeCell::new(0),
        });
        let threads = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || {
                acquire(&shared.semaphore, 1).unwrap();
                shared.add_one();
                shared.semaphore.release(1);
            })
        });
        acquire(&shared.semaphore, 1).unwrap();
        shared.add_one();
        shared.semaphore.release(1);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.semaphore.available_permits(), 1);
    });
}

/// Would find: permits lost or doubled when a waiter takes what there is and gets the rest in two
/// pieces from two releases.
#[test]
fn model_assigned_in_pieces() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let threads = [(); 2].map(|()| {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.release(1))
        });
        acquire(&semaphore, 3).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), 0);
    });
}

/// Would find: a permit assigned to a waiter that is being dropped, and lost with it; the next
/// waiter not told of it.
#[test]
fn model_cancel_against_release() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let canceller = {
            let semaphore = semaphore.clone();
            thread::spawn(move || {
                let mut acquire = pin!(semaphore.acquire(1, REASON));
                poll_once(acquire.as_mut()).is_ready()
            })
        };
        let releaser = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.release(2))
        };
        // One of the two permits is left in any case.
        acquire(&semaphore, 1).unwrap();
        let taken = canceller.join().unwrap();
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits(), usize::from(!taken));
    });
}

/// Would find: permits lost when a waiter that holds a part of what it needs is dropped while
/// another part arrives.
#[test]
fn model_cancel_of_a_partly_served() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let releaser = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.release(1))
        };
        let taken = {
            let mut acquire = pin!(semaphore.acquire(2, REASON));
            poll_once(acquire.as_mut()).is_ready()
        };
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits(), if taken { 0 } else { 2 });
    });
}

/// Would find: a waiter that joins while the semaphore is closed and is never woken.
#[test]
fn model_close_against_acquire() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let closer = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.close())
        };
        assert!(acquire(&semaphore, 1).is_err());
        closer.join().unwrap();
    });
}

/// Would find: a close and a release that disagree about who unlinks a waiter, or permits that
/// vanish in the middle.
#[test]
fn model_close_against_release() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let closer = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.close())
        };
        let releaser = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.release(1))
        };
        let acquired = acquire(&semaphore, 1).is_ok();
        closer.join().unwrap();
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits(), usize::from(!acquired));
    });
}

/// Would find: a barging `try_acquire`, or `forget_permits`, that loses permits between the word
/// and the queue.
#[test]
fn model_try_acquire_and_forget() {
    loom::model(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let forgetter = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.forget_permits(1))
        };
        let releaser = {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.release(2))
        };
        let taken = usize::from(semaphore.try_acquire(1).is_ok());
        let forgotten = forgetter.join().unwrap();
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits() + taken + forgotten, 3);
    });
}

/// Would find: waiters beyond the first batch of wakers that are never woken (a batch is two here).
#[test]
fn model_more_waiters_than_a_batch() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let threads = [(); 3].map(|()| {
            let semaphore = semaphore.clone();
            thread::spawn(move || acquire(&semaphore, 1).unwrap())
        });
        semaphore.release(3);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), 0);
    });
}
