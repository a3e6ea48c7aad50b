//! Who keeps a channel open, and who is told of what: senders, weak ones, those who wait for the receiver to
//! go, and the receiver that waits. The model is a queue and some counts.
//!
//! The programs are the same for both channels. The bounded one never gets full here: its capacity has a
//! model beside the code.

use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    CloneSender,
    DropSender(usize),
    Downgrade,
    Upgrade(usize),
    DropWeak(usize),
    Closed,
    PollClosed(usize),
    /// Begins to wait, or polls the future that does; `usize` messages at most.
    Recv(usize),
    GiveUp,
    TryRecv,
    Close,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    prop_oneof![
        20 => Just(Step::Send),
        4 => Just(Step::CloneSender),
        6 => at().prop_map(Step::DropSender),
        3 => Just(Step::Downgrade),
        4 => at().prop_map(Step::Upgrade),
        2 => at().prop_map(Step::DropWeak),
        3 => Just(Step::Closed),
        4 => at().prop_map(Step::PollClosed),
        20 => (1..4_usize).prop_map(Step::Recv),
        4 => Just(Step::GiveUp),
        6 => Just(Step::TryRecv),
        1 => Just(Step::Close),
        1 => Just(Step::DropReceiver),
    ]
}

macro_rules! programs {
    ($name:ident, $property:ident, $Sender:ident, $Receiver:ident, $Weak:ident, $channel:expr, $send:expr) => {
        mod $name {
            use std::cell::RefCell;
            use std::collections::VecDeque;
            use std::rc::Rc;
            use std::task::Poll;

            use gmp_sync::mpsc::error::TryRecvError;
            use gmp_sync::mpsc::{$Receiver, $Sender, $Weak};
            use proptest::collection::vec;
            use proptest::prelude::*;

            use super::{Step, step};
            use crate::support::{Waiting, cases, pick};

            struct World {
                senders: Vec<Rc<$Sender<u32>>>,
                weak: Vec<$Weak<u32>>,
                /// Each owns a sender.
                closed: Vec<Waiting<()>>,
                receiver: Option<Rc<RefCell<$Receiver<u32>>>>,
                /// Has the receiver borrowed.
                recv: Option<Waiting<Vec<u32>>>,
                /// How many messages it takes at most.
                limit: usize,
                queue: VecDeque<u32>,
                is_closed: bool,
                next: u32,
            }

            #[expect(
                clippy::await_holding_refcell_ref,
                reason = "nobody borrows the receiver while there is a future that waits"
            )]
            fn recv(receiver: Rc<RefCell<$Receiver<u32>>>, limit: usize) -> Waiting<Vec<u32>> {
                Waiting::new(async move {
                    let mut receiver = receiver.borrow_mut();
                    if limit == 1 {
                        return receiver.recv().await.into_iter().collect();
                    }
                    let mut buffer = Vec::new();
                    let count = receiver.recv_many(&mut buffer, limit).await;
                    assert_eq!(count, buffer.len());
                    buffer
                })
            }

            impl World {
                fn new() -> World {
                    let (sender, receiver) = $channel;
                    World {
                        senders: vec![Rc::new(sender)],
                        weak: Vec::new(),
                        closed: Vec::new(),
                        receiver: Some(Rc::new(RefCell::new(receiver))),
                        recv: None,
                        limit: 0,
                        queue: VecDeque::new(),
                        is_closed: false,
                        next: 0,
                    }
                }

                fn has_sender(&self) -> bool {
                    !self.senders.is_empty() || !self.closed.is_empty()
                }

                fn wake_receiver(&mut self) {
                    if let Some(recv) = &mut self.recv {
                        recv.waking.wake();
                    }
                }

                /// The receiver has closed the channel, or gone.
                fn close(&mut self) {
                    if !std::mem::replace(&mut self.is_closed, true) {
                        self.closed.iter_mut().for_each(|wait| wait.waking.wake());
                    }
                }

                fn step(&mut self, step: Step) {
                    let had_sender = self.has_sender();
                    match step {
                        Step::Send => {
                            self.next += 1;
                            let Some(sender) = self.senders.last() else {
                                return;
                            };
                            let send: fn(&$Sender<u32>, u32) -> bool = $send;
                            assert_eq!(send(sender, self.next), !self.is_closed);
                            if !self.is_closed {
                                self.queue.push_back(self.next);
                                self.wake_receiver();
                            }
                        }
                        Step::CloneSender => {
                            let copy = self
                                .senders
                                .first()
                                .map(|sender| Rc::new((**sender).clone()));
                            self.senders.extend(copy);
                        }
                        Step::DropSender(number) => {
                            if let Some(at) = pick(number, self.senders.len()) {
                                drop(self.senders.swap_remove(at));
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
                                drop(self.weak.swap_remove(at));
                            }
                        }
                        Step::Closed => {
                            let Some(sender) = self.senders.first().cloned() else {
                                return;
                            };
                            let mut wait = Waiting::new(async move { sender.closed().await });
                            assert_eq!(wait.poll().is_ready(), self.is_closed);
                            if !self.is_closed {
                                self.closed.push(wait);
                            }
                        }
                        Step::PollClosed(number) => {
                            let Some(at) = pick(number, self.closed.len()) else {
                                return;
                            };
                            let is_ready = self.closed[at].poll().is_ready();
                            assert_eq!(is_ready, self.is_closed);
                            if is_ready {
                                drop(self.closed.swap_remove(at));
                            }
                        }
                        Step::Recv(limit) => self.recv(limit),
                        Step::GiveUp => self.recv = None,
                        Step::TryRecv if self.recv.is_none() => self.try_recv(),
                        Step::Close if self.recv.is_none() => {
                            if let Some(receiver) = &self.receiver {
                                receiver.borrow_mut().close();
                                self.close();
                            }
                        }
                        Step::DropReceiver => {
                            self.recv = None;
                            if self.receiver.take().is_some() {
                                self.queue.clear();
                                self.close();
                            }
                        }
                        Step::TryRecv | Step::Close => {}
                    }
                    if had_sender && !self.has_sender() {
                        self.wake_receiver();
                    }
                    self.check();
                }

                fn recv(&mut self, limit: usize) {
                    let Some(receiver) = self.receiver.clone() else {
                        return;
                    };
                    let is_over = self.is_closed || !self.has_sender();
                    let wait = self.recv.get_or_insert_with(|| {
                        self.limit = limit;
                        recv(receiver, limit)
                    });
                    let polled = wait.poll();
                    let count = self.limit.min(self.queue.len());
                    let expected = match count == 0 && !is_over {
                        true => Poll::Pending,
                        false => Poll::Ready(self.queue.drain(..count).collect()),
                    };
                    assert_eq!(polled, expected);
                    if polled.is_ready() {
                        self.recv = None;
                    }
                }

                fn try_recv(&mut self) {
                    let Some(receiver) = &self.receiver else {
                        return;
                    };
                    let expected = match self.queue.pop_front() {
                        Some(value) => Ok(value),
                        None if self.is_closed || !self.has_sender() => {
                            Err(TryRecvError::Disconnected)
                        }
                        None => Err(TryRecvError::Empty),
                    };
                    assert_eq!(receiver.borrow_mut().try_recv(), expected);
                }

                fn check(&self) {
                    self.closed.iter().for_each(|wait| wait.waking.check());
                    for sender in &self.senders {
                        assert_eq!(sender.is_closed(), self.is_closed);
                        assert_eq!(sender.weak_count(), self.weak.len());
                    }
                    match (&self.recv, &self.receiver) {
                        (Some(recv), _) => recv.waking.check(),
                        (None, Some(receiver)) => {
                            let receiver = receiver.borrow();
                            assert_eq!(receiver.len(), self.queue.len());
                            assert_eq!(receiver.is_closed(), self.is_closed || !self.has_sender());
                            assert_eq!(receiver.sender_weak_count(), self.weak.len());
                        }
                        (None, None) => {}
                    }
                }
            }

            proptest! {
                #![proptest_config(cases())]

                #[test]
                fn $property(steps in vec(step(), 0..120)) {
                    let mut world = World::new();
                    for step in steps {
                        world.step(step);
                    }
                }
            }
        }
    };
}

programs!(
    bounded,
    a_bounded_channel_tells_each_side_of_the_other,
    Sender,
    Receiver,
    WeakSender,
    gmp_sync::mpsc::channel(200),
    |sender, value| sender.try_send(value).is_ok()
);

programs!(
    unbounded,
    an_unbounded_channel_tells_each_side_of_the_other,
    UnboundedSender,
    UnboundedReceiver,
    WeakUnboundedSender,
    gmp_sync::mpsc::unbounded_channel(),
    |sender, value| sender.send(value).is_ok()
);
