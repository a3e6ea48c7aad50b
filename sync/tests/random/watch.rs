//! The model of a watch channel: the value, how often it was sent, and up to where each receiver has seen.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use gmp_sync::watch::{Receiver, Sender, channel};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u8),
    SendReplace(u8),
    /// Modifies the value in any case, and says so or not.
    ModifyIf(bool),
    CloneSender,
    DropSender,
    Subscribe,
    CloneReceiver(usize),
    DropReceiver(usize),
    Borrow(usize),
    BorrowAndUpdate(usize),
    Mark(usize, bool),
    /// Begins to wait, or polls the future that does.
    Changed(usize),
    /// The same, for a value that can be divided by this one.
    WaitFor(usize, u8),
    /// Drops the future that waits.
    GiveUp(usize),
    Closed,
    PollClosed(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Send),
        1 => any::<u8>().prop_map(Step::SendReplace),
        2 => any::<bool>().prop_map(Step::ModifyIf),
        1 => Just(Step::CloneSender),
        1 => Just(Step::DropSender),
        1 => Just(Step::Subscribe),
        1 => at().prop_map(Step::CloneReceiver),
        2 => at().prop_map(Step::DropReceiver),
        2 => at().prop_map(Step::Borrow),
        2 => at().prop_map(Step::BorrowAndUpdate),
        1 => (at(), any::<bool>()).prop_map(|(at, changed)| Step::Mark(at, changed)),
        6 => at().prop_map(Step::Changed),
        6 => (at(), 1..4_u8).prop_map(|(at, divisor)| Step::WaitFor(at, divisor)),
        2 => at().prop_map(Step::GiveUp),
        1 => Just(Step::Closed),
        2 => at().prop_map(Step::PollClosed),
    ]
}

/// What `changed` and `wait_for` end with: the value, which `changed` does not tell.
type Outcome = Result<Option<u8>, ()>;

struct Reader {
    /// It has the receiver borrowed. The divisor is that of `wait_for`.
    wait: Option<(Waiting<Outcome>, Option<u8>)>,
    receiver: Rc<RefCell<Receiver<u8>>>,
    /// The version it has seen; `None` when it was marked as changed.
    seen: Option<u64>,
    /// Of `wait_for`: the version that it has looked at.
    asked: Option<u64>,
}

struct World {
    senders: Vec<Rc<Sender<u8>>>,
    readers: Vec<Reader>,
    closed: Vec<Waiting<()>>,
    value: u8,
    version: u64,
}

impl Reader {
    fn new(receiver: Receiver<u8>, seen: Option<u64>) -> Reader {
        Reader {
            wait: None,
            receiver: Rc::new(RefCell::new(receiver)),
            seen,
            asked: None,
        }
    }

    fn is_changed(&self, world: &Model) -> bool {
        self.seen != Some(world.version)
    }

    fn poll(&mut self, divisor: Option<u8>, model: &Model) {
        let receiver = self.receiver.clone();
        let (wait, divisor) = self
            .wait
            .get_or_insert_with(|| (wait(receiver, divisor), divisor));
        let polled = wait.poll();
        let expected = match *divisor {
            None if self.seen != Some(model.version) => {
                self.seen = Some(model.version);
                Poll::Ready(Ok(None))
            }
            None if model.is_closed => Poll::Ready(Err(())),
            None => Poll::Pending,
            Some(divisor) => {
                // A value is shown to the closure once, and counts as seen.
                let is_new = self.asked != Some(model.version) || self.seen != Some(model.version);
                self.asked = Some(model.version);
                self.seen = Some(model.version);
                match model.value % divisor {
                    0 if is_new => Poll::Ready(Ok(Some(model.value))),
                    _ if model.is_closed => Poll::Ready(Err(())),
                    _ => Poll::Pending,
                }
            }
        };
        assert_eq!(polled, expected);
        if polled.is_ready() {
            self.wait = None;
            self.asked = None;
        }
    }
}

#[expect(
    clippy::await_holding_refcell_ref,
    reason = "nobody borrows the receiver while there is a future that waits"
)]
fn wait(receiver: Rc<RefCell<Receiver<u8>>>, divisor: Option<u8>) -> Waiting<Outcome> {
    Waiting::new(async move {
        let mut receiver = receiver.borrow_mut();
        let Some(divisor) = divisor else {
            return receiver.changed().await.map(|()| None).map_err(drop);
        };
        let found = receiver.wait_for(|value| *value % divisor == 0).await;
        found.map(|value| Some(*value)).map_err(drop)
    })
}

/// What a reader has to know of the world.
struct Model {
    value: u8,
    version: u64,
    is_closed: bool,
}

impl World {
    fn new() -> World {
        let (sender, receiver) = channel(0);
        World {
            senders: vec![Rc::new(sender)],
            readers: vec![Reader::new(receiver, Some(0))],
            closed: Vec::new(),
            value: 0,
            version: 0,
        }
    }

    fn model(&self) -> Model {
        Model {
            value: self.value,
            version: self.version,
            is_closed: !self.has_sender(),
        }
    }

    /// A future that waits for the receivers to go owns a sender.
    fn has_sender(&self) -> bool {
        !self.senders.is_empty() || !self.closed.is_empty()
    }

    fn changed(&mut self) {
        self.version += 1;
        self.wake_readers();
    }

    fn wake_readers(&mut self) {
        for reader in &mut self.readers {
            if let Some((wait, _)) = &mut reader.wait {
                wait.waking.wake();
            }
        }
    }

