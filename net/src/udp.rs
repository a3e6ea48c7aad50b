//! UDP sockets.
//!
//! A datagram is sent or received whole, so a `&UdpSocket` is enough for everything and a socket is
//! shared by putting it into an `Arc`. The `poll_*` functions keep one waker a direction, that of
//! the last call; the `async` functions and [`UdpSocket::ready`] serve any number of tasks.
//!
//! The socket's options are in `options`, peeking in `peek`.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use gmp_io::ReadBuf;
use socket2::{Domain, SockAddr, Type};

use crate::addr::{ToSocketAddrs, each_addr, to_socket_addrs};
use crate::poll_evented::PollEvented;
use crate::sys::{self, retry};
use crate::{Interest, Ready};

mod options;
mod peek;

/// A received error, such as the ICMP answer to an earlier datagram, ends the wait for data too.
const RECEIVE: Interest = Interest::READABLE.add(Interest::ERROR);

/// A UDP socket.
///
/// There are two ways to use one: [`send_to`](UdpSocket::send_to) and
/// [`recv_from`](UdpSocket::recv_from) talk to anybody; after [`connect`](UdpSocket::connect),
/// [`send`](UdpSocket::send) and [`recv`](UdpSocket::recv) talk to one peer, whose errors are
/// reported too.
///
/// All functions take `&self`: tasks that share a socket share it through an `Arc`.
/// A datagram longer than the buffer it is received into loses its tail; a datagram may be empty.
/// As `tokio::net::UdpSocket`.
///
/// # Examples
///
/// ```
/// use gmp::net::UdpSocket;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let server = UdpSocket::bind("127.0.0.1:0").await?;
/// let client = UdpSocket::bind("127.0.0.1:0").await?;
/// client.connect(server.local_addr()?).await?;
/// client.send(b"ping").await?;
///
/// let mut buf = [0; 16];
/// let (n, from) = server.recv_from(&mut buf).await?;
/// assert_eq!(&buf[..n], b"ping");
/// assert_eq!(from, client.local_addr()?);
/// # Ok(())
/// # }
/// ```
pub struct UdpSocket {
    io: PollEvented<net::UdpSocket>,
}

/// Making, naming and connecting sockets.
impl UdpSocket {
    /// Makes a socket bound to the first address of `addr` that can be bound.
    ///
    /// Port 0 lets the system choose one; [`local_addr`](UdpSocket::local_addr) tells which.
    ///
    /// # Errors
    ///
    /// What the resolver or the last attempt said; [`InvalidInput`](io::ErrorKind::InvalidInput)
    /// when `addr` resolves to nothing.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<UdpSocket> {
        each_addr(addr, UdpSocket::bind_addr).await
    }

    fn bind_addr(addr: SocketAddr) -> io::Result<UdpSocket> {
        let socket = sys::nonblocking_socket(Domain::for_address(addr), Type::DGRAM)?;
        socket.bind(&addr.into())?;
        UdpSocket::new(socket.into())
    }

    #[track_caller]
    fn new(socket: net::UdpSocket) -> io::Result<UdpSocket> {
        let io = PollEvented::new(socket)?;
        Ok(UdpSocket { io })
    }

    /// Registers a socket of the standard library, which has to be in non-blocking mode.
    ///
    /// For options that have to be set before a socket is bound, such as `SO_REUSEPORT`, make the
    /// socket with a crate like `socket2` and pass it here.
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
    pub fn from_std(socket: net::UdpSocket) -> io::Result<UdpSocket> {
        sys::check_nonblocking(&socket)?;
        UdpSocket::new(socket)
    }

    /// Takes the socket out of the runtime; it stays in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_std(self) -> io::Result<net::UdpSocket> {
        self.io.into_inner()
    }

    /// The address the socket is bound to.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The address the socket is connected to.
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) when it is not.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    /// Connects to the first address of `addr` that works: from then on the socket sends there and
    /// receives from there only.
    ///
    /// Nothing is sent, so success says nothing about the peer. A socket may be connected again.
    ///
    /// # Errors
    ///
    /// What the resolver or the last attempt said; [`InvalidInput`](io::ErrorKind::InvalidInput)
    /// when `addr` resolves to nothing.
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        each_addr(addr, |addr| retry(|| self.io.connect(addr))).await
    }
}

/// Readiness, and operations of one's own.
impl UdpSocket {
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

    /// Waits until a datagram can be sent; like [`ready`](UdpSocket::ready) with
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

    /// Waits until there is a datagram; like [`ready`](UdpSocket::ready) with
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
    /// Keeps the waker of the last such call, or of the last `poll_recv*` or `poll_peek*`.
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
    /// What is said of the closure of [`try_io`](UdpSocket::try_io) holds for `f` too.
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

/// Sending.
impl UdpSocket {
    /// Sends a datagram to the peer that the socket is connected to.
    ///
    /// Waits while the send buffer is full. Returns the number of bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// When the socket is not connected, when the datagram is too long, when the peer answered an
    /// earlier one with an error, and what else the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has sent nothing.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .async_io(Interest::WRITABLE, || retry(|| self.io.send(buf)))
            .await
    }

