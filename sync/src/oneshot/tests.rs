//! What the channel promises.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread;

use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::test_util::{must_not_block, panicking_waker, polled};

/// Counts how many of its kind are alive.
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

/// A waker and how many of it there are, one for itself and one for this count.
fn counted_waker() -> (Waker, impl Fn() -> usize) {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let made = Arc::new(Nothing);
    (Waker::from(made.clone()), move || Arc::strong_count(&made))
}

#[test]
fn the_value_arrives_and_wakes_once() {
    let (sender, receiver) = channel();
    let mut receiver = polled(receiver);
    receiver.pending();
    receiver.pending();
    assert_eq!(sender.send(7), Ok(()));
    assert_eq!(receiver.woken(), 1);
    assert_eq!(receiver.ready(), Ok(7));
    assert!(receiver.as_mut().is_terminated());
}

#[test]
fn a_value_that_is_there_already() {
    let (sender, receiver) = channel();
    sender.send("early").unwrap();
    let mut receiver = polled(receiver);
    assert_eq!(receiver.ready(), Ok("early"));
    assert_eq!(receiver.woken(), 0);
}

#[test]
fn a_sender_that_goes_without_sending() {
    let (sender, receiver) = channel::<()>();
    let mut receiver = polled(receiver);
    receiver.pending();
    drop(sender);
    assert_eq!(receiver.woken(), 1);
    assert_eq!(receiver.ready().unwrap_err().to_string(), "channel closed");

    let (sender, mut receiver) = channel::<()>();
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert!(receiver.is_terminated());
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let (sender, receiver) = channel();
    let mut receiver = polled(receiver);
    receiver.pending();
    let first = receiver.count();
    assert!(receiver.poll_as_another().is_pending());
    sender.send(()).unwrap();
    assert_eq!((first.get(), receiver.woken()), (0, 1));

    let (mut sender, receiver) = channel::<()>();
    let mut closed = polled(sender.closed());
    closed.pending();
    let first = closed.count();
    assert!(closed.poll_as_another().is_pending());
    closed.pending();
    drop(receiver);
    assert_eq!((first.get(), closed.woken()), (0, 1));
    closed.ready();
}

#[test]
fn a_receiver_that_is_closed_refuses_and_keeps_what_it_has() {
    let (sender, mut receiver) = channel();
    receiver.close();
    receiver.close();
    assert!(sender.is_closed());
    assert!(receiver.is_empty() && !receiver.is_terminated());
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert!(receiver.is_terminated());

    let (sender, mut receiver) = channel();
    sender.send(1).unwrap();
    receiver.close();
    assert!(!receiver.is_empty());
    assert_eq!(polled(receiver).ready(), Ok(1));

    let (_sender, mut receiver) = channel::<()>();
    receiver.close();
    assert!(polled(receiver).ready().is_err());
}

#[test]
fn closed_completes_when_the_receiver_closes_or_goes() {
    for goes in [false, true] {
        let (mut sender, mut receiver) = channel::<()>();
        let mut closed = polled(sender.closed());
        closed.pending();
        assert_eq!(closed.woken(), 0);
        match goes {
            true => drop(receiver),
            false => receiver.close(),
        }
        assert_eq!(closed.woken(), 1);
        closed.ready();
        drop(closed);
        polled(sender.closed()).ready();
        assert_eq!(sender.send(()), Err(()));
    }
}

#[test]
fn every_method_after_the_end() {
    let (sender, mut receiver) = channel();
    sender.send(1).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    receiver.close();
    assert!(receiver.is_empty() && receiver.is_terminated());
    assert!(catch_unwind(AssertUnwindSafe(|| polled(receiver).poll())).is_err());
}

#[test]
#[should_panic(expected = "called after complete")]
fn a_poll_after_the_end_panics() {
    let (sender, receiver) = channel();
    sender.send(()).unwrap();
    let mut receiver = polled(receiver);
    let _ = receiver.ready();
    let _ = receiver.poll();
}

