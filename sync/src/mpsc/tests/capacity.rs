//! Capacity: permits, reservations, and the queue of those who wait.

use super::*;

#[test]
#[should_panic(expected = "mpsc bounded channel requires buffer > 0")]
fn no_capacity_is_none() {
    let _ = channel::<()>(0);
}

#[test]
#[should_panic(expected = "MAX_PERMITS")]
fn too_much_capacity() {
    let _ = channel::<()>(crate::Semaphore::MAX_PERMITS + 1);
}

#[test]
fn the_largest_capacity() {
    let most = crate::Semaphore::MAX_PERMITS;
    let (sender, mut receiver) = channel(most);
    sender.try_send(1).unwrap();
    assert_eq!((sender.max_capacity(), sender.capacity()), (most, most - 1));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((receiver.max_capacity(), receiver.capacity()), (most, most));
}

#[test]
fn a_full_channel_refuses_and_makes_wait() {
    let (sender, mut receiver) = channel(1);
    assert_eq!(polled(sender.send(1)).ready(), Ok(()));
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Full(()));
    let mut send = polled(sender.send(3));
    send.pending();
    assert_eq!(send.woken(), 0);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(send.woken(), 1);
    assert_eq!(
        sender.try_send(2),
        Err(TrySendError::Full(2)),
        "it is spoken for"
    );
    assert_eq!(send.ready(), Ok(()));
    assert_eq!(receiver.try_recv(), Ok(3));
}

#[test]
fn capacity_goes_to_whoever_asked_first() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut sends: Vec<_> = (1..6).map(|value| polled(sender.send(value))).collect();
    for send in &mut sends {
        send.pending();
    }
    for (number, send) in sends.iter_mut().enumerate() {
        assert_eq!(send.woken(), 0);
        assert_eq!(receiver.try_recv(), Ok(number));
        assert_eq!(send.woken(), 1);
        assert_eq!(send.ready(), Ok(()));
    }
    assert_eq!(receiver.try_recv(), Ok(5));
}

#[test]
fn a_send_that_is_given_up_loses_its_place_and_nothing_else() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(1);
    sender.try_send(Counted::new(&alive)).unwrap();
    let mut first = polled(sender.send(Counted::new(&alive)));
    let mut second = polled(sender.send(Counted::new(&alive)));
    first.pending();
    second.pending();
    drop(first);
    assert_eq!(
        alive.load(Ordering::SeqCst),
        2,
        "the message goes with the future"
    );
    drop(receiver.try_recv().unwrap());
    assert_eq!(second.woken(), 1);
    assert!(second.ready().is_ok());
    assert_eq!(receiver.len(), 1);
}

#[test]
fn a_send_that_is_given_up_when_served_hands_its_capacity_on() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut first = polled(sender.send(1));
    let mut second = polled(sender.send(2));
    first.pending();
    second.pending();
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((first.woken(), second.woken()), (1, 0));
    drop(first);
    assert_eq!(second.woken(), 1);
    assert_eq!(second.ready(), Ok(()));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(sender.capacity(), 1);
}

#[test]
fn a_waiting_send_follows_its_future_to_another_task() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut send = polled(sender.send(1));
    send.pending();
    let first = send.count();
    assert!(send.poll_as_another().is_pending());
    send.pending();
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((first.get(), send.woken()), (0, 1));
}

#[test]
fn permits() {
    let (sender, mut receiver) = channel(2);
    let first = polled(sender.reserve()).ready().unwrap();
    let second = sender.try_reserve().unwrap();
    assert_eq!(sender.capacity(), 0);
    assert_eq!(receiver.len(), 0);
    second.send(2);
    first.send(1);
    assert_eq!(receiver.try_recv(), Ok(2), "the order is that of sending");
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(sender.capacity(), 2);
    drop(sender.try_reserve().unwrap());
    assert_eq!(sender.capacity(), 2);
}

