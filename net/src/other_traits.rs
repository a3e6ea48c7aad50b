//! The traits of `futures` and of the registry's tokio for the types of this crate, if the features
//! `futures-io` and `tokio-io` of `gmp-io` are on.

use gmp_io::impl_other_traits;

impl_other_traits! {
    read: crate::TcpStream;
    write: crate::TcpStream;
    read: crate::tcp::ReadHalf<'_>;
    write: crate::tcp::WriteHalf<'_>;
    read: crate::tcp::OwnedReadHalf;
    write: crate::tcp::OwnedWriteHalf;
    read: crate::UnixStream;
    write: crate::UnixStream;
    read: crate::unix::ReadHalf<'_>;
    write: crate::unix::WriteHalf<'_>;
    read: crate::unix::OwnedReadHalf;
    write: crate::unix::OwnedWriteHalf;
    read: crate::unix::pipe::Receiver;
    write: crate::unix::pipe::Sender;
}
