//! `Notify`: one permit, and a queue of futures that wait for it.
//!
//! # The word
//!
//! * PERMIT: `notify_one` was called while nobody waited; the next to come takes it.
//! * WAITING: the queue is not empty. Set and cleared under the lock; never stands beside PERMIT.
//! * The rest counts the calls of `notify_waiters`. Counted up under the lock.
//!
//! # Invariants
//!
//! 1. Whenever nobody holds the lock, WAITING is set if and only if the queue is not empty.
//! 2. A future in the queue was made after the last call of `notify_waiters`: its own count is the
//!    word's. Those made before stand in the ring of a call that is still waking them.
//! 3. A waiter's `notification` is written once, under the lock, by whoever unlinked it, and as the
//!    last thing: from then on its future may be gone.
//!
//! # Protocol
//!
//! Notify one: (1) unless WAITING is set, set PERMIT. (2) Otherwise take the lock, unlink a waiter,
//! take its waker, write its notification, clear WAITING if it was the last. (3) Give up the lock
//! and wake.
//!
//! Notify all: under the lock, count the call and clear WAITING in one step, and move the whole
//! queue into a ring of its own, whose guard node lives on this stack; then notify it in batches,
//! waking each outside the lock. Whoever starts to wait meanwhile joins the empty queue, and a
//! `notify_one` meanwhile goes to those. A future in the ring may still leave it.
//!
//! Wait: (1) if the count has moved since the future was made, it is notified. (2) If there is a
//! permit, take it. (3) Otherwise clone the waker, take the lock, and try both again; else set
//! WAITING and join the queue.
//!
//! Cancel: a future that is dropped unlinks itself. If `notify_one` had chosen it and it was never
//! told, the notification goes on to the next one, or becomes the permit again.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::task::Waker;

use gmp_executor::wait::WaitReason;

use crate::primitives::{AtomicU8, AtomicUsize, Mutex, Ordering};
use crate::wait_list::{Drain, List, Node, WakeBatch, WakerSlot};

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;
mod wait;

use wait::Wait;
pub use wait::{Notified, OwnedNotified};

/// Tells one task, or all that wait, that something happened.
///
/// A `Notify` holds no data, and at most one *permit*: like [`std::thread::park`] and `unpark`, or a
/// [`Semaphore`](crate::Semaphore) that starts with none and never has more than one.
/// [`notified().await`](Notify::notified) waits for the permit and consumes it;
/// [`notify_one`](Notify::notify_one) hands it to the task that has waited longest, or keeps it if
/// nobody waits. Called several times while nobody waits it still leaves a single permit.
///
/// [`notify_waiters`](Notify::notify_waiters) reaches every [`Notified`] that exists at that moment,
/// and leaves no permit.
///
/// As `tokio::sync::Notify`.
///
/// # Examples
///
/// A channel with many senders and one receiver. No wake-up is lost: `notify_one` leaves its permit
/// if the receiver is busy.
///
/// ```
/// use std::collections::VecDeque;
/// use std::sync::{Arc, Mutex};
/// use gmp::sync::Notify;
///
/// #[derive(Default)]
/// struct Channel {
///     values: Mutex<VecDeque<u32>>,
///     sent: Notify,
/// }
///
/// impl Channel {
///     fn send(&self, value: u32) {
///         self.values.lock().unwrap().push_back(value);
///         self.sent.notify_one();
///     }
///
///     async fn recv(&self) -> u32 {
///         loop {
///             if let Some(value) = self.values.lock().unwrap().pop_front() {
///                 return value;
///             }
///             self.sent.notified().await;
///         }
///     }
/// }
///
/// #[gmp::main]
/// async fn main() {
///     let channel = Arc::new(Channel::default());
///     let sender = channel.clone();
///     gmp::spawn(async move { sender.send(7) });
///     assert_eq!(channel.recv().await, 7);
/// }
/// ```
///
/// With several receivers that is not enough: two values sent while both receivers are between
/// their look at the queue and the wait leave one permit, and one of the two waits for ever. Then
/// [`enable`](Notified::enable) the future before looking.
pub struct Notify {
    word: Word,
    waiters: Mutex<List<Waiter>>,
}

