//! A channel for one value: from one sender to one receiver. As `tokio::sync::oneshot`.
//!
//! One allocation holds a state word, the value, and a waker of each half.
//!
//! # State
//!
//! | bit | means | set by |
//! | --- | --- | --- |
//! | COMPLETE | the sender is through: it has sent, or is gone | the sender, once |
//! | CLOSED | the receiver wants no value: it was closed, or is gone | the receiver |
//! | RX_WAKER | the receiver's waker is in its slot | the receiver |
//! | TX_WAKER | the sender's waker, for `closed`, is in its slot | the sender |
//!
//! # Who owns what
//!
//! 1. *The value* is the sender's until COMPLETE, and the receiver's after it.
//! 2. *The receiver's waker slot* is the receiver's while RX_WAKER is clear. While it is set the sender may
//!    read it, in the transition that sets COMPLETE; afterwards nobody writes it.
//! 3. *The sender's waker slot* likewise: the receiver reads it in the transition that sets CLOSED.
//!
//! Each half takes its slot back by clearing its bit; if the other half's final bit is already set, the
//! slot may be being read and is left alone, and there is nothing more to wait for.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use gmp_executor::coop::poll_proceed;
use gmp_executor::loom::{Arc, AtomicUsize, Ordering, UnsafeCell};
use gmp_executor::seam::wake_all;
use gmp_executor::wait::{self, WaitReason};

use error::{RecvError, TryRecvError};

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

const COMPLETE: usize = 1 << 0;
const CLOSED: usize = 1 << 1;
const RX_WAKER: usize = 1 << 2;
const TX_WAKER: usize = 1 << 3;

struct Inner<T> {
    state: AtomicUsize,
    value: UnsafeCell<Option<T>>,
    rx_waker: UnsafeCell<Option<Waker>>,
    tx_waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the value goes from one half to the other, so `T: Send`; rules 1 to 3 make every access to a
// cell exclusive, or shared by readers.
unsafe impl<T: Send> Send for Inner<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Inner<T> {}

impl<T> Inner<T> {
    fn load(&self) -> usize {
        // Acquire: pairs with the Release of whoever set the bits that are acted on.
        self.state.load(Ordering::Acquire)
    }

    fn take_value(&self) -> Option<T> {
        // SAFETY: the callers own the value by rule 1.
        self.value.with_mut(|value| unsafe { (*value).take() })
    }

    /// Leaves `waker` in the slot that `bit` guards; `false` when `done` is set and nobody will wake it.
    fn register(
        &self,
        slot: &UnsafeCell<Option<Waker>>,
        bit: usize,
        done: usize,
        waker: &Waker,
    ) -> bool {
        let mut state = self.load();
        if state & bit != 0 {
            let same = slot.with(|slot| {
                // SAFETY: the bit is set, so nobody writes the slot; we are its only writer.
                unsafe { (*slot).as_ref() }.is_some_and(|old| old.will_wake(waker))
            });
            if same {
                return state & done == 0;
            }
            // AcqRel: one after the other, the slot's owners.
            state = self.state.fetch_and(!bit, Ordering::AcqRel);
        }
        if state & done != 0 {
            return false;
        }
        // SAFETY: the bit is clear, so the slot is this half's.
        let old = slot.with_mut(|slot| unsafe { (*slot).replace(waker.clone()) });
        drop(old);
        // Release: publishes the slot to the transition that sets `done`; Acquire: or receives what
        // that one published.
        self.state.fetch_or(bit, Ordering::AcqRel) & done == 0
    }

    /// Wakes what is in the slot, which the bit says is set.
    fn wake(slot: &UnsafeCell<Option<Waker>>) {
        let waker = slot.with(|slot| {
            // SAFETY: the bit was set in the transition that set our final bit: nobody writes the slot.
            unsafe { (*slot).clone() }
        });
        wake_all(waker);
    }

    /// The sender is through without having sent.
    fn sender_gone(&self) {
        // AcqRel: acquires the receiver's waker; Release for symmetry with `send`.
        let before = self.state.fetch_or(COMPLETE, Ordering::AcqRel);
        if before & (RX_WAKER | CLOSED) == RX_WAKER {
            Self::wake(&self.rx_waker);
        }
    }

    /// The receiver wants no value. Says what the state was.
    fn close(&self) -> usize {
        // AcqRel: acquires the value or the sender's waker.
        let before = self.state.fetch_or(CLOSED, Ordering::AcqRel);
        if before & (TX_WAKER | COMPLETE | CLOSED) == TX_WAKER {
            Self::wake(&self.tx_waker);
        }
        before
    }
}

/// Sends the value. Returned by [`channel`].
///
/// Dropping it unsent makes the receiver's future fail.
pub struct Sender<T> {
    /// `None` once it has sent.
    inner: Option<Arc<Inner<T>>>,
}

/// Receives the value: a future that gives it. Returned by [`channel`].
///
/// # Cancel safety
///
/// `&mut Receiver` is a future too, and may be dropped and awaited again.
pub struct Receiver<T> {
    /// `None` once the result was given.
    inner: Option<Arc<Inner<T>>>,
}

/// Makes a channel for one value.
///
/// As `tokio::sync::oneshot::channel`. A value that was sent is dropped with the receiver.
///
/// ```ignore
/// use gmp::sync::oneshot;
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, receiver) = oneshot::channel();
///     gmp::spawn(async move { sender.send(3) });
///     assert_eq!(receiver.await, Ok(3));
/// }
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let inner = Arc::new(Inner {
        state: AtomicUsize::new(0),
        value: UnsafeCell::new(None),
        rx_waker: UnsafeCell::new(None),
        tx_waker: UnsafeCell::new(None),
    });
    let sender = Sender {
        inner: Some(inner.clone()),
    };
    let receiver = Receiver { inner: Some(inner) };
    (sender, receiver)
}

