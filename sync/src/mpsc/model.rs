//! Exhaustive models. Each says which bug it would find. A block has two slots here.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};

use gmp_executor::loom::{Arc, Condvar, Mutex, thread};

use super::error::{TryRecvError, TrySendError};
use super::*;

/// Whether somebody was woken. With a condition variable, not by parking: a waker that comes late
/// would meet its thread in another wait, which loom takes amiss.
#[derive(Default)]
struct Woken {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Woken {
    fn new() -> (std::sync::Arc<Woken>, Waker) {
        let woken = std::sync::Arc::new(Woken::default());
        (woken.clone(), Waker::from(woken))
    }

    fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        if *woken {
            // The future woke itself, to be polled when somebody else has made progress.
            *woken = false;
            drop(woken);
            return thread::yield_now();
        }
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (woken, waker) = Woken::new();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => woken.wait(),
        }
    }
}

/// Polls once, with a waker of its own.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    let (_, waker) = Woken::new();
    future.poll(&mut Context::from_waker(&waker))
}

fn bounded_preemption(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}

/// Would find: a value read before it was written, a block freed or used again while a sender walks
/// through it, a waker read before it was written, a wake-up lost at the boundary.
#[test]
fn model_two_senders_cross_the_boundary() {
    bounded_preemption(1).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        let threads = [0..2, 10..11].map(|values| {
            let sender = sender.clone();
            thread::spawn(move || {
                for value in values {
                    sender.send(value).unwrap();
                }
            })
        });
        let (mut low, mut high) = (0, 10);
        for _ in 0..3 {
            let value = block_on(receiver.recv()).expect("there is a sender left");
            let next = if value < 10 { &mut low } else { &mut high };
            assert_eq!(value, *next, "messages of one sender stay in order");
            *next += 1;
        }
        assert_eq!((low, high), (2, 11));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Would find: a block that is used again while the sender may still look at it. The first block is
/// behind the receiver, and goes to the place of the spare while the sender needs a third one.
#[test]
fn model_blocks_are_used_again() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        for value in 0..3 {
            sender.send(value).unwrap();
        }
        for value in 0..3 {
            assert_eq!(receiver.try_recv(), Ok(value));
        }
        let thread = thread::spawn(move || {
            sender.send(3).unwrap();
            sender.send(4).unwrap();
        });
        for value in 3..5 {
            assert_eq!(block_on(receiver.recv()), Some(value));
        }
        assert_eq!(block_on(receiver.recv()), None);
        thread.join().unwrap();
    });
}

/// Would find: a message accepted after the receiver has come to the end of a closed channel, or
/// refused and delivered.
#[test]
fn model_unbounded_send_against_close() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        let threads = [(); 2].map(|()| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(()).is_ok() as usize)
        });
        receiver.close();
        let mut received = 0;
        while block_on(receiver.recv()).is_some() {
            received += 1;
        }
        let sent: usize = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert_eq!(sent, received);
        assert!(sender.is_closed());
    });
}

/// Would find: the same in a bounded channel, where permits are out while it is closed.
#[test]
fn model_bounded_send_against_close() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = channel(2);
        let other = sender.clone();
        let sends = thread::spawn(move || block_on(other.send(1)).is_ok());
        let reserves = thread::spawn(move || {
            let Ok(permit) = sender.try_reserve() else {
                return false;
            };
            permit.send(2);
            true
        });
        receiver.close();
        let mut received = 0;
        while block_on(receiver.recv()).is_some() {
            received += 1;
        }
        let sent = usize::from(sends.join().unwrap()) + usize::from(reserves.join().unwrap());
        assert_eq!(sent, received);
    });
}

/// Would find: a receiver of a closed channel that is not woken when the last permit comes back.
#[test]
fn model_permit_dropped_against_close() {
    loom::model(|| {
        let (sender, mut receiver) = channel::<()>(1);
        let permit = sender.clone().try_reserve_owned().unwrap();
        let thread = thread::spawn(move || drop(permit));
        receiver.close();
        assert_eq!(block_on(receiver.recv()), None);
        thread.join().unwrap();
        assert_eq!(sender.try_send(()), Err(TrySendError::Closed(())));
    });
}

