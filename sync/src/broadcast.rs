//! A channel in which every receiver sees every value: many senders, many receivers. As
//! `tokio::sync::broadcast`.
//!
//! The values stand in a ring of slots. A value's *position* is its number among all that were ever
//! sent, and says which slot it is in. The *tail* is the position that the next value gets. A receiver
//! knows the position it reads next; when that has been overwritten the receiver has *lagged*.
//!
//! # Invariants
//!
//! 1. Values are sent under the tail's lock: with the tail at `n`, the slots have been filled with the
//!    positions before `n`, as many as there are slots.
//! 2. A value is sent with the number of receivers that are to read it: all that exist. Each counts itself
//!    out once, by reading, or by being dropped. Who makes it zero takes the value.
//! 3. A waiter's `is_queued` is cleared under the tail's lock by whoever unlinked it, and as the last thing:
//!    from then on its future may be gone.
//!
//! # Protocol
//!
//! Send: under the tail's lock, fill the slot and move the tail; then move all waiters into a ring of their
//! own, whose guard node lives on this stack, and wake them in batches, outside the lock.
//!
//! Receive: (1) read the slot if it holds the position. (2) Otherwise take the tail's lock: either the
//! position is the tail, and the receiver joins the waiters; or it is too old; or it was just sent, and is
//! there to be read.
//!
//! Values are dropped, and wakers cloned, woken and dropped, outside all locks: they may use the channel
//! that they are in. While a value is cloned only the other readers of this value wait (see `ring`).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Waker;

use gmp_executor::loom::Arc;

use crate::notify::Notify;
use crate::primitives::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::wait_list::{Drain, List, Node, WakeBatch, WakerSlot};
use error::{RecvError, SendError, TryRecvError};
use recv::Recv;
use ring::{Loan, Ring};

pub mod error;
#[cfg(all(test, gmp_loom))]
mod model;
mod recv;
mod ring;
#[cfg(all(test, not(gmp_loom)))]
mod tests;
mod word;

struct Shared<T> {
    ring: Ring<T>,
    tail: Mutex<Tail>,
    senders: AtomicUsize,
    weak_senders: AtomicUsize,
    /// Told when the last receiver goes.
    deserted: Notify,
}

struct Tail {
    /// What the next value gets.
    position: u64,
    receivers: usize,
    /// The last sender is gone.
    is_closed: bool,
    waiters: List<Waiter>,
}

/// What a receiver that waits shares with those who wake it.
struct Waiter {
    waker: WakerSlot,
    /// Whether the node may be linked. Set by its future, under the lock.
    is_queued: AtomicBool,
}

impl Waiter {
    fn new() -> Self {
        Waiter {
            waker: WakerSlot::empty(),
            is_queued: AtomicBool::new(false),
        }
    }

    /// Takes the waker and lets the future go.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and has unlinked the node. It does not touch the node afterwards.
    unsafe fn dismiss(&self) -> Option<Waker> {
        // SAFETY: under the lock.
        let waker = unsafe { self.waker.replace(None) };
        // Release: pairs with the Acquire in the drop of `Recv`. It comes last, by invariant 3.
        self.is_queued.store(false, Ordering::Release);
        waker
    }
}

impl<T> Shared<T> {
    #[track_caller]
    fn subscribe(shared: &Arc<Self>) -> Receiver<T> {
        let mut tail = shared.tail.lock();
        assert!(tail.receivers < word::COUNT_MAX, "max receivers");
        tail.receivers += 1;
        let next = tail.position;
        drop(tail);
        Receiver {
            shared: shared.clone(),
            next,
        }
    }

    /// Wakes everybody who waits for the tail to move, or to be closed. The lock is given up.
    fn wake_waiters(&self, tail: MutexGuard<'_, Tail>) {
        if !tail.waiters.is_empty() {
            self.wake_queue(tail);
        }
    }

