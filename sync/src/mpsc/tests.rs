//! What the channels promise, step by step. The rest is in the files beside this one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use super::bounded::channel_from;
use super::error::{SendError, TryRecvError, TrySendError};
use super::unbounded::unbounded_channel_from;
use super::*;
use crate::test_util::{panicking_waker, polled};

mod capacity;
mod closing;
mod random;
mod threads;
mod waking;

/// Counts how many of its kind are alive.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn messages_arrive_in_order() {
    let (sender, mut receiver) = channel(1000);
    for value in 0..1000 {
        sender.try_send(value).unwrap();
    }
    drop(sender);
    for value in 0..1000 {
        assert_eq!(polled(receiver.recv()).ready(), Some(value));
    }
    assert_eq!(polled(receiver.recv()).ready(), None);
    assert_eq!(polled(receiver.recv()).ready(), None, "and it stays so");

    let (sender, mut receiver) = unbounded_channel();
    for value in 0..1000 {
        sender.send(value).unwrap();
    }
    drop(sender);
    for value in 0..1000 {
        assert_eq!(receiver.try_recv(), Ok(value));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn positions_wrap_without_anybody_noticing() {
    for before_the_wrap in [0, 1, 5, 31, 32, 33, 64] {
        let position = (1 << 31) - before_the_wrap;
        let (sender, mut receiver) = channel_from(3, position & ((1 << 31) - 1));
        for round in 0..200 {
            for value in 0..3 {
                sender.try_send((round, value)).unwrap();
            }
            assert_eq!(sender.capacity(), 0);
            assert_eq!(receiver.len(), 3);
            assert!(sender.try_send((0, 0)).is_err());
            for value in 0..3 {
                assert_eq!(receiver.try_recv(), Ok((round, value)));
            }
            assert_eq!(receiver.capacity(), 3);
        }
        drop(sender);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));

        let position = (1 << 62) - before_the_wrap;
        let (sender, mut receiver) = unbounded_channel_from(position & ((1 << 62) - 1));
        for value in 0..200 {
            sender.send(value).unwrap();
        }
        assert_eq!(receiver.len(), 200);
        for value in 0..200 {
            assert_eq!(receiver.try_recv(), Ok(value));
        }
        receiver.close();
        assert_eq!(sender.send(0), Err(SendError(0)));
        assert_eq!(polled(receiver.recv()).ready(), None);
    }
}

#[test]
fn recv_many_takes_what_is_there_up_to_the_limit() {
    let (sender, mut receiver) = channel(100);
    let mut buffer = vec![99];
    polled(receiver.recv_many(&mut buffer, 2)).pending();
    for value in 0..5 {
        sender.try_send(value).unwrap();
    }
    assert_eq!(sender.capacity(), 95);
    assert_eq!(polled(receiver.recv_many(&mut buffer, 0)).ready(), 0);
    assert_eq!(polled(receiver.recv_many(&mut buffer, 3)).ready(), 3);
    assert_eq!(sender.capacity(), 98);
    assert_eq!(polled(receiver.recv_many(&mut buffer, 3)).ready(), 2);
    assert_eq!(buffer, [99, 0, 1, 2, 3, 4]);
    sender.try_send(5).unwrap();
    drop(sender);
    assert_eq!(polled(receiver.recv_many(&mut buffer, 3)).ready(), 1);
    assert_eq!(polled(receiver.recv_many(&mut buffer, 3)).ready(), 0);
    assert_eq!(buffer.len(), 7);

    let (sender, mut receiver) = unbounded_channel();
    for value in 0..100 {
        sender.send(value).unwrap();
    }
    let mut buffer = Vec::new();
    assert_eq!(
        polled(receiver.recv_many(&mut buffer, usize::MAX)).ready(),
        100
    );
    assert!(buffer.into_iter().eq(0..100));
}

#[test]
fn recv_many_without_a_limit_is_ready_at_once() {
    let (_sender, mut receiver) = channel::<()>(1);
    assert_eq!(polled(receiver.recv_many(&mut Vec::new(), 0)).ready(), 0);
}

