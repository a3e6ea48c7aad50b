//! Listening Unix sockets.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net;
use std::path::Path;
use std::task::{Context, Poll, ready};

use socket2::{Domain, Type};

use super::{SocketAddr, UnixStream};
use crate::poll_evented::PollEvented;
use crate::sys;

/// As many waiting connections as the system allows (`net.core.somaxconn`).
const BACKLOG_MAX: i32 = -1;

/// A Unix socket that accepts connections.
///
/// The file at its path stays behind when the listener is dropped; binding to it again fails until
/// it is removed. As `tokio::net::UnixListener`.
///
/// # Examples
///
/// ```no_run
/// use gmp::io::AsyncWriteExt;
/// use gmp::net::UnixListener;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let listener = UnixListener::bind("/tmp/greeter.sock")?;
/// loop {
///     let (mut stream, _) = listener.accept().await?;
///     gmp::spawn(async move { stream.write_all(b"hello\n").await });
/// }
/// # }
/// ```
pub struct UnixListener {
    io: PollEvented<net::UnixListener>,
}

impl UnixListener {
    /// Makes a socket that listens at `path`.
    ///
    /// A path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) when there is a file already,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the path is too long for an address, and
    /// what else the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn bind<P>(path: P) -> io::Result<UnixListener>
    where
        P: AsRef<Path>,
    {
        let addr = SocketAddr::from_path(path.as_ref())?;
        UnixListener::bind_addr(&addr)
    }

    /// Makes a socket that listens at `socket_addr`.
    ///
    /// # Errors
    ///
    /// As [`bind`](UnixListener::bind).
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn bind_addr(socket_addr: &SocketAddr) -> io::Result<UnixListener> {
        let socket = sys::nonblocking_socket(Domain::UNIX, Type::STREAM)?;
        rustix::net::bind(&socket, &socket_addr.to_kernel()?)?;
        rustix::net::listen(&socket, BACKLOG_MAX)?;
        UnixListener::new(socket.into())
    }

    #[track_caller]
    pub(super) fn new(listener: net::UnixListener) -> io::Result<UnixListener> {
        let io = PollEvented::new(listener)?;
        Ok(UnixListener { io })
    }

    /// Registers a listener of the standard library, which has to be in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled, and, in builds with debug assertions, when the listener
    /// is in blocking mode.
    #[track_caller]
    pub fn from_std(listener: net::UnixListener) -> io::Result<UnixListener> {
        sys::check_nonblocking(&listener)?;
        UnixListener::new(listener)
    }

    /// Takes the listener out of the runtime; it stays in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        self.io.into_inner()
    }

    /// The address the listener is bound to.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// The pending error of the socket (`SO_ERROR`), which is cleared by that.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Accepts a connection; returns the stream and the address of the client.
    ///
    /// # Errors
    ///
    /// What the operating system says. Some errors concern one connection only, or pass when
    /// descriptors are freed (`EMFILE`), so a server had better go on after one.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has accepted nothing.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, addr) = self.io.async_accept_io(|| self.accept_one()).await?;
        Ok((UnixStream::new_accepted(stream)?, addr))
    }

    /// Polls for a connection.
    ///
    /// Keeps the waker of the last call only: when several tasks accept from one listener, let them
    /// call [`accept`](UnixListener::accept).
    ///
    /// # Errors
    ///
    /// As [`accept`](UnixListener::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let (stream, addr) = ready!(self.io.poll_accept_io(cx, || self.accept_one()))?;
        Poll::Ready(UnixStream::new_accepted(stream).map(|stream| (stream, addr)))
    }

    fn accept_one(&self) -> io::Result<(net::UnixStream, SocketAddr)> {
        let (stream, addr) = sys::accept(&*self.io)?;
        Ok((stream.into(), SocketAddr::from_kernel(&addr)))
    }
}

impl TryFrom<net::UnixListener> for UnixListener {
    type Error = io::Error;

    /// The same as [`UnixListener::from_std`].
    fn try_from(listener: net::UnixListener) -> io::Result<UnixListener> {
        UnixListener::from_std(listener)
    }
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.io).fmt(f)
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for UnixListener {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