    #[cold]
    fn wake_queue(&self, mut tail: MutexGuard<'_, Tail>) {
        let mut batch = WakeBatch::new();
        if let Some(node) = tail.waiters.pop_oldest() {
            // SAFETY: under the lock, and just unlinked.
            batch.push(unsafe { node.value().dismiss() });
        }
        if tail.waiters.is_empty() {
            drop(tail);
            return batch.wake();
        }
        let guard = pin!(Node::new(Waiter::new()));
        // SAFETY: the guard is new, and `Wake` drains the ring to its end before it is dropped, which is
        // before the guard is.
        let ring = unsafe { tail.waiters.drain(guard.as_ref()) };
        let mut wake = Wake {
            tail: &self.tail,
            ring,
            is_done: false,
        };
        // The lock is already there for the first batch.
        wake.fill(&mut batch, &mut tail);
        drop(tail);
        batch.wake();
        wake.finish();
    }
}

/// The waiters on their way to be woken.
struct Wake<'a> {
    tail: &'a Mutex<Tail>,
    ring: Drain<'a, Waiter>,
    is_done: bool,
}

impl Wake<'_> {
    fn fill(&mut self, batch: &mut WakeBatch, tail: &mut Tail) {
        while !batch.is_full() {
            let Some(node) = self.ring.pop(&mut tail.waiters) else {
                self.is_done = true;
                break;
            };
            // SAFETY: under the lock, and just unlinked.
            batch.push(unsafe { node.value().dismiss() });
        }
    }

    fn finish(&mut self) {
        while !self.is_done {
            let mut batch = WakeBatch::new();
            self.fill(&mut batch, &mut self.tail.lock());
            batch.wake();
        }
    }
}

impl Drop for Wake<'_> {
    /// Whatever happened: no waiter may keep a pointer to the guard.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Makes a channel that keeps the last `capacity` values, rounded up to a power of two, for those who
