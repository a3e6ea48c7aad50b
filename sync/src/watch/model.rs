//! Exhaustive models. Each says which bug it would find.

use gmp_executor::loom::thread;

use super::*;
use crate::test_util::{block_on, poll_once};

/// Would find: a change between the look and the wait that wakes nobody; a version that comes before its
/// value.
#[test]
fn model_send_against_changed() {
    loom::model(|| {
        let (sender, mut receiver) = channel(0);
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender
        });
        block_on(receiver.changed()).unwrap();
        assert_eq!(*receiver.borrow(), 1);
        assert!(!receiver.has_changed().unwrap());
        drop(thread.join().unwrap());
        assert!(block_on(receiver.changed()).is_err());
    });
}

/// Would find: a version that is marked as seen with the value of another.
#[test]
fn model_two_sends_against_borrow_and_update() {
    loom::model(|| {
        let (sender, mut receiver) = channel(0);
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            sender
        });
        // Whoever has not seen the last value is told.
        let mut seen = *receiver.borrow_and_update();
        while seen < 2 {
            block_on(receiver.changed()).unwrap();
            let next = *receiver.borrow_and_update();
            assert!(next >= seen, "{next} after {seen}");
            seen = next;
        }
        let _sender = thread.join().unwrap();
        assert!(!receiver.has_changed().unwrap());
    });
}

/// Would find: the last value lost behind the end; a receiver that is not told of the end.
#[test]
fn model_last_send_and_end_against_changed() {
    loom::model(|| {
        let (sender, mut receiver) = channel(0);
        let thread = thread::spawn(move || sender.send(1).unwrap());
        block_on(receiver.changed()).unwrap();
        assert_eq!(*receiver.borrow_and_update(), 1);
        assert!(block_on(receiver.changed()).is_err());
        thread.join().unwrap();
    });
}

/// Would find: two senders that go at once, each thinking that the other is the last.
#[test]
fn model_two_senders_go() {
    loom::model(|| {
        let (sender, mut receiver) = channel(0);
        let other = sender.clone();
        let thread = thread::spawn(move || drop(other));
        drop(sender);
        assert!(block_on(receiver.changed()).is_err());
        assert!(receiver.is_closed());
        thread.join().unwrap();
    });
}

/// Would find: a value that is asked about before its change and never again.
#[test]
fn model_send_against_wait_for() {
    loom::model(|| {
        let (sender, mut receiver) = channel(0);
        let thread = thread::spawn(move || sender.send(1).unwrap());
        assert_eq!(
            *block_on(receiver.wait_for(|value| *value == 1)).unwrap(),
            1
        );
        thread.join().unwrap();
    });
}

/// Would find: a sender that waits for the receivers to go and is not told.
#[test]
fn model_closed_against_the_last_receiver() {
    loom::model(|| {
        let (sender, receiver) = channel(0);
        let other = receiver.clone();
        let thread = thread::spawn(move || drop(other));
        drop(receiver);
        block_on(sender.closed());
        assert!(sender.send(1).is_err());
        thread.join().unwrap();
    });
}

/// Would find: a value sent as a receiver subscribes that it neither has nor is told of.
#[test]
fn model_send_against_subscribe() {
    loom::model(|| {
        let (sender, _receiver) = channel(0);
        let other = sender.clone();
        let thread = thread::spawn(move || other.send(1).unwrap());
        let mut receiver = sender.subscribe();
        thread.join().unwrap();
        let value = *receiver.borrow();
        assert_eq!(value, 1);
        // Seen when it subscribed, or new: either way it is told of no more than this one.
        let _ = poll_once(std::pin::pin!(receiver.changed()));
        assert!(!receiver.has_changed().unwrap());
    });
}