#[test]
fn a_permit_that_is_dropped_serves_who_waits() {
    let (sender, _receiver) = channel::<()>(1);
    let permit = sender.try_reserve().unwrap();
    let mut reserve = polled(sender.reserve());
    reserve.pending();
    drop(permit);
    assert_eq!(reserve.woken(), 1);
    assert!(reserve.ready().is_ok());
}

#[test]
fn owned_permits() {
    let (sender, mut receiver) = channel(2);
    let (other, _other_receiver) = channel(1);
    let permit = polled(sender.clone().reserve_owned()).ready().unwrap();
    let second = sender.clone().try_reserve_owned().unwrap();
    assert!(permit.same_channel(&second));
    assert!(permit.same_channel_as_sender(&sender));
    assert!(!permit.same_channel_as_sender(&other));
    assert!(!permit.same_channel(&other.try_reserve_owned().unwrap()));
    assert_eq!(sender.strong_count(), 3);
    let third = match sender.clone().try_reserve_owned() {
        Err(TrySendError::Full(sender)) => sender,
        other => panic!("{other:?}"),
    };
    let back = permit.send(1);
    assert!(back.same_channel(&sender));
    drop(second.release());
    assert_eq!(sender.capacity(), 1);
    drop(third.try_reserve_owned().unwrap());
    assert_eq!((sender.capacity(), sender.strong_count()), (1, 2));
    assert_eq!(receiver.try_recv(), Ok(1));
    drop(receiver);
    assert!(matches!(
        back.try_reserve_owned(),
        Err(TrySendError::Closed(_))
    ));
    assert!(polled(sender.reserve_owned()).ready().is_err());
}

