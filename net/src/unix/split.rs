//! The borrowed halves of a [`UnixStream`].
//!
//! Each half is a reference to the stream that offers one direction only, so that the direction's
//! one waker slot has one user.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{SocketAddr, UnixStream};
use crate::{Interest, Ready};

/// The reading half of a stream, made by [`UnixStream::split`](crate::UnixStream::split).
///
/// As `tokio::net::unix::ReadHalf`.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a UnixStream);

/// The writing half of a stream, made by [`UnixStream::split`](crate::UnixStream::split).
///
/// Shutting it down ends the direction; dropping it does nothing.
/// As `tokio::net::unix::WriteHalf`.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a UnixStream);

pub(super) fn split(stream: &mut UnixStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

impl ReadHalf<'_> {
    /// Waits for readiness, as [`UnixStream::ready`](crate::UnixStream::ready).
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.0.ready(interest).await
    }

    /// Waits until there is something to read.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Reads what is there, as [`UnixStream::try_read`](crate::UnixStream::try_read).
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing to read yet, else what the
    /// operating system says.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }

    /// Reads what is there into the free part of `buf`, which is advanced.
    ///
    /// # Errors
    ///
    /// As [`try_read`](ReadHalf::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.0.try_read_buf(buf)
    }

    /// Reads what is there into several buffers, one after the other.
    ///
    /// # Errors
    ///
    /// As [`try_read`](ReadHalf::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.try_read_vectored(bufs)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl WriteHalf<'_> {
    /// Waits for readiness, as [`UnixStream::ready`](crate::UnixStream::ready).
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.0.ready(interest).await
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// Writes as much as there is room for, as
    /// [`UnixStream::try_write`](crate::UnixStream::try_write).
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is no room, else what the operating
    /// system says.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    /// Writes as much of several buffers as there is room for.
    ///
    /// # Errors
    ///
    /// As [`try_write`](WriteHalf::try_write).
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(buf)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read_shared(cx, buf)
    }
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_shared(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_vectored_shared(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown_write())
    }
}

impl AsRef<UnixStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &UnixStream {
        self.0
    }
}

impl AsRef<UnixStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &UnixStream {
        self.0
    }
}
