//! Among threads: who waits for whom, and nothing is lost.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::test_util::wait_until;

/// Far above need.
const WATCHDOG: Duration = Duration::from_secs(600);

/// A value whose clone tells that it has begun, and then waits to be let go on.
struct Gated {
    number: u32,
    gate: Option<Arc<Gate>>,
}

#[derive(Default)]
struct Gate {
    inside: AtomicUsize,
    most: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    fn value(self: &Arc<Self>, number: u32) -> Gated {
        Gated {
            number,
            gate: Some(self.clone()),
        }
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

impl Clone for Gated {
    fn clone(&self) -> Self {
        if let Some(gate) = &self.gate {
            let inside = gate.inside.fetch_add(1, Ordering::SeqCst) + 1;
            gate.most.fetch_max(inside, Ordering::SeqCst);
            wait_until(|| gate.is_open.load(Ordering::SeqCst));
            gate.inside.fetch_sub(1, Ordering::SeqCst);
        }
        Gated {
            number: self.number,
            gate: None,
        }
    }
}

/// Runs `read` on a thread; what it returns comes through the channel.
fn spawn<R: Send + 'static>(read: impl FnOnce() -> R + Send + 'static) -> mpsc::Receiver<R> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(read()));
    receiver
}

fn number(read: Result<Gated, TryRecvError>) -> Result<u32, TryRecvError> {
    read.map(|value| value.number)
}

#[test]
fn nobody_but_the_readers_of_a_value_waits_for_its_clone() {
    let gate = Arc::new(Gate::default());
    let (sender, mut slow) = channel(2);
    let mut other = sender.subscribe();
    let leaver = sender.subscribe();
    assert!(sender.send(gate.value(0)).is_ok());
    assert!(
        sender
            .send(Gated {
                number: 1,
                gate: None
            })
            .is_ok()
    );
    let read = spawn(move || (number(slow.try_recv()), slow));
    wait_until(|| gate.inside() == 1);
    // The clone has begun, and goes on to the end of all this.
    assert_eq!((sender.len(), sender.receiver_count()), (2, 3));
    drop(leaver);
    for number in 2..8 {
        assert!(sender.send(Gated { number, gate: None }).is_ok());
    }
    assert_eq!(number(other.try_recv()), Err(TryRecvError::Lagged(6)));
    assert_eq!(number(other.try_recv()), Ok(6));
    assert_eq!(number(other.try_recv()), Ok(7));
    assert_eq!(gate.inside(), 1);
    gate.open();
    let (read, mut slow) = read.recv_timeout(WATCHDOG).unwrap();
    assert_eq!(read, Ok(0));
    assert_eq!(number(slow.try_recv()), Err(TryRecvError::Lagged(5)));
    assert_eq!(number(slow.try_recv()), Ok(6));
    assert_eq!(number(slow.try_recv()), Ok(7));
    assert!(sender.is_empty());
}

#[test]
fn the_readers_of_a_value_take_turns() {
    let gate = Arc::new(Gate::default());
    let sender = Sender::new(2);
    let receivers: Vec<_> = (0..4).map(|_| sender.subscribe()).collect();
    assert!(sender.send(gate.value(7)).is_ok());
    let reads: Vec<_> = receivers
        .into_iter()
        .map(|mut receiver| spawn(move || number(receiver.try_recv())))
        .collect();
    wait_until(|| gate.inside() == 1);
    // The others sleep, or are about to.
    thread::sleep(Duration::from_millis(5));
    gate.open();
    for read in reads {
        assert_eq!(read.recv_timeout(WATCHDOG).unwrap(), Ok(7));
    }
    assert_eq!(gate.most.load(Ordering::SeqCst), 1);
    assert!(sender.is_empty());
}

/// Who waits for a clone of a value that is then overwritten has lagged, and does not wait any longer.
#[test]
fn a_reader_does_not_wait_for_a_value_that_is_overwritten() {
    let gate = Arc::new(Gate::default());
    let (sender, mut slow) = channel(1);
    let mut other = sender.subscribe();
    assert!(sender.send(gate.value(0)).is_ok());
    let read = spawn(move || number(slow.try_recv()));
    wait_until(|| gate.inside() == 1);
    let waits = spawn(move || (number(other.try_recv()), other));
    // It sleeps by now, or finds out later.
    thread::sleep(Duration::from_millis(5));
    assert!(
        sender
            .send(Gated {
                number: 1,
                gate: None
            })
            .is_ok()
    );
    let (waited, mut other) = waits.recv_timeout(WATCHDOG).unwrap();
    assert_eq!(waited, Err(TryRecvError::Lagged(1)));
    assert_eq!(number(other.try_recv()), Ok(1));
    assert_eq!(gate.inside(), 1);
    gate.open();
    assert_eq!(read.recv_timeout(WATCHDOG).unwrap(), Ok(0));
}

