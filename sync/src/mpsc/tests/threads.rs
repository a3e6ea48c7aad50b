//! Many hands on one channel.

use std::collections::HashMap;
use std::thread;

use futures::executor::block_on;

use super::*;
use crate::test_util::must_not_block;

const SENDERS: usize = 8;
const MESSAGES: usize = if cfg!(debug_assertions) {
    2_000
} else {
    20_000
};

/// Checks that each sender's messages come complete and in order.
#[derive(Default)]
struct Ledger(HashMap<usize, usize>);

impl Ledger {
    fn enter(&mut self, (sender, number): (usize, usize)) {
        let next = self.0.entry(sender).or_default();
        assert_eq!(number, *next, "of sender {sender}");
        *next += 1;
    }

    fn close(self) {
        assert_eq!(self.0.len(), SENDERS);
        assert!(self.0.values().all(|count| *count == MESSAGES));
    }
}

#[test]
fn many_senders_without_a_bound() {
    let (sender, mut receiver) = unbounded_channel();
    thread::scope(|scope| {
        for name in 0..SENDERS {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    sender.send((name, number)).unwrap();
                }
            });
        }
        drop(sender);
        let mut ledger = Ledger::default();
        while let Some(message) = block_on(receiver.recv()) {
            ledger.enter(message);
        }
        ledger.close();
    });
}

#[test]
fn many_senders_wait_for_capacity() {
    for capacity in [1, 3, 40] {
        let (sender, mut receiver) = channel(capacity);
        thread::scope(|scope| {
            for name in 0..SENDERS {
                let sender = sender.clone();
                scope.spawn(move || {
                    for number in 0..MESSAGES / 4 {
                        match number % 3 {
                            0 => block_on(sender.send((name, number))).unwrap(),
                            1 => block_on(sender.reserve()).unwrap().send((name, number)),
                            _ => sender.blocking_send((name, number)).unwrap(),
                        }
                    }
                });
            }
            drop(sender);
            let mut counts = [0; SENDERS];
            let mut buffer = Vec::new();
            loop {
                assert!(receiver.len() <= capacity);
                match receiver.blocking_recv_many(&mut buffer, 7) {
                    0 => break,
                    _ => {
                        for (name, number) in buffer.drain(..) {
                            assert_eq!(counts[name], number);
                            counts[name] += 1;
                        }
                    }
                }
            }
            assert_eq!(counts, [MESSAGES / 4; SENDERS]);
            assert_eq!(receiver.capacity(), capacity);
        });
    }
}

#[test]
fn try_recv_while_others_send() {
    let (sender, mut receiver) = unbounded_channel();
    thread::scope(|scope| {
        for name in 0..SENDERS {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    sender.send((name, number)).unwrap();
                }
            });
        }
        drop(sender);
        let mut ledger = Ledger::default();
        loop {
            match receiver.try_recv() {
                Ok(message) => ledger.enter(message),
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Disconnected) => break,
            }
        }
        ledger.close();
    });
}

/// The receiver closes, or goes, in the middle: every message is received, refused or dropped.
#[test]
fn the_receiver_ends_it() {
    for round in 0..200 {
        let alive = Arc::new(AtomicUsize::new(0));
        let (sender, mut receiver) = channel(4);
        let (unbounded, mut other) = unbounded_channel();
        let sent = thread::scope(|scope| {
            let senders: Vec<_> = (0..3)
                .map(|_| {
                    let (sender, unbounded) = (sender.clone(), unbounded.clone());
                    let alive = &alive;
                    scope.spawn(move || {
                        let mut sent = 0;
                        while block_on(sender.send(Counted::new(alive))).is_ok() {
                            sent += 1;
                            let _ = unbounded.send(Counted::new(alive));
                        }
                        sent
                    })
                })
                .collect();
            let mut received = 0;
            for _ in 0..round {
                received += usize::from(block_on(receiver.recv()).is_some());
                drop(other.try_recv());
            }
            receiver.close();
            while block_on(receiver.recv()).is_some() {
                received += 1;
            }
            drop(other);
            let sent: usize = senders
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum();
            assert_eq!(sent, received);
            sent
        });
        drop((sender, unbounded, receiver));
        assert_eq!(alive.load(Ordering::SeqCst), 0, "after {sent} messages");
    }
}

/// Futures that wait for capacity are given up all the time; nothing is lost with them.
#[test]
fn sends_given_up_at_any_moment() {
    let (sender, mut receiver) = channel(2);
    thread::scope(|scope| {
        for name in 0..4 {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..MESSAGES / 10 {
                    let mut future = polled(sender.reserve_many(1 + number % 2));
                    if let Poll::Ready(permits) = future.poll() {
                        for permit in permits.unwrap() {
                            permit.send(name);
                        }
                    } else if number % 3 == 0 {
                        thread::yield_now();
                        if let Poll::Ready(permits) = future.poll() {
                            drop(permits.unwrap());
                        }
                    }
                }
            });
        }
        drop(sender);
        while block_on(receiver.recv()).is_some() {}
        assert_eq!(receiver.capacity(), 2);
    });
}

#[test]
fn blocking_calls() {
    let (sender, mut receiver) = channel(1);
    let thread = thread::spawn(move || {
        assert_eq!(receiver.blocking_recv(), Some(1));
        assert_eq!(receiver.blocking_recv(), Some(2));
        let mut buffer = Vec::new();
        assert_eq!(receiver.blocking_recv_many(&mut buffer, 2), 1);
        assert_eq!(receiver.blocking_recv(), None);
        buffer
    });
    for value in 1..4 {
        sender.blocking_send(value).unwrap();
    }
    drop(sender);
    assert_eq!(thread.join().unwrap(), [3]);
    let (sender, mut receiver) = unbounded_channel();
    let thread = thread::spawn(move || sender.send(1));
    assert_eq!(receiver.blocking_recv(), Some(1));
    assert_eq!(receiver.blocking_recv_many(&mut Vec::new(), 1), 0);
    thread.join().unwrap().unwrap();
}

#[test]
fn blocking_is_refused_where_tasks_run() {
    let (sender, mut receiver) = channel(1);
    must_not_block(|| {
        let _ = sender.blocking_send(1);
    });
    must_not_block(|| {
        let _ = receiver.blocking_recv();
    });
    must_not_block(|| {
        let _ = receiver.blocking_recv_many(&mut Vec::new(), 1);
    });
    let (_sender, mut receiver) = unbounded_channel::<u8>();
    must_not_block(|| {
        let _ = receiver.blocking_recv();
    });
    must_not_block(|| {
        let _ = receiver.blocking_recv_many(&mut Vec::new(), 1);
    });
}
