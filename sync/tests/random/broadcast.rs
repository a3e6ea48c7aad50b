//! Who keeps a broadcast channel open, and who is told of its end. The model is a few counts; what is received
//! has a model beside the code.

use std::cell::RefCell;
use std::rc::Rc;

use gmp_sync::broadcast::error::RecvError;
use gmp_sync::broadcast::{Receiver, Sender, WeakSender, channel};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    CloneSender,
    DropSender(usize),
    Downgrade,
    Upgrade(usize),
    DropWeak(usize),
    Subscribe,
    DropReceiver(usize),
    Recv(usize),
    GiveUp(usize),
    Closed,
    PollClosed(usize),
    GiveUpClosed(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    prop_oneof![
        2 => Just(Step::CloneSender),
        4 => at().prop_map(Step::DropSender),
        2 => Just(Step::Downgrade),
        4 => at().prop_map(Step::Upgrade),
        1 => at().prop_map(Step::DropWeak),
        2 => Just(Step::Subscribe),
        4 => at().prop_map(Step::DropReceiver),
        6 => at().prop_map(Step::Recv),
        1 => at().prop_map(Step::GiveUp),
        2 => Just(Step::Closed),
        3 => at().prop_map(Step::PollClosed),
        2 => at().prop_map(Step::GiveUpClosed),
    ]
}

struct Reader {
    /// It has the receiver borrowed.
    recv: Option<Waiting<Result<(), RecvError>>>,
    receiver: Rc<RefCell<Receiver<()>>>,
}

impl Reader {
    fn new(receiver: Receiver<()>) -> Reader {
        Reader {
            recv: None,
            receiver: Rc::new(RefCell::new(receiver)),
        }
    }
}

#[expect(
    clippy::await_holding_refcell_ref,
    reason = "nobody borrows the receiver while there is a future that waits"
)]
fn recv(receiver: Rc<RefCell<Receiver<()>>>) -> Waiting<Result<(), RecvError>> {
    Waiting::new(async move { receiver.borrow_mut().recv().await })
}

struct World {
    senders: Vec<Rc<Sender<()>>>,
    weak: Vec<WeakSender<()>>,
    readers: Vec<Reader>,
    /// Each owns a sender.
    closed: Vec<Waiting<()>>,
}

impl World {
    fn has_sender(&self) -> bool {
        !self.senders.is_empty() || !self.closed.is_empty()
    }

    fn step(&mut self, step: Step) {
        let had_sender = self.has_sender();
        let reader = |number| pick(number, self.readers.len());
        match step {
            Step::CloneSender => {
                let copy = self
                    .senders
                    .first()
                    .map(|sender| Rc::new((**sender).clone()));
                self.senders.extend(copy);
            }
            Step::DropSender(number) => {
                if let Some(at) = pick(number, self.senders.len()) {
                    self.senders.swap_remove(at);
                }
            }
            Step::Downgrade => {
                self.weak
                    .extend(self.senders.first().map(|sender| sender.downgrade()));
            }
            Step::Upgrade(number) => {
                let Some(at) = pick(number, self.weak.len()) else {
                    return;
                };
                let upgraded = self.weak[at].upgrade();
                assert_eq!(upgraded.is_some(), had_sender);
                self.senders.extend(upgraded.map(Rc::new));
            }
            Step::DropWeak(number) => {
                if let Some(at) = pick(number, self.weak.len()) {
                    self.weak.swap_remove(at);
                }
            }
            Step::Subscribe => {
                let receiver = self.senders.first().map(|sender| sender.subscribe());
                self.readers.extend(receiver.map(Reader::new));
            }
            Step::DropReceiver(number) => {
                let Some(at) = reader(number) else { return };
                self.readers.swap_remove(at);
                if self.readers.is_empty() {
                    self.closed.iter_mut().for_each(|wait| wait.waking.wake());
                }
            }
            Step::Recv(number) => {
                let Some(at) = reader(number) else { return };
                let Reader {
                    recv: wait,
                    receiver,
                } = &mut self.readers[at];
                let wait_now = wait.get_or_insert_with(|| recv(receiver.clone()));
                let polled = wait_now.poll();
                assert_eq!(polled.is_ready(), !had_sender);
                if polled.is_ready() {
                    *wait = None;
                }
            }
            Step::GiveUp(number) => {
                let Some(at) = reader(number) else { return };
                self.readers[at].recv = None;
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
            Step::PollClosed(number) => {
                let Some(at) = pick(number, self.closed.len()) else {
                    return;
                };
                let is_ready = self.closed[at].poll().is_ready();
                assert_eq!(is_ready, self.readers.is_empty());
                if is_ready {
                    self.closed.swap_remove(at);
                }
            }
            Step::GiveUpClosed(number) => {
                if let Some(at) = pick(number, self.closed.len()) {
                    self.closed.swap_remove(at);
                }
            }
        }
        if had_sender && !self.has_sender() {
            for reader in &mut self.readers {
                reader.recv.iter_mut().for_each(|recv| recv.waking.wake());
            }
        }
        self.check();
    }

    fn check(&self) {
        self.closed.iter().for_each(|wait| wait.waking.check());
        for sender in &self.senders {
            assert_eq!(sender.receiver_count(), self.readers.len());
            assert_eq!(sender.weak_count(), self.weak.len());
        }
        for reader in &self.readers {
            match &reader.recv {
                Some(recv) => recv.waking.check(),
                None => assert_eq!(reader.receiver.borrow().is_closed(), !self.has_sender()),
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_broadcast_channel_tells_each_side_of_the_other(steps in vec(step(), 0..100)) {
        let (sender, receiver) = channel(4);
        let mut world = World {
            senders: vec![Rc::new(sender)],
            weak: Vec::new(),
            readers: vec![Reader::new(receiver)],
            closed: Vec::new(),
        };
        for step in steps {
            world.step(step);
        }
    }
}
