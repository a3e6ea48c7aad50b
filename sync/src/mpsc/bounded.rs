//! The bounded channel: making one, and sending.

use std::fmt;
use std::future::{Future, poll_fn};
use std::time::Duration;

use super::capacity::{Capacity, Closed, Refused};
use super::chan::{Tx, WeakTx, chan};
use super::error::{SendError, SendTimeoutError, TrySendError};
use super::permit::{OwnedPermit, Permit, PermitIterator};
use super::receiver::Receiver;
use super::timeout::{Until, sleep};
use super::word::Take;
use crate::batch_semaphore::Semaphore;

/// Makes a bounded channel: one that holds up to `buffer` messages.
///
/// When it is full, whoever sends waits until the receiver has taken a message; see
/// [`Sender::send`]. Messages arrive in the order in which they were sent.
///
/// As `tokio::sync::mpsc::channel`.
///
/// # Panics
///
/// If `buffer` is zero, or more than [`Semaphore::MAX_PERMITS`](crate::Semaphore::MAX_PERMITS).
///
/// # Examples
///
/// ```
/// use gmp::sync::mpsc;
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(100);
///     gmp::spawn(async move {
///         for number in 0..10 {
///             if sender.send(number).await.is_err() {
///                 return; // Nobody wants to know any more.
///             }
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.recv().await {
///         sum += number;
///     }
///     assert_eq!(sum, 45);
/// }
/// ```
#[track_caller]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    channel_from(buffer, 0)
}

/// A channel whose first message has that position.
#[track_caller]
pub(super) fn channel_from<T>(buffer: usize, position: u64) -> (Sender<T>, Receiver<T>) {
    assert!(buffer > 0, "mpsc bounded channel requires buffer > 0");
    assert!(
        buffer <= Semaphore::MAX_PERMITS,
        "a bounded channel may not hold more than MAX_PERMITS messages ({})",
        Semaphore::MAX_PERMITS
    );
    let (tx, rx) = chan(Capacity::new(buffer, position), position);
    (Sender { tx }, Receiver::new(rx))
}

/// Sends messages into a bounded channel. Made by [`channel`]; cloned to send from several places.
pub struct Sender<T> {
    pub(super) tx: Tx<T, Capacity>,
}

/// A sender that does not keep the channel open.
///
/// When only weak senders are left the channel is closed. To send, [`upgrade`](WeakSender::upgrade)
/// it, which fails from then on. Made by [`Sender::downgrade`].
///
/// # Examples
///
/// ```
/// use gmp::sync::mpsc;
///
/// let (sender, _receiver) = mpsc::channel::<u8>(1);
/// let weak = sender.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// ```
pub struct WeakSender<T> {
    tx: WeakTx<T, Capacity>,
}

