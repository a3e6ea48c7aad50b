//! Who is woken, how often, and what is recorded meanwhile.

use std::task::{Context, Wake, Waker};

use super::*;

#[test]
fn one_message_wakes_once() {
    let (sender, mut receiver) = unbounded_channel();
    let mut recv = polled(receiver.recv());
    recv.pending();
    recv.pending();
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), Some(1));
    drop(recv);
    assert_eq!(polled(receiver.recv()).ready(), Some(2));
    let mut recv = polled(receiver.recv());
    recv.pending();
    assert_eq!(recv.woken(), 0);
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let (sender, mut receiver) = channel(1);
    let mut first = polled(receiver.recv());
    first.pending();
    let count = first.count();
    drop(first);
    let mut second = polled(receiver.recv());
    second.pending();
    let other = second.count();
    assert!(second.poll_as_another().is_pending());
    sender.try_send(1).unwrap();
    assert_eq!((count.get(), other.get(), second.woken()), (0, 0, 1));
    assert_eq!(second.ready(), Some(1));
}

/// A `recv` that is dropped has received nothing, and its waker is woken at most for nothing.
#[test]
fn a_recv_that_is_given_up_loses_nothing() {
    let (sender, mut receiver) = channel(2);
    polled(receiver.recv()).pending();
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    let mut buffer = Vec::new();
    assert_eq!(polled(receiver.recv_many(&mut buffer, 5)).ready(), 1);
    polled(receiver.recv_many(&mut buffer, 5)).pending();
    sender.try_send(3).unwrap();
    assert_eq!(polled(receiver.recv()).ready(), Some(3));
    assert_eq!(buffer, [2]);
}

#[test]
fn waiting_at_every_place_in_a_block() {
    let (sender, mut receiver) = unbounded_channel();
    for value in 0..200 {
        let mut recv = polled(receiver.recv());
        recv.pending();
        sender.send(value).unwrap();
        assert_eq!(recv.woken(), 1);
        assert_eq!(recv.ready(), Some(value));
    }
}

#[test]
fn a_waker_is_kept_no_longer_than_it_is_needed() {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let made = Arc::new(Nothing);
    let waker = Waker::from(made.clone());
    let mut cx = Context::from_waker(&waker);
    let (sender, mut receiver) = channel(1);
    assert!(receiver.poll_recv(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&made), 3);
    sender.try_send(()).unwrap();
    assert_eq!(Arc::strong_count(&made), 2, "the message took it");
    assert!(receiver.poll_recv(&mut cx).is_ready());
    assert!(receiver.poll_recv(&mut cx).is_pending());
    drop(receiver);
    assert_eq!(Arc::strong_count(&made), 2, "it went with the receiver");

    let (sender, mut receiver) = channel::<()>(1);
    let _permit = sender.try_reserve().unwrap();
    receiver.close();
    assert!(receiver.poll_recv(&mut cx).is_pending());
    drop(receiver);
    assert_eq!(
        Arc::strong_count(&made),
        2,
        "also when it waited for a permit"
    );
}

#[test]
fn a_poll_by_hand() {
    let (sender, mut receiver) = channel(4);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(receiver.poll_recv(&mut cx), Poll::Pending);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(receiver.poll_recv(&mut cx), Poll::Ready(Some(1)));
    let mut buffer = Vec::new();
    assert_eq!(
        receiver.poll_recv_many(&mut cx, &mut buffer, 3),
        Poll::Ready(1)
    );
    assert_eq!(
        receiver.poll_recv_many(&mut cx, &mut buffer, 3),
        Poll::Pending
    );
    drop(sender);
    assert_eq!(
        receiver.poll_recv_many(&mut cx, &mut buffer, 3),
        Poll::Ready(0)
    );
    assert_eq!(receiver.poll_recv(&mut cx), Poll::Ready(None));
}

/// The next message is claimed and not published, and one behind it is complete: `try_recv` must not
/// say that the channel is empty. The task that waited is woken, since its place is taken.
#[test]
fn try_recv_waits_for_a_sender_that_is_on_its_way() {
    let (sender, mut receiver) = unbounded_channel();
    let mut waits = polled(receiver.recv());
    waits.pending();
    let task = waits.count();
    drop(waits);
    let slow = sender.clone();
    let position = slow.claim_for_tests();
    sender.send(2).unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        wait.recv().unwrap();
        // SAFETY: claimed above, and used once.
        unsafe { slow.put_for_tests(position, 1) };
    });
    let watch = {
        let task = task.clone();
        std::thread::spawn(move || {
            crate::test_util::wait_until(|| task.get() == 1);
            go.send(()).unwrap();
        })
    };
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    thread.join().unwrap();
    watch.join().unwrap();
    assert_eq!(task.get(), 1);
}

/// A sender sleeps between the choice to wake and the taking of the waker: the receiver neither waits
/// for it nor takes its place, but has itself polled again.
#[test]
fn a_sender_that_takes_its_time_to_take_the_waker() {
    use std::sync::Barrier;
    struct Slow(Barrier, Barrier);
    impl Wake for Slow {
        fn wake(self: Arc<Self>) {
            self.0.wait();
            self.1.wait();
        }
    }
    let slow = Arc::new(Slow(Barrier::new(2), Barrier::new(2)));
    let waker = Waker::from(slow.clone());
    let (sender, mut receiver) = unbounded_channel();
    assert!(
        receiver
            .poll_recv(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let thread = std::thread::spawn(move || {
        sender.send(1).unwrap();
        sender.send(2).unwrap();
    });
    slow.0.wait();
    // The sender is in the middle of waking; the message is there, and the place is free.
    let mut recv = polled(receiver.recv());
    assert_eq!(recv.ready(), Some(1));
    drop(recv);
    let mut recv = polled(receiver.recv());
    recv.pending();
    slow.1.wait();
    thread.join().unwrap();
    assert_eq!(recv.woken(), 1);
    assert_eq!(recv.ready(), Some(2));
}
