//! What the channel promises, step by step. Threads and random histories are in the files beside this one.

use std::cell::Cell;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Context;

use futures::executor::block_on;
use gmp_executor::coop::with_full_budget;

use super::*;
use crate::test_util::{Polled, must_not_block, panicking_waker, polled};

mod history;
mod reentrant;
mod threads;

/// A value that counts its copies.
#[derive(Debug)]
struct Counted {
    number: u32,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    alive: AtomicUsize,
    clones: AtomicUsize,
}

impl Counted {
    fn new(number: u32, counts: &Arc<Counts>) -> Counted {
        counts.alive.fetch_add(1, Ordering::SeqCst);
        Counted {
            number,
            counts: counts.clone(),
        }
    }
}

impl Counts {
    fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.counts.clones.fetch_add(1, Ordering::SeqCst);
        Counted::new(self.number, &self.counts)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counts.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn every_receiver_reads_every_value() {
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    let mut waits = polled(first.recv());
    waits.pending();
    assert_eq!(sender.send(1).unwrap(), 2);
    assert_eq!(waits.woken(), 1);
    assert_eq!(waits.ready(), Ok(1));
    drop(waits);
    assert_eq!(second.try_recv(), Ok(1));
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(first.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(block_on(second.recv()), Err(RecvError::Closed));
}

#[test]
fn values_come_in_the_order_of_sending_until_the_end() {
    let (sender, mut receiver) = channel(8);
    let other = sender.clone();
    for number in 0..4 {
        sender.send(2 * number).unwrap();
        other.send(2 * number + 1).unwrap();
    }
    drop((sender, other));
    assert!(receiver.is_closed());
    for number in 0..8 {
        assert_eq!(receiver.try_recv(), Ok(number));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn a_value_is_dropped_when_the_last_has_read_it() {
    let counts = Arc::new(Counts::default());
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    sender.send(Counted::new(7, &counts)).unwrap();
    assert_eq!(first.try_recv().unwrap().number, 7);
    assert_eq!(counts.alive(), 1);
    let value = second.try_recv().unwrap();
    assert_eq!(value.number, 7);
    assert_eq!(counts.alive(), 1, "the value in the ring is gone");
    assert_eq!(
        counts.clones.load(Ordering::SeqCst),
        2,
        "each reader clones"
    );
    drop(value);
    assert_eq!(counts.alive(), 0);
}

#[test]
fn a_value_that_nobody_reads_stays_for_a_round() {
    let counts = Arc::new(Counts::default());
    let (sender, receiver) = channel(4);
    for number in 0..20 {
        sender.send(Counted::new(number, &counts)).unwrap();
        assert_eq!(counts.alive(), 4.min(number as usize + 1));
    }
    drop(receiver);
    assert_eq!(counts.alive(), 0);
    drop(sender);
}

#[test]
fn a_receiver_that_goes_releases_what_only_it_had_to_read() {
    let counts = Arc::new(Counts::default());
    let (sender, mut first) = channel(8);
    let second = sender.subscribe();
    for number in 0..3 {
        sender.send(Counted::new(number, &counts)).unwrap();
    }
    drop(first.try_recv().unwrap());
    assert_eq!((sender.len(), counts.alive()), (3, 3));
    drop(second);
    assert_eq!((sender.len(), counts.alive()), (2, 2));
    assert_eq!(first.try_recv().unwrap().number, 1);
    drop(first);
    assert_eq!((sender.len(), counts.alive()), (0, 0));
    assert!(sender.send(Counted::new(9, &counts)).is_err());
    assert_eq!(counts.alive(), 0);
}

#[test]
fn the_channel_drops_what_is_left() {
    let counts = Arc::new(Counts::default());
    let (sender, receiver) = channel(2);
    sender.send(Counted::new(1, &counts)).unwrap();
    drop(sender);
    assert_eq!(counts.alive(), 1);
    drop(receiver);
    assert_eq!(counts.alive(), 0);
}

#[test]
fn who_lags_is_told_and_goes_on_with_the_oldest() {
    // Asked for, real, sent, missed.
    for (capacity, real, sent) in [(1, 1, 5), (2, 2, 3), (3, 4, 11), (4, 4, 5), (5, 8, 100)] {
        let (sender, mut receiver) = channel(capacity);
        for number in 0..sent {
            sender.send(number).unwrap();
        }
        assert_eq!(receiver.len() as u64, sent, "missed values count");
        assert_eq!(sender.len() as u64, real);
        let missed = sent - real;
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(missed)));
        assert_eq!(receiver.len() as u64, real);
        for number in missed..sent {
            assert_eq!(receiver.try_recv(), Ok(number));
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert!(receiver.is_empty() && sender.is_empty());
    }
}

#[test]
fn a_full_ring_does_not_lag() {
    let (sender, mut receiver) = channel(4);
    for round in 0..10 {
        for number in 0..4 {
            sender.send(4 * round + number).unwrap();
        }
        for number in 0..4 {
            assert_eq!(receiver.try_recv(), Ok(4 * round + number));
        }
    }
}

#[test]
fn lagging_again_before_reading_counts_from_where_it_was_told() {
    let (sender, mut slow) = channel(2);
    let mut fast = sender.subscribe();
    for number in 0..5 {
        sender.send(number).unwrap();
        assert_eq!(fast.try_recv(), Ok(number));
    }
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(3)));
    sender.send(5).unwrap();
    assert_eq!(slow.try_recv(), Err(TryRecvError::Lagged(1)));
    assert_eq!(block_on(slow.recv()), Ok(4));
    sender.send(6).unwrap();
    sender.send(7).unwrap();
    assert_eq!(block_on(slow.recv()), Err(RecvError::Lagged(1)));
    drop(sender);
    assert_eq!(block_on(slow.recv()), Ok(6));
    assert_eq!(block_on(slow.recv()), Ok(7));
    assert_eq!(block_on(slow.recv()), Err(RecvError::Closed));
    assert_eq!(block_on(fast.recv()), Err(RecvError::Lagged(1)));
}

#[test]
fn without_a_receiver_the_value_comes_back() {
    let (sender, receiver) = channel(2);
    drop(receiver);
    assert_eq!(sender.send(1).unwrap_err().0, 1);
    assert_eq!((sender.len(), sender.receiver_count()), (0, 0));
    let mut receiver = sender.subscribe();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.send(2).unwrap(), 1);
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn a_new_receiver_reads_what_comes_after_it() {
    let (sender, mut first) = channel(2);
    sender.send(1).unwrap();
    let mut second = first.resubscribe();
    let mut third = sender.subscribe();
    assert!(second.is_empty() && third.is_empty() && !first.is_empty());
    assert_eq!(sender.send(2).unwrap(), 3);
    assert_eq!((first.try_recv(), first.try_recv()), (Ok(1), Ok(2)));
    assert_eq!((second.try_recv(), third.try_recv()), (Ok(2), Ok(2)));
    drop(sender);
    let mut fourth = first.resubscribe();
    assert_eq!(fourth.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn senders_and_receivers_are_counted() {
    let sender = Sender::<u32>::new(2);
    assert_eq!((sender.receiver_count(), sender.strong_count()), (0, 1));
    let first = sender.subscribe();
    let second = first.resubscribe();
    let other = sender.clone();
    let weak = sender.downgrade();
    let weaker = weak.clone();
    assert_eq!((sender.receiver_count(), sender.strong_count()), (2, 2));
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 2));
    assert_eq!(
        (first.sender_strong_count(), first.sender_weak_count()),
        (2, 2)
    );
    drop((second, other, weaker));
    assert_eq!((sender.receiver_count(), sender.strong_count()), (1, 1));
    assert_eq!((sender.weak_count(), first.sender_weak_count()), (1, 1));
}

#[test]
fn a_weak_sender_does_not_keep_the_channel_open() {
    let (sender, mut receiver) = channel(2);
    let weak = sender.downgrade();
    let upgraded = weak.upgrade().unwrap();
    drop(sender);
    assert!(!receiver.is_closed());
    upgraded.send(1).unwrap();
    drop(upgraded);
    assert!(weak.upgrade().is_none() && receiver.is_closed());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn the_same_channel_is_known() {
    let (sender, receiver) = channel::<u32>(1);
    let (other_sender, other_receiver) = channel::<u32>(1);
    assert!(sender.same_channel(&sender.clone()) && !sender.same_channel(&other_sender));
    assert!(receiver.same_channel(&sender.subscribe()));
    assert!(!receiver.same_channel(&other_receiver));
}

#[test]
fn closed_waits_for_the_last_receiver() {
    let (sender, first) = channel::<u32>(1);
    let second = sender.subscribe();
    let mut closed = polled(sender.closed());
    closed.pending();
    drop(first);
    closed.pending();
    // A new one in time keeps it open.
    let third = sender.subscribe();
    drop(second);
    closed.pending();
    assert_eq!(closed.woken(), 0);
    drop(third);
    assert_eq!(closed.woken(), 1);
    closed.ready();
    polled(Sender::<u32>::new(1).closed()).ready();
}

#[test]
fn closed_goes_on_waiting_if_there_is_a_receiver_again() {
    let (sender, receiver) = channel::<u32>(1);
    let mut closed = polled(sender.closed());
    closed.pending();
    drop(receiver);
    let receiver = sender.subscribe();
    assert_eq!(closed.woken(), 1);
    closed.pending();
    drop(receiver);
    closed.ready();
}

fn waiting<'a>(receivers: &'a mut [Receiver<u32>]) -> Vec<Polled<impl Future<Output = Read> + 'a>> {
    let mut waits: Vec<_> = receivers.iter_mut().map(|r| polled(r.recv())).collect();
    waits.iter_mut().for_each(Polled::pending);
    waits
}