/// Reads to the end, and checks that each sender's values come in order and that none is lost.
fn read_all(mut receiver: Receiver<(usize, u64, Counted)>, senders: usize) -> u64 {
    let mut last = vec![None; senders];
    let mut seen = 0;
    loop {
        match block_on(receiver.recv()) {
            Ok((sender, number, _counted)) => {
                assert!(last[sender] < Some(number), "out of order");
                last[sender] = Some(number);
                seen += 1;
            }
            Err(RecvError::Lagged(missed)) => seen += missed,
            Err(RecvError::Closed) => return seen,
        }
    }
}

#[test]
fn many_senders_and_receivers() {
    const SENDERS: usize = 3;
    const EACH: u64 = 3000;
    for capacity in [1, 2, 16, 1024] {
        let counts = Arc::new(Counts::default());
        let sender = Sender::new(capacity);
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let receiver = sender.subscribe();
                spawn(move || read_all(receiver, SENDERS))
            })
            .collect();
        let senders: Vec<_> = (0..SENDERS)
            .map(|index| {
                let (sender, counts) = (sender.clone(), counts.clone());
                spawn(move || {
                    for number in 0..EACH {
                        let value = (index, number, Counted::new(0, &counts));
                        assert!(sender.send(value).is_ok());
                    }
                })
            })
            .collect();
        drop(sender);
        for sender in senders {
            sender.recv_timeout(WATCHDOG).unwrap();
        }
        for reader in readers {
            let seen = reader.recv_timeout(WATCHDOG).unwrap();
            assert_eq!(seen, SENDERS as u64 * EACH);
        }
        assert_eq!(counts.alive(), 0);
    }
}

/// Receivers come, read a little, wait a little, and go, while others send and ask.
#[test]
fn receivers_come_and_go() {
    let counts = Arc::new(Counts::default());
    let sender = Sender::new(2);
    let keeps = sender.subscribe();
    let stop = Arc::new(AtomicBool::new(false));
    let guests: Vec<_> = (0..3)
        .map(|guest| {
            let sender = sender.clone();
            spawn(move || {
                for round in 0..1000 {
                    let mut receiver: Receiver<Counted> = sender.subscribe();
                    for _ in 0..(round + guest) % 5 {
                        drop(receiver.try_recv());
                    }
                    let mut wait = polled(receiver.recv());
                    drop(wait.poll());
                    drop(wait);
                    let other = receiver.resubscribe();
                    drop(receiver);
                    assert!(sender.len() <= 2);
                    drop(other);
                }
            })
        })
        .collect();
    let sends = {
        let (sender, counts, stop) = (sender.clone(), counts.clone(), stop.clone());
        spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                assert!(sender.send(Counted::new(0, &counts)).is_ok());
            }
        })
    };
    for guest in guests {
        guest.recv_timeout(WATCHDOG).unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    sends.recv_timeout(WATCHDOG).unwrap();
    drop(keeps);
    assert!(sender.is_empty());
    assert_eq!((sender.receiver_count(), counts.alive()), (0, 0));
}

/// One value at a time, and everybody waits for each: a wake-up that is lost stops it for ever.
#[test]
fn every_wake_arrives() {
    const ROUNDS: u64 = 3000;
    let (sender, receiver) = channel(1);
    let (done, done_receiver) = mpsc::channel();
    let mut receivers = vec![receiver, sender.subscribe(), sender.subscribe()];
    let threads = receivers.len();
    for mut receiver in receivers.drain(..) {
        let done = done.clone();
        thread::spawn(move || {
            for round in 0..ROUNDS {
                assert_eq!(block_on(receiver.recv()), Ok(round));
                done.send(round).unwrap();
            }
        });
    }
    for round in 0..ROUNDS {
        sender.send(round).unwrap();
        for _ in 0..threads {
            assert_eq!(done_receiver.recv_timeout(WATCHDOG).unwrap(), round);
        }
    }
}