#[test]
fn the_value_goes_with_the_receiver() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel();
    assert!(sender.send(Counted::new(&alive)).is_ok());
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    drop(receiver);
    assert_eq!(alive.load(Ordering::SeqCst), 0);

    let (sender, receiver) = channel();
    drop(receiver);
    let back = sender.send(Counted::new(&alive)).err();
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    drop(back);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn wakers_are_kept_no_longer_than_they_are_needed() {
    let (waker, count) = counted_waker();
    let mut cx = Context::from_waker(&waker);
    let poll_both = || {
        let (mut sender, mut receiver) = channel::<u8>();
        assert!(
            sender
                .poll_closed(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert!(
            Pin::new(&mut receiver)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(count(), 4);
        (sender, receiver)
    };
    let (sender, receiver) = poll_both();
    sender.send(1).unwrap();
    assert_eq!(count(), 2, "sending ends the wait of both");
    drop(receiver);
    let (sender, receiver) = poll_both();
    drop(sender);
    assert_eq!(count(), 2, "so does going");
    drop(receiver);
    let (sender, receiver) = poll_both();
    drop(receiver);
    assert_eq!(count(), 2);
    drop(sender);
    let (mut sender, mut receiver) = poll_both();
    receiver.close();
    assert_eq!(count(), 2);
    assert!(sender.poll_closed(&mut cx).is_ready());
    assert!(Pin::new(&mut receiver).poll(&mut cx).is_ready());
    drop((sender, receiver));
    assert_eq!(count(), 2);
}

#[test]
fn a_panicking_waker_loses_nothing() {
    let waker = panicking_waker();
    let mut cx = Context::from_waker(&waker);
    let (sender, mut receiver) = channel();
    assert!(Pin::new(&mut receiver).poll(&mut cx).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| sender.send(3))).is_err());
    assert_eq!(receiver.try_recv(), Ok(3));

    let alive = Arc::new(AtomicUsize::new(0));
    let (mut sender, receiver) = channel::<Counted>();
    assert!(sender.poll_closed(&mut cx).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert!(sender.send(Counted::new(&alive)).is_err());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

/// A waker that holds a half of the channel, which is dropped in the middle of waking.
#[test]
fn a_waker_may_hold_the_other_half() {
    struct Holds(#[allow(dead_code)] parking_lot::Mutex<Option<Sender<u8>>>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    let (mut sender, receiver) = channel::<u8>();
    let holds = Arc::new(Holds(parking_lot::Mutex::new(None)));
    let waker = Waker::from(holds.clone());
    assert!(
        sender
            .poll_closed(&mut Context::from_waker(&waker))
            .is_pending()
    );
    *holds.0.lock() = Some(sender);
    drop((holds, waker));
    drop(receiver);
}

#[test]
fn a_future_that_is_denied_for_its_budget() {
    gmp_executor::coop::with_full_budget(|| {
        for _ in 0..128 {
            let (sender, receiver) = channel();
            sender.send(()).unwrap();
            assert_eq!(polled(receiver).ready(), Ok(()));
        }
        let (sender, receiver) = channel();
        sender.send(1).unwrap();
        let mut receiver = polled(receiver);
        receiver.pending();
        assert_eq!(receiver.woken(), 1, "to be polled again, later");
        assert_eq!(
            gmp_executor::coop::with_full_budget(|| receiver.ready()),
            Ok(1)
        );
        let (mut sender, receiver) = channel::<()>();
        drop(receiver);
        polled(sender.closed()).pending();
    });
}

#[test]
fn what_errors_say() {
    assert_eq!(TryRecvError::Empty.to_string(), "channel empty");
    assert_eq!(TryRecvError::Closed.to_string(), "channel closed");
    let (sender, mut receiver) = channel::<u8>();
    assert!(format!("{sender:?}{receiver:?}").contains("is_complete: false"));
    receiver.close();
    assert!(format!("{sender:?}").contains("is_closed: true"));
    assert!(receiver.try_recv().is_err());
    assert_eq!(format!("{receiver:?}"), "Receiver { .. }");
}

#[test]
fn across_threads() {
    let rounds = if cfg!(debug_assertions) {
        2_000
    } else {
        20_000
    };
    let alive = Arc::new(AtomicUsize::new(0));
    let (requests, incoming) = std::sync::mpsc::channel::<Sender<Counted>>();
    let server = {
        let alive = alive.clone();
        thread::spawn(move || {
            for (number, reply) in incoming.into_iter().enumerate() {
                match number % 5 {
                    0 => drop(reply),
                    _ => drop(reply.send(Counted::new(&alive))),
                }
            }
        })
    };
    for number in 0..rounds {
        let (sender, mut receiver) = channel();
        requests.send(sender).unwrap();
        match number % 4 {
            0 => assert_eq!(receiver.blocking_recv().is_ok(), number % 5 != 0),
            1 => assert_eq!(block_on(receiver).is_ok(), number % 5 != 0),
            2 => drop(polled(receiver).poll()),
            _ => {
                receiver.close();
                drop(receiver.try_recv());
            }
        }
    }
    drop(requests);
    server.join().unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn blocking_is_refused_where_tasks_run() {
    let (_sender, receiver) = channel::<()>();
    must_not_block(|| {
        let _ = receiver.blocking_recv();
    });
}

proptest! {
    /// Random programs, on the channel and on the simplest thing that behaves the same.
    #[test]
    fn a_channel_is_an_option(ops in vec(0..8_u8, 0..20)) {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel();
        let (mut sender, mut receiver) = (Some(sender), Some(receiver));
        let (mut value, mut closed, mut ended) = (false, false, false);
        for op in ops {
            match (op, &mut sender, &mut receiver) {
                (0, some @ Some(_), _) => {
                    let sent = some.take().unwrap().send(Counted::new(&alive));
                    prop_assert_eq!(sent.is_ok(), !closed);
                    value = !closed;
                }
                (1, some @ Some(_), _) => *some = None,
                (2, Some(sender), _) => {
                    prop_assert_eq!(polled(sender.closed()).poll().is_ready(), closed);
                }
                (3, _, Some(receiver)) => {
                    receiver.close();
                    closed = true;
                }
                (4, sender, Some(receiver)) => {
                    let expected = match () {
                        () if value => Ok(()),
                        () if ended || closed || sender.is_none() => Err(TryRecvError::Closed),
                        () => Err(TryRecvError::Empty),
                    };
                    prop_assert_eq!(receiver.try_recv().map(drop), expected.clone());
                    ended = ended || expected != Err(TryRecvError::Empty);
                    (value, closed) = (false, closed || ended);
                }
                (5, sender, Some(receiver)) if !ended => {
                    let expected = match () {
                        () if value => Poll::Ready(true),
                        () if closed || sender.is_none() => Poll::Ready(false),
                        () => Poll::Pending,
                    };
                    let polled = polled(&mut *receiver).poll();
                    ended = polled.is_ready();
                    prop_assert_eq!(polled.map(|received| received.is_ok()), expected);
                    (value, closed) = (value && !ended, closed || ended);
                }
                (6, _, receiver) => {
                    *receiver = None;
                    (value, closed) = (false, true);
                }
                _ => {}
            }
            if let Some(sender) = &sender {
                prop_assert_eq!(sender.is_closed(), closed);
            }
            if let Some(receiver) = &receiver {
                prop_assert_eq!(receiver.is_empty(), !value);
                prop_assert_eq!(receiver.is_terminated(), ended);
            }
            prop_assert_eq!(alive.load(Ordering::SeqCst), usize::from(value));
        }
    }
}
