//! The unbounded channel.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use super::chan::{Tx, Unlimited, WeakTx, chan};
use super::error::{SendError, TryRecvError};
use super::rx::Rx;

/// Makes a channel without a bound: sending never waits.
///
/// If messages are sent faster than they are received, the memory they take grows without a limit.
/// Messages arrive in the order in which they were sent.
///
/// As `tokio::sync::mpsc::unbounded_channel`.
///
/// # Examples
///
/// ```
/// use gmp::sync::mpsc;
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::unbounded_channel();
///     std::thread::spawn(move || {
///         for number in 0..10 {
///             sender.send(number).unwrap();
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.recv().await {
///         sum += number;
///     }
///     assert_eq!(sum, 45);
/// }
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    unbounded_channel_from(0)
}

/// A channel whose first message has that position.
pub(super) fn unbounded_channel_from<T>(
    position: u64,
) -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (tx, rx) = chan(Unlimited::new(position), position);
    (UnboundedSender { tx }, UnboundedReceiver { rx })
}

/// Sends messages into an unbounded channel. Made by [`unbounded_channel`]; cloned to send from
/// several places.
pub struct UnboundedSender<T> {
    tx: Tx<T, Unlimited>,
}

/// A sender that does not keep the channel open.
///
/// When only weak senders are left the channel is closed. To send,
/// [`upgrade`](WeakUnboundedSender::upgrade) it, which fails from then on. Made by
/// [`UnboundedSender::downgrade`].
///
/// # Examples
///
/// ```
/// use gmp::sync::mpsc;
///
/// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
/// let weak = sender.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// ```
pub struct WeakUnboundedSender<T> {
    tx: WeakTx<T, Unlimited>,
}

/// Receives messages from an unbounded channel. Made by [`unbounded_channel`].
pub struct UnboundedReceiver<T> {
    rx: Rx<T, Unlimited>,
}

impl<T> UnboundedSender<T> {
    /// Sends a message. Never waits, so it may be called from anywhere.
    ///
    /// That it was sent does not mean that it will be received: the receiver may be dropped.
    ///
    /// # Errors
    ///
    /// If the receiver was dropped or [closed](UnboundedReceiver::close) the channel; the error
    /// holds the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().0, 2);
    /// ```
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let tail = self.tx.flavour().claim();
        if tail.is_closed() {
            // The position is beyond where the channel was closed, and nobody looks there.
            return Err(SendError(message));
        }
        // SAFETY: the position was just claimed.
        unsafe { self.tx.put(tail.position(), message) };
        Ok(())
    }

    /// Waits until the receiver has been dropped, or has [closed](UnboundedReceiver::close) the
    /// channel.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; a channel that is closed stays closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, receiver) = mpsc::unbounded_channel::<()>();
    ///     gmp::spawn(async move { drop(receiver) });
    ///     sender.closed().await;
    /// }
    /// ```
    pub async fn closed(&self) {
        self.tx.closed().await;
    }

    /// Whether the receiver has been dropped, or has closed the channel.
    pub fn is_closed(&self) -> bool {
        self.tx.is_closed()
    }

    /// Whether both senders send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.tx.is_same(&other.tx)
    }

    /// Makes a sender that does not keep the channel open.
    #[must_use = "a weak sender is made beside this one, which stays as it is"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender {
            tx: self.tx.downgrade(),
        }
    }

    /// How many [`UnboundedSender`]s the channel has.
    pub fn strong_count(&self) -> usize {
        self.tx.counts().strong
    }

    /// How many [`WeakUnboundedSender`]s the channel has.
    pub fn weak_count(&self) -> usize {
        self.tx.counts().weak
    }
}

#[cfg(all(test, not(gmp_loom)))]
impl<T> UnboundedSender<T> {
    /// The first half of `send`.
    pub(super) fn claim_for_tests(&self) -> u64 {
        self.tx.flavour().claim().position()
    }

    /// The second half of `send`.
    ///
    /// # Safety
    ///
    /// The position is from the first half, and used once.
    pub(super) unsafe fn put_for_tests(&self, position: u64, message: T) {
        // SAFETY: as the caller promises.
        unsafe { self.tx.put(position, message) };
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        UnboundedSender {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender")
            .field("chan", &self.tx)
            .finish()
    }
}

impl<T> WeakUnboundedSender<T> {
    /// An [`UnboundedSender`], if there is one left.
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.tx.upgrade().map(|tx| UnboundedSender { tx })
    }

