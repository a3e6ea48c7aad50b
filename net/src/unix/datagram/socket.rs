//! The datagram socket: making and naming it, its readiness and its state.

use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use socket2::{Domain, Type};

use super::room::Room;
use crate::poll_evented::PollEvented;
use crate::sys::{self, retry};
use crate::unix::SocketAddr;
use crate::{Interest, Ready};

/// A Unix datagram socket.
///
/// Datagrams keep their boundaries and their order, and none is lost: a sender waits while the
/// receiver's queue is full. There are two ways to use one: [`send_to`](UnixDatagram::send_to) and
/// [`recv_from`](UnixDatagram::recv_from) talk to anybody; after
/// [`connect`](UnixDatagram::connect), [`send`](UnixDatagram::send) talks to one peer.
///
/// All functions take `&self`: tasks that share a socket share it through an `Arc`.
/// A datagram longer than the buffer it is received into loses its tail; a datagram may be empty.
/// As `tokio::net::UnixDatagram`.
///
/// # Examples
///
/// ```
/// use gmp::net::UnixDatagram;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let (a, b) = UnixDatagram::pair()?;
/// a.send(b"hello").await?;
///
/// let mut buf = [0; 16];
/// let n = b.recv(&mut buf).await?;
/// assert_eq!(&buf[..n], b"hello");
/// # Ok(())
/// # }
/// ```
pub struct UnixDatagram {
    pub(super) io: PollEvented<net::UnixDatagram>,
    /// What the last `poll_send_to` waits for, when that is not this socket. Nothing of the user's is
    /// called under the lock.
    pub(super) room: AssertUnwindSafe<Mutex<Option<Arc<Room>>>>,
}

/// Making, naming and connecting sockets.
impl UnixDatagram {
    /// Makes a socket bound to `path`.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) when there is a file already,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the path is no address, and what else the
    /// operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn bind<P>(path: P) -> io::Result<UnixDatagram>
    where
        P: AsRef<Path>,
    {
        let addr = SocketAddr(net::SocketAddr::from_pathname(path)?);
        let socket = sys::nonblocking_socket(Domain::UNIX, Type::DGRAM)?;
        rustix::net::bind(&socket, &addr.to_kernel()?)?;
        UnixDatagram::new(socket.into())
    }

    /// Makes two sockets that are connected with each other and have no address.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (a, b) = sys::nonblocking_pair(Type::DGRAM)?;
        let a = UnixDatagram::new(a.into())?;
        let b = UnixDatagram::new(b.into())?;
        // Nothing has been sent yet, so there is room; whether there is something to receive only
        // the netpoll will tell.
        a.io.assume_ready(Ready::WRITABLE);
        b.io.assume_ready(Ready::WRITABLE);
        Ok((a, b))
    }

    /// Makes a socket without an address; it can send, but nobody can answer it.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn unbound() -> io::Result<UnixDatagram> {
        let socket = sys::nonblocking_socket(Domain::UNIX, Type::DGRAM)?;
        UnixDatagram::new(socket.into())
    }

    #[track_caller]
    pub(in crate::unix) fn new(socket: net::UnixDatagram) -> io::Result<UnixDatagram> {
        let io = PollEvented::new(socket)?;
        Ok(UnixDatagram {
            io,
            room: AssertUnwindSafe(Mutex::new(None)),
        })
    }

    /// Registers a socket of the standard library, which has to be in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled, and, in builds with debug assertions, when the socket is
    /// in blocking mode.
    #[track_caller]
    pub fn from_std(datagram: net::UnixDatagram) -> io::Result<UnixDatagram> {
        sys::check_nonblocking(&datagram)?;
        UnixDatagram::new(datagram)
    }

    /// Takes the socket out of the runtime; it stays in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        self.io.into_inner()
    }

    /// Connects to the socket at `path`: from then on [`send`](UnixDatagram::send) goes there, and
    /// only datagrams from there are received.
    ///
    /// A socket may be connected again.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) when there is no such file,
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when the socket has gone, and what
    /// else the operating system says.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let path = path.as_ref();
        retry(|| self.io.connect(path))
    }

    /// The address of this socket; unnamed unless it was bound.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// The address of the socket this one is connected to; unnamed unless that was bound.
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) when it is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr)
    }

    /// The pending error of the socket (`SO_ERROR`), which is cleared by that.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Shuts receiving, sending or both down.
    ///
    /// Sending fails from then on. Receiving does not end on Linux, where a datagram socket that is
    /// shut down has nothing to receive but says so only to calls that block: a receive that waits
    /// goes on waiting, as in tokio.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.shutdown(how)
    }
}

/// Readiness, and operations of one's own.
impl UnixDatagram {
    /// Waits until the socket is ready for one of the things in `interest`.
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

    /// Waits until a datagram can be sent; like [`ready`](UnixDatagram::ready) with
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

    /// Waits until there is a datagram; like [`ready`](UnixDatagram::ready) with
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

    /// Polls whether a datagram can be sent.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_send*`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(|_| ())
    }

    /// Polls whether there is a datagram.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_recv*`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(|_| ())
    }

    /// Calls `f` if the socket is ready, and clears the readiness if `f` says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// For system calls of one's own on the descriptor. `f` must say `WouldBlock` only when a system
    /// call on this socket did, must do one kind of operation, and must not use this socket's own
    /// functions: readiness would be cleared that is still there, or kept that is gone.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the socket is not ready, else what `f` says.
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
    /// What is said of the closure of [`try_io`](UnixDatagram::try_io) holds for `f` too.
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

impl TryFrom<net::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// The same as [`UnixDatagram::from_std`].
    fn try_from(datagram: net::UnixDatagram) -> io::Result<UnixDatagram> {
        UnixDatagram::from_std(datagram)
    }
}

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.io).fmt(f)
    }
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for UnixDatagram {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
