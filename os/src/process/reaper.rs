//! [`Reaper`]: a running child, to be waited for and reaped.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::{Child as StdChild, ExitStatus};
use std::task::{Context, Poll, ready};

use gmp_executor::wait::{self, WaitReason};
use gmp_executor::{Handle, coop};
use gmp_net::AsyncFd;

use super::notice::{self, Notice};
use super::orphan;
use crate::delivery;

/// A child, and the notice by which one learns of its end. Dropped too early, the child becomes an
/// orphan.
///
/// As a future it waits for the child; not to be polled again after that.
pub(super) struct Reaper {
    /// `None` only while it is being dropped.
    child: Option<StdChild>,
    /// `None` until [`watch`](Reaper::watch).
    notice: Option<Notice>,
}

impl Reaper {
    pub(super) fn new(child: StdChild) -> Reaper {
        Reaper {
            child: Some(child),
            notice: None,
        }
    }

    #[cfg(all(test, not(gmp_loom)))]
    pub(super) fn with_notice(child: StdChild, notice: Notice) -> Reaper {
        Reaper {
            child: Some(child),
            notice: Some(notice),
        }
    }

    /// Arranges to be told of the child's end by the runtime behind `handle`, the current one.
    ///
    /// # Errors
    ///
    /// There are no descriptors left, or the runtime is shut down.
    pub(super) fn watch(&mut self, handle: &Handle) -> io::Result<()> {
        self.notice = Some(Notice::new(self.id(), handle)?);
        Ok(())
    }

    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().expect(ALIVE).id()
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.as_mut().expect(ALIVE).kill()
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.as_mut().expect(ALIVE).try_wait()
    }

    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let mut renewed = false;
        loop {
            let child = self.child.as_mut().expect(ALIVE);
            let here = match &mut self.notice {
                Some(Notice::Pidfd(fd)) => match ready!(poll_pidfd(fd, child, cx)) {
                    Pidfd::Done(result) => return Poll::Ready(result),
                    Pidfd::Held => {
                        self.notice = Some(Notice::sigchld(&Handle::current())?);
                        continue;
                    }
                    // We may be in another runtime than the one that is gone.
                    Pidfd::Gone(error) if renewed => return Poll::Ready(Err(error)),
                    Pidfd::Gone(_) => Handle::current(),
                },
                Some(Notice::Sigchld(listener)) => {
                    // To be woken first, then to look: a child that ends in between is not missed.
                    let waiting = listener.poll_take(cx).is_pending();
                    if let Some(status) = child.try_wait()? {
                        return Poll::Ready(Ok(status));
                    }
                    if waiting {
                        delivery::ensure_received_here();
                        return Poll::Pending;
                    }
                    continue;
                }
                None => unreachable!("a child that could not be watched is not handed out"),
            };
            renewed = true;
            self.watch(&here)?;
        }
    }
}

/// What a pidfd has to say.
enum Pidfd {
    /// The child has ended, or asking failed.
    Done(io::Result<ExitStatus>),
    /// The child has ended, but somebody holds the corpse.
    Held,
    /// The runtime that the pidfd is registered with is gone.
    Gone(io::Error),
}

fn poll_pidfd(fd: &AsyncFd<OwnedFd>, child: &mut StdChild, cx: &mut Context<'_>) -> Poll<Pidfd> {
    loop {
        let mut guard = match ready!(fd.poll_read_ready(cx)) {
            Ok(guard) => guard,
            Err(error) => return Poll::Ready(Pidfd::Gone(error)),
        };
        if let Some(result) = child.try_wait().transpose() {
            return Poll::Ready(Pidfd::Done(result));
        }
        if notice::has_ended(guard.get_inner()) {
            return Poll::Ready(Pidfd::Held);
        }
        guard.clear_ready();
    }
}

const ALIVE: &str = "the child is there until the drop";

impl Future for Reaper {
    type Output = io::Result<ExitStatus>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = self.get_mut().poll_ended(cx);
        if ended.is_pending() && coop::has_budget_remaining() {
            wait::record(WaitReason::Child);
        }
        ended
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.try_wait() {
            return;
        }
        if let Some(child) = self.child.take() {
            orphan::adopt(child, self.notice.take());
        }
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper").field("pid", &self.id()).finish()
    }
}
