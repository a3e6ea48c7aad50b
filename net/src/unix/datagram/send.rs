//! Sending datagrams.

use std::io;
use std::path::Path;
use std::task::{Context, Poll};

use super::UnixDatagram;
use crate::Interest;
use crate::sys::retry;

/// Sending.
impl UnixDatagram {
    /// Sends a datagram to the socket that this one is connected to.
    ///
    /// Waits while the receiver's queue is full. Returns the number of bytes sent, which is all of
    /// them.
    ///
    /// # Errors
    ///
    /// When the socket is not connected, when the datagram is too long,
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when the receiver has gone, and what
    /// else the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has sent nothing.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .async_io(Interest::WRITABLE, || retry(|| self.io.send(buf)))
            .await
    }

    /// Polls the sending of a datagram to the socket that this one is connected to.
    ///
    /// Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`send`](UnixDatagram::send).
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write_io(cx, || retry(|| self.io.send(buf)))
    }

    /// Sends a datagram to the socket that this one is connected to, if that is possible at once.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when it is not, else as
    /// [`send`](UnixDatagram::send).
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || retry(|| self.io.send(buf)))
    }

    /// Sends a datagram to the socket at `target`.
    ///
    /// Waits while the receiver's queue is full. Returns the number of bytes sent, which is all of
    /// them.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) when there is no such file,
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when the receiver has gone, when the
    /// datagram is too long, and what else the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has sent nothing.
    pub async fn send_to<P>(&self, buf: &[u8], target: P) -> io::Result<usize>
    where
        P: AsRef<Path>,
    {
        let target = target.as_ref();
        self.io
            .async_io(Interest::WRITABLE, || {
                retry(|| self.io.send_to(buf, target))
            })
            .await
    }

    /// Polls the sending of a datagram to the socket at `target`.
    ///
    /// Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`send_to`](UnixDatagram::send_to).
    pub fn poll_send_to<P>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>>
    where
        P: AsRef<Path>,
    {
        let target = target.as_ref();
        self.io
            .poll_write_io(cx, || retry(|| self.io.send_to(buf, target)))
    }

    /// Sends a datagram to the socket at `target`, if that is possible at once.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when it is not, else as
    /// [`send_to`](UnixDatagram::send_to).
    pub fn try_send_to<P>(&self, buf: &[u8], target: P) -> io::Result<usize>
    where
        P: AsRef<Path>,
    {
        let target = target.as_ref();
        self.io.try_io(Interest::WRITABLE, || {
            retry(|| self.io.send_to(buf, target))
        })
    }
}
