//! A channel that keeps the last value only: many senders, many receivers. As `tokio::sync::watch`.
//!
//! The value is behind a read-write lock; a *version* tells how often it was sent. A receiver
//! remembers the version that it has seen.
//!
//! # The protocol
//!
//! A sender changes the value and then the version, both under the write lock, and then notifies everybody
//! who waits. A receiver that waits first registers with the notifier, then looks at the version, and only
//! then sleeps: so a change either is seen by the look or wakes the sleeper.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};

use gmp_executor::coop::cooperative;
use gmp_executor::loom::Arc;
use gmp_executor::wait::{self, WaitReason};

use crate::notify::{Notified, Notify};
use crate::primitives::{AtomicUsize, Ordering, RwLock, RwLockReadGuard};
use error::{RecvError, SendError};

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// The lowest bit of the version word: every sender is gone.
const CLOSED: usize = 1;
/// What a version counts by.
const STEP: usize = 2;

struct Shared<T> {
    value: RwLock<T>,
    /// The version, and CLOSED.
    state: AtomicUsize,
    receivers: AtomicUsize,
    senders: AtomicUsize,
    /// Told of each version, and of the end.
    changed: Notify,
    /// Told when the last receiver goes.
    deserted: Notify,
}

impl<T> Shared<T> {
    fn state(&self) -> usize {
        // SeqCst: a waiter registers with `changed` and then looks here; a sender changes this and then
        // looks at who waits. The lock of the notifier orders them too; this says it once.
        self.state.load(Ordering::SeqCst)
    }

    fn version(&self) -> usize {
        self.state() & !CLOSED
    }

    fn is_closed(&self) -> bool {
        self.state() & CLOSED != 0
    }
}

/// Sends values. Made by [`channel`]; may be cloned.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Sees the last value. Made by [`channel`] and [`Sender::subscribe`]; may be cloned.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that was seen last.
    version: usize,
}

/// The value, borrowed: senders wait while it lives, so keep it short and never across an await.
///
/// With a `Ref` alive, a second `borrow` on the same thread can deadlock, as in tokio, when a sender
/// waits between the two.
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// Whether the receiver had not seen this value before it was borrowed. Always `false` when a sender
    /// borrowed it.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("inner", &*self.value)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}

/// Makes a channel that holds `init`, which counts as seen.
///
/// As `tokio::sync::watch::channel`.
///
/// ```
/// use gmp::sync::watch;
///
/// #[gmp::main]
/// async fn main() {
///     let (sender, mut receiver) = watch::channel("hello");
///     gmp::spawn(async move { sender.send("world") });
///     receiver.changed().await.unwrap();
///     assert_eq!(*receiver.borrow(), "world");
/// }
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(init);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// Waits for `notified`, and says for what.
fn wait_for_change(
    mut notified: Pin<&mut Notified<'_>>,
    reason: WaitReason,
) -> impl Future<Output = ()> {
    poll_fn(move |cx| {
        let polled = notified.as_mut().poll(cx);
        if polled.is_pending() {
            wait::record(reason);
        }
        polled
    })
}

/// Waits for a version other than `version`, and marks it as seen.
async fn changed<T>(shared: &Shared<T>, version: &mut usize) -> Result<(), RecvError> {
    loop {
        // Registered before the look: see the protocol.
        let notified = pin!(shared.changed.notified());
        let state = shared.state();
        if state & !CLOSED != *version {
            *version = state & !CLOSED;
            return Ok(());
        }
        if state & CLOSED != 0 {
            return Err(RecvError(()));
        }
        wait_for_change(notified, WaitReason::WatchChanged).await;
    }
}

impl<T> Receiver<T> {
    fn new(shared: Arc<Shared<T>>, version: usize) -> Receiver<T> {
        shared.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver { shared, version }
    }

    /// Borrows the last value, without marking it as seen.
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        // Under the lock: the version belongs to this value.
        let has_changed = self.version != self.shared.version();
        Ref { value, has_changed }
    }

    /// Borrows the last value and marks it as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let version = self.shared.version();
        let has_changed = std::mem::replace(&mut self.version, version) != version;
        Ref { value, has_changed }
    }

    /// Whether there is a value that this receiver has not seen.
    ///
    /// # Errors
    ///
    /// When every sender is gone, even if there is one.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        if self.shared.is_closed() {
            return Err(RecvError(()));
        }
        Ok(self.version != self.shared.version())
    }

    /// Whether every sender is gone.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Makes the value count as unseen, so that `changed` completes at once.
    pub fn mark_changed(&mut self) {
        self.version = self.shared.version().wrapping_sub(STEP);
    }

    /// Makes the value count as seen.
    pub fn mark_unchanged(&mut self) {
        self.version = self.shared.version();
    }

    /// Waits for a value that this receiver has not seen, and marks it as seen.
    ///
    /// # Errors
    ///
    /// When every sender is gone and the last value was seen.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the value unseen.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        cooperative(changed(&self.shared, &mut self.version)).await
    }

    /// Waits until the value satisfies `f`, which is asked at once and then at each change, and marks it as
    /// seen. Values in between may be missed.
    ///
    /// # Errors
    ///
    /// When every sender is gone and the last value does not satisfy `f`.
    ///
    /// # Panics
    ///
    /// With `f`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, but what `f` was asked about counts as seen.
    pub async fn wait_for(&mut self, f: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        cooperative(self.wait_until(f)).await
    }

    async fn wait_until(&mut self, mut f: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        let mut closed = false;
        loop {
            {
                let value = self.shared.value.read();
                let version = self.shared.version();
                let has_changed = std::mem::replace(&mut self.version, version) != version;
                if (!closed || has_changed) && f(&value) {
                    return Ok(Ref { value, has_changed });
                }
            }
            if closed {
                return Err(RecvError(()));
            }
            closed = changed(&self.shared, &mut self.version).await.is_err();
        }
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Receiver::new(self.shared.clone(), self.version)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // AcqRel: what the receivers did happens before what the sender does once it knows.
        if self.shared.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.deserted.notify_waiters();
        }
    }
}

