//! A descriptor's registration, and the operations that wait through it.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;
use gmp_executor::wait::{self, WaitReason};

use super::waiters::ReadyFor;
use super::{Direction, ReadyEvent, Shared, Source, gone};
use crate::interest::Interest;
use crate::ready::Ready;

/// A descriptor's registration with the netpoll of the runtime it was created in.
///
/// The descriptor must stay open until the registration is closed or dropped.
///
/// Operations come in two kinds. Those of this crate make a system call on the descriptor, and when
/// it says that it would block, that is the truth: all readiness of that direction goes, also
/// "closed" (a FIFO that got a new writer is not at its end any more). A user's closure may say so
/// for reasons of its own (a TLS record that is not complete): then "closed" stays, because no edge
/// would tell of it again. The functions for the latter have `user` in their name.
#[derive(Debug)]
pub(crate) struct Registration {
    source: Arc<Source>,
}

/// What to do about an operation that said that it would block.
#[derive(Clone, Copy)]
enum Verdict {
    /// It was a system call.
    Kernel,
    /// It was a user's closure.
    User,
}

impl Registration {
    /// Prepares the registration of a descriptor, in the runtime that this thread is in. It is
    /// registered when an operation first has to wait.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[track_caller]
    pub(crate) fn new(fd: BorrowedFd<'_>, interest: Interest) -> Registration {
        Registration::of_raw(fd.as_raw_fd(), interest)
    }

    /// As [`new`](Registration::new), for something that may turn out to be no descriptor at all.
    #[track_caller]
    pub(crate) fn of_raw(fd: RawFd, interest: Interest) -> Registration {
        Registration::with(fd, interest, Shared::current())
    }

    pub(super) fn with(fd: RawFd, interest: Interest, netpoll: Arc<Shared>) -> Registration {
        Registration {
            source: Arc::new(Source::new(fd, interest, netpoll)),
        }
    }

    /// Whether the runtime is gone.
    ///
    /// # Errors
    ///
    /// If it is.
    pub(crate) fn check_runtime(&self) -> io::Result<()> {
        if self.source.netpoll().is_shut() {
            return Err(gone());
        }
        Ok(())
    }

    /// Registers the descriptor now, to know whether that is possible.
    ///
    /// # Errors
    ///
    /// What the system said: `EPERM` for a regular file.
    pub(crate) fn register(&self) -> io::Result<()> {
        self.source.register()
    }

    /// Takes the descriptor to be ready, without having asked. A wrong guess costs an operation
    /// that would block.
    pub(crate) fn assume_ready(&self, ready: Ready) {
        self.source.watched().readiness().assume(ready);
    }

