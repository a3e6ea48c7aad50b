//! Netpoll and sockets of gmp.
//!
//! [`Netpoll`] implements the executor's idea of one: a poller of descriptors for each P. The
//! sockets have the API of `tokio::net`, [`AsyncFd`] that of `tokio::io::unix`.

mod addr;
mod async_fd;
mod interest;
mod netpoll;
mod other_traits;
mod poll_evented;
mod ready;
mod sys;
pub mod tcp;
mod udp;
pub mod unix;

pub use addr::{ToSocketAddrs, lookup_host};
#[allow(deprecated)]
pub use async_fd::AsyncFdTryNewError;
pub use async_fd::{
    AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
};
pub use interest::Interest;
pub use netpoll::Netpoll;
pub use ready::Ready;
pub use tcp::{TcpListener, TcpSocket, TcpStream};
pub use udp::UdpSocket;
pub use unix::datagram::socket::UnixDatagram;
pub use unix::listener::UnixListener;
pub use unix::socket::UnixSocket;
pub use unix::stream::UnixStream;
