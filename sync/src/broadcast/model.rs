//! Exhaustive models. Each says which bug it would find. A batch of wakers is two here, and nobody spins.

use std::pin::pin;

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;

use super::*;
use crate::primitives::UnsafeCell;
use crate::test_util::{block_on, poll_once};
use gmp_executor::loom::thread;

/// A value that is not `Sync`: loom checks that one thread at a time touches it, after whoever made it.
/// Counts how many of it there are.
struct Tracked {
    number: UnsafeCell<u32>,
    alive: Arc<AtomicUsize>,
}

impl Tracked {
    fn new(number: u32, alive: &Arc<AtomicUsize>) -> Tracked {
        alive.fetch_add(1, Ordering::Relaxed);
        Tracked {
            number: UnsafeCell::new(number),
            alive: alive.clone(),
        }
    }

    fn get(&self) -> u32 {
        self.number.with_mut(|number| {
            // SAFETY: whoever has the value has it alone; loom checks that.
            unsafe { *number }
        })
    }
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Tracked::new(self.get(), &self.alive)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.get();
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// With so many preemptions at most, unless the environment says otherwise.
fn bounded(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

/// Reads until the end, and returns the sum of what was read and how many were missed.
fn drain(mut receiver: Receiver<Tracked>) -> (u32, u64) {
    let (mut sum, mut missed) = (0, 0);
    loop {
        match block_on(receiver.recv()) {
            Ok(value) => sum += value.get(),
            Err(RecvError::Lagged(n)) => missed += n,
            Err(RecvError::Closed) => return (sum, missed),
        }
    }
}

/// Would find: a value sent, or an end that came, between the look at the slot and the queue, that wakes
/// nobody; a node touched after its owner was told.
#[test]
fn model_a_send_and_the_end_wake_the_receiver() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        let thread = thread::spawn(move || sender.send(7).is_ok());
        assert_eq!(block_on(receiver.recv()), Ok(7));
        assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        assert!(thread.join().unwrap());
    });
}

/// Would find: two readers in one value; a value dropped before both have read it, or kept after.
#[test]
fn model_readers_of_one_value_take_turns() {
    bounded(3, || {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, mut first) = channel(1);
        let mut second = sender.subscribe();
        assert!(sender.send(Tracked::new(7, &alive)).is_ok());
        let thread = thread::spawn(move || second.try_recv().unwrap().get());
        assert_eq!(first.try_recv().unwrap().get(), 7);
        assert_eq!(thread.join().unwrap(), 7);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Would find: a sender that fills a place that is being read; a value that is lost, read twice, or that
/// stays where it was abandoned; a position that is read from a place filled anew.
#[test]
fn model_a_sender_comes_round_while_a_value_is_read() {
    bounded(3, || {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(1);
        assert!(sender.send(Tracked::new(1, &alive)).is_ok());
        let thread = thread::spawn(move || drain(receiver));
        assert!(sender.send(Tracked::new(2, &alive)).is_ok());
        assert!(sender.send(Tracked::new(4, &alive)).is_ok());
        drop(sender);
        let (sum, missed) = thread.join().unwrap();
        assert_eq!(sum.count_ones() + missed as u32, 3);
        assert!(sum & 4 != 0, "the last value was missed");
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Would find: a reader that sleeps for ever beside one that is done, or for a value that was overwritten.
#[test]
fn model_two_readers_and_a_sender_that_comes_round() {
    bounded(2, || {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, mut first) = channel(1);
        let mut second = sender.subscribe();
        assert!(sender.send(Tracked::new(1, &alive)).is_ok());
        let threads = [
            thread::spawn(move || first.try_recv().map(|value| value.get())),
            thread::spawn(move || second.try_recv().map(|value| value.get())),
        ];
        // Refused if both have gone.
        drop(sender.send(Tracked::new(2, &alive)));
        for thread in threads {
            let read = thread.join().unwrap();
            assert!(read == Ok(1) || read == Err(TryRecvError::Lagged(1)));
        }
        // Nobody is left who could read the second.
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Would find: a receiver that counts itself out of the wrong value, twice or not at all, while the value
/// is being read and its place is wanted.
#[test]
fn model_a_receiver_goes_while_a_value_is_read() {
    bounded(2, || {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(1);
        let other = sender.subscribe();
        assert!(sender.send(Tracked::new(1, &alive)).is_ok());
        let reader = thread::spawn(move || drain(receiver));
        let leaver = thread::spawn(move || drop(other));
        assert!(sender.send(Tracked::new(2, &alive)).is_ok());
        leaver.join().unwrap();
        drop(sender);
        let (sum, missed) = reader.join().unwrap();
        assert!((sum, missed) == (3, 0) || (sum, missed) == (2, 1));
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// Would find: a future that leaves the ring of those who are being woken, or is gone before that.
#[test]
fn model_waiters_leave_while_they_are_woken() {
    bounded(3, || {
        let (sender, mut first) = channel(2);
        let mut others = [sender.subscribe(), sender.subscribe(), sender.subscribe()];
        let sending = thread::spawn(move || sender.send(7).is_ok());
        {
            let [one, two, three] = &mut others;
            let mut waits = (pin!(one.recv()), pin!(two.recv()), pin!(three.recv()));
            let _ = poll_once(waits.0.as_mut());
            let _ = poll_once(waits.1.as_mut());
            let _ = poll_once(waits.2.as_mut());
        }
        assert_eq!(block_on(first.recv()), Ok(7));
        assert!(sending.join().unwrap());
    });
}

/// Would find: a `closed` that sleeps although the last receiver has gone.
#[test]
fn model_the_last_receiver_ends_closed() {
    loom::model(|| {
        let (sender, receiver) = channel::<u32>(1);
        let thread = thread::spawn(move || drop(receiver));
        block_on(sender.closed());
        assert!(sender.send(1).is_err());
        thread.join().unwrap();
    });
}