    /// How many [`UnboundedSender`]s the channel has.
    pub fn strong_count(&self) -> usize {
        self.tx.counts().strong
    }

    /// How many [`WeakUnboundedSender`]s the channel has.
    pub fn weak_count(&self) -> usize {
        self.tx.counts().weak
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        WeakUnboundedSender {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakUnboundedSender").finish()
    }
}

impl<T> UnboundedReceiver<T> {
    /// Receives the next message, waiting for it; `None` if there never will be one.
    ///
    /// That is when the channel is empty and either every [`UnboundedSender`] has been dropped, or
    /// the channel was [closed](UnboundedReceiver::close).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: if it has not completed it has received nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::unbounded_channel();
    ///     sender.send("hello").unwrap();
    ///     drop(sender);
    ///     assert_eq!(receiver.recv().await, Some("hello"));
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.rx.poll_recv(cx)).await
    }

    /// Receives up to `limit` messages at once, waiting for the first; appends them to `buffer` and
    /// says how many there were.
    ///
    /// Zero means what `None` means for [`recv`](UnboundedReceiver::recv), unless `limit` is zero:
    /// then the answer is zero at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: if it has not completed it has received nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::unbounded_channel();
    ///     for number in 0..5 {
    ///         sender.send(number).unwrap();
    ///     }
    ///     let mut buffer = Vec::new();
    ///     assert_eq!(receiver.recv_many(&mut buffer, 3).await, 3);
    ///     assert_eq!(receiver.recv_many(&mut buffer, 3).await, 2);
    ///     assert_eq!(buffer, [0, 1, 2, 3, 4]);
    /// }
    /// ```
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        poll_fn(|cx| self.rx.poll_recv_many(cx, buffer, limit)).await
    }

    /// Receives the next message if there is one right now.
    ///
    /// What was sent before this call is found: if a message in front of it is being sent at this
    /// moment by another thread, this one waits for that thread.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if there is none, [`TryRecvError::Disconnected`] if there never will
    /// be one.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    /// use gmp::sync::mpsc::error::TryRecvError;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.rx.try_recv()
    }

    /// Receives the next message on a thread that may block. As [`recv`](UnboundedReceiver::recv).
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(10).unwrap();
    /// assert_eq!(thread.join().unwrap(), Some(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        gmp_executor::context::block_on_thread(self.recv())
    }

    /// Receives messages on a thread that may block. As [`recv_many`](UnboundedReceiver::recv_many).
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        gmp_executor::context::block_on_thread(self.recv_many(buffer, limit))
    }

    /// Closes the channel without dropping what is in it.
    ///
    /// Nobody can send any more. To lose no message, receive until
    /// [`recv`](UnboundedReceiver::recv) returns `None`.
    pub fn close(&mut self) {
        self.rx.close();
    }

    /// Whether the channel is closed: by [`close`](UnboundedReceiver::close), or because every
    /// [`UnboundedSender`] has been dropped. There may be messages in it.
    pub fn is_closed(&self) -> bool {
        self.rx.is_closed()
    }

    /// Whether there are no messages in the channel. Those that are being sent count.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages are in the channel. Those that are being sent count.
    pub fn len(&self) -> usize {
        self.rx.len()
    }

    /// Polls for the next message. As [`recv`](UnboundedReceiver::recv), of which it is the poll.
    ///
    /// When it returns `Pending` the waker of this call, and of no earlier one, is woken by the next
    /// message or when the channel is closed. It may be woken for nothing.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.rx.poll_recv(cx)
    }

    /// Polls for messages. As [`recv_many`](UnboundedReceiver::recv_many), of which it is the poll;
    /// about the waker see [`poll_recv`](UnboundedReceiver::poll_recv).
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.rx.poll_recv_many(cx, buffer, limit)
    }

    /// How many [`UnboundedSender`]s the channel has.
    pub fn sender_strong_count(&self) -> usize {
        self.rx.counts().strong
    }

    /// How many [`WeakUnboundedSender`]s the channel has.
    pub fn sender_weak_count(&self) -> usize {
        self.rx.counts().weak
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver")
            .field("chan", &self.rx)
            .finish()
    }
}
