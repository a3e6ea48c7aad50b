//! [`AsyncFd`]: any descriptor that the system can poll.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use gmp_executor::wait::WaitReason;

use crate::interest::Interest;
use crate::netpoll::{Direction, ReadyEvent, Registration};
use crate::ready::Ready;

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// A descriptor registered with the runtime: says when it is ready, and leaves reading and writing
/// to the user.
///
/// As `tokio::io::unix::AsyncFd`. It takes whatever holds a descriptor, a socket of a C library or
/// an eventfd for instance. The descriptor should be in non-blocking mode: readiness is a hint, and
/// an operation that finds nothing would block the whole thread.
///
/// The way to use it: wait with [`readable`] or [`writable`], try the operation through the guard's
/// [`try_io`], and wait again when that says that it would have blocked. `try_io` clears the
/// readiness then; whoever calls the operation in another way has to call [`clear_ready`] himself,
/// and only after it has said that it would block, or the next event may never come: the system
/// reports a change once. [`async_io`] does all this in a loop.
///
/// Regular files cannot be registered ([`PermissionDenied`](io::ErrorKind::PermissionDenied)).
///
/// [`readable`]: AsyncFd::readable
/// [`writable`]: AsyncFd::writable
/// [`async_io`]: AsyncFd::async_io
/// [`try_io`]: AsyncFdReadyGuard::try_io
/// [`clear_ready`]: AsyncFdReadyGuard::clear_ready
///
/// # Examples
///
/// ```
/// use std::io::{self, Read};
/// use std::os::unix::net::UnixStream;
///
/// use gmp::io::Interest;
/// use gmp::io::unix::AsyncFd;
///
/// #[gmp::main]
/// async fn main() -> io::Result<()> {
///     let (ours, theirs) = UnixStream::pair()?;
///     ours.set_nonblocking(true)?;
///     drop(theirs);
///     // SAFETY: a `UnixStream` keeps its descriptor open and does not change it.
///     let fd = unsafe { AsyncFd::register(ours) }?;
///     let mut byte = [0];
///     let n = fd.async_io(Interest::READABLE, |mut stream| stream.read(&mut byte)).await?;
///     assert_eq!(n, 0);
///     Ok(())
/// }
/// ```
pub struct AsyncFd<T: AsRawFd> {
    // First, so that it is closed before `inner` closes the descriptor.
    registration: Registration,
    inner: T,
}

/// The readiness of an [`AsyncFd`], to be cleared or left standing.
#[must_use = "a guard that is dropped leaves the readiness standing: decide with one of its methods"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    async_fd: &'a AsyncFd<T>,
    event: Option<ReadyEvent>,
}

/// The readiness of an [`AsyncFd`] that is borrowed mutably, to be cleared or left standing.
#[must_use = "a guard that is dropped leaves the readiness standing: decide with one of its methods"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    async_fd: &'a mut AsyncFd<T>,
    event: Option<ReadyEvent>,
}

