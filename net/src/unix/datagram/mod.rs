//! Unix datagram sockets.

mod recv;
mod send;
pub(crate) mod socket;

use self::socket::UnixDatagram;