/// Would find: a value that is leaked or dropped twice when it comes while the receiver goes, or a
/// block or a waker that is.
#[test]
fn model_send_against_receiver_drop() {
    bounded_preemption(2).check(|| {
        let value = Arc::new(());
        let (sender, mut receiver) = unbounded_channel();
        let sent = value.clone();
        let thread = thread::spawn(move || {
            let _ = sender.send(sent.clone());
            let _ = sender.send(sent.clone());
            let _ = sender.send(sent);
        });
        let _ = poll_once(pin!(receiver.recv()));
        drop(receiver);
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// Would find: a waiting sender that misses the capacity which a message or a permit sets free.
#[test]
fn model_senders_wait_for_capacity() {
    bounded_preemption(1).check(|| {
        let (sender, mut receiver) = channel(1);
        let threads = [1, 2].map(|value| {
            let sender = sender.clone();
            thread::spawn(move || block_on(sender.send(value)).unwrap())
        });
        drop(sender);
        let mut sum = 0;
        while let Some(value) = block_on(receiver.recv()) {
            sum += value;
        }
        assert_eq!(sum, 3);
        assert_eq!(receiver.capacity(), 1);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Would find: the same for one sender with more freedom.
#[test]
fn model_capacity_freed_while_a_sender_joins() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let thread = thread::spawn(move || block_on(sender.send(2)).unwrap());
        assert_eq!(receiver.try_recv(), Ok(1));
        thread.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(2));
    });
}

/// Would find: capacity that is lost with a sender that gives up just when it is served.
#[test]
fn model_a_waiting_sender_gives_up() {
    bounded_preemption(1).check(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let other = sender.clone();
        let gives_up = thread::spawn(move || {
            if let Poll::Ready(permit) = poll_once(pin!(other.reserve())) {
                drop(permit.unwrap());
            }
        });
        let waits = thread::spawn(move || block_on(sender.send(2)).unwrap());
        assert_eq!(block_on(receiver.recv()), Some(1));
        assert_eq!(block_on(receiver.recv()), Some(2));
        gives_up.join().unwrap();
        waits.join().unwrap();
        assert_eq!(receiver.capacity(), 1);
    });
}

/// Would find: a `try_send` refused although there is room, because somebody is just joining or
/// leaving the queue.
#[test]
fn model_try_send_is_not_refused_for_nothing() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = channel(2);
        sender.try_send(1).unwrap();
        sender.try_send(1).unwrap();
        let other = sender.clone();
        let thread = thread::spawn(move || block_on(other.send(2)).unwrap());
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Ok(1));
        // The other sender takes one of two.
        assert_eq!(sender.try_send(3), Ok(()));
        thread.join().unwrap();
    });
}

/// Would find: a receiver that sleeps when the last sender goes, or does not see what it sent.
#[test]
fn model_last_sender_goes() {
    bounded_preemption(3).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        let other = sender.clone();
        let threads = [
            thread::spawn(move || sender.send(1).unwrap()),
            thread::spawn(move || drop(other)),
        ];
        assert_eq!(block_on(receiver.recv()), Some(1));
        assert_eq!(block_on(receiver.recv()), None);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Would find: a weak sender that comes back to life after the end was announced.
#[test]
fn model_upgrade_against_the_last_sender() {
    loom::model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let weak = sender.downgrade();
        let thread = thread::spawn(move || match weak.upgrade() {
            Some(sender) => sender.send(()).is_ok(),
            None => false,
        });
        drop(sender);
        let received = block_on(receiver.recv()).is_some();
        assert_eq!(thread.join().unwrap(), received);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// Would find: a waker that is replaced while a sender takes it.
#[test]
fn model_the_receiver_changes_its_waker() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        let mut received = 0;
        for _ in 0..2 {
            // Each poll comes with a waker of its own.
            if let Poll::Ready(Some(_)) = poll_once(pin!(receiver.recv())) {
                received += 1;
            }
        }
        while block_on(receiver.recv()).is_some() {
            received += 1;
        }
        assert_eq!(received, 2);
        thread.join().unwrap();
    });
}

/// Would find: `try_recv` that misses a message whose sending is complete, because the one in front
/// of it is not.
#[test]
fn model_try_recv_finds_what_was_sent() {
    bounded_preemption(2).check(|| {
        let (sender, mut receiver) = unbounded_channel();
        let other = sender.clone();
        let thread = thread::spawn(move || other.send(1).unwrap());
        sender.send(2).unwrap();
        let first = receiver.try_recv().expect("the second message was sent");
        if first == 1 {
            assert_eq!(receiver.try_recv(), Ok(2));
        }
        thread.join().unwrap();
    });
}

/// Would find: a sender that waits for the end of a channel and is not told.
#[test]
fn model_closed() {
    loom::model(|| {
        let (sender, receiver) = unbounded_channel::<()>();
        let thread = thread::spawn(move || drop(receiver));
        block_on(sender.closed());
        thread.join().unwrap();
    });
}
