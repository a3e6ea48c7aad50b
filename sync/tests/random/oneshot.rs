//! The model of a channel for one value: the value, whether each half is there, and which of two wakers
//! each half was polled with last.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_sync::oneshot::error::TryRecvError;
use gmp_sync::oneshot::{Receiver, Sender, channel};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waking, cases};

#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    DropSender,
    /// With the first waker or the second.
    PollClosed(usize),
    PollRecv(usize),
    TryRecv,
    Close,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Send),
        1 => Just(Step::DropSender),
        6 => (0..2_usize).prop_map(Step::PollClosed),
        6 => (0..2_usize).prop_map(Step::PollRecv),
        2 => Just(Step::TryRecv),
        1 => Just(Step::Close),
        1 => Just(Step::DropReceiver),
    ]
}

/// The wakers of one half.
struct Wakers([Waking; 2]);

impl Wakers {
    fn new() -> Wakers {
        Wakers([Waking::new(), Waking::new()])
    }

    /// Only the waker of the last poll counts.
    fn polled(&mut self, with: usize, is_pending: bool) {
        self.forget();
        if is_pending {
            self.0[with].register();
        }
    }

    fn wake(&mut self) {
        self.0.iter_mut().for_each(Waking::wake);
    }

    /// This half has gone, or waits for nothing any more.
    fn forget(&mut self) {
        self.0.iter_mut().for_each(Waking::forget);
    }
}

fn run(steps: &[Step]) {
    let (sender, receiver) = channel();
    let mut sender: Option<Sender<u8>> = Some(sender);
    let mut receiver: Option<Receiver<u8>> = Some(receiver);
    let (mut value, mut is_closed, mut is_over) = (false, false, false);
    let (mut of_sender, mut of_receiver) = (Wakers::new(), Wakers::new());
    for step in steps {
        let expected = match () {
            () if value => Some(Ok(7)),
            () if sender.is_none() || is_closed => Some(Err(())),
            () => None,
        };
        match *step {
            Step::Send => {
                let Some(sender) = sender.take() else {
                    continue;
                };
                assert_eq!(sender.send(7).is_ok(), !is_closed);
                value = !is_closed;
                of_receiver.wake();
                of_sender.forget();
            }
            Step::DropSender => {
                if sender.take().is_some() {
                    of_receiver.wake();
                    of_sender.forget();
                }
            }
            Step::PollClosed(with) => {
                let Some(sender) = &mut sender else { continue };
                let mut cx = Context::from_waker(of_sender.0[with].waker());
                let is_ready = sender.poll_closed(&mut cx).is_ready();
                assert_eq!(is_ready, is_closed);
                of_sender.polled(with, !is_ready);
            }
            Step::PollRecv(with) => {
                let Some(receiver) = receiver.as_mut().filter(|_| !is_over) else {
                    continue;
                };
                let mut cx = Context::from_waker(of_receiver.0[with].waker());
                let polled = Pin::new(receiver).poll(&mut cx).map_err(drop);
                assert_eq!(polled, expected.map_or(Poll::Pending, Poll::Ready));
                of_receiver.polled(with, polled.is_pending());
                if polled.is_ready() {
                    (value, is_closed, is_over) = (false, true, true);
                }
            }
            Step::TryRecv => {
                let Some(receiver) = &mut receiver else {
                    continue;
                };
                let expected = match expected {
                    _ if is_over => Err(TryRecvError::Closed),
                    Some(result) => result.map_err(|()| TryRecvError::Closed),
                    None => Err(TryRecvError::Empty),
                };
                let received = receiver.try_recv();
                assert_eq!(received, expected);
                if received != Err(TryRecvError::Empty) {
                    (value, is_closed, is_over) = (false, true, true);
                }
            }
            Step::Close => {
                let Some(receiver) = &mut receiver else {
                    continue;
                };
                receiver.close();
                of_sender.wake();
                of_receiver.forget();
                is_closed = true;
            }
            Step::DropReceiver => {
                if receiver.take().is_some() {
                    of_sender.wake();
                }
                of_receiver.forget();
                (value, is_closed) = (false, true);
            }
        }
        for waking in of_sender.0.iter().chain(&of_receiver.0) {
            waking.check();
        }
        if let Some(sender) = &sender {
            assert_eq!(sender.is_closed(), is_closed);
        }
        if let Some(receiver) = &receiver {
            assert_eq!(receiver.is_empty(), !value);
            assert_eq!(receiver.is_terminated(), is_over);
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_last_waker_of_each_half_is_woken_once(steps in vec(step(), 0..40)) {
        run(&steps);
    }
}