impl Notify {
    /// Makes a `Notify` without a permit.
    pub fn new() -> Notify {
        Notify {
            word: Word(AtomicUsize::new(0)),
            waiters: Mutex::new(List::new()),
        }
    }

    /// Makes a `Notify` without a permit, also in a `static`.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Notify;
    ///
    /// static CHANGED: Notify = Notify::const_new();
    /// ```
    #[cfg(not(gmp_loom))]
    pub const fn const_new() -> Notify {
        Notify {
            word: Word(AtomicUsize::new(0)),
            waiters: Mutex::new(List::new()),
        }
    }

    /// Waits for a notification.
    ///
    /// Like an `async fn notified(&self)`. If there is a permit the future takes it and completes
    /// at once; otherwise it waits for the next [`notify_one`](Notify::notify_one) in the queue.
    ///
    /// The future takes part in `notify_one` from its first poll (or
    /// [`enable`](Notified::enable)) on, and in [`notify_waiters`](Notify::notify_waiters) from the
    /// moment it is made.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. A notification that it was chosen for
    /// and has not seen goes on to the next.
    #[inline]
    pub fn notified(&self) -> Notified<'_> {
        self.notified_for(WaitReason::Notified)
    }

    /// As [`notified`](Notify::notified), under another name in a dump of the tasks.
    #[inline]
    pub(crate) fn notified_for(&self, reason: WaitReason) -> Notified<'_> {
        Notified {
            notify: self,
            wait: Wait::new(self.word.calls(), reason),
        }
    }

    /// Waits for a notification with a future that owns a reference to the `Notify`.
    ///
    /// Otherwise as [`notified`](Notify::notified).
    ///
    /// # Cancel safety
    ///
    /// As for [`notified`](Notify::notified).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gmp::sync::Notify;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let go = Arc::new(Notify::new());
    ///     let runners: Vec<_> = (0..3)
    ///         .map(|_| gmp::spawn(go.clone().notified_owned()))
    ///         .collect();
    ///     go.notify_waiters();
    ///     for runner in runners {
    ///         runner.await.unwrap();
    ///     }
    /// }
    /// ```
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        let wait = Wait::new(self.word.calls(), WaitReason::Notified);
        OwnedNotified { notify: self, wait }
    }

    /// Notifies the task that has waited longest, or keeps a permit for the next to come.
    ///
    /// There is never more than one permit, however often this is called.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gmp::sync::Notify;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let notify = Arc::new(Notify::new());
    ///     let other = notify.clone();
    ///     let task = gmp::spawn(async move { other.notified().await });
    ///     notify.notify_one();
    ///     task.await.unwrap();
    /// }
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(Order::Oldest);
    }

    /// Notifies the task that began to wait last, or keeps a permit for the next to come.
    ///
    /// Otherwise as [`notify_one`](Notify::notify_one).
    pub fn notify_last(&self) {
        self.notify(Order::Newest);
    }

    fn notify(&self, order: Order) {
        if !self.word.set_permit() {
            self.notify_waiting(order);
        }
    }

    fn notify_waiting(&self, order: Order) {
        let mut waiters = self.waiters.lock();
        let waker = self.notify_locked(order, &mut waiters);
        drop(waiters);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Notifies every task that waits, and leaves no permit.
    ///
    /// To wait is to have a [`Notified`] here, polled or not.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Notify;
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let notify = Notify::new();
    ///     let (first, second) = (notify.notified(), notify.notified());
    ///     notify.notify_waiters();
    ///     first.await;
    ///     second.await;
    /// }
    /// ```
    pub fn notify_waiters(&self) {
        self.notify_waiters_if(|| true);
    }

    /// Calls `decide` under the lock, which serialises the calls, and notifies everybody if it says
    /// so. `decide` must not run anybody else's code.
    pub(crate) fn notify_waiters_if(&self, decide: impl FnOnce() -> bool) -> bool {
        let mut waiters = self.waiters.lock();
        if !decide() {
            return false;
        }
        if !self.word.count_call() {
            return true;
        }
        let guard = pin!(Node::new(Waiter::new()));
        // SAFETY: the guard is new, and `Broadcast` drains the ring to its end before it is
        // dropped, which is before the guard is.
        let ring = unsafe { waiters.drain(guard.as_ref()) };
        let mut broadcast = Broadcast {
            notify: self,
            ring,
            is_done: false,
        };
        // The lock is already there for the first batch.
        let batch = broadcast.next_batch(&mut waiters);
        drop(waiters);
        broadcast.wake(batch);
        broadcast.finish();
        true
    }

    /// Takes a waiter out of the queue and marks it as notified, or sets the permit.
    fn notify_locked(&self, order: Order, waiters: &mut List<Waiter>) -> Option<Waker> {
        let node = match order {
            Order::Oldest => waiters.pop_oldest(),
            Order::Newest => waiters.pop_newest(),
        };
        let Some(node) = node else {
            let set = self.word.set_permit();
            debug_assert!(set, "WAITING without a waiter");
            return None;
        };
        if waiters.is_empty() {
            self.word.stop_waiting();
        }
        let notification = match order {
            Order::Oldest => Notification::Oldest,
            Order::Newest => Notification::Newest,
        };
        // SAFETY: under the lock, and just unlinked.
        unsafe { node.value().notify(notification) }
    }
}