impl<T> Sender<T> {
    /// Sends a message, waiting for capacity if the channel is full.
    ///
    /// That it was sent does not mean that it will be received: the receiver may be dropped. That
    /// it was not sent means that it never will be.
    ///
    /// # Errors
    ///
    /// If the receiver was dropped or [closed](Receiver::close) the channel; the error holds the
    /// message.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the message was not sent, and is lost with the
    /// future. Use [`reserve`](Sender::reserve) to keep it. Those who wait for capacity get it in
    /// the order in which they asked; dropping the future loses the place in that queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     sender.send("first").await.unwrap();
    ///     assert_eq!(receiver.recv().await, Some("first"));
    ///     drop(receiver);
    ///     let error = sender.send("second").await.unwrap_err();
    ///     assert_eq!(error.0, "second");
    /// }
    /// ```
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.take_position().await {
            Ok(position) => {
                // SAFETY: the position was claimed by the line above, in the same poll.
                unsafe { self.tx.put(position, value) };
                Ok(())
            }
            Err(Closed) => Err(SendError(value)),
        }
    }

    /// Claims a position. Nobody may be waiting between that and the message: the caller uses the
    /// position as soon as it has it.
    #[inline]
    async fn take_position(&self) -> Result<u64, Closed> {
        let capacity = self.tx.flavour();
        if let Some(taken) = poll_fn(|cx| capacity.poll_take(cx, Take::Position)).await {
            return taken.map(|tail| tail.position());
        }
        capacity.reserve(1).await?;
        Ok(capacity.redeem())
    }

    /// Takes permits, waiting for them.
    #[inline]
    async fn take_permits(&self, count: usize) -> Result<(), SendError<()>> {
        if count > self.max_capacity() {
            return Err(SendError(()));
        }
        let capacity = self.tx.flavour();
        let take = Take::Permits(count as u64);
        let taken = match poll_fn(|cx| capacity.poll_take(cx, take)).await {
            Some(taken) => taken.map(|_| ()),
            None => capacity.reserve(count).await,
        };
        taken.map_err(|Closed| SendError(()))
    }

    /// Waits until the receiver has been dropped, or has [closed](Receiver::close) the channel.
    ///
    /// For a producer to stop working when nobody wants the product.
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
    ///     let (sender, receiver) = mpsc::channel::<()>(1);
    ///     gmp::spawn(async move { drop(receiver) });
    ///     sender.closed().await;
    /// }
    /// ```
    pub async fn closed(&self) {
        self.tx.closed().await;
    }

    /// Sends a message if the channel has capacity for it right now.
    ///
    /// # Errors
    ///
    /// [`TrySendError::Full`] if it has not, [`TrySendError::Closed`] if the receiver was dropped or
    /// closed the channel. Either holds the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    /// use gmp::sync::mpsc::error::TrySendError;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// sender.try_send(1).unwrap();
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// drop(receiver);
    /// assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    /// ```
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.tx.flavour().try_take(Take::Position) {
            Ok(tail) => {
                // SAFETY: the position was claimed by the line above.
                unsafe { self.tx.put(tail.position(), message) };
                Ok(())
            }
            Err(Refused::Full) => Err(TrySendError::Full(message)),
            Err(Refused::Closed) => Err(TrySendError::Closed(message)),
        }
    }

    /// Sends a message, waiting for capacity, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// [`SendTimeoutError::Timeout`] if the channel was full for all that time,
    /// [`SendTimeoutError::Closed`] if the receiver was dropped or closed the channel. Either holds
    /// the message.
    ///
    /// # Panics
    ///
    /// Outside a runtime, or in one without timers.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Sender::send).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use gmp::sync::mpsc;
    /// use gmp::sync::mpsc::error::SendTimeoutError;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, _receiver) = mpsc::channel(1);
    ///     let timeout = Duration::from_millis(10);
    ///     sender.send_timeout(1, timeout).await.unwrap();
    ///     let error = sender.send_timeout(2, timeout).await.unwrap_err();
    ///     assert_eq!(error, SendTimeoutError::Timeout(2));
    /// }
    /// ```
    pub async fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        self.send_until(value, sleep(timeout)).await
    }

    /// Sends a message, waiting for capacity, but not longer than `deadline` takes to complete.
    #[doc(hidden)]
    pub async fn send_until(
        &self,
        value: T,
        deadline: impl Future<Output = ()>,
    ) -> Result<(), SendTimeoutError<T>> {
        let future = self.reserve();
        match (Until { future, deadline }).await {
            Some(Ok(permit)) => {
                permit.send(value);
                Ok(())
            }
            Some(Err(_)) => Err(SendTimeoutError::Closed(value)),
            None => Err(SendTimeoutError::Timeout(value)),
        }
    }

    /// Sends a message from a thread that may block, waiting for capacity if the channel is full.
    ///
    /// # Errors
    ///
    /// As [`send`](Sender::send).
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
    /// let thread = std::thread::spawn(move || sender.blocking_send(10));
    /// let received = Runtime::new().unwrap().block_on(receiver.recv());
    /// assert_eq!(received, Some(10));
    /// thread.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        gmp_executor::context::block_on_thread(self.send(value))
    }

    /// Whether the receiver has been dropped, or has closed the channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel::<()>(1);
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.tx.is_closed()
    }

    /// Waits for capacity for one message and holds it until the [`Permit`] is used or dropped.
    ///
    /// # Errors
    ///
    /// If the receiver was dropped or closed the channel.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the place in the queue of those who wait for capacity, which get it
    /// in the order in which they asked, and nothing else.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve().await.unwrap();
    ///     assert!(sender.try_send(1).is_err(), "the capacity is spoken for");
    ///     permit.send(2);
    ///     assert_eq!(receiver.recv().await, Some(2));
    /// }
    /// ```
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.take_permits(1).await?;
        Ok(Permit::new(&self.tx))
    }

    /// Waits for capacity for `n` messages and holds it until the permits are used or dropped.
    ///
    /// All or none: what comes free is collected until it is enough, and nobody who asked later gets
    /// any before. Zero permits are there at once.
    ///
    /// # Errors
    ///
    /// If the receiver was dropped or closed the channel, or if `n` is more than the channel's
    /// [`max_capacity`](Sender::max_capacity).
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Sender::reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(2);
    ///     for (number, permit) in (0..).zip(sender.reserve_many(2).await.unwrap()) {
    ///         permit.send(number);
    ///     }
    ///     assert_eq!(receiver.recv().await, Some(0));
    ///     assert_eq!(receiver.recv().await, Some(1));
    /// }
    /// ```
    pub async fn reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, SendError<()>> {
        self.take_permits(n).await?;
        Ok(PermitIterator::new(&self.tx, n))
    }

    /// Waits for capacity for one message; the permit owns this sender.
    ///
    /// To send again, take the sender out of the permit, or clone it before: a clone is cheap.
    ///
    /// # Errors
    ///
    /// If the receiver was dropped or closed the channel.
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Sender::reserve), and this sender is dropped with the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve_owned().await.unwrap();
    ///     let sender = permit.send(1);
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     drop(sender);
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        self.take_permits(1).await?;
        Ok(OwnedPermit::new(self.tx))
    }

    /// Takes capacity for one message if there is some right now.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Sender::try_send).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let permit = sender.try_reserve().unwrap();
    /// assert!(sender.try_reserve().is_err());
    /// permit.send(1);
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.try_take_permits(1)?;
        Ok(Permit::new(&self.tx))
    }

    /// Takes capacity for `n` messages if there is as much right now. There always is for none.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Sender::try_send). [`TrySendError::Full`] also if `n` is more than the
    /// channel's [`max_capacity`](Sender::max_capacity).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(2);
    /// let permits = sender.try_reserve_many(2).unwrap();
    /// assert_eq!(permits.len(), 2);
    /// assert!(sender.try_reserve_many(1).is_err());
    /// ```
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.try_take_permits(n)?;
        Ok(PermitIterator::new(&self.tx, n))
    }

    /// Takes capacity for one message if there is some right now; the permit owns this sender.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Sender::try_send); the error holds this sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let sender = sender.try_reserve_owned().unwrap().send(1);
    /// let sender = sender.try_reserve_owned().unwrap_err().into_inner();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert!(sender.try_reserve_owned().is_ok());
    /// ```
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.try_take_permits(1) {
            Ok(()) => Ok(OwnedPermit::new(self.tx)),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    fn try_take_permits(&self, count: usize) -> Result<(), TrySendError<()>> {
        if count > self.max_capacity() {
            return Err(TrySendError::Full(()));
        }
        match self.tx.flavour().try_take(Take::Permits(count as u64)) {
            Ok(_) => Ok(()),
            Err(Refused::Full) => Err(TrySendError::Full(())),
            Err(Refused::Closed) => Err(TrySendError::Closed(())),
        }
    }

    /// Whether both senders send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.tx.is_same(&other.tx)
    }

    /// How many messages and permits the channel has room for right now.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(5);
    /// let permit = sender.try_reserve().unwrap();
    /// assert_eq!(sender.capacity(), 4);
    /// permit.send(1);
    /// assert_eq!(sender.capacity(), 4);
    /// receiver.try_recv().unwrap();
    /// assert_eq!(sender.capacity(), 5);
    /// ```
    pub fn capacity(&self) -> usize {
        self.tx.flavour().available()
    }

    /// Makes a sender that does not keep the channel open.
    #[must_use = "a weak sender is made beside this one, which stays as it is"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender {
            tx: self.tx.downgrade(),
        }
    }

    /// How many messages and permits the channel has room for at most: what [`channel`] was told.
    pub fn max_capacity(&self) -> usize {
        self.tx.flavour().max_capacity()
    }

    /// How many [`Sender`]s the channel has.
    pub fn strong_count(&self) -> usize {
        self.tx.counts().strong
    }

    /// How many [`WeakSender`]s the channel has.
    pub fn weak_count(&self) -> usize {
        self.tx.counts().weak
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("chan", &self.tx).finish()
    }
}

impl<T> WeakSender<T> {
    /// A [`Sender`], if there is one left.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.tx.upgrade().map(|tx| Sender { tx })
    }

    /// How many [`Sender`]s the channel has.
    pub fn strong_count(&self) -> usize {
        self.tx.counts().strong
    }

    /// How many [`WeakSender`]s the channel has.
    pub fn weak_count(&self) -> usize {
        self.tx.counts().weak
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish()
    }
}
