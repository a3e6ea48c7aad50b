//! How a channel ends.

use super::*;

#[test]
fn the_last_sender_wakes_the_receiver() {
    let (sender, mut receiver) = channel::<()>(1);
    let other = sender.clone();
    let mut recv = polled(receiver.recv());
    recv.pending();
    drop(sender);
    assert_eq!(recv.woken(), 0);
    drop(other);
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), None);

    let (sender, mut receiver) = unbounded_channel::<()>();
    let mut recv = polled(receiver.recv());
    recv.pending();
    drop(sender);
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), None);
}

#[test]
fn the_end_at_every_place_in_a_block() {
    for messages in 0..100 {
        let (sender, mut receiver) = unbounded_channel();
        for value in 0..messages {
            sender.send(value).unwrap();
            assert_eq!(receiver.try_recv(), Ok(value));
        }
        let mut recv = polled(receiver.recv());
        recv.pending();
        drop(sender);
        assert_eq!(recv.woken(), 1, "after {messages} messages");
        assert_eq!(recv.ready(), None);
    }
}

#[test]
fn close_refuses_what_comes_and_keeps_what_is_there() {
    let (sender, mut receiver) = channel(3);
    sender.try_send(1).unwrap();
    let permit = sender.try_reserve().unwrap();
    receiver.close();
    receiver.close();
    assert!(receiver.is_closed() && sender.is_closed());
    assert_eq!(sender.try_send(2), Err(TrySendError::Closed(2)));
    assert_eq!(polled(sender.send(2)).ready(), Err(SendError(2)));
    assert!(polled(sender.reserve()).ready().is_err());
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Closed(()));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(
        receiver.try_recv(),
        Err(TryRecvError::Empty),
        "a permit is out"
    );
    let mut recv = polled(receiver.recv());
    recv.pending();
    permit.send(3);
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), Some(3));
    drop(recv);
    assert_eq!(polled(receiver.recv()).ready(), None);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));

    let (sender, mut receiver) = unbounded_channel();
    sender.send(1).unwrap();
    receiver.close();
    assert!(receiver.is_closed() && sender.is_closed());
    assert_eq!(sender.send(2), Err(SendError(2)));
    assert_eq!(polled(receiver.recv()).ready(), Some(1));
    assert_eq!(polled(receiver.recv()).ready(), None);
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_channel_that_only_weak_senders_know_is_closed() {
    let (sender, receiver) = channel::<()>(1);
    let weak = sender.downgrade();
    assert!(!receiver.is_closed());
    drop(sender);
    assert!(receiver.is_closed());
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_permit_keeps_the_channel_open() {
    let (sender, mut receiver) = channel::<u8>(1);
    let permit = sender.try_reserve_owned().unwrap();
    assert!(!receiver.is_closed());
    polled(receiver.recv()).pending();
    drop(permit);
    assert!(receiver.is_closed());
    assert_eq!(polled(receiver.recv()).ready(), None);
}

/// However the last permit of a closed channel comes back, the receiver learns it.
#[test]
fn the_last_permit_wakes_the_receiver_of_a_closed_channel() {
    type Back = fn(OwnedPermit<u8>);
    let ways: [(Back, Option<u8>); 3] = [
        (drop, None),
        (|permit| drop(permit.release()), None),
        (|permit| drop(permit.send(1)), Some(1)),
    ];
    for (back, received) in ways {
        let (sender, mut receiver) = channel(2);
        let permit = sender.clone().try_reserve_owned().unwrap();
        let other = sender.try_reserve().unwrap();
        receiver.close();
        let mut recv = polled(receiver.recv());
        recv.pending();
        drop(other);
        assert_eq!(recv.woken(), 0, "there is one more");
        back(permit);
        assert_eq!(recv.woken(), 1);
        assert_eq!(recv.ready(), received);
    }

    let (sender, mut receiver) = channel::<()>(3);
    let mut permits = sender.try_reserve_many(3).unwrap();
    receiver.close();
    let mut recv = polled(receiver.recv());
    recv.pending();
    drop(permits.next());
    assert_eq!(recv.woken(), 0);
    drop(permits);
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), None);
}

