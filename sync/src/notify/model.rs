//! Exhaustive models. Each says which bug it would find. A batch of wakers is two here.

use std::pin::pin;

use super::*;
use crate::primitives::UnsafeCell;
use crate::test_util::{block_on, poll_once};
use gmp_executor::loom::thread;

/// A value handed over by a notification: loom checks that the hand-over orders both sides.
struct Handed {
    notify: Notify,
    value: UnsafeCell<u32>,
}

// SAFETY: written before the notification, read after it; the model checks just that.
unsafe impl Sync for Handed {}
// SAFETY: as above.
unsafe impl Send for Handed {}

impl Handed {
    fn new() -> loom::sync::Arc<Handed> {
        loom::sync::Arc::new(Handed {
            notify: Notify::new(),
            value: UnsafeCell::new(0),
        })
    }

    fn write(&self) {
        self.value.with_mut(|value| {
            // SAFETY: nobody reads before the notification.
            unsafe { *value = 1 }
        });
    }

    fn read(&self) -> u32 {
        self.value.with(|value| {
            // SAFETY: nobody writes after the notification.
            unsafe { *value }
        })
    }
}

/// Would find: a notification between the look at the permit and the queue that is lost; a hand-over
/// that does not order; a node touched after its owner was told.
#[test]
fn model_notify_one_hands_over() {
    loom::model(|| {
        let shared = Handed::new();
        let other = shared.clone();
        let notifier = thread::spawn(move || {
            other.write();
            other.notify.notify_one();
        });
        block_on(shared.notify.notified());
        assert_eq!(shared.read(), 1);
        notifier.join().unwrap();
    });
}

/// Would find: the same for `notify_waiters`, with one future that is linked and one never polled.
#[test]
fn model_notify_waiters_hands_over() {
    loom::model(|| {
        let shared = Handed::new();
        let mut linked = Box::pin(shared.notify.notified());
        let fresh = shared.notify.notified();
        assert!(poll_once(linked.as_mut()).is_pending());
        let other = shared.clone();
        let notifier = thread::spawn(move || {
            other.write();
            other.notify.notify_waiters();
        });
        block_on(fresh);
        assert_eq!(shared.read(), 1);
        block_on(linked);
        notifier.join().unwrap();
    });
}

/// Would find: a `notify_one` that chose a future which is being dropped, and was lost with it.
#[test]
fn model_notify_one_against_drop() {
    loom::model(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let dropper = {
            let notify = notify.clone();
            thread::spawn(move || {
                let mut notified = pin!(notify.notified());
                poll_once(notified.as_mut()).is_ready()
            })
        };
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_one())
        };
        let took = dropper.join().unwrap();
        notifier.join().unwrap();
        // Either the future took it, or it is still there.
        let mut notified = pin!(notify.notified());
        assert_eq!(poll_once(notified.as_mut()).is_ready(), !took);
    });
}

/// Would find: the same with somebody else in the queue, who must get it.
#[test]
fn model_dropped_notification_goes_on() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let mut first = Box::pin(notify.notified());
        assert!(poll_once(first.as_mut()).is_pending());
        let waiter = {
            let notify = notify.clone();
            thread::spawn(move || block_on(notify.notified()))
        };
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_one())
        };
        drop(first);
        waiter.join().unwrap();
        notifier.join().unwrap();
    });
}

/// Would find: an `enable` that is told nothing and whose notification becomes a permit all the same,
/// or the reverse.
#[test]
fn model_notify_one_against_enable() {
    loom::model(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_one())
        };
        let mut notified = Box::pin(notify.notified());
        notified.as_mut().enable();
        block_on(notified);
        notifier.join().unwrap();
        let mut next = pin!(notify.notified());
        assert!(poll_once(next.as_mut()).is_pending());
    });
}

/// Would find: a future made before `notify_waiters` that misses it, or one that is notified twice.
#[test]
fn model_notify_waiters_against_enable() {
    loom::model(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let mut notified = Box::pin(notify.notified());
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_waiters())
        };
        notified.as_mut().enable();
        block_on(notified);
        notifier.join().unwrap();
        let mut next = pin!(notify.notified());
        assert!(poll_once(next.as_mut()).is_pending());
    });
}

/// Would find: a future dropped while its ring is being drained, with dangling neighbours or a
/// notification after its death.
#[test]
fn model_notify_waiters_against_drop() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        // One more than two batches.
        let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(notify.notified())).collect();
        for notified in &mut waiting {
            assert!(poll_once(notified.as_mut()).is_pending());
        }
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_waiters())
        };
        drop(waiting.remove(4));
        drop(waiting.remove(2));
        drop(waiting.remove(0));
        for notified in waiting {
            block_on(notified);
        }
        notifier.join().unwrap();
    });
}

/// Would find: a `notify_waiters` that is not seen as one step: one future sees it, another made
/// before does not, be it in another batch.
#[test]
fn model_notify_waiters_is_one_step() {
    for polled in [[false, false], [true, false], [false, true], [true, true]] {
        loom::model(move || {
            let notify = loom::sync::Arc::new(Notify::new());
            let mut futures = [(); 5].map(|()| Box::pin(notify.notified()));
            let polled = [polled[0], true, true, true, polled[1]];
            for (future, polled) in futures.iter_mut().zip(polled) {
                if polled {
                    assert!(poll_once(future.as_mut()).is_pending());
                }
            }
            let notifier = {
                let notify = notify.clone();
                thread::spawn(move || notify.notify_waiters())
            };
            let [first, .., last] = futures.each_mut();
            let first = poll_once(first.as_mut());
            let last = poll_once(last.as_mut());
            assert!(first.is_pending() || last.is_ready());
            notifier.join().unwrap();
        });
    }
}

/// Would find: a `notify_one` after a `notify_waiters` under way that goes to an old waiter.
#[test]
fn model_notify_one_during_notify_waiters() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let mut old: Vec<_> = (0..4).map(|_| Box::pin(notify.notified())).collect();
        for notified in &mut old {
            assert!(poll_once(notified.as_mut()).is_pending());
        }
        let notifier = {
            let notify = notify.clone();
            thread::spawn(move || notify.notify_waiters())
        };
        block_on(old.remove(0));
        let mut new = pin!(notify.notified());
        assert!(poll_once(new.as_mut()).is_pending());
        notify.notify_one();
        assert!(poll_once(new.as_mut()).is_ready());
        notifier.join().unwrap();
    });
}

/// Would find: a permit lost or doubled between two that notify and two that wait.
#[test]
fn model_two_by_two() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let notify = loom::sync::Arc::new(Notify::new());
        let threads = [(); 2].map(|()| {
            let notify = notify.clone();
            thread::spawn(move || {
                block_on(notify.notified());
                notify.notify_one();
            })
        });
        notify.notify_one();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut left = pin!(notify.notified());
        assert!(poll_once(left.as_mut()).is_ready());
    });
}
