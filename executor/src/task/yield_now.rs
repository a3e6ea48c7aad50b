//! Giving the others a turn.

use std::future::poll_fn;
use std::task::Poll;

use crate::context;
use crate::wait::{self, WaitReason};

/// Lets every other task that is ready run, and netpoll be looked at, before this one goes on.
///
/// As `tokio::task::yield_now`: the task goes to the tail of its P's queue. Nothing is guaranteed
/// about the order in which the others run.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        wait::record(WaitReason::Yield);
        context::defer(cx.waker());
        Poll::Pending
    })
    .await
}
