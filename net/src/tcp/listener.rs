//! [`TcpListener`].

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use rustix::net::SocketAddrAny;
use socket2::{Domain, Socket, Type};

use crate::addr::{ToSocketAddrs, each_addr};
use crate::poll_evented::PollEvented;
use crate::sys::{check_nonblocking, nonblocking_socket, retry};
use crate::tcp::TcpStream;

/// How many connections wait in the kernel to be accepted, unless [`TcpSocket::listen`] says otherwise.
///
/// [`TcpSocket::listen`]: crate::TcpSocket::listen
const BACKLOG: i32 = 1024;

/// A TCP socket that accepts connections.
///
/// As `tokio::net::TcpListener`. An error of [`accept`](TcpListener::accept) does not end the
/// listener: when the process is out of descriptors (`EMFILE`) each call returns that error until
/// there are some again, and takes part in the task's budget, so that a loop that only tries again
/// does not keep other tasks from running.
///
/// # Examples
///
/// ```no_run
/// use gmp::net::TcpListener;
///
/// #[gmp::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     loop {
///         let (stream, peer) = listener.accept().await?;
///         gmp::spawn(async move {
///             println!("{peer} is here");
///             drop(stream);
///         });
///     }
/// }
/// ```
pub struct TcpListener {
    io: PollEvented<net::TcpListener>,
}

impl TcpListener {
    /// Listens on the first of the addresses that can be bound.
    ///
    /// `SO_REUSEADDR` is set. With port 0 the system chooses a port, which
    /// [`local_addr`](TcpListener::local_addr) tells.
    ///
    /// # Errors
    ///
    /// When no address can be resolved or bound; then it is the error of the last one.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        each_addr(addr, TcpListener::bind_addr).await
    }

    fn bind_addr(addr: SocketAddr) -> io::Result<TcpListener> {
        let socket = nonblocking_socket(Domain::for_address(addr), Type::STREAM)?;
        socket.set_reuse_address(true)?;
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_socket(socket)
    }

    /// Takes a socket that listens and does not block.
    #[track_caller]
    pub(crate) fn from_socket(socket: Socket) -> io::Result<TcpListener> {
        let io = PollEvented::new(socket.into())?;
        Ok(TcpListener { io })
    }

    /// Waits for a connection, and returns it with the address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said. The listener remains usable.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped before it is ready, no connection was accepted.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, peer) = self.io.async_accept_io(|| accept(&*self.io)).await?;
        accepted(socket, peer)
    }

    /// Polls for a connection. Only the task of the last call is woken.
    ///
    /// # Errors
    ///
    /// What the system said. The listener remains usable.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.io
            .poll_accept_io(cx, || accept(&*self.io))
            .map(|result| result.and_then(|(socket, peer)| accepted(socket, peer)))
    }

    /// Takes a listener of the standard library, which must be in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in a runtime without I/O. In builds with debug assertions also when
    /// the listener is in blocking mode, as in tokio.
    #[track_caller]
    pub fn from_std(listener: net::TcpListener) -> io::Result<TcpListener> {
        check_nonblocking(&listener)?;
        let io = PollEvented::new(listener)?;
        Ok(TcpListener { io })
    }

    /// Gives the listener back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    ///
    /// When it cannot be deregistered.
    pub fn into_std(self) -> io::Result<net::TcpListener> {
        self.io.into_inner()
    }

    /// The address it listens on.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
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
}

/// Accepts a connection that does not block and is closed on exec, in one system call.
#[cfg(not(any(target_vendor = "apple", target_os = "aix", target_os = "haiku")))]
fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    use rustix::net::{SocketFlags, acceptfrom_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    retry(|| Ok(acceptfrom_with(listener.as_fd(), flags)?))
}

#[cfg(any(target_vendor = "apple", target_os = "aix", target_os = "haiku"))]
fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let (socket, peer) = retry(|| Ok(rustix::net::acceptfrom(listener.as_fd())?))?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok((socket, peer))
}

fn accepted(socket: OwnedFd, peer: Option<SocketAddrAny>) -> io::Result<(TcpStream, SocketAddr)> {
    let stream = net::TcpStream::from(socket);
    let peer = match peer {
        Some(peer) => peer.try_into()?,
        None => stream.peer_addr()?,
    };
    Ok((TcpStream::from_accepted(stream)?, peer))
}

impl TryFrom<net::TcpListener> for TcpListener {
    type Error = io::Error;

    /// As [`from_std`](TcpListener::from_std).
    fn try_from(listener: net::TcpListener) -> io::Result<TcpListener> {
        TcpListener::from_std(listener)
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.io).fmt(f)
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
