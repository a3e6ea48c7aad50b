//! The receiver of a bounded channel.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use super::capacity::Capacity;
use super::error::TryRecvError;
use super::rx::Rx;
#[cfg(doc)]
use super::{Sender, WeakSender, channel};

/// Receives messages from a bounded channel. Made by [`channel`].
pub struct Receiver<T> {
    rx: Rx<T, Capacity>,
}

impl<T> Receiver<T> {
    pub(super) fn new(rx: Rx<T, Capacity>) -> Self {
        Receiver { rx }
    }

    /// Receives the next message, waiting for it; `None` if there never will be one.
    ///
    /// That is when the channel is empty and either every [`Sender`] has been dropped, or the channel
    /// was [closed](Receiver::close) and every permit given out before has been used or dropped.
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
    ///     let (sender, mut receiver) = mpsc::channel(2);
    ///     sender.send("hello").await.unwrap();
    ///     sender.send("world").await.unwrap();
    ///     drop(sender);
    ///     assert_eq!(receiver.recv().await, Some("hello"));
    ///     assert_eq!(receiver.recv().await, Some("world"));
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.rx.poll_recv(cx)).await
    }

    /// Receives up to `limit` messages at once, waiting for the first; appends them to `buffer` and
    /// says how many there were.
    ///
    /// Zero means what `None` means for [`recv`](Receiver::recv), unless `limit` is zero: then the
    /// answer is zero at once.
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
    ///     let (sender, mut receiver) = mpsc::channel(10);
    ///     for number in 0..5 {
    ///         sender.send(number).await.unwrap();
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.try_send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.rx.try_recv()
    }

    /// Receives the next message on a thread that may block. As [`recv`](Receiver::recv).
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::runtime::Runtime;
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// Runtime::new().unwrap().block_on(sender.send(10)).unwrap();
    /// assert_eq!(thread.join().unwrap(), Some(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        gmp_executor::context::block_on_thread(self.recv())
    }

    /// Receives messages on a thread that may block. As [`recv_many`](Receiver::recv_many).
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
    /// Nobody gets capacity any more, and whoever waits for some fails. Permits given out before may
    /// still be used. To lose no message, receive until [`recv`](Receiver::recv) returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(2);
    ///     let permit = sender.reserve().await.unwrap();
    ///     sender.send(1).await.unwrap();
    ///     receiver.close();
    ///     assert!(sender.send(2).await.is_err());
    ///     permit.send(3);
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     assert_eq!(receiver.recv().await, Some(3));
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    pub fn close(&mut self) {
        self.rx.close();
    }

    /// Whether the channel is closed: by [`close`](Receiver::close), or because every [`Sender`] has
    /// been dropped. There may be messages in it.
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

    /// How many messages and permits the channel has room for right now. As [`Sender::capacity`].
    pub fn capacity(&self) -> usize {
        self.rx.flavour().available()
    }

    /// How many messages and permits the channel has room for at most: what [`channel`] was told.
    pub fn max_capacity(&self) -> usize {
        self.rx.flavour().max_capacity()
    }

    /// Polls for the next message. As [`recv`](Receiver::recv), of which it is the poll.
    ///
    /// When it returns `Pending` the waker of this call, and of no earlier one, is woken by the next
    /// message or when the channel is closed. It may be woken for nothing.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.rx.poll_recv(cx)
    }

    /// Polls for messages. As [`recv_many`](Receiver::recv_many), of which it is the poll; about the
    /// waker see [`poll_recv`](Receiver::poll_recv).
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.rx.poll_recv_many(cx, buffer, limit)
    }

    /// How many [`Sender`]s the channel has.
    pub fn sender_strong_count(&self) -> usize {
        self.rx.counts().strong
    }

    /// How many [`WeakSender`]s the channel has.
    pub fn sender_weak_count(&self) -> usize {
        self.rx.counts().weak
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("chan", &self.rx).finish()
    }
}