#[test]
fn messages_that_nobody_took_are_dropped_with_the_receiver() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(100);
    for _ in 0..70 {
        sender.try_send(Counted::new(&alive)).unwrap();
    }
    drop(receiver);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert!(sender.try_send(Counted::new(&alive)).is_err());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert_eq!(sender.capacity(), 100);

    let (sender, receiver) = unbounded_channel();
    for _ in 0..70 {
        sender.send(Counted::new(&alive)).unwrap();
    }
    drop(receiver);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn messages_are_dropped_in_the_order_they_were_sent() {
    struct Noted(usize, Arc<parking_lot::Mutex<Vec<usize>>>);
    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().push(self.0);
        }
    }
    let noted = Arc::default();
    let (sender, receiver) = unbounded_channel();
    for number in 0..40 {
        sender.send(Noted(number, Arc::clone(&noted))).ok().unwrap();
    }
    drop(receiver);
    assert!(noted.lock().iter().copied().eq(0..40));
}

#[test]
fn a_permit_used_after_the_receiver_has_gone() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(2);
    let permit = sender.try_reserve().unwrap();
    drop(receiver);
    permit.send(Counted::new(&alive));
    assert_eq!(
        alive.load(Ordering::SeqCst),
        1,
        "kept until the channel goes"
    );
    drop(sender);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_in_a_destructor_does_not_keep_the_rest() {
    struct Panics(#[allow(dead_code)] Counted, bool);
    impl Drop for Panics {
        fn drop(&mut self) {
            if self.1 {
                panic!("the destructor panics");
            }
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = unbounded_channel();
    for number in 0..50 {
        sender
            .send(Panics(Counted::new(&alive), number == 3))
            .ok()
            .unwrap();
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(alive.load(Ordering::SeqCst), 0);

    // The same when the channel itself is dropped, with what came late.
    let (sender, receiver) = channel(2);
    let permits: Vec<_> = (0..2)
        .map(|_| sender.clone().try_reserve_owned().unwrap())
        .collect();
    drop((receiver, sender));
    let mut senders = Vec::new();
    for (number, permit) in permits.into_iter().enumerate() {
        senders.push(permit.send(Panics(Counted::new(&alive), number == 0)));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(senders))).is_err());
}

#[test]
fn a_message_may_hold_a_sender_of_its_channel() {
    struct Knot(#[allow(dead_code)] UnboundedSender<Knot>);
    let (sender, receiver) = unbounded_channel();
    sender.send(Knot(sender.clone())).ok().unwrap();
    let weak = sender.downgrade();
    drop(sender);
    assert_eq!(weak.strong_count(), 1);
    drop(receiver);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
fn counts_of_senders() {
    let (sender, receiver) = channel::<()>(1);
    let other = sender.clone();
    let weak = sender.downgrade();
    let weak = (weak.clone(), weak);
    assert_eq!((sender.strong_count(), sender.weak_count()), (2, 2));
    assert_eq!((weak.0.strong_count(), weak.0.weak_count()), (2, 2));
    drop(other);
    drop(weak.1);
    assert_eq!(receiver.sender_strong_count(), 1);
    assert_eq!(receiver.sender_weak_count(), 1);
    let upgraded = weak.0.upgrade().unwrap();
    assert!(upgraded.same_channel(&sender));
    drop((sender, upgraded));
    assert!(weak.0.upgrade().is_none());
    assert_eq!(receiver.sender_strong_count(), 0);
    assert!(receiver.is_closed());

    let (sender, receiver) = unbounded_channel::<()>();
    let weak = sender.downgrade();
    let other = weak.clone();
    assert_eq!((sender.strong_count(), sender.weak_count()), (1, 2));
    assert_eq!((other.strong_count(), other.weak_count()), (1, 2));
    assert!(weak.upgrade().unwrap().same_channel(&sender));
    assert!(!unbounded_channel().0.same_channel(&sender));
    drop((sender, other));
    assert!(weak.upgrade().is_none());
    assert_eq!(receiver.sender_strong_count(), 0);
    assert_eq!(receiver.sender_weak_count(), 1);
}

#[test]
fn lengths() {
    let (sender, mut receiver) = channel(40);
    assert!(receiver.is_empty());
    for length in 1..=40 {
        sender.try_send(()).unwrap();
        assert_eq!(receiver.len(), length);
        assert!(!receiver.is_empty());
    }
    drop(sender);
    assert_eq!(receiver.len(), 40, "the end is no message");
    while receiver.try_recv().is_ok() {}
    assert_eq!((receiver.len(), receiver.is_empty()), (0, true));

    let (sender, mut receiver) = unbounded_channel();
    sender.send(1).unwrap();
    receiver.close();
    for _ in 0..3 {
        assert!(sender.send(2).is_err());
    }
    assert_eq!(receiver.len(), 1, "what was refused is no message");
    drop(sender);
    assert_eq!(receiver.len(), 1);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(receiver.is_empty());
}

#[test]
fn large_messages() {
    let (sender, mut receiver) = channel(2);
    sender.try_send([7_u8; 100_000]).unwrap();
    assert!(receiver.try_recv().unwrap().iter().all(|byte| *byte == 7));
    let (sender, mut receiver) = unbounded_channel();
    for _ in 0..100 {
        sender.send(()).unwrap();
    }
    assert_eq!(receiver.len(), 100);
    assert_eq!(receiver.try_recv(), Ok(()));
}

#[test]
fn what_errors_say() {
    let error = SendError(7);
    assert_eq!(error.to_string(), "channel closed");
    assert_eq!(format!("{error:?}"), "SendError { .. }");
    assert_eq!(TrySendError::from(error), TrySendError::Closed(7));
    let full = TrySendError::Full(8);
    assert_eq!(full.to_string(), "no available capacity");
    assert_eq!(format!("{full:?}"), "Full(..)");
    assert_eq!(full.into_inner(), 8);
    let closed = TrySendError::Closed(9);
    assert_eq!(closed.to_string(), "channel closed");
    assert_eq!(format!("{closed:?}"), "Closed(..)");
    assert_eq!(closed.into_inner(), 9);
    assert_eq!(
        TryRecvError::Empty.to_string(),
        "receiving on an empty channel"
    );
    assert_eq!(
        TryRecvError::Disconnected.to_string(),
        "receiving on a closed channel"
    );
    let timeout = error::SendTimeoutError::Timeout(1);
    assert_eq!(timeout.to_string(), "timed out waiting on send operation");
    assert_eq!(format!("{timeout:?}"), "Timeout(..)");
    assert_eq!(timeout.into_inner(), 1);
    let closed = error::SendTimeoutError::Closed(2);
    assert_eq!(closed.to_string(), "channel closed");
    assert_eq!(format!("{closed:?}"), "Closed(..)");
    assert_eq!(closed.into_inner(), 2);
}

#[test]
fn everything_can_be_printed() {
    struct Plain;
    let (sender, receiver) = channel::<Plain>(3);
    let permit = sender.try_reserve().unwrap();
    let permits = sender.try_reserve_many(1).unwrap();
    let owned = sender.clone().try_reserve_owned().unwrap();
    for text in [
        format!("{sender:?}"),
        format!("{receiver:?}"),
        format!("{permit:?}"),
        format!("{permits:?}"),
        format!("{owned:?}"),
    ] {
        assert!(text.contains("available: 0"), "{text}");
    }
    assert_eq!(format!("{:?}", sender.downgrade()), "WeakSender");
    let (sender, receiver) = unbounded_channel::<Plain>();
    assert!(format!("{sender:?}{receiver:?}").contains("closed: false"));
    assert_eq!(format!("{:?}", sender.downgrade()), "WeakUnboundedSender");
}

/// A panic of the receiver's waker reaches whoever sends, but neither the message nor its capacity is lost.
#[test]
fn a_waker_that_panics_loses_nothing() {
    let waker = panicking_waker();
    let (sender, mut receiver) = channel(1);
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(receiver.poll_recv(&mut cx).is_pending());
    let permit = sender.try_reserve().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| permit.send(7))).is_err());
    assert_eq!((sender.capacity(), receiver.len()), (0, 1));
    assert_eq!(receiver.try_recv(), Ok(7));
    assert_eq!(sender.capacity(), 1);
    assert!(matches!(polled(receiver.recv()).poll(), Poll::Pending));
}
