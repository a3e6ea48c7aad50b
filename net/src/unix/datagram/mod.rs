//! Unix datagram sockets.

mod recv;
mod room;
mod send;
pub(crate) mod socket;

use self::socket::UnixDatagram;
