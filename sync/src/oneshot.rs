//! A channel for one value, from one sender to one receiver.
//!
//! [`channel`] makes both halves. Sending neither waits nor needs a runtime; the receiver is a future.
//! As `tokio::sync::oneshot`.
//!
//! The usual use is a reply: a request carries the [`Sender`], and whoever asked awaits the
//! [`Receiver`].
//!
//! ```
//! use gmp::sync::oneshot;
//!
//! #[gmp::main]
//! async fn main() {
//!     let (sender, receiver) = oneshot::channel();
//!     gmp::spawn(async move { sender.send(3) });
//!     assert_eq!(receiver.await, Ok(3));
//! }
//! ```
//!
//! If the sender is dropped without having sent, the receiver gets an error. If the receiver is dropped
//! or [closed](Receiver::close), sending gives the value back, and the sender can
//! [learn of it](Sender::closed) before it has a value. A value that nobody takes is dropped with the
//! receiver.
//!
//! How the halves share one allocation is written in `cell`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, ready};

use gmp_executor::wait::WaitReason;

use cell::{Cell, State};
use error::{RecvError, TryRecvError};

use crate::primitives::{poll_proceed, record};

mod cell;
#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// Sends one value to the [`Receiver`]. Made by [`channel`].
///
/// Dropped without having sent, it makes the receiver's future fail.
pub struct Sender<T> {
    /// Alive until this half says that it is gone.
    cell: NonNull<Cell<T>>,
    _owns: PhantomData<Cell<T>>,
}

/// Receives one value from the [`Sender`]: a future whose output it is. Made by [`channel`].
///
/// # Cancel safety
///
/// `&mut Receiver` is a future too: dropping that loses nothing, and the receiver can be awaited
/// again.
///
/// # Panics
///
/// When it is polled after it has completed.
pub struct Receiver<T> {
    /// Alive until this half says that it is gone. `None` after that.
    cell: Option<NonNull<Cell<T>>>,
    _owns: PhantomData<Cell<T>>,
}

// SAFETY: the halves pass a value and wakers from one thread to another, as the cell's invariants say.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: through a shared reference one can look at the state, and nothing else.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as for the sender.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as for the sender.
unsafe impl<T: Send> Sync for Receiver<T> {}

impl<T> Unpin for Sender<T> {}
impl<T> Unpin for Receiver<T> {}

/// Makes a channel for one value.
///
/// As `tokio::sync::oneshot::channel`.
///
/// # Examples
///
/// ```
/// use gmp::sync::oneshot;
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, receiver) = oneshot::channel::<u32>();
///     gmp::spawn(async move { drop(sender) });
///     assert!(receiver.await.is_err());
/// }
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let cell = Cell::allocate();
    let sender = Sender {
        cell,
        _owns: PhantomData,
    };
    let receiver = Receiver {
        cell: Some(cell),
        _owns: PhantomData,
    };
    (sender, receiver)
}

impl<T> Sender<T> {
    fn cell(&self) -> &Cell<T> {
        // SAFETY: the cell is alive, see the field.
        unsafe { self.cell.as_ref() }
    }

    /// Sends the value. Does not wait.
    ///
    /// `Ok` does not mean that the value will be received: the receiver may be dropped with it.
    ///
    /// # Errors
    ///
    /// The value, if the receiver was dropped or [closed](Receiver::close).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// let (sender, receiver) = oneshot::channel();
    /// drop(receiver);
    /// assert_eq!(sender.send("too late"), Err("too late"));
    /// ```
    pub fn send(self, t: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: this is the sender, and the cell is not used again.
        unsafe { Cell::send(this.cell, t) }
    }

    /// Waits until the receiver has been dropped or [closed](Receiver::close).
    ///
    /// To give up work whose result nobody wants.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; what is closed stays closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (mut sender, receiver) = oneshot::channel::<()>();
    ///     gmp::spawn(async move { drop(receiver) });
    ///     sender.closed().await;
    /// }
    /// ```
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Whether the receiver has been dropped or [closed](Receiver::close).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// let (sender, receiver) = oneshot::channel::<()>();
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.cell().state().is_closed()
    }

    /// Polls for the receiver to be dropped or closed. As [`closed`](Sender::closed), of which it is the
    /// poll.
    ///
    /// When it returns `Pending`, the waker of this call and of no earlier one is woken.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let coop = ready!(poll_proceed(cx));
        if !self.is_closed() && self.cell().register_sender(cx.waker()).is_ok() {
            record(WaitReason::OneshotClosed);
            return Poll::Pending;
        }
        coop.made_progress();
        Poll::Ready(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // SAFETY: this is the sender, and the cell is not used again.
        unsafe { Cell::drop_sender(self.cell) };
    }
}

