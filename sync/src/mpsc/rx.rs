//! The receiver's half of a channel, and how it waits.
//!
//! Receive: (1) pop. (2) If there is nothing, see to it that the place of the waker is the
//! receiver's: the last waker was taken, or is withdrawn. For a sender that is just now taking it the
//! receiver does not wait, but has itself polled again. (3) Put the waker there, and say in the block's
//! word that the receiver waits for the slot. If the slot was published meanwhile, take the waker back
//! and begin again.
//!
//! After `close` the receiver may be waiting for permits to come back, which is no message: then
//! it leaves its waker with the flavour too, before it looks whether the channel is idle.

use std::fmt;
use std::ops::ControlFlow;
use std::task::{Context, Poll, Waker, ready};

use gmp_executor::loom::{Arc, thread};
use gmp_executor::wait::WaitReason;

use super::block::Wait;
use super::chan::{Chan, Counts, Flavour};
use super::error::TryRecvError;
use super::list::{Head, Pop};
use super::word::distance;
use crate::primitives::{poll_proceed, record};

/// The receiver's part of a channel.
pub(super) struct Receiving<T, L> {
    pub(super) head: Head<T, L>,
    /// A waker was put into its place, and not got back.
    armed: bool,
    /// Where senders stood when the receiver closed the channel.
    closed_at: Option<u64>,
}

impl<T, L> Receiving<T, L> {
    pub(super) fn new(head: Head<T, L>) -> Self {
        Receiving {
            head,
            armed: false,
            closed_at: None,
        }
    }
}

/// The receiver's half of a channel.
pub(super) struct Rx<T, F: Flavour> {
    chan: Arc<Chan<T, F>>,
}

/// What the receiver found when it wanted to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum Arm {
    /// Whoever publishes the next value will wake it.
    Armed,
    /// The next value is there, or the end.
    Look,
    /// A sender is just now taking the waker of an earlier wait.
    Busy,
}

impl<T, F: Flavour> Rx<T, F> {
    /// The channel's only one.
    pub(super) fn new(chan: Arc<Chan<T, F>>) -> Self {
        Rx { chan }
    }

    pub(super) fn flavour(&self) -> &F {
        &self.chan.flavour
    }

    pub(super) fn counts(&self) -> Counts {
        self.chan.counts()
    }

    /// Calls `f` with the channel and the receiver's part of it.
    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&Chan<T, F>, &mut Receiving<T, F::Layout>) -> R) -> R {
        self.chan.receiver.0.with_mut(|receiver| {
            // SAFETY: `receiver` belongs to the only `Rx`, which is borrowed mutably.
            let receiver = unsafe { &mut *receiver };
            f(&self.chan, receiver)
        })
    }

    fn look<R>(&self, f: impl FnOnce(&Chan<T, F>, &Receiving<T, F::Layout>) -> R) -> R {
        self.chan.receiver.0.with(|receiver| {
            // SAFETY: `receiver` belongs to the only `Rx`, and changes only while that is borrowed
            // mutably.
            let receiver = unsafe { &*receiver };
            f(&self.chan, receiver)
        })
    }

    pub(super) fn close(&mut self) {
        self.with(Chan::close);
    }

    pub(super) fn is_closed(&self) -> bool {
        let tail = self.chan.word().load();
        tail.is_closed() || tail.is_ended()
    }

    pub(super) fn len(&self) -> usize {
        self.look(|chan, receiver| chan.len(receiver) as usize)
    }

    #[inline]
    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let coop = ready!(poll_proceed(cx));
        let polled = self.with(|chan, receiver| chan.poll_next(receiver, cx.waker()));
        if polled.is_ready() {
            coop.made_progress();
        }
        polled
    }

    pub(super) fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        let coop = ready!(poll_proceed(cx));
        let polled = match limit {
            0 => Poll::Ready(0),
            limit => {
                self.with(|chan, receiver| chan.poll_many(receiver, cx.waker(), buffer, limit))
            }
        };
        if polled.is_ready() {
            coop.made_progress();
        }
        polled
    }

    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.with(Chan::try_next) {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(()) => self.with(Chan::await_sender),
        }
    }
}

impl<T, F: Flavour> Chan<T, F> {
    fn len(&self, receiver: &Receiving<T, F::Layout>) -> u64 {
        let end = self.flavour.end(self.word().load(), receiver.closed_at);
        distance::<F::Layout>(receiver.head.position(), end)
    }

