//! [`TcpSocket`].

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::tcp::{TcpListener, TcpStream};

/// A TCP socket that is neither connected nor listening yet, so that its options can be set.
///
/// As `tokio::net::TcpSocket`.
///
/// # Examples
///
/// ```no_run
/// use gmp::net::TcpSocket;
///
/// #[gmp::main]
/// async fn main() -> std::io::Result<()> {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuseaddr(true)?;
///     socket.bind("127.0.0.1:8080".parse().unwrap())?;
///     let listener = socket.listen(1024)?;
///     drop(listener);
///     Ok(())
/// }
/// ```
pub struct TcpSocket {
    inner: Socket,
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV4)
    }

    /// A socket for IPv6.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        let inner = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        inner.set_nonblocking(true)?;
        Ok(TcpSocket { inner })
    }

    /// Takes a stream of the standard library that is not connected yet, and must be in non-blocking
    /// mode.
    ///
    /// For sockets made by another crate, whose options this type does not have.
    pub fn from_std_stream(std_stream: net::TcpStream) -> TcpSocket {
        TcpSocket {
            inner: std_stream.into(),
        }
    }

    /// Sets the `SO_KEEPALIVE` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.inner.set_keepalive(keepalive)
    }

    /// The `SO_KEEPALIVE` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn keepalive(&self) -> io::Result<bool> {
        self.inner.keepalive()
    }

    /// Sets the `SO_REUSEADDR` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.inner.set_reuse_address(reuseaddr)
    }

    /// The `SO_REUSEADDR` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.inner.reuse_address()
    }

    /// Sets the `SO_REUSEPORT` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(not(any(target_os = "solaris", target_os = "illumos")))]
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.inner.set_reuse_port(reuseport)
    }

    /// The `SO_REUSEPORT` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(not(any(target_os = "solaris", target_os = "illumos")))]
    pub fn reuseport(&self) -> io::Result<bool> {
        self.inner.reuse_port()
    }

    /// Sets the size of the send buffer (`SO_SNDBUF`). The system may use another, often the double.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_send_buffer_size(size as usize)
    }

    /// The size of the send buffer.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.inner.send_buffer_size().map(|size| size as u32)
    }

    /// Sets the size of the receive buffer (`SO_RCVBUF`). The system may use another, often the double.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.inner.set_recv_buffer_size(size as usize)
    }

    /// The size of the receive buffer.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.inner.recv_buffer_size().map(|size| size as u32)
    }

    /// Sets the `SO_LINGER` option: closing waits for data that is still to be sent.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[deprecated = "with `SO_LINGER` dropping the socket blocks the thread"]
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.inner.set_linger(dur)
    }

    /// Sets the `SO_LINGER` option to zero: closing resets the connection and drops unsent data.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.inner.set_linger(Some(Duration::ZERO))
    }

    /// The `SO_LINGER` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.inner.linger()
    }

    /// Sets the `TCP_NODELAY` option: small writes go out at once.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.inner.set_tcp_nodelay(nodelay)
    }

    /// The `TCP_NODELAY` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inner.tcp_nodelay()
    }

    /// The `IPV6_TCLASS` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_os = "macos",
        target_os = "freebsd",
        target_os = "dragonfly",
        target_os = "netbsd",
        target_os = "openbsd",
    ))]
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.inner.tclass_v6()
    }

    /// Sets the `IPV6_TCLASS` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_os = "macos",
        target_os = "freebsd",
        target_os = "dragonfly",
        target_os = "netbsd",
        target_os = "openbsd",
    ))]
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.inner.set_tclass_v6(tclass)
    }

    /// The `IP_TOS` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(not(any(target_os = "solaris", target_os = "illumos", target_os = "haiku")))]
    pub fn tos_v4(&self) -> io::Result<u32> {
        self.inner.tos_v4()
    }

    /// Sets the `IP_TOS` option.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(not(any(target_os = "solaris", target_os = "illumos", target_os = "haiku")))]
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.inner.set_tos_v4(tos)
    }

    /// The former name of [`tos_v4`](TcpSocket::tos_v4).
    ///
    /// # Errors
    ///
    /// What the system said.
    #[doc(hidden)]
    #[deprecated(note = "it is about IPv4 alone; use `tos_v4`")]
    #[cfg(not(any(target_os = "solaris", target_os = "illumos", target_os = "haiku")))]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// The former name of [`set_tos_v4`](TcpSocket::set_tos_v4).
    ///
    /// # Errors
    ///
    /// What the system said.
    #[doc(hidden)]
    #[deprecated(note = "it is about IPv4 alone; use `set_tos_v4`")]
    #[cfg(not(any(target_os = "solaris", target_os = "illumos", target_os = "haiku")))]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }

    /// The network interface the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.inner.device()
    }

    /// Binds the socket to a network interface; `None` unbinds it.
    ///
    /// # Errors
    ///
    /// What the system said.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.inner.bind_device(interface)
    }

    /// The address the socket is bound to.
    ///
    /// # Errors
    ///
    /// What the system said, or when the address is not one of IP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()?.as_socket().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "the socket's address is neither IPv4 nor IPv6",
            )
        })
    }

    /// Takes the socket's pending error (`SO_ERROR`).
    ///
    /// # Errors
    ///
    /// When it cannot be asked for.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.inner.take_error()
    }

    /// Binds the socket to an address.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.inner.bind(&addr.into())
    }

    /// Connects the socket.
    ///
    /// # Errors
    ///
    /// What the system said. The socket is closed then.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_socket(self.inner, addr).await
    }

    /// Lets the socket listen. `backlog` connections wait in the kernel to be accepted.
    ///
    /// # Errors
    ///
    /// What the system said. The socket is closed then.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.inner
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        TcpListener::from_socket(self.inner)
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl FromRawFd for TcpSocket {
    /// Takes a TCP socket that must be in non-blocking mode.
    ///
    /// # Safety
    ///
    /// As for every owner of a descriptor: it is open, and nobody else closes it.
    unsafe fn from_raw_fd(fd: RawFd) -> TcpSocket {
        // SAFETY: the caller hands over an open descriptor that he owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        TcpSocket { inner: fd.into() }
    }
}

impl IntoRawFd for TcpSocket {
    fn into_raw_fd(self) -> RawFd {
        self.inner.into_raw_fd()
    }
}
