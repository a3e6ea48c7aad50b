//! Connected Unix stream sockets.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};
use socket2::{Domain, Socket, Type};

use super::ucred::{self, UCred};
use super::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, SocketAddr, WriteHalf};
use super::{split, split_owned};
use crate::poll_evented::PollEvented;
use crate::sys::{self, Rest, retry};
use crate::{Interest, Ready};

/// A connected Unix stream socket.
///
/// It comes from [`connect`](UnixStream::connect), from
/// [`UnixListener::accept`](crate::UnixListener::accept) or from [`pair`](UnixStream::pair).
/// Reading and writing go through [`AsyncRead`] and [`AsyncWrite`]; shutting the writer down
/// (`AsyncWriteExt::shutdown`) lets the peer read to the end while we go on reading.
/// As `tokio::net::UnixStream`.
///
/// # Examples
///
/// ```no_run
/// use gmp::io::{AsyncReadExt, AsyncWriteExt};
/// use gmp::net::UnixStream;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let (mut a, mut b) = UnixStream::pair()?;
/// a.write_all(b"hello").await?;
/// a.shutdown().await?;
///
/// let mut text = String::new();
/// b.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
pub struct UnixStream {
    io: PollEvented<net::UnixStream>,
}

/// Making and naming streams.
impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// A path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) when there is no such file,
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when nobody listens,
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when the listener's queue of waiting connections is
    /// full: Linux (`EAGAIN`) offers no way to wait for a place in it, so try again later.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection that it may have made.
    pub async fn connect<P>(path: P) -> io::Result<UnixStream>
    where
        P: AsRef<Path>,
    {
        let addr = SocketAddr::from_path(path.as_ref())?;
        UnixStream::connect_addr(&addr).await
    }

    /// Connects to the socket at `socket_addr`.
    ///
    /// # Errors
    ///
    /// As [`connect`](UnixStream::connect).
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection that it may have made.
    pub async fn connect_addr(socket_addr: &SocketAddr) -> io::Result<UnixStream> {
        let socket = sys::nonblocking_socket(Domain::UNIX, Type::STREAM)?;
        UnixStream::connect_socket(socket, socket_addr).await
    }

    /// Connects `socket`, which does not block.
    pub(super) async fn connect_socket(
        socket: Socket,
        addr: &SocketAddr,
    ) -> io::Result<UnixStream> {
        let addr = addr.to_kernel()?;
        match retry(|| Ok(rustix::net::connect(&socket, &addr)?)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let stream = UnixStream::new(socket.into())?;
        // Writable means that the outcome is known; the pending error tells which it is.
        poll_fn(|cx| stream.io.poll_connect_ready(cx)).await?;
        match stream.io.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// Makes two streams that are connected with each other and have no address.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (a, b) = sys::nonblocking_pair(Type::STREAM)?;
        let a = UnixStream::new(a.into())?;
        let b = UnixStream::new(b.into())?;
        // Nothing has been written yet, so there is room; whether there is something to read only
        // the netpoll will tell.
        a.io.assume_ready(Ready::WRITABLE);
        b.io.assume_ready(Ready::WRITABLE);
        Ok((a, b))
    }

    #[track_caller]
    fn new(stream: net::UnixStream) -> io::Result<UnixStream> {
        let io = PollEvented::new(stream)?;
        Ok(UnixStream { io })
    }

    /// An accepted stream is tried at once: the client has often written its request already.
    pub(super) fn new_accepted(stream: net::UnixStream) -> io::Result<UnixStream> {
        let stream = UnixStream::new(stream)?;
        stream.io.assume_ready(Ready::READABLE | Ready::WRITABLE);
        Ok(stream)
    }

    /// Registers a stream of the standard library, which has to be in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled, and, in builds with debug assertions, when the stream is
    /// in blocking mode.
    #[track_caller]
    pub fn from_std(stream: net::UnixStream) -> io::Result<UnixStream> {
        sys::check_nonblocking(&stream)?;
        UnixStream::new(stream)
    }

    /// Takes the stream out of the runtime; it stays in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_std(self) -> io::Result<net::UnixStream> {
        self.io.into_inner()
    }

    /// The address of this end; unnamed unless it was bound.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// The address of the other end; unnamed unless that was bound.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr)
    }

    /// The credentials that the process at the other end had when it called `connect`, `listen` or
    /// `pair`.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        ucred::peer_cred(&*self.io)
    }

    /// The pending error of the socket (`SO_ERROR`), which is cleared by that.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Splits the stream into two borrowed halves that can be used at the same time.
    ///
    /// Costs nothing; for halves that move into tasks of their own see
    /// [`into_split`](UnixStream::into_split).
    pub fn split<'a>(&'a mut self) -> (ReadHalf<'a>, WriteHalf<'a>) {
        split::split(self)
    }

    /// Splits the stream into two owned halves, which share it through an `Arc`.
    ///
    /// Dropping the writer shuts the writing direction down, so that the peer reads to the end.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split_owned::split(self)
    }
}

