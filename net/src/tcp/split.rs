//! The borrowed halves of a [`TcpStream`].

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::interest::Interest;
use crate::ready::Ready;
use crate::tcp::TcpStream;

/// The reading half of a borrowed stream, from [`TcpStream::split`].
///
/// As `tokio::net::tcp::ReadHalf`.
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing half of a borrowed stream, from [`TcpStream::split`].
///
/// As `tokio::net::tcp::WriteHalf`. Dropping it shuts nothing down.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

pub(super) fn split(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

impl ReadHalf<'_> {
    /// As [`TcpStream::poll_peek`].
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn poll_peek(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.0.poll_peek(cx, buf)
    }

    /// As [`TcpStream::peek`].
    ///
    /// # Errors
    ///
    /// What the system said.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken, so nothing is lost.
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(buf);
        poll_fn(|cx| self.poll_peek(cx, &mut buf)).await
    }

    /// As [`TcpStream::ready`].
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::ready`].
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.0.ready(interest).await
    }

    /// As [`TcpStream::readable`].
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::ready`].
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// As [`TcpStream::try_read`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }

    /// As [`TcpStream::try_read_vectored`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.try_read_vectored(bufs)
    }

    /// As [`TcpStream::try_read_buf`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.0.try_read_buf(buf)
    }

    /// The address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl WriteHalf<'_> {
    /// As [`TcpStream::ready`].
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::ready`].
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.0.ready(interest).await
    }

    /// As [`TcpStream::writable`].
    ///
    /// # Errors
    ///
    /// When the runtime is gone.
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::ready`].
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// As [`TcpStream::try_write`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_write`].
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.try_write(buf)
    }

    /// As [`TcpStream::try_write_vectored`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_write`].
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bufs)
    }

    /// The address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    ///
    /// What the system said.
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
        self.0.read(cx, buf)
    }
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts the write direction down.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown_write())
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}
