//! The future that waits for a value. The protocol is described, and the queue is, in the parent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use gmp_executor::wait::WaitReason;

use super::error::RecvError;
use super::{Receiver, Stand, Waiter};
use crate::primitives::{Ordering, poll_proceed, record};
use crate::wait_list::Node;

/// The future of [`Receiver::recv`].
pub(super) struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
    node: Node<Waiter>,
}

impl<'a, T> Recv<'a, T> {
    pub(super) fn new(receiver: &'a mut Receiver<T>) -> Self {
        Recv {
            receiver,
            node: Node::new(Waiter::new()),
        }
    }
}

impl<T: Clone> Recv<'_, T> {
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Result<T, RecvError>> {
        loop {
            if let Some(loan) = self.receiver.borrow_next() {
                return Poll::Ready(Ok(loan.clone_value()));
            }
            match self.join(waker) {
                Stand::Sent => {}
                Stand::Empty => return Poll::Pending,
                Stand::Closed => return Poll::Ready(Err(RecvError::Closed)),
                Stand::Lagged(oldest) => {
                    let missed = self.receiver.skip_to(oldest);
                    return Poll::Ready(Err(RecvError::Lagged(missed)));
                }
            }
        }
    }

    /// Joins those who wait, if there is nothing to read.
    fn join(&self, waker: &Waker) -> Stand {
        let waiter = self.node.value();
        // A waker is cloned before the lock is taken, and dropped after it: it is anybody's code. It is not
        // cloned at all if it seems to be there already. Relaxed: the look under the lock counts.
        let is_queued = waiter.is_queued.load(Ordering::Relaxed);
        let mut clone = (!is_queued).then(|| waker.clone());
        loop {
            let mut tail = self.receiver.shared.tail.lock();
            let stand = self.receiver.stand(&tail);
            if let Stand::Empty = stand {
                // SAFETY: under the lock.
                let is_linked = unsafe { self.node.is_linked() };
                // SAFETY: under the lock.
                if is_linked && unsafe { waiter.waker.will_wake(waker) } {
                    return stand;
                }
                if clone.is_none() {
                    drop(tail);
                    clone = Some(waker.clone());
                    continue;
                }
                // SAFETY: under the lock.
                clone = unsafe { waiter.waker.replace(clone) };
                if !is_linked {
                    // Relaxed: others write it under the lock.
                    waiter.is_queued.store(true, Ordering::Relaxed);
                    // SAFETY: the node is part of a pinned future, which unlinks it before it dies; the
                    // list is this channel's, used under its lock.
                    unsafe { tail.waiters.push(&self.node) };
                }
            }
            drop(tail);
            drop(clone);
            return stand;
        }
    }
}

impl<T: Clone> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let coop = ready!(poll_proceed(cx));
        let polled = this.poll_recv(cx.waker());
        match polled {
            Poll::Ready(_) => coop.made_progress(),
            Poll::Pending => record(WaitReason::BroadcastRecv),
        }
        polled
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        let waiter = self.node.value();
        // Acquire: pairs with the Release in `Waiter::dismiss`: who reads `false` is let go.
        if !waiter.is_queued.load(Ordering::Acquire) {
            return;
        }
        let mut tail = self.receiver.shared.tail.lock();
        // SAFETY: the node was never in a list of another lock.
        unsafe { tail.waiters.remove(&self.node) };
    }
}