impl Default for Notify {
    fn default() -> Notify {
        Notify::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a picture of the moment, nothing follows from it.
        let word = self.word.0.load(Ordering::Relaxed);
        f.debug_struct("Notify")
            .field("permit", &(word & Word::PERMIT != 0))
            .field("waiting", &(word & Word::WAITING != 0))
            .finish()
    }
}

// No code of a user runs while the state is in the middle of a change.
impl UnwindSafe for Notify {}
impl RefUnwindSafe for Notify {}

/// Which waiter `notify_one` or `notify_last` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Oldest,
    Newest,
}

/// A call of `notify_waiters` on its way through the waiters.
struct Broadcast<'a> {
    notify: &'a Notify,
    ring: Drain<'a, Waiter>,
    is_done: bool,
}

impl Broadcast<'_> {
    fn next_batch(&mut self, waiters: &mut List<Waiter>) -> WakeBatch {
        let mut batch = WakeBatch::new();
        while !batch.is_full() {
            let Some(node) = self.ring.pop(waiters) else {
                self.is_done = true;
                break;
            };
            // SAFETY: under the lock, and just unlinked.
            batch.push(unsafe { node.value().notify(Notification::All) });
        }
        batch
    }

    fn wake(&self, mut batch: WakeBatch) {
        batch.wake();
    }

    fn finish(&mut self) {
        while !self.is_done {
            let batch = self.next_batch(&mut self.notify.waiters.lock());
            self.wake(batch);
        }
    }
}

impl Drop for Broadcast<'_> {
    /// Whatever happened: no waiter may keep a pointer to the guard.
    fn drop(&mut self) {
        self.finish();
    }
}

/// What a waiting future shares with those who notify.
struct Waiter {
    waker: WakerSlot,
    /// A [`Notification`].
    notification: AtomicU8,
}

/// How a future was notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Notification {
    /// Not yet.
    None = 0,
    /// By `notify_one`, or by taking the permit.
    Oldest = 1,
    /// By `notify_last`.
    Newest = 2,
    /// By `notify_waiters`.
    All = 3,
}

impl Waiter {
    fn new() -> Self {
        Waiter {
            waker: WakerSlot::empty(),
            notification: AtomicU8::new(Notification::None as u8),
        }
    }

