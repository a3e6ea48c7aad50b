//! Netpoll and sockets of gmp.
//!
//! [`Netpoll`] implements the executor's idea of one: a poller of descriptors for each P. The
//! sockets have the API of `tokio::net`, [`AsyncFd`] that of `tokio::io::unix`.

mod interest;
mod netpoll;
mod poll_evented;
mod ready;

pub use interest::Interest;
pub use netpoll::Netpoll;
pub use ready::Ready;
