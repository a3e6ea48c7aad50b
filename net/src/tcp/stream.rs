//! [`TcpStream`].

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};
use socket2::{Domain, SockRef, Socket, Type};

use crate::addr::{ToSocketAddrs, no_address, to_socket_addrs};
use crate::interest::Interest;
use crate::poll_evented::PollEvented;
use crate::ready::Ready;
use crate::sys;
use crate::tcp::split::{self, ReadHalf, WriteHalf};
use crate::tcp::split_owned::{self, OwnedReadHalf, OwnedWriteHalf};

/// A TCP connection.
///
/// As `tokio::net::TcpStream`. Reading and writing go through [`AsyncRead`] and [`AsyncWrite`] and
/// their extension traits; two tasks that read and write share a stream through
/// [`split`](TcpStream::split) or [`into_split`](TcpStream::into_split).
///
/// Dropping the stream closes the connection in both directions. Shutting the writer down
/// (`AsyncWriteExt::shutdown`) tells the other side that nothing more comes.
///
/// # Examples
///
/// ```no_run
/// use gmp::io::{AsyncReadExt, AsyncWriteExt};
/// use gmp::net::TcpStream;
///
/// #[gmp::main]
/// async fn main() -> std::io::Result<()> {
///     let mut stream = TcpStream::connect("127.0.0.1:8080").await?;
///     stream.write_all(b"hello").await?;
///     let mut answer = Vec::new();
///     stream.read_to_end(&mut answer).await?;
///     Ok(())
/// }
/// ```
pub struct TcpStream {
    io: PollEvented<net::TcpStream>,
}