type Read = Result<u32, RecvError>;

#[test]
fn one_send_wakes_all_who_wait_once() {
    // One; one batch, full or not; and more.
    for count in [1, 2, 32, 33, 34, 100] {
        let sender = Sender::new(2);
        let mut receivers: Vec<_> = (0..count).map(|_| sender.subscribe()).collect();
        let mut waits = waiting(&mut receivers);
        assert_eq!(sender.send(1).unwrap(), count);
        assert!(waits.iter().all(|wait| wait.woken() == 1));
        sender.send(2).unwrap();
        assert!(waits.iter().all(|wait| wait.woken() == 1));
        assert!(waits.iter_mut().all(|wait| wait.ready() == Ok(1)));
    }
}

#[test]
fn the_end_wakes_all_who_wait() {
    let sender = Sender::new(2);
    let mut receivers: Vec<_> = (0..40).map(|_| sender.subscribe()).collect();
    let mut waits = waiting(&mut receivers);
    let other = sender.clone();
    drop(sender);
    waits.iter_mut().for_each(Polled::pending);
    drop(other);
    assert!(waits.iter().all(|wait| wait.woken() == 1));
    assert!(
        waits
            .iter_mut()
            .all(|wait| wait.ready() == Err(RecvError::Closed))
    );
}

#[test]
fn a_future_that_is_dropped_is_not_woken_and_loses_nothing() {
    let (sender, mut receiver) = channel(2);
    let mut wait = polled(receiver.recv());
    wait.pending();
    let count = wait.count();
    drop(wait);
    sender.send(1).unwrap();
    assert_eq!(count.get(), 0);
    let mut wait = polled(receiver.recv());
    assert_eq!(wait.ready(), Ok(1));
    drop(wait);
    // Woken, and dropped before it looks.
    let mut wait = polled(receiver.recv());
    wait.pending();
    sender.send(2).unwrap();
    drop(wait);
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn the_last_waker_is_woken() {
    let (sender, mut receiver) = channel(2);
    let mut wait = polled(receiver.recv());
    wait.pending();
    wait.pending();
    let first = wait.count();
    assert!(wait.poll_as_another().is_pending());
    sender.send(1).unwrap();
    assert_eq!((first.get(), wait.woken()), (0, 1));
    assert_eq!(wait.ready(), Ok(1));
}

/// A future that is polled although nobody has woken it reads, and stays in the queue until it goes.
#[test]
fn a_value_may_be_read_before_the_wake() {
    let (sender, mut receiver) = channel(2);
    let mut wait = polled(receiver.recv());
    wait.pending();
    sender.send(1).unwrap();
    assert_eq!(wait.ready(), Ok(1));
    drop(wait);
    let mut wait = polled(receiver.recv());
    wait.pending();
    drop(wait);
    sender.send(2).unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn a_waker_that_panics_loses_no_other() {
    for count in [1, 40] {
        let sender = Sender::new(2);
        let mut first = sender.subscribe();
        let mut receivers: Vec<_> = (0..count).map(|_| sender.subscribe()).collect();
        let mut panics = Box::pin(first.recv());
        let waker = panicking_waker();
        assert!(
            panics
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let waits = waiting(&mut receivers);
        assert_eq!(sender.send(1).unwrap(), count + 1);
        assert!(waits.iter().all(|wait| wait.woken() == 1));
        drop(waits);
        assert_eq!(block_on(panics), Ok(1));
        assert_eq!(receivers[0].try_recv(), Ok(1));
    }
}

#[test]
fn a_clone_that_panics_counts_as_read() {
    struct Fragile(u32);
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            assert_ne!(self.0, 0, "on purpose");
            Fragile(self.0)
        }
    }
    let (sender, mut receiver) = channel(4);
    let mut other = sender.subscribe();
    sender.send(Fragile(0)).ok().unwrap();
    sender.send(Fragile(1)).ok().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| receiver.try_recv().ok())).is_err());
    assert_eq!((receiver.len(), sender.len()), (1, 2));
    assert_eq!(receiver.try_recv().ok().unwrap().0, 1);
    assert!(catch_unwind(AssertUnwindSafe(|| block_on(other.recv()).ok())).is_err());
    assert_eq!((other.len(), sender.len()), (1, 1));
    assert_eq!(other.try_recv().ok().unwrap().0, 1);
    assert!(sender.is_empty());
}