#[test]
fn a_message_and_a_permit_are_out_when_the_channel_is_closed() {
    let (sender, mut receiver) = channel(2);
    let permit = sender.try_reserve().unwrap();
    sender.try_send(1).unwrap();
    receiver.close();
    drop(permit);
    let mut recv = polled(receiver.recv());
    assert_eq!(recv.ready(), Some(1));
    drop(recv);
    assert_eq!(polled(receiver.recv()).ready(), None);
}

#[test]
fn close_wakes_those_who_wait_for_capacity() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut sends: Vec<_> = (1..100).map(|value| polled(sender.send(value))).collect();
    for send in &mut sends {
        send.pending();
    }
    receiver.close();
    for (number, send) in sends.iter_mut().enumerate() {
        assert_eq!(send.woken(), 1);
        assert_eq!(send.ready(), Err(SendError(number + 1)));
    }
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

/// Who was assigned capacity and not told so before the channel was closed has to give it back, and the
/// receiver waits until then.
#[test]
fn whoever_was_served_too_late_fails_and_gives_back() {
    for gives_up in [false, true] {
        let (sender, mut receiver) = channel::<()>(1);
        let permit = sender.try_reserve().unwrap();
        let mut reserve = polled(sender.reserve());
        reserve.pending();
        drop(permit);
        assert_eq!(reserve.woken(), 1);
        receiver.close();
        let mut recv = polled(receiver.recv());
        recv.pending();
        match gives_up {
            true => drop(reserve),
            false => assert!(reserve.ready().is_err()),
        }
        assert_eq!(recv.woken(), 1);
        assert_eq!(recv.ready(), None);
    }
}

#[test]
fn whoever_collected_some_gives_back() {
    for gives_up in [false, true] {
        let (sender, mut receiver) = channel::<()>(2);
        let permit = sender.try_reserve().unwrap();
        let mut reserve = polled(sender.reserve_many(2));
        reserve.pending();
        receiver.close();
        let mut recv = polled(receiver.recv());
        recv.pending();
        drop(permit);
        assert_eq!(recv.woken(), 0, "one is with the reservation");
        match gives_up {
            true => drop(reserve),
            false => assert!(reserve.ready().is_err()),
        }
        assert_eq!(recv.woken(), 1);
        assert_eq!(recv.ready(), None);
    }
}

#[test]
fn closed_completes_when_the_receiver_closes_or_goes() {
    let (sender, mut receiver) = channel::<()>(1);
    let others: Vec<_> = (0..50).map(|_| sender.clone()).collect();
    let mut closed: Vec<_> = others
        .iter()
        .map(|sender| polled(sender.closed()))
        .collect();
    for closed in &mut closed {
        closed.pending();
    }
    receiver.close();
    for closed in &mut closed {
        assert_eq!(closed.woken(), 1);
        closed.ready();
    }
    polled(sender.closed()).ready();

    let (sender, receiver) = unbounded_channel::<()>();
    let mut closed = polled(sender.closed());
    closed.pending();
    drop(receiver);
    assert_eq!(closed.woken(), 1);
    closed.ready();
    polled(sender.closed()).ready();
    assert!(sender.is_closed());
}

/// The waker of a waiting send owns a permit of the same channel, and is dropped by the close.
#[test]
fn wakers_are_dropped_outside_the_lock() {
    use std::future::Future;
    use std::task::{Context, Wake, Waker};

    struct Holds(#[allow(dead_code)] OwnedPermit<i32>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    for close in [false, true] {
        let (sender, mut receiver) = channel(2);
        let permit = sender.clone().try_reserve_owned().unwrap();
        sender.try_send(1).unwrap();
        let mut reserve = Box::pin(sender.reserve());
        let waker = Waker::from(Arc::new(Holds(permit)));
        assert!(
            reserve
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        match close {
            true => receiver.close(),
            false => drop(std::mem::replace(&mut receiver, channel(1).1)),
        }
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(
            reserve.as_mut().poll(&mut cx),
            Poll::Ready(Err(_))
        ));
    }
}