    /// Polls the sending of a datagram to the peer that the socket is connected to.
    ///
    /// Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`send`](UdpSocket::send).
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write_io(cx, || retry(|| self.io.send(buf)))
    }

    /// Sends a datagram to the peer that the socket is connected to, if that is possible at once.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when it is not, else as [`send`](UdpSocket::send).
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || retry(|| self.io.send(buf)))
    }

    /// Sends a datagram to the first address of `addr`.
    ///
    /// Waits while the send buffer is full. Returns the number of bytes sent, which is all of them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when `addr` resolves to nothing; when the
    /// datagram is too long or the address is of another family than the socket's, and what else
    /// the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has sent nothing.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> io::Result<usize> {
        match to_socket_addrs(addr).await?.next() {
            Some(target) => self.send_to_addr(buf, target).await,
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no addresses to send data to",
            )),
        }
    }

    async fn send_to_addr(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io
            .async_io(Interest::WRITABLE, || {
                retry(|| self.io.send_to(buf, target))
            })
            .await
    }

    /// Polls the sending of a datagram to `target`.
    ///
    /// Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`send_to`](UdpSocket::send_to).
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_io(cx, || retry(|| self.io.send_to(buf, target)))
    }

    /// Sends a datagram to `target`, if that is possible at once.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when it is not, else as
    /// [`send_to`](UdpSocket::send_to).
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, || {
            retry(|| self.io.send_to(buf, target))
        })
    }
}

/// Receiving.
impl UdpSocket {
    /// Receives a datagram from the peer that the socket is connected to; returns its length.
    ///
    /// What does not fit into `buf` is lost. The datagram may be empty.
    ///
    /// # Errors
    ///
    /// What the operating system says, such as
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when nobody listened to an earlier
    /// datagram.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .async_io(RECEIVE, || retry(|| self.io.recv(buf)))
            .await
    }

    /// Polls for a datagram from the peer that the socket is connected to.
    ///
    /// It goes to the unfilled part of `buf`, which is advanced. Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`recv`](UdpSocket::recv).
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_read_io(cx, || sys::recv_read_buf(self, buf, sys::TAKE))
    }

    /// Receives a datagram from the peer that the socket is connected to, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv`](UdpSocket::recv).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || retry(|| self.io.recv(buf)))
    }

    /// Receives a datagram into the free part of `buf`, which is advanced, from the peer that the
    /// socket is connected to.
    ///
    /// # Errors
    ///
    /// As [`recv`](UdpSocket::recv).
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .async_io(RECEIVE, || sys::recv_buf_mut(self, buf))
            .await
    }

    /// Receives a datagram into the free part of `buf`, which is advanced, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv`](UdpSocket::recv).
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || sys::recv_buf_mut(self, buf))
    }

    /// Receives a datagram from anybody; returns its length and the sender.
    ///
    /// What does not fit into `buf` is lost. The datagram may be empty.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .async_io(RECEIVE, || retry(|| self.io.recv_from(buf)))
            .await
    }

    /// Polls for a datagram from anybody; returns the sender.
    ///
    /// It goes to the unfilled part of `buf`, which is advanced. Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let addr = ready!(self.io.poll_read_io(cx, || sys::recv_read_buf_from(
            self,
            buf,
            sys::TAKE
        )))?;
        Poll::Ready(sender(&addr))
    }

    /// Receives a datagram from anybody, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UdpSocket::recv_from).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .try_io(Interest::READABLE, || retry(|| self.io.recv_from(buf)))
    }

    /// Receives a datagram from anybody into the free part of `buf`, which is advanced.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.io
            .async_io(RECEIVE, || {
                let (n, addr) = sys::recv_buf_mut_from(self, buf)?;
                Ok((n, sender(&addr)?))
            })
            .await
    }

    /// Receives a datagram from anybody into the free part of `buf`, which is advanced, if there is
    /// one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UdpSocket::recv_from).
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.io.try_io(Interest::READABLE, || {
            let (n, addr) = sys::recv_buf_mut_from(self, buf)?;
            Ok((n, sender(&addr)?))
        })
    }
}

impl TryFrom<net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    /// The same as [`UdpSocket::from_std`].
    fn try_from(socket: net::UdpSocket) -> io::Result<UdpSocket> {
        UdpSocket::from_std(socket)
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}

/// The sender of a datagram, as the kernel told it.
fn sender(addr: &SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket()
        .ok_or_else(|| io::Error::other("sender not available"))
}