#[test]
fn it_consumes_budget() {
    let (sender, mut receiver) = channel(256);
    for number in 0..200 {
        sender.send(number).unwrap();
    }
    with_full_budget(|| {
        for number in 0..128 {
            assert_eq!(polled(receiver.recv()).ready(), Ok(number));
        }
        let mut wait = polled(receiver.recv());
        wait.pending();
        assert_eq!(wait.woken(), 1, "the budget wakes at once");
    });
    assert_eq!(block_on(receiver.recv()), Ok(128));
    // Waiting costs nothing.
    while receiver.try_recv().is_ok() {}
    with_full_budget(|| {
        for _ in 0..200 {
            let mut wait = polled(receiver.recv());
            wait.pending();
            assert_eq!(wait.woken(), 0);
        }
    });
}

#[test]
fn blocking_recv_waits_for_a_value() {
    let (sender, mut receiver) = channel(2);
    let thread = std::thread::spawn(move || (receiver.blocking_recv(), receiver.blocking_recv()));
    sender.send(1).unwrap();
    drop(sender);
    assert_eq!(thread.join().unwrap(), (Ok(1), Err(RecvError::Closed)));
    let (_sender, mut receiver) = channel::<u32>(2);
    must_not_block(|| {
        let _ = receiver.blocking_recv();
    });
}