impl<T> Sender<T> {
    fn inner(&self) -> &Arc<Inner<T>> {
        self.inner.as_ref().expect("a sender sends by value")
    }

    /// Sends the value, without waiting.
    ///
    /// `Ok` does not mean that it will be received: the receiver may be dropped with it.
    ///
    /// # Errors
    ///
    /// The value itself, when the receiver is closed or gone.
    pub fn send(mut self, t: T) -> Result<(), T> {
        let inner = self.inner.take().expect("a sender sends by value");
        inner.value.with_mut(|value| {
            // SAFETY: before COMPLETE the value is the sender's (rule 1). It was `None`.
            unsafe { *value = Some(t) }
        });
        let mut state = inner.state.load(Ordering::Relaxed);
        loop {
            if state & CLOSED != 0 {
                let t = inner.take_value().expect("put there above");
                inner.sender_gone();
                return Err(t);
            }
            // AcqRel: publishes the value, acquires the receiver's waker.
            match inner.state.compare_exchange(
                state,
                state | COMPLETE,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if state & RX_WAKER != 0 {
            Inner::<T>::wake(&inner.rx_waker);
        }
        Ok(())
    }

    /// Waits until the receiver is closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Whether the receiver is closed or dropped.
    pub fn is_closed(&self) -> bool {
        self.inner().load() & CLOSED != 0
    }

    /// Polls for the receiver to be closed or dropped. The task of the last call is the one that is woken.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let coop = ready!(poll_proceed(cx));
        let inner = self.inner();
        if inner.load() & CLOSED == 0
            && inner.register(&inner.tx_waker, TX_WAKER, CLOSED, cx.waker())
        {
            wait::record(WaitReason::OneshotClosed);
            return Poll::Pending;
        }
        coop.made_progress();
        Poll::Ready(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            inner.sender_gone();
        }
    }
}

impl<T> Receiver<T> {
    /// Refuses the value from here on; one that was sent before can still be received.
    ///
    /// The sender's `closed` completes, and its `send` fails.
    pub fn close(&mut self) {
        if let Some(inner) = &self.inner {
            inner.close();
        }
    }

    /// Whether the receiver has given its result, as by `FusedFuture`.
    pub fn is_terminated(&self) -> bool {
        self.inner.is_none()
    }

    /// Whether there is nothing to receive right now: no value was sent, or it was taken already.
    pub fn is_empty(&self) -> bool {
        let Some(inner) = &self.inner else {
            return true;
        };
        if inner.load() & COMPLETE == 0 {
            return true;
        }
        // SAFETY: after COMPLETE the value is the receiver's (rule 1).
        inner.value.with(|value| unsafe { (*value).is_none() })
    }

    /// Takes the value if it was sent.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) if the sender may still send, [`Closed`](TryRecvError::Closed) if there
    /// will be no value.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(inner) = &self.inner else {
            return Err(TryRecvError::Closed);
        };
        let state = inner.load();
        if state & COMPLETE == 0 {
            if state & CLOSED != 0 {
                self.inner = None;
                return Err(TryRecvError::Closed);
            }
            return Err(TryRecvError::Empty);
        }
        let value = inner.take_value();
        self.inner = None;
        value.ok_or(TryRecvError::Closed)
    }

    /// Receives the value, blocking the thread meanwhile.
    ///
    /// # Errors
    ///
    /// When the sender was dropped without sending.
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks.
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        gmp_executor::context::block_on_thread(self)
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    /// # Panics
    ///
    /// After it has given its result.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.inner.as_ref().expect("called after complete");
        let coop = ready!(poll_proceed(cx));
        if inner.load() & (COMPLETE | CLOSED) == 0
            && inner.register(&inner.rx_waker, RX_WAKER, COMPLETE, cx.waker())
        {
            wait::record(WaitReason::OneshotRecv);
            return Poll::Pending;
        }
        coop.made_progress();
        let value = if inner.load() & COMPLETE != 0 {
            inner.take_value()
        } else {
            None
        };
        self.inner = None;
        Poll::Ready(value.ok_or(RecvError(())))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner
            && inner.close() & COMPLETE != 0
        {
            // Now, not when the sender's last trace goes.
            drop(inner.take_value());
        }
    }
}

struct DebugInner<'a, T>(&'a Option<Arc<Inner<T>>>);

impl<T> fmt::Debug for DebugInner<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.as_ref().map(|inner| inner.load());
        f.debug_struct("State")
            .field("is_complete", &state.map(|state| state & COMPLETE != 0))
            .field("is_closed", &state.map(|state| state & CLOSED != 0))
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("inner", &DebugInner(&self.inner))
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("inner", &DebugInner(&self.inner))
            .finish()
    }
}

/// Errors of the channel for one value.
pub mod error {
    use std::error::Error;
    use std::fmt;

    /// The sender was dropped without sending.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}

    /// Why [`try_recv`](super::Receiver::try_recv) gave no value.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum TryRecvError {
        /// The sender has not sent yet.
        Empty,
        /// There will be no value.
        Closed,
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                TryRecvError::Empty => "channel empty",
                TryRecvError::Closed => "channel closed",
            })
        }
    }

    impl Error for TryRecvError {}
}