impl<T: AsRawFd> AsyncFd<T> {
    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor. The error carries `inner`.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    ///
    /// # Safety
    ///
    /// `inner.as_raw_fd()` returns the same descriptor each time, which is open and stays so until
    /// the `AsyncFd` is dropped or taken apart.
    #[inline]
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::start(inner, BOTH)
    }

    /// Registers a descriptor for some readiness only.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor. The error carries `inner`.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    ///
    /// # Safety
    ///
    /// As for [`register`](AsyncFd::register).
    #[inline]
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::start(inner, interest)
    }

    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[inline]
    #[track_caller]
    #[deprecated(note = "does not demand that the descriptor stays open; use `AsyncFd::register`")]
    pub fn new(inner: T) -> io::Result<Self> {
        Ok(Self::start(inner, BOTH)?)
    }

    /// Registers a descriptor for some readiness only.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[inline]
    #[track_caller]
    #[deprecated(
        note = "does not demand that the descriptor stays open; use `AsyncFd::register_with_interest`"
    )]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        Ok(Self::start(inner, interest)?)
    }

    /// Registers a descriptor for reading and writing; the error gives `inner` back.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[inline]
    #[track_caller]
    #[deprecated(note = "does not demand that the descriptor stays open; use `AsyncFd::register`")]
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::start(inner, BOTH)
    }

    /// Registers a descriptor for some readiness only; the error gives `inner` back.
    ///
    /// # Errors
    ///
    /// When the system cannot poll the descriptor.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[inline]
    #[track_caller]
    #[deprecated(
        note = "does not demand that the descriptor stays open; use `AsyncFd::register_with_interest`"
    )]
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::start(inner, interest)
    }

    #[track_caller]
    fn start(inner: T, interest: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        let registration = Registration::of_raw(inner.as_raw_fd(), interest);
        match registration.register() {
            Ok(()) => Ok(AsyncFd {
                registration,
                inner,
            }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    /// What holds the descriptor.
    #[inline]
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What holds the descriptor.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Deregisters the descriptor and gives back what holds it.
    pub fn into_inner(self) -> T {
        let AsyncFd {
            registration,
            inner,
        } = self;
        drop(registration);
        inner
    }

    /// Polls for readiness for reading.
    ///
    /// Only the task of the last call is woken; any number may wait through
    /// [`readable`](AsyncFd::readable).
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_read_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.poll_ready(cx, Direction::Read))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, event)))
    }

    /// Polls for readiness for reading, and borrows mutably.
    ///
    /// Only the task of the last call is woken.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.poll_ready(cx, Direction::Read))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, event)))
    }

    /// Polls for readiness for writing.
    ///
    /// Only the task of the last call is woken; any number may wait through
    /// [`writable`](AsyncFd::writable).
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_write_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = ready!(self.poll_ready(cx, Direction::Write))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, event)))
    }

    /// Polls for readiness for writing, and borrows mutably.
    ///
    /// Only the task of the last call is woken.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = ready!(self.poll_ready(cx, Direction::Write))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, event)))
    }

    fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<ReadyEvent>> {
        let reason = match direction {
            Direction::Read => WaitReason::NetRead,
            Direction::Write => WaitReason::NetWrite,
        };
        self.registration.poll_ready(cx, direction, reason)
    }

    /// Waits until the descriptor is ready for some of `interest`.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// The readiness stands until it is cleared, so dropping the future loses nothing.
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let event = self.registration.readiness(interest).await?;
        Ok(AsyncFdReadyGuard::new(self, event))
    }

    /// Waits until the descriptor is ready for some of `interest`, and borrows mutably.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// The readiness stands until it is cleared, so dropping the future loses nothing.
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let event = self.registration.readiness(interest).await?;
        Ok(AsyncFdReadyMutGuard::new(self, event))
    }

    /// Waits until the descriptor is ready for reading.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](AsyncFd::ready).
    #[allow(clippy::needless_lifetimes)] // Tells readers that the guard borrows.
    pub async fn readable<'a>(&'a self) -> io::Result<AsyncFdReadyGuard<'a, T>> {
        self.ready(Interest::READABLE).await
    }

    /// Waits until the descriptor is ready for reading, and borrows mutably.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](AsyncFd::ready).
    #[allow(clippy::needless_lifetimes)] // Tells readers that the guard borrows.
    pub async fn readable_mut<'a>(&'a mut self) -> io::Result<AsyncFdReadyMutGuard<'a, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until the descriptor is ready for writing.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](AsyncFd::ready).
    #[allow(clippy::needless_lifetimes)] // Tells readers that the guard borrows.
    pub async fn writable<'a>(&'a self) -> io::Result<AsyncFdReadyGuard<'a, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// Waits until the descriptor is ready for writing, and borrows mutably.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](AsyncFd::ready).
    #[allow(clippy::needless_lifetimes)] // Tells readers that the guard borrows.
    pub async fn writable_mut<'a>(&'a mut self) -> io::Result<AsyncFdReadyMutGuard<'a, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// Calls `f` whenever the descriptor is ready for some of `interest`, until it returns
    /// something else than [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// `f` should do the operation and nothing that takes long.
    ///
    /// # Errors
    ///
    /// Those of `f`, and when the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing that `f` has not taken: after `f` has succeeded there is
    /// no await.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration
            .async_user_io(interest, || f(&self.inner))
            .await
    }

    /// As [`async_io`](AsyncFd::async_io), for an operation that needs the inner value mutably.
    ///
    /// # Errors
    ///
    /// Those of `f`, and when the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`async_io`](AsyncFd::async_io).
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut f: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let AsyncFd {
            registration,
            inner,
        } = self;
        registration.async_user_io(interest, || f(inner)).await
    }

    /// Calls `f` if the descriptor is ready for some of `interest`, and clears that when it returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    ///
    /// `WouldBlock` without a call of `f` when the descriptor is not ready; those of `f`.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_user_io(interest, || f(&self.inner))
    }

    /// As [`try_io`](AsyncFd::try_io), for an operation that needs the inner value mutably.
    ///
    /// # Errors
    ///
    /// As [`try_io`](AsyncFd::try_io).
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        f: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let AsyncFd {
            registration,
            inner,
        } = self;
        registration.try_user_io(interest, || f(inner))
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl<T: AsRawFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: whoever registered the descriptor has promised that it stays open as long as the
        // `AsyncFd` is there, which the result borrows (`AsyncFd::register`).
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd")
            .field("inner", &self.inner)
            .finish()
    }
}