    fn pick(&self, number: usize) -> Option<usize> {
        pick(number, self.readers.len())
    }

    /// A reader that does not wait.
    fn idle(&mut self, number: usize) -> Option<&mut Reader> {
        let at = self.pick(number)?;
        Some(&mut self.readers[at]).filter(|reader| reader.wait.is_none())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(_) | Step::SendReplace(_) | Step::ModifyIf(_) => self.send(step),
            Step::CloneSender => {
                let copy = self
                    .senders
                    .first()
                    .map(|sender| Rc::new((**sender).clone()));
                self.senders.extend(copy);
            }
            Step::DropSender => {
                let had_sender = self.has_sender();
                drop(self.senders.pop());
                if had_sender && !self.has_sender() {
                    self.wake_readers();
                }
            }
            Step::Subscribe => {
                if let Some(sender) = self.senders.first() {
                    let receiver = sender.subscribe();
                    self.readers.push(Reader::new(receiver, Some(self.version)));
                }
            }
            Step::CloneReceiver(number) => {
                if let Some(reader) = self.idle(number) {
                    let copy = reader.receiver.borrow().clone();
                    let seen = reader.seen;
                    self.readers.push(Reader::new(copy, seen));
                }
            }
            Step::DropReceiver(number) => {
                if let Some(at) = self.pick(number) {
                    drop(self.readers.swap_remove(at));
                    if self.readers.is_empty() {
                        self.closed.iter_mut().for_each(|wait| wait.waking.wake());
                    }
                }
            }
            Step::Borrow(_) | Step::BorrowAndUpdate(_) | Step::Mark(..) => self.look(step),
            Step::Changed(number) => self.poll(number, None),
            Step::WaitFor(number, divisor) => self.poll(number, Some(divisor)),
            Step::GiveUp(number) => {
                if let Some(at) = self.pick(number) {
                    self.readers[at].wait = None;
                    self.readers[at].asked = None;
                }
            }
            Step::Closed => {
                let Some(sender) = self.senders.first().cloned() else {
                    return;
                };
                let mut wait = Waiting::new(async move { sender.closed().await });
                assert_eq!(wait.poll().is_ready(), self.readers.is_empty());
                if !self.readers.is_empty() {
                    self.closed.push(wait);
                }
            }
            Step::PollClosed(number) => self.poll_closed(number),
        }
        self.check();
    }

    fn send(&mut self, step: Step) {
        let Some(sender) = self.senders.last() else {
            return;
        };
        match step {
            Step::Send(value) => {
                let sent = sender.send(value);
                assert_eq!(sent.is_ok(), !self.readers.is_empty());
                if sent.is_ok() {
                    self.value = value;
                    self.changed();
                }
            }
            Step::SendReplace(value) => {
                assert_eq!(sender.send_replace(value), self.value);
                self.value = value;
                self.changed();
            }
            Step::ModifyIf(says_so) => {
                let said = sender.send_if_modified(|value| {
                    *value = value.wrapping_add(1);
                    says_so
                });
                assert_eq!(said, says_so);
                self.value = self.value.wrapping_add(1);
                if says_so {
                    self.changed();
                }
            }
            _ => unreachable!("not a way to send"),
        }
    }

    fn look(&mut self, step: Step) {
        let model = self.model();
        let (Step::Borrow(number) | Step::BorrowAndUpdate(number) | Step::Mark(number, _)) = step
        else {
            unreachable!("not a way to look");
        };
        let Some(reader) = self.idle(number) else {
            return;
        };
        let is_changed = reader.is_changed(&model);
        let receiver = reader.receiver.clone();
        match step {
            Step::Borrow(_) => {
                let receiver = receiver.borrow();
                let value = receiver.borrow();
                assert_eq!((*value, value.has_changed()), (model.value, is_changed));
            }
            Step::BorrowAndUpdate(_) => {
                let mut receiver = receiver.borrow_mut();
                let value = receiver.borrow_and_update();
                assert_eq!((*value, value.has_changed()), (model.value, is_changed));
                reader.seen = Some(model.version);
            }
            Step::Mark(_, true) => {
                receiver.borrow_mut().mark_changed();
                reader.seen = None;
            }
            _ => {
                receiver.borrow_mut().mark_unchanged();
                reader.seen = Some(model.version);
            }
        }
    }

    fn poll(&mut self, number: usize, divisor: Option<u8>) {
        let model = self.model();
        if let Some(at) = self.pick(number) {
            self.readers[at].poll(divisor, &model);
        }
    }

    fn poll_closed(&mut self, number: usize) {
        let Some(at) = pick(number, self.closed.len()) else {
            return;
        };
        let is_ready = self.closed[at].poll().is_ready();
        assert_eq!(is_ready, self.readers.is_empty());
        if is_ready {
            drop(self.closed.remove(at));
        }
    }

    fn check(&self) {
        let model = self.model();
        for sender in &self.senders {
            assert_eq!(sender.receiver_count(), self.readers.len());
            assert_eq!(sender.is_closed(), self.readers.is_empty());
        }
        for reader in &self.readers {
            match &reader.wait {
                Some((wait, _)) => wait.waking.check(),
                None if model.is_closed => {
                    assert!(reader.receiver.borrow().has_changed().is_err());
                }
                None => {
                    let has_changed = reader.receiver.borrow().has_changed();
                    assert_eq!(has_changed.ok(), Some(reader.is_changed(&model)));
                }
            }
        }
        self.closed.iter().for_each(|wait| wait.waking.check());
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_watch_channel_is_a_value_and_a_version(steps in vec(step(), 0..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}
