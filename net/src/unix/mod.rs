//! Unix sockets and pipes: the part of `net` that exists on Unix only.
//!
//! [`UnixStream`], [`UnixListener`],
//! [`UnixDatagram`] and [`UnixSocket`](crate::UnixSocket) stand beside the
//! other sockets; here is what belongs to them: addresses, credentials, the halves of a stream, and
//! [pipes](pipe). As `tokio::net::unix`.
//!
//! A path that begins with a zero byte names a socket in Linux's abstract namespace, which has no
//! file and vanishes with its last socket.

// tokio has this module public by accident; nothing in it is for users.
#[doc(hidden)]
pub mod datagram;
pub(crate) mod listener;
pub mod pipe;
pub(crate) mod socket;
mod socket_addr;
mod split;
mod split_owned;
pub(crate) mod stream;
mod ucred;

pub use self::socket_addr::SocketAddr;
pub use self::split::{ReadHalf, WriteHalf};
pub use self::split_owned::{OwnedReadHalf, OwnedWriteHalf, ReuniteError};
pub use self::ucred::UCred;

// The crate's root makes these four public.
use self::datagram::socket::UnixDatagram;
use self::listener::UnixListener;
use self::stream::UnixStream;

/// The ID of a user.
#[allow(non_camel_case_types)]
pub type uid_t = u32;

/// The ID of a group.
#[allow(non_camel_case_types)]
pub type gid_t = u32;

/// The ID of a process or of a group of processes.
#[allow(non_camel_case_types)]
pub type pid_t = i32;
