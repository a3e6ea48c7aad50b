//! [`PollEvented`]: a socket, pipe or the like together with its registration.

use std::fmt;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::{Context, Poll};

use gmp_executor::wait::WaitReason;
use gmp_io::ReadBuf;
use rustix::net::RecvFlags;

use crate::interest::Interest;
use crate::netpoll::{Direction, ReadyEvent, Registration, reason_of};
use crate::ready::Ready;

/// A non-blocking I/O object registered with the netpoll of the runtime it was created in.
///
/// Dereferences to the object. Methods without `user` in their name take closures that make a system
/// call on the object's descriptor themselves; the public `try_io` and `async_io` of the socket
/// types go through [`try_user_io`] and [`async_user_io`].
///
/// [`try_user_io`]: PollEvented::try_user_io
/// [`async_user_io`]: PollEvented::async_user_io
pub(crate) struct PollEvented<E> {
    // First, so that it is closed before the object closes its descriptor.
    registration: Registration,
    io: E,
}

impl<E: AsFd> PollEvented<E> {
    /// Registers a socket for everything that can happen to one.
    ///
    /// The system is told when an operation first has to wait, so an error may come then.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[track_caller]
    pub(crate) fn new(io: E) -> io::Result<PollEvented<E>> {
        PollEvented::new_with_interest(io, Interest::SOCKET)
    }

    /// Registers an object for some of the directions.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[track_caller]
    pub(crate) fn new_with_interest(io: E, interest: Interest) -> io::Result<PollEvented<E>> {
        let registration = Registration::new(io.as_fd(), interest);
        registration.check_runtime()?;
        Ok(PollEvented { registration, io })
    }

    /// As [`new_with_interest`](PollEvented::new_with_interest), but nothing is tried before the system has
    /// said that the object is ready. For pipes: reading a FIFO that has no writer yet would say that
    /// it is at its end.
    #[track_caller]
    pub(crate) fn registered(io: E, interest: Interest) -> io::Result<PollEvented<E>> {
        let evented = PollEvented::new_with_interest(io, interest)?;
        evented.registration.register()?;
        Ok(evented)
    }

    /// Takes the object to be ready, without having asked. A wrong guess costs an operation that
    /// would block. For sockets whose state is known when they are made: accepted ones, pairs.
    pub(crate) fn assume_ready(&self, ready: Ready) {
        self.registration.assume_ready(ready);
    }

    /// Deregisters the object and gives it back.
    pub(crate) fn into_inner(self) -> io::Result<E> {
        let PollEvented { registration, io } = self;
        registration.close()?;
        Ok(io)
    }
}

impl<E> PollEvented<E> {
    /// Waits until the object is ready for reading; wakes the last one to call it.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<ReadyEvent>> {
        self.registration
            .poll_ready(cx, Direction::Read, WaitReason::NetRead)
    }

    /// Waits until the object is ready for writing; wakes the last one to call it.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<ReadyEvent>> {
        self.registration
            .poll_ready(cx, Direction::Write, WaitReason::NetWrite)
    }

    /// Waits until a connection is made, or has failed.
    pub(crate) fn poll_connect_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<ReadyEvent>> {
        self.registration
            .poll_ready(cx, Direction::Write, WaitReason::NetConnect)
    }

    /// Calls `f`, which reads, until it does not say that it would block; wakes the last one to
    /// call a `poll_read` function.
    #[inline]
    pub(crate) fn poll_read_io<R>(
        &self,
        cx: &mut Context<'_>,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration
            .poll_io(cx, Direction::Read, WaitReason::NetRead, |_| f())
    }

    /// Calls `f`, which writes, until it does not say that it would block; wakes the last one to
    /// call a `poll_write` function.
    #[inline]
    pub(crate) fn poll_write_io<R>(
        &self,
        cx: &mut Context<'_>,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration
            .poll_io(cx, Direction::Write, WaitReason::NetWrite, |_| f())
    }

    /// As [`poll_read_io`](PollEvented::poll_read_io), for a listener.
    #[inline]
    pub(crate) fn poll_accept_io<R>(
        &self,
        cx: &mut Context<'_>,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration
            .poll_io(cx, Direction::Read, WaitReason::NetAccept, |_| f())
    }

    /// Takes readiness back, on the user's word, unless there has been an event since.
    pub(crate) fn clear(&self, event: ReadyEvent) {
        self.registration.clear(event);
    }

    /// Waits until the object is ready for some of `interest`; any number of futures may wait.
    pub(crate) async fn readiness(&self, interest: Interest) -> io::Result<ReadyEvent> {
        self.registration.readiness(interest).await
    }

    /// As [`readiness`](PollEvented::readiness), for a public `ready`.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.readiness(interest).await?.ready)
    }

    /// Calls `f` until it does not say that it would block; any number of futures may wait.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration
            .async_io(interest, reason_of(interest), f)
            .await
    }

    /// As [`async_io`](PollEvented::async_io), for a listener.
    pub(crate) async fn async_accept_io<R>(
        &self,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration
            .async_io(Interest::READABLE, WaitReason::NetAccept, f)
            .await
    }

    /// As [`async_io`](PollEvented::async_io), for a user's closure.
    pub(crate) async fn async_user_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_user_io(interest, f).await
    }

    /// Calls `f` if the object is ready.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, f)
    }

    /// As [`try_io`](PollEvented::try_io), for a user's closure.
    pub(crate) fn try_user_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_user_io(interest, f)
    }
}

