//! The budget: how many leaf operations a poll may complete before it has to yield.
//!
//! tokio's figure (128) and API (`tokio::task::coop`). Every leaf operation of gmp calls
//! [`poll_proceed`] first; when the budget is spent, or when the monitor has raised the preempt flag
//! of the M that polls, it gets `Pending` and the task is woken at the tail of the queue.
//!
//! A denied leaf may be polled again within the same poll, by a combinator that polls whichever
//! child was woken (`FuturesUnordered`). It would do so for ever if the denial woke the child at
//! once. So the wake-up of a waker that is not the task's own is *deferred* until the task's poll
//! has returned. The task's own is not touched at all: the poll's end finds a note instead.

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use pin_project_lite::pin_project;

use crate::context::{self, Hot};
use crate::wait::{self, WaitReason};

/// What a poll may still do: a number of operations, or anything at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(Option<u8>);

impl Budget {
    /// tokio's figure.
    pub(crate) const fn initial() -> Budget {
        Budget(Some(128))
    }

    pub(crate) const fn unconstrained() -> Budget {
        Budget(None)
    }

    const fn spent() -> Budget {
        Budget(Some(0))
    }

    fn has_remaining(self) -> bool {
        self.0 != Some(0)
    }
}

/// Runs `f` with `budget` and puts the caller's back afterwards, also when `f` panics.
pub(crate) fn with_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    struct Reset(Budget);
    impl Drop for Reset {
        fn drop(&mut self) {
            context::hot(|hot| hot.budget.set(self.0));
        }
    }
    let _reset = Reset(context::hot(|hot| hot.budget.replace(budget)));
    f()
}

/// Runs `f` with a full budget: a poll of its own, as it were.
#[doc(hidden)]
pub fn with_full_budget<R>(f: impl FnOnce() -> R) -> R {
    with_budget(Budget::initial(), f)
}

/// Runs `f` without a budget. `timeout` polls its deadline so, when the future inside spent the budget.
#[doc(hidden)]
pub fn with_unconstrained<R>(f: impl FnOnce() -> R) -> R {
    with_budget(Budget::unconstrained(), f)
}

/// Gives the unit of budget back unless the operation made progress.
///
/// Returned by [`poll_proceed`]; call [`made_progress`](RestoreOnPending::made_progress) when the
/// operation completes.
#[derive(Debug)]
#[must_use]
pub struct RestoreOnPending(Cell<Budget>, OfThisPoll);

/// The unit goes back to the task that is polled on this thread, so it must not reach another one.
type OfThisPoll = PhantomData<*mut ()>;

impl RestoreOnPending {
    fn new(budget: Budget) -> RestoreOnPending {
        RestoreOnPending(Cell::new(budget), PhantomData)
    }

    /// The operation completed: its unit of budget stays spent.
    #[inline]
    pub fn made_progress(&self) {
        self.0.set(Budget::unconstrained());
    }
}

impl Drop for RestoreOnPending {
    #[inline]
    fn drop(&mut self) {
        let budget = self.0.get();
        if budget != Budget::unconstrained() {
            context::hot(|hot| hot.budget.set(budget));
        }
    }
}

/// Takes one unit of the task's budget; `Pending`, with the task woken, when none is left.
///
/// Outside a task there is no budget and the answer is always `Ready`.
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    context::hot(|hot| {
        let budget = hot.budget.get();
        match budget.0 {
            None => Poll::Ready(RestoreOnPending::new(Budget::unconstrained())),
            Some(left) if left > 0 && !ends_slice(hot, cx.waker()) => {
                hot.budget.set(Budget(Some(left - 1)));
                Poll::Ready(RestoreOnPending::new(budget))
            }
            Some(_) => {
                deny(hot, cx.waker());
                Poll::Pending
            }
        }
    })
}

/// Whether the leaf polled with `waker` has to end the slice of the task.
///
/// The slice of a task that was seen to run for too long ends at its next leaf, with budget left. But not at one
/// that was polled with another waker: what waits for that may be a `block_on` of somebody else's in the middle
/// of the poll, and a wake-up deferred to the end of the poll would never come.
#[inline]
fn ends_slice(hot: &Hot, waker: &Waker) -> bool {
    hot.is_preempted() && context::is_own_waker(waker)
}

#[cold]
fn deny(hot: &Hot, waker: &Waker) {
    hot.budget.set(Budget::spent());
    wait::record(WaitReason::Budget);
    context::defer(waker);
}

/// Whether the task being polled has budget left; `true` outside a task.
///
/// As `tokio::task::coop::has_budget_remaining`.
#[inline]
pub fn has_budget_remaining() -> bool {
    context::hot(|hot| {
        let budget = hot.budget.get();
        budget.has_remaining() && (budget.0.is_none() || !hot.is_preempted())
    })
}

/// Consumes a unit of budget and yields to the scheduler if none was left.
///
/// For computations that loop without reaching a leaf operation. As `tokio::task::consume_budget`.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn consume_budget() {
    std::future::poll_fn(|cx| {
        let coop = ready!(poll_proceed(cx));
        coop.made_progress();
        Poll::Ready(())
    })
    .await
}

pin_project! {
    /// Future returned by [`unconstrained`].
    #[must_use = "Unconstrained does nothing unless polled"]
    pub struct Unconstrained<F> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.project().inner;
        with_budget(Budget::unconstrained(), || inner.poll(cx))
    }
}

/// Polls the future without a budget, so that it is never forced to yield.
///
/// As `tokio::task::unconstrained`. The monitor still takes the P away when such a poll lasts.
pub fn unconstrained<F>(inner: F) -> Unconstrained<F> {
    Unconstrained { inner }
}

pin_project! {
    /// Future returned by [`cooperative`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Coop<F: Future> {
        #[pin]
        inner: F,
    }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let coop = ready!(poll_proceed(cx));
        let polled = self.project().inner.poll(cx);
        if polled.is_ready() {
            coop.made_progress();
        }
        polled
    }
}

/// Makes a future take part in the budget: each poll that completes costs one unit.
///
/// As `tokio::task::coop::cooperative`.
pub fn cooperative<F: Future>(inner: F) -> Coop<F> {
    Coop { inner }
}