impl TcpStream {
    /// Connects to the first of the addresses that answers.
    ///
    /// # Errors
    ///
    /// When no address can be resolved or connected to; then it is the error of the last one.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        let mut last_error = None;
        for addr in to_socket_addrs(addr).await? {
            let socket = sys::nonblocking_socket(Domain::for_address(addr), Type::STREAM);
            let connected = match socket {
                Ok(socket) => TcpStream::connect_socket(socket, addr).await,
                Err(error) => Err(error),
            };
            match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error.unwrap_or_else(no_address))
    }

    /// Connects a socket that does not block.
    pub(crate) async fn connect_socket(socket: Socket, addr: SocketAddr) -> io::Result<TcpStream> {
        // Interrupted: the connection is being made all the same, as POSIX has it.
        let pending = match socket.connect(&addr.into()) {
            Ok(()) => false,
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => true,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => return Err(error),
        };
        let stream = TcpStream {
            io: PollEvented::new(socket.into())?,
        };
        if pending {
            poll_fn(|cx| stream.io.poll_connect_ready(cx)).await?;
            if let Some(error) = stream.io.take_error()? {
                return Err(error);
            }
        }
        Ok(stream)
    }

    /// Takes a connection that a listener has accepted. It is writable, and often the other side's
    /// first bytes are there already.
    pub(super) fn from_accepted(stream: net::TcpStream) -> io::Result<TcpStream> {
        let io = PollEvented::new(stream)?;
        io.assume_ready(Ready::READABLE | Ready::WRITABLE);
        Ok(TcpStream { io })
    }

    /// Takes a stream of the standard library, which must be in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O. In builds with debug assertions also when
    /// the stream is in blocking mode, as in tokio.
    #[track_caller]
    pub fn from_std(stream: net::TcpStream) -> io::Result<TcpStream> {
        sys::check_nonblocking(&stream)?;
        let io = PollEvented::new(stream)?;
        Ok(TcpStream { io })
    }

    /// Gives the stream back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    ///
    /// When it cannot be deregistered.
    pub fn into_std(self) -> io::Result<net::TcpStream> {
        self.io.into_inner()
    }

    /// The address of this side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    /// Takes the socket's pending error (`SO_ERROR`).
    ///
    /// # Errors
    ///
    /// When it cannot be asked for.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Polls for data and copies it without taking it. Only the task of the last call to a polling
    /// method for reading is woken.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, || {
            let before = buf.filled().len();
            sys::recv_read_buf(&*self.io, buf, libc::MSG_PEEK)?;
            Ok(buf.filled().len() - before)
        })
    }

    /// Waits for data and copies it without taking it.
    ///
    /// # Errors
    ///
    /// What the system said.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken, so nothing is lost.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .async_io(Interest::READABLE, || self.io.peek(buf))
            .await
    }

    /// Waits until the socket is ready for some of `interest`.
    ///
    /// It may return for nothing; a `try_` method then says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), which makes the next wait a real one.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// The readiness stands until a `try_` method clears it, so dropping the future loses nothing.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.io.ready(interest).await
    }

    /// Waits until the socket is readable; goes with [`try_read`](TcpStream::try_read).
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](TcpStream::ready).
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await?;
        Ok(())
    }

    /// Polls for readability. Only the task of the last call is woken.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(|_| ())
    }

    /// Reads what is there; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing; else what the system said.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, || (&*self.io).read(buf))
    }

    /// As [`try_read`](TcpStream::try_read), into several buffers.
    ///
    /// # Errors
    ///
    /// As [`try_read`](TcpStream::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || (&*self.io).read_vectored(bufs))
    }

    /// As [`try_read`](TcpStream::try_read), into the free part of `buf`, which is advanced.
    ///
    /// # Errors
    ///
    /// As [`try_read`](TcpStream::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || sys::read_buf_mut(&*self.io, buf))
    }

    /// Waits until the socket is writable; goes with [`try_write`](TcpStream::try_write).
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`ready`](TcpStream::ready).
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await?;
        Ok(())
    }

    /// Polls for writability. Only the task of the last call is woken.
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(|_| ())
    }

    /// Writes what there is space for.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none; else what the system said.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || (&*self.io).write(buf))
    }

    /// As [`try_write`](TcpStream::try_write), from several buffers.
    ///
    /// # Errors
    ///
    /// As [`try_write`](TcpStream::try_write).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || (&*self.io).write_vectored(bufs))
    }

    /// Calls `f` if the socket is ready for some of `interest`, and clears that when it returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// For operations that this type does not have; `f` does them on the socket's descriptor.
    ///
    /// # Errors
    ///
    /// `WouldBlock` without a call of `f` when the socket is not ready; those of `f`.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.try_user_io(interest, f)
    }

    /// Calls `f` whenever the socket is ready for some of `interest`, until it returns something
    /// else than [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    ///
    /// Those of `f`, and when the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// After `f` has succeeded there is no await, so dropping the future loses nothing.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.async_user_io(interest, f).await
    }

    /// The `TCP_NODELAY` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.nodelay()
    }

    /// Sets the `TCP_NODELAY` option: small writes go out at once.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.set_nodelay(nodelay)
    }

    /// The `TCP_QUICKACK` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn quickack(&self) -> io::Result<bool> {
        SockRef::from(self).tcp_quickack()
    }

    /// Sets the `TCP_QUICKACK` option: acknowledgements go out at once, until the kernel decides
    /// otherwise.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        SockRef::from(self).set_tcp_quickack(quickack)
    }

    /// The `SO_LINGER` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self).linger()
    }

    /// Sets the `SO_LINGER` option: closing waits for data that is still to be sent.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[deprecated = "with `SO_LINGER` dropping the socket blocks the thread"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(dur)
    }

    /// Sets the `SO_LINGER` option to zero: closing resets the connection and drops unsent data.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        SockRef::from(self).set_linger(Some(Duration::ZERO))
    }

    /// The `IP_TTL` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets the `IP_TTL` option: over how many routers a packet may go.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }

    /// Borrows the two directions apart, without cost. They stay in one task;
    /// [`into_split`](TcpStream::into_split) makes halves that can go to different ones.
    #[allow(clippy::needless_lifetimes)] // Tells readers that the halves borrow.
    pub fn split<'a>(&'a mut self) -> (ReadHalf<'a>, WriteHalf<'a>) {
        split::split(self)
    }

    /// Takes the two directions apart, for two tasks. Costs an allocation. Dropping the write half
    /// shuts the write direction down.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split_owned::split(self)
    }

    // The two directions of the I/O traits, for the halves.

    pub(super) fn read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io.poll_recv(cx, buf)
    }

    pub(super) fn write(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write(cx, buf)
    }

    pub(super) fn write_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_vectored(cx, bufs)
    }

    /// Tells the other side that nothing more comes. If it is gone there is nobody to tell.
    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        match self.io.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.read(cx, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The kernel keeps nothing back that a flush could hurry.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown_write())
    }
}

impl TryFrom<net::TcpStream> for TcpStream {
    type Error = io::Error;

    /// As [`from_std`](TcpStream::from_std).
    fn try_from(stream: net::TcpStream) -> io::Result<TcpStream> {
        TcpStream::from_std(stream)
    }
}

impl AsRef<TcpStream> for TcpStream {
    fn as_ref(&self) -> &TcpStream {
        self
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.io).fmt(f)
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