impl<T> Receiver<T> {
    fn cell(&self) -> Option<&Cell<T>> {
        // SAFETY: the cell is alive, see the field.
        self.cell.map(|cell| unsafe { &*cell.as_ptr() })
    }

    /// Takes what there is, and goes.
    fn finish(&mut self, state: State) -> Option<T> {
        debug_assert!(state.is_complete() || state.is_closed(), "{state:?}");
        let cell = self.cell.take()?;
        // SAFETY: this is the receiver, and the cell is not used again: it was taken out of the field.
        unsafe { Cell::finish(cell, state) }
    }

    /// Refuses the value from now on, without dropping one that was sent before.
    ///
    /// Sending fails from now on, and [`closed`](Sender::closed) completes. To lose nothing, call
    /// [`try_recv`](Receiver::try_recv) afterwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// receiver.close();
    /// assert_eq!(sender.send(1), Err(1));
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// sender.send(2).unwrap();
    /// receiver.close();
    /// assert_eq!(receiver.try_recv(), Ok(2));
    /// ```
    pub fn close(&mut self) {
        let Some(cell) = self.cell() else { return };
        let (_, own, sender) = cell.close();
        if let Some(sender) = sender {
            sender.wake();
        }
        drop(own);
    }

    /// Whether the receiver has given its result: a value or an error, by whichever method.
    ///
    /// Polling it then panics. As `FusedFuture` has it.
    pub fn is_terminated(&self) -> bool {
        self.cell.is_none()
    }

    /// Whether there is no value to take right now: none was sent, or it was taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert!(receiver.is_empty());
    /// sender.send(1).unwrap();
    /// assert!(!receiver.is_empty());
    /// receiver.try_recv().unwrap();
    /// assert!(receiver.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        !self.cell().is_some_and(|cell| cell.state().has_value())
    }

    /// Takes the value if it has been sent.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if it has not, [`TryRecvError::Closed`] if it never will be: the sender
    /// has gone, the receiver was closed before, or the result was already taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    /// use gmp::sync::oneshot::error::TryRecvError;
    ///
    /// let (sender, mut receiver) = oneshot::channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let state = self.cell().ok_or(TryRecvError::Closed)?.state();
        if !state.is_complete() && !state.is_closed() {
            return Err(TryRecvError::Empty);
        }
        self.finish(state).ok_or(TryRecvError::Closed)
    }

    /// Receives the value on a thread that may block.
    ///
    /// # Errors
    ///
    /// If the sender was dropped without having sent.
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::oneshot;
    ///
    /// let (sender, receiver) = oneshot::channel();
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(10).unwrap();
    /// assert_eq!(thread.join().unwrap(), Ok(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        gmp_executor::context::block_on_thread(self)
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let cell = self.cell().expect("called after complete");
        let coop = ready!(poll_proceed(cx));
        let mut state = cell.state();
        if !state.is_complete() && !state.is_closed() {
            match cell.register_receiver(cx.waker()) {
                Err(complete) => state = complete,
                Ok(()) => {
                    record(WaitReason::OneshotRecv);
                    return Poll::Pending;
                }
            }
        }
        coop.made_progress();
        Poll::Ready(self.finish(state).ok_or(RecvError(())))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let Some(cell) = self.cell() else { return };
        let (state, own, sender) = match cell.state() {
            // The sender looks at CLOSED no more.
            state if state.is_complete() => (state, None, None),
            _ => cell.close(),
        };
        // Out of the cell first, which is then gone: a destructor or a waker may panic.
        let value = self.finish(state);
        if let Some(sender) = sender {
            sender.wake();
        }
        drop(own);
        drop(value);
    }
}

fn debug(name: &str, state: Option<State>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut shown = f.debug_struct(name);
    if let Some(state) = state {
        shown
            .field("is_complete", &state.is_complete())
            .field("is_closed", &state.is_closed());
    }
    shown.finish_non_exhaustive()
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Sender", Some(self.cell().state()), f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("Receiver", self.cell().map(Cell::state), f)
    }
}

/// What goes wrong with a channel for one value.
pub mod error {
    use std::error::Error;
    use std::fmt;

    /// Error of the [`Receiver`](super::Receiver): no value was sent, and none will be.
    #[derive(Debug, Eq, PartialEq, Clone)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}

    /// Error returned by [`Receiver::try_recv`](super::Receiver::try_recv).
    #[derive(Debug, Eq, PartialEq, Clone)]
    pub enum TryRecvError {
        /// No value has been sent yet.
        Empty,

        /// There never will be a value.
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