#[test]
fn many_permits_at_once() {
    let (sender, mut receiver) = channel(5);
    let mut permits = polled(sender.reserve_many(3)).ready().unwrap();
    assert_eq!((permits.len(), permits.size_hint()), (3, (3, Some(3))));
    assert_eq!(sender.capacity(), 2);
    permits.next().unwrap().send(1);
    drop(permits.next());
    assert_eq!((permits.len(), sender.capacity()), (1, 3));
    drop(permits);
    assert_eq!(sender.capacity(), 4);
    let mut all = sender.try_reserve_many(4).unwrap();
    assert_eq!(
        sender.try_reserve_many(1).unwrap_err(),
        TrySendError::Full(())
    );
    assert_eq!(all.by_ref().map(|permit| permit.send(2)).count(), 4);
    assert!(all.next().is_none() && all.next().is_none());
    assert_eq!(receiver.len(), 5);
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn no_permits_are_always_there() {
    let (sender, receiver) = channel::<()>(1);
    sender.try_send(()).unwrap();
    let mut waits = polled(sender.reserve());
    waits.pending();
    assert_eq!(sender.try_reserve_many(0).unwrap().len(), 0);
    assert_eq!(polled(sender.reserve_many(0)).ready().unwrap().len(), 0);
    drop(receiver);
    assert_eq!(
        sender.try_reserve_many(0).unwrap_err(),
        TrySendError::Closed(())
    );
    assert!(polled(sender.reserve_many(0)).ready().is_err());
}

#[test]
fn more_permits_than_there_ever_are() {
    let (sender, _receiver) = channel::<()>(2);
    for count in [3, usize::MAX >> 3, usize::MAX] {
        assert_eq!(
            sender.try_reserve_many(count).unwrap_err(),
            TrySendError::Full(())
        );
        assert!(polled(sender.reserve_many(count)).ready().is_err());
    }
    assert_eq!(sender.capacity(), 2);
}

#[test]
fn what_comes_free_is_collected_for_whoever_wants_many() {
    let (sender, mut receiver) = channel(4);
    for value in 0..3 {
        sender.try_send(value).unwrap();
    }
    let mut many = polled(sender.reserve_many(3));
    many.pending();
    assert_eq!(sender.capacity(), 0, "the one that was free is collected");
    let mut one = polled(sender.reserve());
    one.pending();
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((many.woken(), one.woken()), (0, 0), "nobody overtakes");
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((many.woken(), one.woken()), (1, 0));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(one.woken(), 1);
    let permits = many.ready().unwrap();
    drop(one.ready().unwrap());
    drop(permits);
    drop((many, one));
    assert_eq!(sender.capacity(), 4);
}

#[test]
fn what_was_collected_goes_to_the_next_one() {
    let (sender, mut receiver) = channel(3);
    for value in 0..3 {
        sender.try_send(value).unwrap();
    }
    let mut many = polled(sender.reserve_many(3));
    many.pending();
    let mut ones = [polled(sender.reserve()), polled(sender.reserve())];
    for one in &mut ones {
        one.pending();
    }
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(ones[0].woken() + ones[1].woken(), 0);
    drop(many);
    assert_eq!((ones[0].woken(), ones[1].woken()), (1, 1));
}

#[test]
fn one_batch_serves_many() {
    let (sender, mut receiver) = channel(100);
    for value in 0..100 {
        sender.try_send(value).unwrap();
    }
    let mut sends: Vec<_> = (100..200).map(|value| polled(sender.send(value))).collect();
    for send in &mut sends {
        send.pending();
    }
    let mut buffer = Vec::new();
    assert_eq!(polled(receiver.recv_many(&mut buffer, 80)).ready(), 80);
    let woken: Vec<_> = sends.iter().map(|send| send.woken()).collect();
    assert!(woken[..80].iter().all(|woken| *woken == 1));
    assert!(woken[80..].iter().all(|woken| *woken == 0));
    for send in &mut sends[..80] {
        assert_eq!(send.ready(), Ok(()));
    }
    assert_eq!(polled(receiver.recv_many(&mut buffer, 100)).ready(), 100);
    for send in &mut sends[80..] {
        assert_eq!(send.ready(), Ok(()));
    }
    assert_eq!(polled(receiver.recv_many(&mut buffer, 100)).ready(), 20);
    assert!(buffer.into_iter().eq(0..200));
}

/// A panic of one sender's waker is the business of whoever made that waker: the receiver has its
/// message, and those behind are woken.
#[test]
fn a_waker_of_a_sender_that_panics() {
    use std::future::Future;
    let (sender, mut receiver) = channel(2);
    sender.try_send(0).unwrap();
    sender.try_send(1).unwrap();
    let mut first = Box::pin(sender.send(2));
    let waker = panicking_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let mut second = polled(sender.send(3));
    second.pending();
    let mut buffer = Vec::new();
    assert_eq!(polled(receiver.recv_many(&mut buffer, 2)).ready(), 2);
    assert_eq!(second.woken(), 1);
    assert!(first.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn sends_need_no_more_budget_than_one_each() {
    let (sender, mut receiver) = unbounded_channel();
    let (bounded, mut other) = channel(1000);
    for value in 0..1000 {
        sender.send(value).unwrap();
    }
    gmp_executor::coop::with_full_budget(|| {
        for _ in 0..64 {
            assert!(polled(bounded.send(0)).poll().is_ready());
            assert!(polled(receiver.recv()).poll().is_ready());
        }
        let mut denied = polled(bounded.send(0));
        denied.pending();
        assert_eq!(denied.woken(), 1, "to be polled again, later");
        let mut denied = polled(receiver.recv());
        denied.pending();
        assert_eq!(denied.woken(), 1);
        denied.pending();
    });
    assert_eq!(other.len(), 64, "a send that was denied took nothing");
    assert_eq!(polled(receiver.recv()).ready(), Some(64));
    assert_eq!(other.try_recv(), Ok(0));
    gmp_executor::coop::with_full_budget(|| {
        let (_sender, mut receiver) = channel::<()>(1);
        for _ in 0..1000 {
            polled(receiver.recv()).pending();
        }
        assert!(
            gmp_executor::coop::has_budget_remaining(),
            "waiting costs nothing"
        );
    });
}