/// have not read them.
///
/// Every value is read, as a clone, by every [`Receiver`] that existed when it was sent, in the order of
/// sending, and dropped when the last of them has read it. Sending never waits: when the ring is full it
/// overwrites the oldest value, and a receiver that has not read it is told how many it has missed, with
/// [`RecvError::Lagged`]. It then goes on with the oldest value that is there.
///
/// The memory for `capacity` values is allocated here. As `tokio::sync::broadcast::channel`.
///
/// # Panics
///
/// When `capacity` is zero or greater than `usize::MAX / 2`.
///
/// # Examples
///
/// ```
/// use gmp::sync::broadcast::{self, error::RecvError};
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, mut first) = broadcast::channel(2);
///     let mut second = sender.subscribe();
///     let task = gmp::spawn(async move {
///         assert_eq!(second.recv().await, Ok(1));
///     });
///     sender.send(1).unwrap();
///     task.await.unwrap();
///
///     sender.send(2).unwrap();
///     sender.send(3).unwrap();
///     assert_eq!(first.recv().await, Err(RecvError::Lagged(1)));
///     assert_eq!(first.recv().await, Ok(2));
///     assert_eq!(first.recv().await, Ok(3));
///     drop(sender);
///     assert_eq!(first.recv().await, Err(RecvError::Closed));
/// }
/// ```
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// Sends values to every [`Receiver`]. Made by [`channel`]; may be cloned.
///
/// When the last one is gone the channel is closed: what was sent can still be read.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Makes a channel without a receiver; see [`subscribe`](Sender::subscribe).
    ///
    /// As for [`channel`], of which it keeps all other promises.
    ///
    /// # Panics
    ///
    /// As [`channel`].
    #[track_caller]
    pub fn new(capacity: usize) -> Sender<T> {
        assert!(capacity > 0, "broadcast channel capacity cannot be zero");
        assert!(
            capacity <= usize::MAX >> 1,
            "broadcast channel capacity exceeded `usize::MAX / 2`"
        );
        let tail = Tail {
            position: 0,
            receivers: 0,
            is_closed: false,
            waiters: List::new(),
        };
        Sender {
            shared: Arc::new(Shared {
                ring: Ring::new(capacity.next_power_of_two()),
                tail: Mutex::new(tail),
                senders: AtomicUsize::new(1),
                weak_senders: AtomicUsize::new(0),
                deserted: Notify::new(),
            }),
        }
    }

    /// Sends a value to every receiver there is, and says how many there are. It never waits.
    ///
    /// `Ok` does not mean that all of them will read it: they may be dropped first, or lag.
    ///
    /// # Errors
    ///
    /// The value itself, when there is no receiver. Later calls may succeed, after
    /// [`subscribe`](Sender::subscribe).
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let mut tail = self.shared.tail.lock();
        let receivers = tail.receivers;
        if receivers == 0 {
            drop(tail);
            return Err(SendError(value));
        }
        let position = tail.position;
        // Dropped at the end, outside the locks.
        let _old = self.shared.ring.fill(position, receivers, value);
        tail.position = position.wrapping_add(1);
        self.shared.wake_waiters(tail);
        Ok(receivers)
    }

    /// Makes a receiver of the values that are sent from now on.
    ///
    /// # Panics
    ///
    /// When there are more than `usize::MAX / 8` receivers.
    #[track_caller]
    pub fn subscribe(&self) -> Receiver<T> {
        Shared::subscribe(&self.shared)
    }

    /// Makes a [`WeakSender`], which does not keep the channel open.
    #[must_use = "a weak sender changes nothing for this one"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.shared.clone())
    }

    /// How many values have not been read by all.
    ///
    /// More than the capacity it is never. It takes `log2(capacity)` steps.
    pub fn len(&self) -> usize {
        let tail = self.shared.tail.lock();
        // A receiver that has read a value has read, or missed, those before it: the spent slots are the
        // oldest ones.
        let capacity = self.shared.ring.capacity();
        let oldest = tail.position.wrapping_sub(capacity);
        let (mut low, mut high) = (0, capacity);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.shared.ring.is_spent(oldest.wrapping_add(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (capacity - low) as usize
    }

    /// Whether all values have been read by all.
    pub fn is_empty(&self) -> bool {
        let tail = self.shared.tail.lock();
        let newest = tail.position.wrapping_sub(1);
        self.shared.ring.is_spent(newest)
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.shared.tail.lock().receivers
    }

    /// Whether both send to the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&self) {
        loop {
            // Made before the look, so that it is told of what happens after it.
            let notified = self.shared.deserted.notified();
            if self.receiver_count() == 0 {
                return;
            }
            notified.await;
        }
    }

    /// How many [`Sender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// How many [`WeakSender`]s there are.
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Shared<T> {
    fn strong_count(&self) -> usize {
        // Acquire: pairs with the AcqRel in the sender's drop.
        self.senders.load(Ordering::Acquire)
    }

    fn weak_count(&self) -> usize {
        // Acquire: pairs with the AcqRel in the weak sender's drop.
        self.weak_senders.load(Ordering::Acquire)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what the senders did happens before what follows from their being gone.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut tail = self.shared.tail.lock();
            tail.is_closed = true;
            self.shared.wake_waiters(tail);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::Sender")
    }
}

/// A sender that does not keep the channel open. Made by [`Sender::downgrade`]; may be cloned.
///
/// To send, [`upgrade`](WeakSender::upgrade) it.
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    fn new(shared: Arc<Shared<T>>) -> WeakSender<T> {
        shared.weak_senders.fetch_add(1, Ordering::Relaxed);
        WeakSender { shared }
    }

    /// Makes a [`Sender`], unless the last one is gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let more = |count: usize| (count > 0).then(|| count + 1);
        // Acquire: pairs with the AcqRel in the sender's drop.
        let senders = &self.shared.senders;
        senders
            .fetch_update(Ordering::Relaxed, Ordering::Acquire, more)
            .ok()?;
        Some(Sender {
            shared: self.shared.clone(),
        })
    }

    /// How many [`Sender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// How many [`WeakSender`]s there are.
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(self.shared.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // AcqRel: pairs with the Acquire in `weak_count`.
        self.shared.weak_senders.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::WeakSender")
    }
}

/// Reads every value that is sent while it exists. Made by [`channel`], [`Sender::subscribe`] and
/// [`Receiver::resubscribe`].
///
/// It is not `Clone`: `resubscribe` starts with the next value that is sent, and not where this one is.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position that it reads next.
    next: u64,
}

/// Where a receiver stands, if what it wants is not in its slot.
enum Stand {
    /// It was sent in the meantime.
    Sent,
    Empty,
    Closed,
    /// It was overwritten, as were all positions before this one.
    Lagged(u64),
}

impl<T> Receiver<T> {
    /// How many values have been sent and not read by this receiver.
    ///
    /// Those count that it has missed, so there may be more than the capacity, until it is told with
    /// [`RecvError::Lagged`].
    pub fn len(&self) -> usize {
        self.shared.tail.lock().position.wrapping_sub(self.next) as usize
    }