#[test]
#[should_panic(expected = "broadcast channel capacity cannot be zero")]
fn no_capacity_is_refused() {
    channel::<u32>(0);
}

#[test]
#[should_panic(expected = "broadcast channel capacity exceeded `usize::MAX / 2`")]
fn too_much_capacity_is_refused() {
    Sender::<u32>::new(usize::MAX / 2 + 1);
}

#[test]
fn what_it_says() {
    fn error(error: &dyn Error) -> String {
        error.to_string()
    }
    assert_eq!(error(&error::SendError(1)), "channel closed");
    assert_eq!(error(&RecvError::Closed), "channel closed");
    assert_eq!(error(&RecvError::Lagged(7)), "channel lagged by 7");
    assert_eq!(error(&TryRecvError::Empty), "channel empty");
    assert_eq!(error(&TryRecvError::Closed), "channel closed");
    assert_eq!(error(&TryRecvError::Lagged(7)), "channel lagged by 7");
    let (sender, receiver) = channel::<u32>(1);
    assert_eq!(format!("{sender:?}"), "broadcast::Sender");
    assert_eq!(format!("{:?}", sender.downgrade()), "broadcast::WeakSender");
    assert_eq!(format!("{receiver:?}"), "broadcast::Receiver");
    assert_eq!(format!("{:?}", error::SendError(1)), "SendError(1)");
}

#[test]
fn auto_traits_and_sizes() {
    fn everywhere<T: Send + Sync + Unpin>() {}
    fn future<F: Future + Send + Sync>(_: F) {}
    // A `Cell` is not `Sync`, and need not be.
    everywhere::<Sender<Cell<u32>>>();
    everywhere::<WeakSender<Cell<u32>>>();
    everywhere::<Receiver<Cell<u32>>>();
    let (sender, mut receiver) = channel::<Cell<u32>>(1);
    future(sender.closed());
    future(receiver.recv());
    assert_eq!(size_of::<Sender<u32>>(), size_of::<usize>());
}
