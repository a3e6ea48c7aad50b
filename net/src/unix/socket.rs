//! Unix sockets that are not yet streams, listeners or datagram sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

use super::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use crate::sys::nonblocking_socket;

/// A Unix socket that is still to become a [`UnixStream`](crate::UnixStream), a
/// [`UnixListener`](crate::UnixListener) or a [`UnixDatagram`](crate::UnixDatagram).
///
/// For what the short ways (`connect`, `bind`) do not offer: a stream that is bound before it
/// connects, a backlog of one's own, options set through the descriptor.
/// As `tokio::net::UnixSocket`.
///
/// # Examples
///
/// ```no_run
/// use gmp::net::UnixSocket;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let socket = UnixSocket::new_stream()?;
/// socket.bind("/tmp/greeter.sock")?;
/// let listener = socket.listen(128)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct UnixSocket {
    socket: Socket,
}

impl UnixSocket {
    /// Makes a datagram socket.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn new_datagram() -> io::Result<UnixSocket> {
        UnixSocket::new(Type::DGRAM)
    }

    /// Makes a stream socket.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn new_stream() -> io::Result<UnixSocket> {
        UnixSocket::new(Type::STREAM)
    }

    fn new(ty: Type) -> io::Result<UnixSocket> {
        let socket = nonblocking_socket(Domain::UNIX, ty)?;
        Ok(UnixSocket { socket })
    }

    /// Binds the socket to `path`.
    ///
    /// A path that begins with a zero byte is a name in the abstract namespace.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) when there is a file already,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the path is too long for an address, and
    /// what else the operating system says.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.socket.bind(&SockAddr::unix(path)?)
    }

    /// Makes a listener of the socket, with room for `backlog` connections that wait to be accepted.
    ///
    /// # Errors
    ///
    /// When it is a datagram socket, and what the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.refuse(Type::DGRAM, "listen cannot be called on a datagram socket")?;
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        UnixListener::new(self.socket.into())
    }

    /// Connects the socket to the one at `path`.
    ///
    /// # Errors
    ///
    /// When it is a datagram socket; else as [`UnixStream::connect`](crate::UnixStream::connect).
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    ///
    /// # Cancel safety
    ///
    /// A dropped future closes the connection that it may have made.
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        self.refuse(Type::DGRAM, "connect cannot be called on a datagram socket")?;
        let addr = SocketAddr::from_path(path.as_ref())?;
        UnixStream::connect_socket(self.socket, &addr).await
    }

    /// Makes a [`UnixDatagram`](crate::UnixDatagram) of the socket.
    ///
    /// # Errors
    ///
    /// When it is a stream socket, and what the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.refuse(Type::STREAM, "datagram cannot be called on a stream socket")?;
        let datagram = UnixDatagram::new(self.socket.into())?;
        match datagram.take_error()? {
            Some(error) => Err(error),
            None => Ok(datagram),
        }
    }

    fn refuse(&self, ty: Type, because: &'static str) -> io::Result<()> {
        if self.socket.r#type()? == ty {
            return Err(io::Error::other(because));
        }
        Ok(())
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl FromRawFd for UnixSocket {
    /// Wraps a descriptor, which has to be a Unix socket in non-blocking mode.
    ///
    /// # Safety
    ///
    /// As of [`FromRawFd::from_raw_fd`]: the descriptor is open and the caller gives up owning it.
    unsafe fn from_raw_fd(fd: RawFd) -> UnixSocket {
        // SAFETY: the caller keeps the same contract towards us.
        let socket = unsafe { Socket::from_raw_fd(fd) };
        UnixSocket { socket }
    }
}

impl IntoRawFd for UnixSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}