impl<E: AsFd> PollEvented<E> {
    /// Reads what fits into `buf`.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.registration
            .poll_io(cx, Direction::Read, WaitReason::NetRead, |_| {
                fill(buf, |space| Ok(rustix::io::read(&self.io, space)?.0.len()))
            })
            .map_ok(|_| ())
    }

    /// Receives what fits into `buf`, for a stream socket of TCP.
    ///
    /// A call that did not fill `buf` has emptied the kernel's buffer, so the next one waits for an
    /// edge without asking the kernel. That does not hold for all that can be read: packets, messages
    /// with descriptors and urgent data each end a read before what follows. Of these TCP has
    /// the last, and its arrival is known as priority readiness.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let recv = |event| {
            let len = buf.remaining();
            let n = fill(buf, |space| {
                let (received, _) = rustix::net::recv(&self.io, space, RecvFlags::empty())?;
                Ok(received.0.len())
            })?;
            if 0 < n && n < len && !self.registration.has_seen_priority() {
                self.registration.clear(event);
            }
            Ok(())
        };
        self.registration
            .poll_io(cx, Direction::Read, WaitReason::NetRead, recv)
    }

    /// Writes some of `buf`. A short write has filled the kernel's buffer.
    pub(crate) fn poll_write<'a>(
        &'a self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>>
    where
        &'a E: Write,
    {
        let write = |event| {
            let n = (&self.io).write(buf)?;
            if 0 < n && n < buf.len() {
                self.registration.clear(event);
            }
            Ok(n)
        };
        self.registration
            .poll_io(cx, Direction::Write, WaitReason::NetWrite, write)
    }

    /// Writes some of `bufs`, in one system call.
    pub(crate) fn poll_write_vectored<'a>(
        &'a self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>
    where
        &'a E: Write,
    {
        self.poll_write_io(cx, || (&self.io).write_vectored(bufs))
    }
}

/// Lets `read`, a read of the kernel that returns how many bytes it has initialised, fill the unfilled
/// part of `buf` from its beginning.
fn fill(
    buf: &mut ReadBuf<'_>,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<usize>,
) -> io::Result<usize> {
    // SAFETY: the kernel stores bytes there and nothing else, so what is initialised stays
    // initialised.
    let space = unsafe { buf.unfilled_mut() };
    let n = read(space)?;
    // SAFETY: the kernel has initialised the first `n` bytes of the unfilled part.
    unsafe { buf.assume_init(n) };
    buf.advance(n);
    Ok(n)
}

// A panic between two operations leaves nothing half done in a registration.
impl<E> UnwindSafe for PollEvented<E> {}
impl<E> RefUnwindSafe for PollEvented<E> {}

impl<E> Deref for PollEvented<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.io
    }
}

impl<E: fmt::Debug> fmt::Debug for PollEvented<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollEvented").field("io", &self.io).finish()
    }
}
