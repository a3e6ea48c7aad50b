//! Random programs of operations, on the channel and on the simplest thing that behaves the same.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::test_util::Polled;

#[derive(Clone, Copy, Debug)]
enum Op {
    TrySend,
    /// Starts a send, which may wait.
    Send,
    /// Polls, or gives up, one of the sends that wait.
    PollSend(usize),
    DropSend(usize),
    TryReserve(usize),
    UsePermit(usize),
    DropPermit(usize),
    TryRecv,
    Recv,
    RecvMany(usize),
    Close,
    CloneSender,
    DropSender,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => Just(Op::TrySend),
        4 => Just(Op::Send),
        3 => any::<usize>().prop_map(Op::PollSend),
        1 => any::<usize>().prop_map(Op::DropSend),
        2 => (0..4_usize).prop_map(Op::TryReserve),
        2 => any::<usize>().prop_map(Op::UsePermit),
        2 => any::<usize>().prop_map(Op::DropPermit),
        4 => Just(Op::TryRecv),
        4 => Just(Op::Recv),
        2 => (0..6_usize).prop_map(Op::RecvMany),
        1 => Just(Op::CloneSender),
        1 => Just(Op::DropSender),
    ];
    let closes = prop_oneof![9 => op, 1 => Just(Op::Close)];
    vec(closes, 0..120)
}

/// What a bounded channel is: a queue, a number of permits, and who waits in which order.
#[derive(Debug, Default)]
struct Model {
    capacity: usize,
    queue: VecDeque<u32>,
    permits: usize,
    /// Those that wait, by the number of their message, oldest first. Served ones have left.
    waiting: VecDeque<u32>,
    served: Vec<u32>,
    closed: bool,
}

impl Model {
    fn free(&self) -> usize {
        self.capacity - self.queue.len() - self.permits - self.served.len()
    }

    /// Capacity that is free goes to those who wait.
    fn serve(&mut self) {
        while !self.closed && self.free() > 0 {
            let Some(first) = self.waiting.pop_front() else {
                return;
            };
            self.served.push(first);
        }
    }

    fn is_idle(&self) -> bool {
        self.free() == self.capacity
    }
}

/// The futures borrow their sender; each owns it instead.
type Send =
    Polled<std::pin::Pin<Box<dyn std::future::Future<Output = Result<(), SendError<u32>>>>>>;

fn send(sender: Sender<u32>, value: u32) -> Send {
    polled(Box::pin(async move { sender.send(value).await }) as _)
}

struct World {
    model: Model,
    senders: Vec<Sender<u32>>,
    permits: Vec<OwnedPermit<u32>>,
    sends: Vec<(u32, Send)>,
    receiver: Receiver<u32>,
    next: u32,
}

impl World {
    fn new(capacity: usize) -> World {
        let (sender, receiver) = channel(capacity);
        World {
            model: Model {
                capacity,
                ..Model::default()
            },
            senders: vec![sender],
            permits: Vec::new(),
            sends: Vec::new(),
            receiver,
            next: 0,
        }
    }

    fn value(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Nobody can send any more, waiting sends and permits included: they own senders.
    fn is_deserted(&self) -> bool {
        self.senders.is_empty() && self.permits.is_empty() && self.sends.is_empty()
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::TrySend => self.try_send(),
            Op::Send => self.start_send(),
            Op::PollSend(which) if !self.sends.is_empty() => {
                self.poll_send(which % self.sends.len());
            }
            Op::DropSend(which) if !self.sends.is_empty() => {
                let (value, send) = self.sends.remove(which % self.sends.len());
                drop(send);
                self.model.waiting.retain(|waiting| *waiting != value);
                self.model.served.retain(|served| *served != value);
                self.model.serve();
            }
            Op::TryReserve(count) => self.try_reserve(count),
            Op::UsePermit(which) if !self.permits.is_empty() => {
                let value = self.value();
                let permit = self.permits.remove(which % self.permits.len());
                drop(permit.send(value));
                self.model.permits -= 1;
                self.model.queue.push_back(value);
            }
            Op::DropPermit(which) if !self.permits.is_empty() => {
                drop(self.permits.remove(which % self.permits.len()));
                self.model.permits -= 1;
                self.model.serve();
            }
            Op::TryRecv => self.try_recv(),
            Op::Recv => self.recv(),
            Op::RecvMany(limit) => self.recv_many(limit),
            Op::Close => {
                self.receiver.close();
                self.model.closed = true;
                self.model.waiting.clear();
            }
            Op::CloneSender => self.senders.extend(self.senders.first().cloned()),
            Op::DropSender => drop(self.senders.pop()),
            _ => {}
        }
        self.check();
    }

    fn try_send(&mut self) {
        let value = self.value();
        let Some(sender) = self.senders.last() else {
            return;
        };
        let model = &mut self.model;
        let expected = match () {
            () if model.closed => Err(TrySendError::Closed(value)),
            () if model.free() == 0 => Err(TrySendError::Full(value)),
            () => Ok(()),
        };
        assert_eq!(sender.try_send(value), expected);
        if expected.is_ok() {
            model.queue.push_back(value);
        }
    }