    fn close(&self, receiver: &mut Receiving<T, F::Layout>) {
        if receiver.closed_at.is_none() {
            receiver.closed_at = Some(self.word().close().end());
            self.flavour.closed();
            self.closing.notify_waiters();
        }
    }

    /// Takes the next value, or sees to it that the waker is woken when there is one.
    #[inline]
    fn poll_next(&self, receiver: &mut Receiving<T, F::Layout>, waker: &Waker) -> Poll<Option<T>> {
        loop {
            match receiver.head.pop(&self.blocks) {
                Pop::Value(value) => {
                    self.flavour.received(receiver.head.position());
                    return Poll::Ready(Some(value));
                }
                Pop::Ended => return Poll::Ready(None),
                Pop::Empty => match self.wait(receiver, waker) {
                    ControlFlow::Break(Poll::Ready(())) => return Poll::Ready(None),
                    ControlFlow::Break(Poll::Pending) => return Poll::Pending,
                    ControlFlow::Continue(()) => {}
                },
            }
        }
    }

    fn poll_many(
        &self,
        receiver: &mut Receiving<T, F::Layout>,
        waker: &Waker,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        let before = buffer.len();
        loop {
            let mut pop = Pop::Empty;
            while buffer.len() - before < limit {
                pop = receiver.head.pop(&self.blocks);
                let Pop::Value(value) = pop else { break };
                buffer.push(value);
                pop = Pop::Empty;
            }
            let count = buffer.len() - before;
            if count > 0 {
                self.flavour.received(receiver.head.position());
                return Poll::Ready(count);
            }
            if let Pop::Ended = pop {
                return Poll::Ready(0);
            }
            match self.wait(receiver, waker) {
                ControlFlow::Break(polled) => return polled.map(|()| 0),
                ControlFlow::Continue(()) => {}
            }
        }
    }

    /// There is no value. Breaks with `Ready` if there never will be, with `Pending` if the waker
    /// will be woken; otherwise there may be one now.
    #[cold]
    fn wait(&self, receiver: &mut Receiving<T, F::Layout>, waker: &Waker) -> ControlFlow<Poll<()>> {
        if let Some(end) = receiver.closed_at {
            let position = receiver.head.position();
            if !self.flavour.is_idle(position, end) {
                self.flavour.set_idle_waker(Some(waker.clone()));
            }
            if self.flavour.is_idle(position, end) {
                return ControlFlow::Break(Poll::Ready(()));
            }
        }
        match self.arm(receiver, waker) {
            Arm::Armed => {}
            Arm::Look => return ControlFlow::Continue(()),
            Arm::Busy => waker.wake_by_ref(),
        }
        record(WaitReason::MpscRecv);
        ControlFlow::Break(Poll::Pending)
    }

    /// Sees to it that whoever publishes the next value wakes `waker`.
    fn arm(&self, receiver: &mut Receiving<T, F::Layout>, waker: &Waker) -> Arm {
        if receiver.armed && receiver.head.is_waiting() {
            // SAFETY: this is the receiver, which is armed.
            if unsafe { self.waker.will_wake(waker) } {
                return Arm::Armed;
            }
        }
        // Cloned, and the old one dropped, where a panic does no harm.
        let waker = waker.clone();
        match self.disarm(receiver) {
            Ok(old) => drop(old),
            Err(arm) => return arm,
        }
        // SAFETY: this is the receiver, and it is not armed: the place is its own.
        unsafe { self.waker.put(waker) };
        match receiver.head.wait(&self.blocks) {
            Wait::Done => {
                receiver.armed = true;
                Arm::Armed
            }
            Wait::TooLate => {
                // SAFETY: the waker was just put there, and nobody knows of it.
                drop(unsafe { self.waker.read() });
                Arm::Look
            }
        }
    }

    /// Gets the place of the waker back, with the waker if it was not taken.
    fn disarm(&self, receiver: &mut Receiving<T, F::Layout>) -> Result<Option<Waker>, Arm> {
        if !receiver.armed {
            return Ok(None);
        }
        if receiver.head.is_waiting() {
            match receiver.head.stop_waiting(&self.blocks) {
                Wait::TooLate => return Err(Arm::Look),
                Wait::Done => {
                    receiver.armed = false;
                    // SAFETY: the wish to wait was withdrawn before anybody was chosen.
                    return Ok(Some(unsafe { self.waker.read() }));
                }
            }
        }
        for _ in 0..TAKING_LOOKS {
            if self.waker.was_taken() {
                receiver.armed = false;
                return Ok(None);
            }
            spin();
        }
        Err(Arm::Busy)
    }

