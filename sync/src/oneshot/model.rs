//! Exhaustive models. Each says which bug it would find. All of them find a cell that is leaked, or
//! freed while the other half uses it.

use std::pin::pin;

use gmp_executor::loom::{Arc, thread};
use loom::future::block_on;

use super::*;
use std::task::Waker;

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Another waker than `Waker::noop`.
fn other_waker() -> Waker {
    struct Nothing;
    impl std::task::Wake for Nothing {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    Waker::from(std::sync::Arc::new(Nothing))
}

/// Would find: a value read before it was written, a wake-up lost between look and wait.
#[test]
fn model_send_against_poll() {
    loom::model(|| {
        let (sender, receiver) = channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        assert_eq!(block_on(receiver), Ok(1));
        thread.join().unwrap();
    });
}

/// Would find: the same for a sender that goes.
#[test]
fn model_sender_drop_against_poll() {
    loom::model(|| {
        let (sender, receiver) = channel::<u32>();
        let thread = thread::spawn(move || drop(sender));
        assert!(block_on(receiver).is_err());
        thread.join().unwrap();
    });
}

/// Would find: a value that is lost, or dropped twice, when it comes as the receiver goes.
#[test]
fn model_send_against_receiver_drop() {
    loom::model(|| {
        let value = Arc::new(());
        let (sender, mut receiver) = channel();
        let sent = value.clone();
        let thread = thread::spawn(move || drop(sender.send(sent)));
        let _ = poll_once(Pin::new(&mut receiver));
        drop(receiver);
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// Would find: a value that both halves have, or none, when it comes as the receiver closes.
#[test]
fn model_send_against_close() {
    loom::model(|| {
        let (sender, mut receiver) = channel();
        let thread = thread::spawn(move || sender.send(()).is_ok());
        receiver.close();
        let received = receiver.try_recv().is_ok();
        assert_eq!(thread.join().unwrap(), received);
    });
}

/// Would find: a waker that is taken while it is replaced.
#[test]
fn model_send_while_the_receiver_changes_its_waker() {
    loom::model(|| {
        let (sender, mut receiver) = channel();
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let mut received = poll_once(Pin::new(&mut receiver));
        if received.is_pending() {
            let waker = other_waker();
            received = Pin::new(&mut receiver).poll(&mut Context::from_waker(&waker));
        }
        match received {
            Poll::Ready(value) => assert_eq!(value, Ok(1)),
            Poll::Pending => assert_eq!(block_on(receiver), Ok(1)),
        }
        thread.join().unwrap();
    });
}

/// Would find: a sender that waits for the close and is not told.
#[test]
fn model_closed_against_receiver_drop() {
    loom::model(|| {
        let (mut sender, receiver) = channel::<u32>();
        let thread = thread::spawn(move || drop(receiver));
        block_on(sender.closed());
        assert_eq!(sender.send(1), Err(1));
        thread.join().unwrap();
    });
}

/// Would find: the sender's waker taken by both halves, or by none, as one sends and the other closes.
#[test]
fn model_both_wait_and_both_end() {
    loom::model(|| {
        let (mut sender, mut receiver) = channel();
        let waker = other_waker();
        let mut cx = Context::from_waker(&waker);
        assert!(sender.poll_closed(&mut cx).is_pending());
        assert!(Pin::new(&mut receiver).poll(&mut cx).is_pending());
        let thread = thread::spawn(move || {
            if sender
                .poll_closed(&mut Context::from_waker(Waker::noop()))
                .is_pending()
            {
                let _ = sender.send(());
            }
        });
        let _ = poll_once(pin!(&mut receiver));
        receiver.close();
        drop(receiver);
        thread.join().unwrap();
    });
}