/// Readiness, and operations of one's own.
impl UnixStream {
    /// Waits until the stream is ready for one of the things in `interest`.
    ///
    /// Meant to be followed by `try_*` calls. Readiness is a hint: the call may still say
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and the set returned may be empty.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: readiness stays until an operation finds that it is gone.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.io.ready(interest).await
    }

    /// Waits until there is something to read; like [`ready`](UnixStream::ready) with
    /// [`READABLE`](Interest::READABLE).
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await?;
        Ok(())
    }

    /// Waits until something can be written; like [`ready`](UnixStream::ready) with
    /// [`WRITABLE`](Interest::WRITABLE).
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await?;
        Ok(())
    }

    /// Polls whether there is something to read.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_read`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(|_| ())
    }

    /// Polls whether something can be written.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_write*`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(|_| ())
    }

    /// Reads what is there; returns how many bytes.
    ///
    /// 0 means that the peer will write no more, unless `buf` is empty.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing to read yet, else what the
    /// operating system says.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || retry(|| (&*self.io).read(buf)))
    }

    /// Reads what is there into several buffers, one after the other; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_read`](UnixStream::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, || {
            retry(|| (&*self.io).read_vectored(bufs))
        })
    }

    /// Reads what is there into the free part of `buf`, which is advanced; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_read`](UnixStream::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || sys::read_buf_mut(self, buf))
    }

    /// Writes as much of `buf` as there is room for; returns how many bytes.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is no room,
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when the peer reads no more, else what the
    /// operating system says.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || retry(|| (&*self.io).write(buf)))
    }

    /// Writes as much of several buffers as there is room for; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_write`](UnixStream::try_write).
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, || {
            retry(|| (&*self.io).write_vectored(buf))
        })
    }

    /// Calls `f` if the stream is ready, and clears the readiness if `f` says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// For system calls of one's own on the descriptor, such as one that passes descriptors. `f`
    /// must say `WouldBlock` only when a system call on this socket did, must do one kind of
    /// operation, and must not use this stream's own functions: readiness would be cleared that is
    /// still there, or kept that is gone.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the stream is not ready, else what `f` says.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.try_user_io(interest, f)
    }

    /// Waits for readiness and calls `f`, again and again until it says something else than
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// What is said of the closure of [`try_io`](UnixStream::try_io) holds for `f` too.
    ///
    /// # Errors
    ///
    /// What `f` says; also when the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// As safe as `f`: it has either not been called or said `WouldBlock`.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.async_user_io(interest, f).await
    }
}

/// What the stream and its halves share; the halves make sure that each direction has one user.
impl UnixStream {
    pub(super) fn poll_read_shared(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let event = ready!(self.io.poll_read_ready(cx))?;
            match sys::recv_stream(&*self.io, buf) {
                Ok(rest) => {
                    if rest == Rest::Empty {
                        self.io.clear(event);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.io.clear(event),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    pub(super) fn poll_write_shared(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write(cx, buf)
    }

    pub(super) fn poll_write_vectored_shared(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_vectored(cx, bufs)
    }

    /// Shuts the writing direction down.
    ///
    /// When the peer has gone already there is nothing left to shut down, which is no error.
    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        match self.io.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_shared(cx, buf)
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_shared(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored_shared(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown_write())
    }
}

impl TryFrom<net::UnixStream> for UnixStream {
    type Error = io::Error;

    /// The same as [`UnixStream::from_std`].
    fn try_from(stream: net::UnixStream) -> io::Result<UnixStream> {
        UnixStream::from_std(stream)
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.io).fmt(f)
    }
}

impl AsRef<UnixStream> for UnixStream {
    fn as_ref(&self) -> &UnixStream {
        self
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for UnixStream {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
