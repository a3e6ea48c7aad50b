//! A limit on the time that a future may take.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use gmp_executor::coop;
use pin_project_lite::pin_project;

use crate::error::Elapsed;
use crate::instant::Instant;
use crate::sleep::Sleep;

/// Waits for the future, but no longer than `duration`. As in tokio.
///
/// Ready with the future's output, or with [`Elapsed`] if the future was pending when the duration had
/// passed. The future is polled first: if it is ready at once, so is the timeout, whatever the
/// duration; and a future that does not return from its poll cannot be interrupted. A duration
/// that goes beyond the end of time never elapses.
///
/// If the future spends the whole budget of the task, the deadline is looked at all the same.
///
/// # Cancel safety
///
/// Dropping the timeout drops the future inside, and removes the timer. To go on with the future after
/// the timeout, give a reference to it.
///
/// # Panics
///
/// Outside a runtime, and in one without timers; see [`sleep`](crate::sleep()).
///
/// # Examples
///
/// ```
/// use gmp::time::{Duration, timeout};
///
/// #[gmp::main]
/// async fn main() {
///     let never = std::future::pending::<()>();
///     assert!(timeout(Duration::from_millis(10), never).await.is_err());
/// }
/// ```
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    // In a function given to `map` the location of the caller would be lost.
    #[allow(clippy::manual_map)]
    let delay = match Instant::now().checked_add(duration) {
        Some(deadline) => Some(Sleep::new(deadline)),
        None => None,
    };
    Timeout::new(future.into_future(), delay)
}

/// Waits for the future, but no longer than until `deadline`. As in tokio.
///
/// Apart from the argument it is the same as [`timeout`].
///
/// # Cancel safety
///
/// Dropping the timeout drops the future inside, and removes the timer.
///
/// # Panics
///
/// Outside a runtime, and in one without timers; see [`sleep`](crate::sleep()).
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    let delay = Some(Sleep::new(deadline));
    Timeout::new(future.into_future(), delay)
}

pin_project! {
    /// Future returned by [`timeout`] and [`timeout_at`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        value: T,
        // `None`: never.
        #[pin]
        delay: Option<Sleep>,
    }
}

impl<T> Timeout<T> {
    pub(crate) fn new(value: T, delay: Option<Sleep>) -> Timeout<T> {
        Timeout { value, delay }
    }

    /// The future inside.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The future inside.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The future inside, without its limit.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(output) = me.value.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        match me.delay.as_pin_mut() {
            Some(delay) => poll_delay(delay, had_budget, cx).map(Err),
            None => Poll::Pending,
        }
    }
}

/// Apart from `poll`, so that there is one copy for all futures.
fn poll_delay(delay: Pin<&mut Sleep>, had_budget: bool, cx: &mut Context<'_>) -> Poll<Elapsed> {
    let polled = if had_budget && !coop::has_budget_remaining() {
        // The future spent the budget. If it always does, the deadline would never be looked at.
        coop::with_unconstrained(|| delay.poll(cx))
    } else {
        delay.poll(cx)
    };
    polled.map(|()| Elapsed::new())
}

#[cfg(all(test, not(gmp_loom)))]
#[path = "timeout_tests.rs"]
mod tests;