    /// Whether this receiver has read all that was sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// How many [`Sender`]s there are.
    pub fn sender_strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// How many [`WeakSender`]s there are.
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak_count()
    }

    /// Whether every [`Sender`] is gone. There may still be values to read.
    pub fn is_closed(&self) -> bool {
        self.shared.strong_count() == 0
    }

    fn stand(&self, tail: &Tail) -> Stand {
        let sent = tail.position.wrapping_sub(self.next);
        if sent == 0 {
            return match tail.is_closed {
                true => Stand::Closed,
                false => Stand::Empty,
            };
        }
        let capacity = self.shared.ring.capacity();
        match sent > capacity {
            true => Stand::Lagged(tail.position.wrapping_sub(capacity)),
            false => Stand::Sent,
        }
    }
}

impl<T: Clone> Receiver<T> {
    /// Makes another receiver of the same channel, for the values that are sent from now on.
    ///
    /// # Panics
    ///
    /// When there are more than `usize::MAX / 8` receivers.
    #[track_caller]
    pub fn resubscribe(&self) -> Self {
        Shared::subscribe(&self.shared)
    }

    /// Waits for the next value and reads it.
    ///
    /// # Errors
    ///
    /// [`RecvError::Lagged`] when the next values were overwritten, with their number: the receiver then
    /// goes on with the oldest value there is. [`RecvError::Closed`] when every sender is gone and all
    /// values have been read.
    ///
    /// # Panics
    ///
    /// With the value's `clone`; the value counts as read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value.
    ///
    /// # Examples
    ///
    /// See [`channel`].
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        Recv::new(self).await
    }

    /// Reads the next value if there is one.
    ///
    /// # Errors
    ///
    /// As [`recv`](Receiver::recv), and [`TryRecvError::Empty`] when all has been read that was sent.
    ///
    /// # Panics
    ///
    /// As [`recv`](Receiver::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if let Some(loan) = self.borrow_next() {
            return Ok(loan.clone_value());
        }
        self.try_recv_again()
    }

    #[cold]
    fn try_recv_again(&mut self) -> Result<T, TryRecvError> {
        loop {
            let stand = self.stand(&self.shared.tail.lock());
            match stand {
                Stand::Sent => {}
                Stand::Empty => return Err(TryRecvError::Empty),
                Stand::Closed => return Err(TryRecvError::Closed),
                Stand::Lagged(oldest) => return Err(TryRecvError::Lagged(self.skip_to(oldest))),
            }
            if let Some(loan) = self.borrow_next() {
                return Ok(loan.clone_value());
            }
        }
    }

    /// Waits for the next value on a thread that may block. As [`recv`](Receiver::recv).
    ///
    /// # Errors
    ///
    /// As [`recv`](Receiver::recv).
    ///
    /// # Panics
    ///
    /// On a thread that drives async tasks, and as [`recv`](Receiver::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::broadcast;
    ///
    /// let (sender, mut receiver) = broadcast::channel(4);
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(10).unwrap();
    /// assert_eq!(thread.join().unwrap(), Ok(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        gmp_executor::context::block_on_thread(self.recv())
    }

    /// Takes the next value, if it is there, to be cloned. It counts as read, even if its `clone` panics.
    #[inline]
    fn borrow_next(&mut self) -> Option<Loan<'_, T>> {
        let position = self.next;
        let loan = self.shared.ring.borrow(position)?;
        self.next = position.wrapping_add(1);
        Some(loan)
    }

    /// Goes on at `oldest`, and says how many values were missed.
    fn skip_to(&mut self, oldest: u64) -> u64 {
        let next = std::mem::replace(&mut self.next, oldest);
        oldest.wrapping_sub(next)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut tail = self.shared.tail.lock();
        tail.receivers -= 1;
        let (end, is_last) = (tail.position, tail.receivers == 0);
        drop(tail);
        // What was overwritten needs no counting out; nor does what is sent from now on.
        let unread = end.wrapping_sub(self.next);
        let kept = unread.min(self.shared.ring.capacity());
        let mut panic = None;
        for back in (1..=kept).rev() {
            let tail = self.shared.tail.lock();
            let value = self.shared.ring.release(end.wrapping_sub(back));
            drop(tail);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
                panic.get_or_insert(payload);
            }
        }
        if is_last {
            self.shared.deserted.notify_waiters();
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::Receiver")
    }
}
