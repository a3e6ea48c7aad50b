use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use futures::executor::block_on;

use super::error::TryRecvError;
use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Waker::from(count.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

#[test]
fn the_value_arrives_and_wakes_once() {
    let count = Arc::default();
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &count).is_pending());
    assert!(poll(&mut receiver, &count).is_pending());
    assert!(receiver.is_empty());
    assert_eq!(sender.send(7), Ok(()));
    assert!(!receiver.is_empty());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(&mut receiver, &count), Poll::Ready(Ok(7)));
    assert!(receiver.is_terminated());
}

#[test]
fn a_new_waker_replaces_the_old_one() {
    let (old, new) = (Arc::default(), Arc::default());
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &old).is_pending());
    assert!(poll(&mut receiver, &new).is_pending());
    sender.send(()).unwrap();
    assert_eq!(old.0.load(Ordering::SeqCst), 0);
    assert_eq!(new.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_dropped_sender_is_an_error() {
    let count = Arc::default();
    let (sender, mut receiver) = channel::<()>();
    assert!(poll(&mut receiver, &count).is_pending());
    drop(sender);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&mut receiver, &count), Poll::Ready(Err(_))));
}

#[test]
fn a_closed_receiver_refuses_but_keeps_what_was_sent() {
    let (sender, mut receiver) = channel();
    receiver.close();
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));

    let (sender, mut receiver) = channel();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn closed_completes_when_the_receiver_goes() {
    let count = Arc::default();
    let (mut sender, receiver) = channel::<()>();
    {
        let mut closed = Box::pin(sender.closed());
        assert!(poll(&mut closed, &count).is_pending());
        drop(receiver);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(poll(&mut closed, &count).is_ready());
    }
    assert!(sender.is_closed());
}

#[test]
fn a_closed_receiver_ends_without_waiting_for_the_sender() {
    let (_sender, mut receiver) = channel::<()>();
    receiver.close();
    assert!(block_on(receiver).is_err());
}

#[test]
fn the_value_is_dropped_with_the_receiver() {
    struct Probe(Arc<AtomicUsize>);
    impl Drop for Probe {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel();
    assert!(sender.send(Probe(dropped.clone())).is_ok());
    drop(receiver);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
#[should_panic(expected = "called after complete")]
fn polling_after_the_end_panics() {
    let count = Arc::default();
    let (sender, mut receiver) = channel();
    sender.send(()).unwrap();
    assert!(poll(&mut receiver, &count).is_ready());
    let _ = poll(&mut receiver, &count);
}

#[test]
fn across_threads() {
    for i in 0..2000 {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || sender.send(i));
        assert_eq!(receiver.blocking_recv(), Ok(i));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}

#[test]
fn no_larger_than_tokios() {
    // tokio 1.54: a pointer a half.
    assert_eq!(size_of::<Sender<u64>>(), size_of::<usize>());
    assert_eq!(size_of::<Receiver<u64>>(), size_of::<usize>());
}
