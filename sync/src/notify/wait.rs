//! The futures of `Notify`. The protocol is described, and the word and the queue are, in the parent.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gmp_executor::wait::WaitReason;

use super::{Notification, Notify, Order, Take, Waiter};
use crate::primitives::{Ordering, poll_proceed, record};
use crate::wait_list::Node;

/// What both futures are made of.
pub(super) struct Wait {
    node: Node<Waiter>,
    /// The count of `notify_waiters` calls when the future was made.
    calls: usize,
    stage: Stage,
    reason: WaitReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Never polled nor enabled.
    Start,
    /// Linked, or notified and not aware of it.
    Waiting,
    /// Notified, but the budget did not allow to say so yet.
    Notified,
    /// The notification was delivered.
    Done,
}

impl Wait {
    #[inline]
    pub(super) fn new(calls: usize, reason: WaitReason) -> Self {
        Wait {
            node: Node::new(Waiter::new()),
            calls,
            stage: Stage::Start,
            reason,
        }
    }

    fn poll(&mut self, notify: &Notify, cx: &mut Context<'_>) -> Poll<()> {
        if let Stage::Done = self.stage {
            return Poll::Ready(());
        }
        if !self.advance(notify, Some(cx.waker())) {
            record(self.reason);
            return Poll::Pending;
        }
        match poll_proceed(cx) {
            Poll::Ready(coop) => {
                coop.made_progress();
                self.stage = Stage::Done;
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn enable(&mut self, notify: &Notify) -> bool {
        let is_ready = self.advance(notify, None);
        if is_ready {
            self.stage = Stage::Done;
        }
        is_ready
    }

    /// Says whether the future is notified; if not, it is linked and will wake `waker`.
    #[inline]
    fn advance(&mut self, notify: &Notify, waker: Option<&Waker>) -> bool {
        match self.stage {
            Stage::Start => self.start(notify, waker),
            Stage::Waiting => self.resume(notify, waker),
            Stage::Notified | Stage::Done => true,
        }
    }

    #[inline]
    fn start(&mut self, notify: &Notify, waker: Option<&Waker>) -> bool {
        let mut take = notify.word.take(self.calls);
        if let Take::Nothing = take {
            take = self.join(notify, waker);
        }
        let notification = match take {
            Take::Called => Notification::All,
            Take::Permit => Notification::Oldest,
            Take::Nothing => {
                self.stage = Stage::Waiting;
                return false;
            }
        };
        self.note(notification);
        true
    }

    fn join(&self, notify: &Notify, waker: Option<&Waker>) -> Take {
        // Cloned before the lock is taken: a waker is anybody's code.
        let waker = waker.cloned();
        let mut waiters = notify.waiters.lock();
        let take = notify.word.take_or_wait(self.calls);
        if let Take::Nothing = take {
            // SAFETY: the node is not linked yet, and only its owner reaches it.
            let _none = unsafe { self.node.value().waker.replace(waker) };
            // SAFETY: the node is part of a pinned future, which unlinks it in `leave` before it
            // dies; the list is this notify's, used under its lock.
            unsafe { waiters.push(&self.node) };
        }
        take
    }

    fn resume(&mut self, notify: &Notify, waker: Option<&Waker>) -> bool {
        // Acquire: pairs with the Release in `Waiter::notify`.
        if self.node.value().notification(Ordering::Acquire) != Notification::None {
            self.stage = Stage::Notified;
            return true;
        }
        let mut clone = None;
        loop {
            let mut waiters = notify.waiters.lock();
            // Relaxed: it is written under the lock.
            if self.node.value().notification(Ordering::Relaxed) != Notification::None {
                self.stage = Stage::Notified;
                return true;
            }
            if notify.word.calls() != self.calls {
                // A call of `notify_waiters` is under way and would come to this future.
                // SAFETY: the node was never in a list of another lock.
                unsafe { waiters.remove(&self.node) };
                // SAFETY: under the lock.
                let old = unsafe { self.node.value().waker.replace(None) };
                drop(waiters);
                drop(old);
                self.note(Notification::All);
                return true;
            }
            let Some(waker) = waker else { return false };
            // SAFETY: under the lock.
            if unsafe { self.node.value().waker.will_wake(waker) } {
                return false;
            }
            if clone.is_some() {
                // SAFETY: under the lock.
                let old = unsafe { self.node.value().waker.replace(clone) };
                drop(waiters);
                drop(old);
                return false;
            }
            drop(waiters);
            clone = Some(waker.clone());
        }
    }

    /// Notes a notification that this future found by itself. It is not linked.
    fn note(&mut self, notification: Notification) {
        // Relaxed: the node is not linked, so nobody else reads or writes it.
        let word = &self.node.value().notification;
        word.store(notification as u8, Ordering::Relaxed);
        self.stage = Stage::Notified;
    }

    /// The future is dropped.
    #[inline]
    fn leave(&mut self, notify: &Notify) {
        if let Stage::Waiting | Stage::Notified = self.stage {
            self.give_up(notify);
        }
    }

    fn give_up(&mut self, notify: &Notify) {
        // Acquire: pairs with the Release in `Waiter::notify`.
        if self.node.value().notification(Ordering::Acquire) == Notification::All {
            return;
        }
        let mut waiters = notify.waiters.lock();
        // SAFETY: the node was never in a list of another lock.
        unsafe { waiters.remove(&self.node) };
        if waiters.is_empty() {
            notify.word.stop_waiting();
        }
        // Relaxed: it is written under the lock.
        let order = match self.node.value().notification(Ordering::Relaxed) {
            Notification::None | Notification::All => return,
            Notification::Oldest => Order::Oldest,
            Notification::Newest => Order::Newest,
        };
        let waker = notify.notify_locked(order, &mut waiters);
        drop(waiters);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Future returned by [`Notify::notified`].
///
/// Fused: once it has completed, polling it again gives `Ready` again.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Notified<'a> {
    pub(super) notify: &'a Notify,
    pub(super) wait: Wait,
}

impl Notified<'_> {
    /// Joins the queue of those who wait for [`notify_one`](Notify::notify_one), without a waker.
    ///
    /// It does what a poll does, except that nobody is woken: to take part before the first poll.
    /// For [`notify_waiters`](Notify::notify_waiters) it makes no difference, whose calls are
    /// received from the moment the future was made.
    ///
    /// Says whether the future is ready, in which case every poll from now on completes at once:
    ///
    /// 1. `notify_waiters` was called since the future was made;
    /// 2. or this is the first call of `enable` or `poll`, and there was a permit, which it took;
    /// 3. or the future was enabled or polled before and has been notified since.
    ///
    /// # Examples
    ///
    /// A channel with several receivers: each joins the queue *before* it looks for a value, so that
    /// two values sent in between wake two receivers instead of leaving one permit.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use std::pin::pin;
    /// use std::sync::Mutex;
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
    ///         let mut sent = pin!(self.sent.notified());
    ///         loop {
    ///             sent.as_mut().enable();
    ///             if let Some(value) = self.values.lock().unwrap().pop_front() {
    ///                 return value;
    ///             }
    ///             sent.as_mut().await;
    ///             // Somebody else may have taken the value: wait anew.
    ///             sent.set(self.sent.notified());
    ///         }
    ///     }
    /// }
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let channel = Channel::default();
    ///     channel.send(7);
    ///     assert_eq!(channel.recv().await, 7);
    /// }
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        this.wait.enable(this.notify)
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        this.wait.poll(this.notify, cx)
    }
}

impl Drop for Notified<'_> {
    #[inline]
    fn drop(&mut self) {
        self.wait.leave(self.notify);
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified")
            .field("notify", self.notify)
            .field("stage", &self.wait.stage)
            .finish()
    }
}

/// Future returned by [`Notify::notified_owned`].
///
/// Fused: once it has completed, polling it again gives `Ready` again.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct OwnedNotified {
    pub(super) notify: Arc<Notify>,
    pub(super) wait: Wait,
}

impl OwnedNotified {
    /// Joins the queue of those who wait for [`notify_one`](Notify::notify_one), without a waker.
    ///
    /// As [`Notified::enable`].
    pub fn enable(self: Pin<&mut Self>) -> bool {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        this.wait.enable(&this.notify)
    }
}

impl Future for OwnedNotified {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        this.wait.poll(&this.notify, cx)
    }
}

impl Drop for OwnedNotified {
    #[inline]
    fn drop(&mut self) {
        self.wait.leave(&self.notify);
    }
}

impl fmt::Debug for OwnedNotified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedNotified")
            .field("notify", &self.notify)
            .field("stage", &self.wait.stage)
            .finish()
    }
}