    /// Deregisters the descriptor for good.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.source.close()
    }

    #[inline]
    fn readiness_now(&self, mask: Ready) -> ReadyEvent {
        self.source.watched().readiness().snapshot(mask)
    }

    /// What the descriptor is ready for, or the news that the runtime is gone.
    #[inline]
    fn snapshot(&self, mask: Ready) -> io::Result<ReadyEvent> {
        let event = self.readiness_now(mask);
        if event.is_shutdown() || (!event.is_registered() && self.source.netpoll().is_shut()) {
            return Err(gone());
        }
        Ok(event)
    }

    /// As `snapshot`; if there is no readiness yet, there are events from now on.
    #[inline]
    fn registered_snapshot(&self, mask: Ready) -> io::Result<ReadyEvent> {
        let event = self.snapshot(mask)?;
        if event.ready.is_empty() && !event.is_registered() {
            self.source.register()?;
            return self.snapshot(mask);
        }
        Ok(event)
    }

    /// Takes readiness back, on somebody's word, unless there has been an event since. "Closed" stays.
    pub(crate) fn clear(&self, event: ReadyEvent) {
        let open = event.ready - Ready::CLOSED;
        self.clear_all(event.with_ready(open));
    }

    /// Whether there has been priority data that nobody has cleared.
    pub(crate) fn has_seen_priority(&self) -> bool {
        let event = self.readiness_now(Ready::of_interest(Interest::PRIORITY) - Ready::CLOSED);
        !event.ready.is_empty()
    }

    fn clear_all(&self, event: ReadyEvent) {
        self.source.watched().readiness().clear(event);
    }

    fn clear_after(&self, event: ReadyEvent, verdict: Verdict) {
        match verdict {
            Verdict::Kernel => self.clear_all(event),
            Verdict::User => self.clear(event),
        }
    }

    /// Waits until the descriptor is ready in this direction. The last one to call it for a
    /// direction is woken.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        reason: WaitReason,
    ) -> Poll<io::Result<ReadyEvent>> {
        let coop = ready!(coop::poll_proceed(cx));
        let mut event = self.registered_snapshot(direction.mask())?;
        if event.ready.is_empty() {
            event = ready!(self.poll_watched(cx, direction, reason))?;
        }
        coop.made_progress();
        Poll::Ready(Ok(event))
    }

    fn poll_watched(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        reason: WaitReason,
    ) -> Poll<io::Result<ReadyEvent>> {
        match self.source.watched().poll_ready(cx, direction) {
            Poll::Ready(event) if event.is_shutdown() => Poll::Ready(Err(gone())),
            Poll::Ready(event) => Poll::Ready(Ok(event)),
            Poll::Pending => {
                wait::record(reason);
                Poll::Pending
            }
        }
    }

    /// Calls `f`, which makes a system call, until it does not say that it would block.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        reason: WaitReason,
        mut f: impl FnMut(ReadyEvent) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let event = ready!(self.poll_attempt(cx, direction, reason))?;
            match f(event) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clear_all(event);
                    if !event.is_registered() {
                        self.source.register()?;
                    }
                }
                done => return Poll::Ready(done),
            }
        }
    }

    /// Like [`poll_ready`](Registration::poll_ready), but a descriptor that is not registered yet
    /// is as good as ready: trying costs less than registering.
    #[inline]
    fn poll_attempt(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        reason: WaitReason,
    ) -> Poll<io::Result<ReadyEvent>> {
        let coop = ready!(coop::poll_proceed(cx));
        let mut event = self.snapshot(direction.mask())?;
        if event.is_registered() && event.ready.is_empty() {
            event = ready!(self.poll_watched(cx, direction, reason))?;
        }
        coop.made_progress();
        Poll::Ready(Ok(event))
    }

    /// Waits until the descriptor is ready for some of `interest`. Any number of these futures may
    /// wait at once. Each costs a unit of budget.
    pub(crate) async fn readiness(&self, interest: Interest) -> io::Result<ReadyEvent> {
        self.readiness_for(interest, reason_of(interest)).await
    }

    async fn readiness_for(
        &self,
        interest: Interest,
        reason: WaitReason,
    ) -> io::Result<ReadyEvent> {
        self.registered_snapshot(Ready::of_interest(interest))?;
        let event = Budgeted {
            inner: self.source.watched().ready_for(interest),
            reason,
        }
        .await;
        if event.is_shutdown() {
            return Err(gone());
        }
        Ok(event)
    }

    /// Calls `f`, which makes a system call, until it does not say that it would block.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        reason: WaitReason,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let event = self.snapshot(Ready::of_interest(interest))?;
        if !event.is_registered() {
            coop::consume_budget().await;
            match f() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clear_all(event);
                    self.source.register()?;
                }
                done => return done,
            }
        }
        self.async_loop(interest, reason, Verdict::Kernel, f).await
    }

    /// As [`async_io`](Registration::async_io), for a user's closure.
    pub(crate) async fn async_user_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.async_loop(interest, reason_of(interest), Verdict::User, f)
            .await
    }

    async fn async_loop<R>(
        &self,
        interest: Interest,
        reason: WaitReason,
        verdict: Verdict,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.readiness_for(interest, reason).await?;
            match f() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clear_after(event, verdict);
                }
                done => return done,
            }
        }
    }

    /// Calls `f`, which makes a system call, if the descriptor is ready or not registered yet.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        // Without a look at whether the runtime is gone, as in tokio: what has arrived can be had.
        let event = self.readiness_now(Ready::of_interest(interest));
        if event.is_registered() && event.ready.is_empty() && !event.is_shutdown() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.try_once(event, Verdict::Kernel, f)
    }

    /// As [`try_io`](Registration::try_io), for a user's closure.
    pub(crate) fn try_user_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let event = self.registered_snapshot(Ready::of_interest(interest))?;
        if event.ready.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.try_once(event, Verdict::User, f)
    }

    fn try_once<R>(
        &self,
        event: ReadyEvent,
        verdict: Verdict,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        match f() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_after(event, verdict);
                Err(io::ErrorKind::WouldBlock.into())
            }
            done => done,
        }
    }

    #[cfg(all(test, not(gmp_loom)))]
    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The descriptor may have been closed behind the runtime's back; then it is not registered.
        let _ = self.close();
    }
}

/// The reason of a wait that has no more telling one.
pub(crate) fn reason_of(interest: Interest) -> WaitReason {
    if interest.is_writable() && !interest.is_readable() {
        WaitReason::NetWrite
    } else {
        WaitReason::NetRead
    }
}

/// A waiter in the list that takes part in the budget.
struct Budgeted<'a> {
    inner: ReadyFor<'a>,
    reason: WaitReason,
}

impl Future for Budgeted<'_> {
    type Output = ReadyEvent;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReadyEvent> {
        let coop = ready!(coop::poll_proceed(cx));
        match Pin::new(&mut self.inner).poll(cx) {
            Poll::Ready(event) => {
                coop.made_progress();
                Poll::Ready(event)
            }
            Poll::Pending => {
                wait::record(self.reason);
                Poll::Pending
            }
        }
    }
}