    /// Marks the waiter as notified and takes its waker.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and has unlinked the node. It does not touch the node afterwards.
    unsafe fn notify(&self, notification: Notification) -> Option<Waker> {
        // SAFETY: under the lock.
        let waker = unsafe { self.waker.replace(None) };
        // Release: pairs with the Acquire in `Wait::resume` and `Wait::leave`. It comes last, by
        // invariant 3.
        self.notification
            .store(notification as u8, Ordering::Release);
        waker
    }

    fn notification(&self, ordering: Ordering) -> Notification {
        match self.notification.load(ordering) {
            0 => Notification::None,
            1 => Notification::Oldest,
            2 => Notification::Newest,
            _ => Notification::All,
        }
    }
}

/// The two bits and the count, as described at the top. All steps are AcqRel, so that whoever is
/// notified sees what everybody did before notifying, those too whose permit found one already there.
struct Word(AtomicUsize);

/// What a future found in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum Take {
    /// `notify_waiters` was called since it was made.
    Called,
    /// The permit, which it took.
    Permit,
    Nothing,
}

impl Word {
    const PERMIT: usize = 0b01;
    const WAITING: usize = 0b10;
    /// One call of `notify_waiters`.
    const CALL: usize = 0b100;
    const CALLS: usize = !(Self::CALL - 1);

    #[inline]
    fn calls(&self) -> usize {
        // Acquire: pairs with `count_call`; who sees a call sees what its caller did before.
        self.0.load(Ordering::Acquire) & Self::CALLS
    }

    /// Sets PERMIT; says `false` if WAITING is set instead.
    fn set_permit(&self) -> bool {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            if current & Self::WAITING != 0 {
                return false;
            }
            // A permit that is already there is set again, to hand on what was done before.
            let next = current | Self::PERMIT;
            // AcqRel: see the type.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(actual) => current = actual,
            }
        }
    }

    /// Takes the permit, unless `calls` says that it is not needed.
    fn take(&self, calls: usize) -> Take {
        // Acquire: pairs with `count_call`.
        let mut current = self.0.load(Ordering::Acquire);
        loop {
            if current & Self::CALLS != calls {
                return Take::Called;
            }
            if current & Self::PERMIT == 0 {
                return Take::Nothing;
            }
            let next = current & !Self::PERMIT;
            // AcqRel: see the type. Acquire: as the load above.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Take::Permit,
                Err(actual) => current = actual,
            }
        }
    }

    /// As [`take`](Word::take), but sets WAITING if there is nothing to take. Under the lock.
    fn take_or_wait(&self, calls: usize) -> Take {
        loop {
            match self.take(calls) {
                Take::Nothing => {}
                taken => return taken,
            }
            // Without PERMIT and with the count known only WAITING can be there, and stays.
            // AcqRel: see the type.
            let (empty, waiting) = (calls, calls | Self::WAITING);
            match self
                .0
                .compare_exchange(empty, waiting, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return Take::Nothing,
                Err(actual) if actual == waiting => return Take::Nothing,
                Err(_) => {}
            }
        }
    }

    /// Clears WAITING if it is set. Under the lock, with the queue empty.
    fn stop_waiting(&self) {
        // Relaxed: WAITING is set and cleared under the lock, which the caller holds. While it is
        // set nobody else changes the word.
        if self.0.load(Ordering::Relaxed) & Self::WAITING != 0 {
            // AcqRel: see the type.
            self.0.fetch_sub(Self::WAITING, Ordering::AcqRel);
        }
    }

    /// Counts a call of `notify_waiters` and clears WAITING; says whether it was set. Under the lock.
    fn count_call(&self) -> bool {
        // Relaxed: as in `stop_waiting`.
        let waiting = self.0.load(Ordering::Relaxed) & Self::WAITING;
        // AcqRel: see the type.
        self.0
            .fetch_add(Self::CALL.wrapping_sub(waiting), Ordering::AcqRel);
        waiting != 0
    }
}
