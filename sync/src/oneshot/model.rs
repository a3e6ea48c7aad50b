//! Finds: a value read before it is published, a waker read while it is replaced, a lost wake-up of
//! either half.

use gmp_executor::loom::thread;
use loom::future::block_on;

use super::*;

#[test]
fn model_send_against_poll() {
    loom::model(|| {
        let (sender, receiver) = channel();
        let thread = thread::spawn(move || sender.send(1).expect("the receiver waits"));
        assert_eq!(block_on(receiver), Ok(1));
        thread.join().expect("the sender");
    });
}

#[test]
fn model_drop_against_poll() {
    loom::model(|| {
        let (sender, receiver) = channel::<u32>();
        let thread = thread::spawn(move || drop(sender));
        assert!(block_on(receiver).is_err());
        thread.join().expect("the sender");
    });
}

#[test]
fn model_send_against_changing_wakers_and_drop() {
    loom::model(|| {
        let (sender, mut receiver) = channel();
        let thread = thread::spawn(move || {
            let _ = sender.send(1);
        });
        let noop = Waker::noop();
        let _ = Pin::new(&mut receiver).poll(&mut Context::from_waker(noop));
        if !receiver.is_terminated() {
            let other = futures::task::noop_waker();
            let _ = Pin::new(&mut receiver).poll(&mut Context::from_waker(&other));
        }
        drop(receiver);
        thread.join().expect("the sender");
    });
}

#[test]
fn model_closed_against_close() {
    loom::model(|| {
        let (mut sender, mut receiver) = channel::<u32>();
        let thread = thread::spawn(move || {
            receiver.close();
            receiver
        });
        block_on(sender.closed());
        assert_eq!(sender.send(1), Err(1));
        drop(thread.join().expect("the receiver"));
    });
}