    fn start_send(&mut self) {
        let value = self.value();
        let Some(sender) = self.senders.first().cloned() else {
            return;
        };
        let mut send = send(sender, value);
        let polled = send.poll();
        let model = &mut self.model;
        if model.closed {
            assert_eq!(polled, Poll::Ready(Err(SendError(value))));
        } else if model.free() > 0 {
            assert_eq!(polled, Poll::Ready(Ok(())));
            model.queue.push_back(value);
        } else {
            assert_eq!(polled, Poll::Pending);
            model.waiting.push_back(value);
            self.sends.push((value, send));
        }
    }

    fn poll_send(&mut self, which: usize) {
        let (value, send) = &mut self.sends[which];
        let value = *value;
        let polled = send.poll();
        let model = &mut self.model;
        let was_served = model.served.contains(&value);
        let expected = match () {
            () if model.closed => Poll::Ready(Err(SendError(value))),
            () if was_served => Poll::Ready(Ok(())),
            () => Poll::Pending,
        };
        assert_eq!(polled, expected);
        if polled.is_ready() {
            drop(self.sends.remove(which));
            model.served.retain(|served| *served != value);
        }
        if polled == Poll::Ready(Ok(())) {
            model.queue.push_back(value);
        }
    }

    fn try_reserve(&mut self, count: usize) {
        let Some(sender) = self.senders.first() else {
            return;
        };
        for _ in 0..count {
            let model = &mut self.model;
            match sender.clone().try_reserve_owned() {
                Ok(permit) => {
                    assert!(!model.closed && model.free() > 0);
                    model.permits += 1;
                    self.permits.push(permit);
                }
                Err(TrySendError::Full(_)) => assert!(!model.closed && model.free() == 0),
                Err(TrySendError::Closed(_)) => assert!(model.closed),
            }
        }
    }

    /// What there is to receive: a message, or nothing for ever, or nothing yet.
    fn next_message(&mut self) -> Poll<Option<u32>> {
        let is_over = self.is_deserted() || self.model.closed && self.model.is_idle();
        match self.model.queue.pop_front() {
            Some(value) => {
                self.model.serve();
                Poll::Ready(Some(value))
            }
            None if is_over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn try_recv(&mut self) {
        let expected = match self.next_message() {
            Poll::Ready(Some(value)) => Ok(value),
            Poll::Ready(None) => Err(TryRecvError::Disconnected),
            Poll::Pending => Err(TryRecvError::Empty),
        };
        assert_eq!(self.receiver.try_recv(), expected);
    }

    fn recv(&mut self) {
        let expected = self.next_message();
        assert_eq!(polled(self.receiver.recv()).poll(), expected);
    }

    fn recv_many(&mut self, limit: usize) {
        let mut expected = Vec::new();
        let mut is_over = limit == 0;
        while expected.len() < limit {
            match self.model.queue.pop_front() {
                Some(value) => expected.push(value),
                None => {
                    is_over = self.is_deserted() || self.model.closed && self.model.is_idle();
                    break;
                }
            }
        }
        self.model.serve();
        let mut buffer = Vec::new();
        let polled = polled(self.receiver.recv_many(&mut buffer, limit)).poll();
        assert_eq!(buffer, expected);
        match expected.len() {
            0 if is_over => assert_eq!(polled, Poll::Ready(0)),
            0 => assert_eq!(polled, Poll::Pending),
            count => assert_eq!(polled, Poll::Ready(count)),
        }
    }

    fn check(&self) {
        let model = &self.model;
        assert_eq!(self.receiver.len(), model.queue.len());
        assert_eq!(self.receiver.capacity(), model.free());
        assert_eq!(
            self.receiver.is_closed(),
            model.closed || self.is_deserted()
        );
        for (value, send) in &self.sends {
            let served = model.served.contains(value) || model.closed;
            assert_eq!(send.woken() > 0, served, "send {value}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 300 } else { 3000 }))]

    #[test]
    fn a_bounded_channel_is_a_queue_with_permits(capacity in 1..6_usize, ops in ops()) {
        let mut world = World::new(capacity);
        for op in ops {
            world.step(op);
        }
    }

    #[test]
    fn an_unbounded_channel_is_a_queue(ops in vec(0..8_u8, 0..400)) {
        let (sender, mut receiver) = unbounded_channel();
        let mut sender = Some(sender);
        let (mut queue, mut next, mut closed) = (VecDeque::new(), 0, false);
        for op in ops {
            match (op, &sender) {
                (0..=2, Some(sender)) => {
                    next += 1;
                    let sent = sender.send(next);
                    prop_assert_eq!(sent.is_ok(), !closed);
                    if sent.is_ok() {
                        queue.push_back(next);
                    }
                }
                (3, _) if next % 7 == 6 => {
                    receiver.close();
                    closed = true;
                }
                (4, _) if next % 7 == 5 => sender = None,
                (5, _) => {
                    let expected = queue.pop_front().ok_or(match closed || sender.is_none() {
                        true => TryRecvError::Disconnected,
                        false => TryRecvError::Empty,
                    });
                    prop_assert_eq!(receiver.try_recv(), expected);
                }
                _ => {
                    let expected = match queue.pop_front() {
                        None if !closed && sender.is_some() => Poll::Pending,
                        value => Poll::Ready(value),
                    };
                    prop_assert_eq!(polled(receiver.recv()).poll(), expected);
                }
            }
            prop_assert_eq!(receiver.len(), queue.len());
            prop_assert_eq!(receiver.is_closed(), closed || sender.is_none());
        }
    }
}