/// Clears `cleared` of what a guard holds.
fn clear_matching(registration: &Registration, event: &mut Option<ReadyEvent>, cleared: Ready) {
    if let Some(held) = event.take() {
        registration.clear(held.with_ready(cleared));
        let left = held.ready - cleared;
        if !left.is_empty() {
            *event = Some(held.with_ready(left));
        }
    }
}

fn clear_held(registration: &Registration, event: &mut Option<ReadyEvent>) {
    if let Some(held) = event.take() {
        registration.clear(held);
    }
}

fn held_ready(event: &Option<ReadyEvent>) -> Ready {
    event.as_ref().map_or(Ready::EMPTY, |held| held.ready)
}

impl<'a, T: AsRawFd> AsyncFdReadyGuard<'a, T> {
    fn new(async_fd: &'a AsyncFd<T>, event: ReadyEvent) -> Self {
        AsyncFdReadyGuard {
            async_fd,
            event: Some(event),
        }
    }

    /// The descriptor is not ready any more: the next one who waits waits for a new event.
    ///
    /// Call it only after an operation has said that it would block. If an event has come in
    /// between, it stands. "Closed" is never cleared.
    pub fn clear_ready(&mut self) {
        clear_held(&self.async_fd.registration, &mut self.event);
    }

    /// As [`clear_ready`](AsyncFdReadyGuard::clear_ready), for part of the readiness.
    pub fn clear_ready_matching(&mut self, ready: Ready) {
        clear_matching(&self.async_fd.registration, &mut self.event, ready);
    }

    /// Leaves the readiness standing, as dropping the guard does, but says so.
    pub fn retain_ready(&mut self) {}

    /// What the descriptor is ready for, as far as this guard knows.
    pub fn ready(&self) -> Ready {
        held_ready(&self.event)
    }

    /// Does an operation, and clears the readiness when it says that it would block.
    ///
    /// # Errors
    ///
    /// [`TryIoError`] when the operation would block. Its other errors are part of the value.
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&'a AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match f(self.async_fd) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_ready();
                Err(TryIoError(()))
            }
            done => Ok(done),
        }
    }

    /// The [`AsyncFd`].
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        self.async_fd
    }

    /// What holds the descriptor.
    pub fn get_inner(&self) -> &'a T {
        self.async_fd.get_ref()
    }
}

impl<'a, T: AsRawFd> AsyncFdReadyMutGuard<'a, T> {
    fn new(async_fd: &'a mut AsyncFd<T>, event: ReadyEvent) -> Self {
        AsyncFdReadyMutGuard {
            async_fd,
            event: Some(event),
        }
    }

    /// The descriptor is not ready any more: the next one who waits waits for a new event.
    ///
    /// As [`AsyncFdReadyGuard::clear_ready`].
    pub fn clear_ready(&mut self) {
        clear_held(&self.async_fd.registration, &mut self.event);
    }

    /// As [`clear_ready`](AsyncFdReadyMutGuard::clear_ready), for part of the readiness.
    pub fn clear_ready_matching(&mut self, ready: Ready) {
        clear_matching(&self.async_fd.registration, &mut self.event, ready);
    }

    /// Leaves the readiness standing, as dropping the guard does, but says so.
    pub fn retain_ready(&mut self) {}

    /// What the descriptor is ready for, as far as this guard knows.
    pub fn ready(&self) -> Ready {
        held_ready(&self.event)
    }

    /// Does an operation, and clears the readiness when it says that it would block.
    ///
    /// # Errors
    ///
    /// [`TryIoError`] when the operation would block. Its other errors are part of the value.
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&mut AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match f(self.async_fd) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_ready();
                Err(TryIoError(()))
            }
            done => Ok(done),
        }
    }

    /// The [`AsyncFd`].
    pub fn get_ref(&self) -> &AsyncFd<T> {
        self.async_fd
    }

    /// The [`AsyncFd`].
    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.async_fd
    }

    /// What holds the descriptor.
    pub fn get_inner(&self) -> &T {
        self.async_fd.get_ref()
    }

    /// What holds the descriptor.
    pub fn get_inner_mut(&mut self) -> &mut T {
        self.async_fd.get_mut()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyGuard")
            .field("async_fd", &self.async_fd)
            .finish()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyMutGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutReadyGuard")
            .field("async_fd", &self.async_fd)
            .finish()
    }
}

/// An operation tried through a guard would have blocked. Its readiness was cleared.
#[derive(Debug)]
pub struct TryIoError(());

/// A descriptor that could not be registered, and why.
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

/// The former name of [`AsyncFdRegisterError`].
#[doc(hidden)]
#[deprecated(note = "use `AsyncFdRegisterError`")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

impl<T> AsyncFdRegisterError<T> {
    /// What was to be registered, and the system's error.
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> io::Error {
        error.cause
    }
}
