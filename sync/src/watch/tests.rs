use std::sync::atomic::AtomicUsize;
use std::task::{Context, Wake, Waker};

use futures::executor::block_on;
use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_first_value_counts_as_seen() {
    let (sender, mut receiver) = channel(1);
    assert!(!receiver.has_changed().unwrap());
    assert!(!receiver.borrow().has_changed());
    sender.send(2).unwrap();
    assert!(receiver.has_changed().unwrap());
    assert!(receiver.borrow().has_changed());
    assert!(receiver.borrow_and_update().has_changed());
    assert!(!receiver.has_changed().unwrap());
}

#[test]
fn every_waiting_receiver_is_woken_once_a_send() {
    let (sender, receiver) = channel(0);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut receivers = [receiver.clone(), receiver];
    let mut waits: Vec<_> = receivers
        .iter_mut()
        .map(|receiver| Box::pin(receiver.changed()))
        .collect();
    for wait in &mut waits {
        assert!(
            wait.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    sender.send(1).unwrap();
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    for mut wait in waits {
        assert!(
            wait.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
        );
    }
}

#[test]
fn the_last_value_is_seen_before_the_end() {
    let (sender, mut receiver) = channel(0);
    sender.send(1).unwrap();
    drop(sender);
    assert!(receiver.has_changed().is_err());
    assert!(block_on(receiver.changed()).is_ok());
    assert!(block_on(receiver.changed()).is_err());
    assert!(receiver.is_closed());
}

#[test]
fn a_panic_of_the_closure_leaves_the_channel_usable() {
    let (sender, mut receiver) = channel(0);
    let sent = catch_unwind(AssertUnwindSafe(|| {
        sender.send_modify(|value| {
            *value = 1;
            panic!("on purpose");
        });
    }));
    assert!(sent.is_err());
    assert!(!receiver.has_changed().unwrap());
    assert_eq!(*receiver.borrow(), 1);
    let waited = catch_unwind(AssertUnwindSafe(|| {
        drop(block_on(receiver.wait_for(|_| panic!("on purpose"))));
    }));
    assert!(waited.is_err());
    sender.send(2).unwrap();
    assert_eq!(*receiver.borrow_and_update(), 2);
}

#[test]
fn wait_for_asks_about_the_present_value_and_the_last() {
    let (sender, mut receiver) = channel(5);
    assert_eq!(
        *block_on(receiver.wait_for(|value| *value == 5)).unwrap(),
        5
    );
    let thread = std::thread::spawn(move || {
        for i in 6..=100 {
            sender.send(i).unwrap();
        }
    });
    assert_eq!(
        *block_on(receiver.wait_for(|value| *value == 100)).unwrap(),
        100
    );
    thread.join().unwrap();
    assert!(block_on(receiver.wait_for(|value| *value == 7)).is_err());
}

#[test]
fn closed_and_opened_again() {
    let (sender, receiver) = channel(0);
    drop(receiver);
    block_on(sender.closed());
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(SendError(1)));
    assert_eq!(sender.send_replace(2), 0);
    let receiver = sender.subscribe();
    assert!(!sender.is_closed());
    assert_eq!(*receiver.borrow(), 2);
    assert_eq!(sender.send(3), Ok(()));
}

#[test]
fn marks() {
    let (_sender, mut receiver) = channel(0);
    receiver.mark_changed();
    assert!(receiver.has_changed().unwrap());
    block_on(receiver.changed()).unwrap();
    assert!(!receiver.has_changed().unwrap());
    receiver.mark_changed();
    receiver.mark_unchanged();
    assert!(!receiver.has_changed().unwrap());
}

#[test]
fn no_change_is_missed_across_threads() {
    let (sender, mut receiver) = channel(0);
    let thread = std::thread::spawn(move || {
        let mut last = 0;
        while block_on(receiver.changed()).is_ok() {
            let value = *receiver.borrow_and_update();
            assert!(value >= last);
            last = value;
        }
        last
    });
    for i in 1..=50_000 {
        sender.send(i).unwrap();
    }
    drop(sender);
    assert_eq!(thread.join().unwrap(), 50_000);
}

#[derive(Clone, Debug)]
enum Op {
    Send(u8),
    ModifyIf(bool),
    Look(usize),
    Update(usize),
    Clone(usize),
    Drop(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        any::<u8>().prop_map(Op::Send),
        any::<bool>().prop_map(Op::ModifyIf),
        (0..4usize).prop_map(Op::Look),
        (0..4usize).prop_map(Op::Update),
        (0..4usize).prop_map(Op::Clone),
        (0..4usize).prop_map(Op::Drop),
    ]
}

proptest! {
    /// Against a value, a version, and what each receiver has seen.
    #[test]
    fn as_the_model(ops in prop::collection::vec(op(), 0..60)) {
        let (sender, receiver) = channel(0u8);
        let mut receivers = vec![receiver];
        let (mut value, mut version, mut seen) = (0u8, 0usize, vec![0usize]);
        for op in ops {
            match op {
                Op::Send(new) => {
                    let sent = sender.send(new);
                    prop_assert_eq!(sent.is_ok(), !receivers.is_empty());
                    if sent.is_ok() {
                        (value, version) = (new, version + 1);
                    }
                }
                Op::ModifyIf(modified) => {
                    sender.send_if_modified(|value| {
                        *value = value.wrapping_add(1);
                        modified
                    });
                    value = value.wrapping_add(1);
                    version += usize::from(modified);
                }
                Op::Look(i) if i < receivers.len() => {
                    prop_assert_eq!(*receivers[i].borrow(), value);
                    prop_assert_eq!(receivers[i].has_changed().unwrap(), seen[i] != version);
                }
                Op::Update(i) if i < receivers.len() => {
                    let borrowed = receivers[i].borrow_and_update();
                    prop_assert_eq!(*borrowed, value);
                    prop_assert_eq!(borrowed.has_changed(), seen[i] != version);
                    seen[i] = version;
                }
                Op::Clone(i) if i < receivers.len() => {
                    receivers.push(receivers[i].clone());
                    seen.push(seen[i]);
                }
                Op::Drop(i) if i < receivers.len() => {
                    receivers.remove(i);
                    seen.remove(i);
                }
                _ => {}
            }
            prop_assert_eq!(sender.receiver_count(), receivers.len());
        }
    }
}