    /// Takes the next value. Goes on if a sender is about to publish it.
    fn try_next(
        &self,
        receiver: &mut Receiving<T, F::Layout>,
    ) -> ControlFlow<Result<T, TryRecvError>> {
        // Before the look at the queue, so that what was sent before this call is found.
        let length = self.len(receiver);
        ControlFlow::Break(match receiver.head.pop(&self.blocks) {
            Pop::Value(value) => {
                self.flavour.received(receiver.head.position());
                Ok(value)
            }
            Pop::Ended => Err(TryRecvError::Disconnected),
            Pop::Empty if length > 0 => return ControlFlow::Continue(()),
            Pop::Empty => Err(self.nothing(receiver)),
        })
    }

    fn nothing(&self, receiver: &Receiving<T, F::Layout>) -> TryRecvError {
        let is_idle = match receiver.closed_at {
            Some(end) => self.flavour.is_idle(receiver.head.position(), end),
            None => self.word().load().is_ended() && self.len(receiver) == 0,
        };
        match is_idle {
            true => TryRecvError::Disconnected,
            false => TryRecvError::Empty,
        }
    }

    /// A sender has claimed the next position. What it sends is on its way, and messages behind it
    /// may be complete: waits for it, on this thread.
    #[cold]
    fn await_sender(&self, receiver: &mut Receiving<T, F::Layout>) -> Result<T, TryRecvError> {
        for _ in 0..SENDING_LOOKS {
            if let ControlFlow::Break(outcome) = self.try_next(receiver) {
                return outcome;
            }
            spin();
        }
        if let Ok(Some(task)) = self.disarm(receiver) {
            // The task that waited would be woken for this message. This thread takes its place.
            task.wake();
        }
        let waker = thread_waker();
        loop {
            if let ControlFlow::Break(outcome) = self.try_next(receiver) {
                return outcome;
            }
            match self.arm(receiver, &waker) {
                Arm::Armed => thread::park(),
                Arm::Look => {}
                Arm::Busy => thread::yield_now(),
            }
        }
    }
}

/// How often the receiver looks whether a sender has taken its waker, which takes the sender one
/// store, before it gives the thread away.
const TAKING_LOOKS: usize = if cfg!(gmp_loom) { 1 } else { 32 };

/// How often `try_recv` looks whether a sender has published what it is about to.
const SENDING_LOOKS: usize = if cfg!(gmp_loom) { 1 } else { 100 };

fn spin() {
    // For loom this is a yield, after which it forgets that the thread was unparked. The models look
    // once and need none.
    #[cfg(not(gmp_loom))]
    gmp_executor::loom::hint::spin_loop();
}

/// A waker that unparks this thread.
fn thread_waker() -> Waker {
    struct Unpark(thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(std::sync::Arc::new(Unpark(thread::current())))
}

impl<T, F: Flavour> Drop for Rx<T, F> {
    fn drop(&mut self) {
        /// Drops the values that are left also when the destructor of one panics.
        struct Drain<'a, T, F: Flavour> {
            chan: &'a Chan<T, F>,
            receiver: &'a mut Receiving<T, F::Layout>,
        }
        impl<T, F: Flavour> Drain<'_, T, F> {
            fn drain(&mut self) {
                while let Pop::Value(_) = self.receiver.head.pop(&self.chan.blocks) {}
                self.chan.flavour.received(self.receiver.head.position());
            }
        }
        impl<T, F: Flavour> Drop for Drain<'_, T, F> {
            fn drop(&mut self) {
                self.drain();
            }
        }
        self.with(|chan, receiver| {
            chan.close(receiver);
            chan.flavour.set_idle_waker(None);
            // Whoever takes the waker at this moment drops it.
            drop(chan.disarm(receiver));
            let mut drain = Drain { chan, receiver };
            drain.drain();
        });
    }
}

impl<T, F: Flavour + fmt::Debug> fmt::Debug for Rx<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chan.fmt(f)
    }
}