impl<T> Sender<T> {
    /// Makes a sender without a receiver; see [`subscribe`](Sender::subscribe).
    pub fn new(init: T) -> Sender<T> {
        Sender {
            shared: Arc::new(Shared {
                value: RwLock::new(init),
                state: AtomicUsize::new(0),
                receivers: AtomicUsize::new(0),
                senders: AtomicUsize::new(1),
                changed: Notify::new(),
                deserted: Notify::new(),
            }),
        }
    }

    /// Sends a value and wakes the receivers that wait.
    ///
    /// # Errors
    ///
    /// The value itself, when there is no receiver. [`send_replace`](Sender::send_replace) sends all the same.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.receiver_count() == 0 {
            return Err(SendError(value));
        }
        self.send_replace(value);
        Ok(())
    }

    /// Changes the value in place and wakes the receivers that wait, also when there are none.
    ///
    /// # Panics
    ///
    /// With `modify`; the receivers are then not told, whatever it has changed.
    pub fn send_modify<F>(&self, modify: F)
    where
        F: FnOnce(&mut T),
    {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value in place, and wakes the receivers that wait if `modify` says that it did.
    ///
    /// # Panics
    ///
    /// With `modify`; the receivers are then not told, whatever it has changed.
    pub fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        {
            let mut value = self.shared.value.write();
            let modified = catch_unwind(AssertUnwindSafe(|| modify(&mut value)));
            match modified {
                Ok(true) => {}
                Ok(false) => return false,
                Err(payload) => {
                    drop(value);
                    resume_unwind(payload);
                }
            }
            // Under the lock: the version belongs to the value. SeqCst: see `Shared::state`.
            self.shared.state.fetch_add(STEP, Ordering::SeqCst);
        }
        self.shared.changed.notify_waiters();
        true
    }

    /// Sends a value, also when there is no receiver, and returns the one before.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| std::mem::swap(old, &mut value));
        value
    }

    /// Borrows the last value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref {
            value: self.shared.value.read(),
            has_changed: false,
        }
    }

    /// Whether there is no receiver.
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&self) {
        cooperative(async {
            while self.receiver_count() > 0 {
                let notified = pin!(self.shared.deserted.notified());
                if self.receiver_count() == 0 {
                    return;
                }
                wait_for_change(notified, WaitReason::WatchChanged).await;
            }
        })
        .await;
    }

    /// Makes a receiver, for which the present value counts as seen. A closed channel is open again.
    pub fn subscribe(&self) -> Receiver<T> {
        let version = self.shared.version();
        Receiver::new(self.shared.clone(), version)
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        // Acquire: pairs with the AcqRel in the receiver's drop.
        self.shared.receivers.load(Ordering::Acquire)
    }

    /// How many senders there are.
    pub fn sender_count(&self) -> usize {
        self.shared.senders.load(Ordering::Relaxed)
    }

    /// Whether both send to the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
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

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Sender::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what the senders did happens before the end that the receivers see.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.state.fetch_or(CLOSED, Ordering::SeqCst);
            self.shared.changed.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("value", &self.value)
            .field("version", &(self.version() / STEP))
            .field("is_closed", &self.is_closed())
            .field("ref_count_rx", &self.receivers)
            .finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("shared", &self.shared)
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("shared", &self.shared)
            .field("version", &(self.version / STEP))
            .finish()
    }
}

/// Errors of the channel that keeps the last value.
pub mod error {
    use std::error::Error;
    use std::fmt;

    /// There is no receiver; the value comes back.
    #[derive(PartialEq, Eq, Clone, Copy)]
    pub struct SendError<T>(pub T);

    impl<T> fmt::Debug for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SendError").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Display for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl<T> Error for SendError<T> {}

    /// Every sender is gone.
    #[derive(Debug, Clone)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}
}
