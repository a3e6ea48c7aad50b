//! A deadline for a send. Timers are not this crate's: whoever has them installs a way to sleep.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use gmp_executor::coop::{has_budget_remaining, with_unconstrained};
use pin_project_lite::pin_project;

/// Makes a future that completes after that time. Panics, as tokio's `sleep` does, where there is no
/// runtime with timers.
pub type SleepFn = fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

static SLEEP: OnceLock<SleepFn> = OnceLock::new();

/// Says how [`Sender::send_timeout`](super::Sender::send_timeout) sleeps. Called by the crate that puts a
/// runtime with timers together; the first call counts.
pub fn install_sleep(sleep: SleepFn) {
    SLEEP.get_or_init(|| sleep);
}

/// The sleep of the runtime this thread is in.
///
/// # Panics
///
/// Outside a runtime, or in one without timers.
pub(super) fn sleep(duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
    match SLEEP.get() {
        Some(sleep) => sleep(duration),
        None => {
            // Nobody has ever made a runtime with timers; say which of the two is missing.
            let _in_a_runtime = gmp_executor::Handle::current();
            panic!(
                "A Tokio 1.x context was found, but timers are disabled. Call `enable_time` on \
                 the runtime builder to enable timers."
            );
        }
    }
}

pin_project! {
    /// Waits for a future, but not longer than the deadline takes.
    ///
    /// The future comes first: if it is ready by the time of a poll, its output counts. When it has
    /// spent the budget the deadline is looked at without one, so that a task that is always busy is
    /// on time.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(super) struct Until<F, D> {
        #[pin]
        pub(super) future: F,
        #[pin]
        pub(super) deadline: D,
    }
}

impl<F: Future, D: Future<Output = ()>> Future for Until<F, D> {
    /// `None` when the deadline came first.
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = has_budget_remaining();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Some(output));
        }
        let polled = match had_budget && !has_budget_remaining() {
            true => with_unconstrained(|| this.deadline.poll(cx)),
            false => this.deadline.poll(cx),
        };
        polled.map(|()| None)
    }
}
