//! The owned halves of a [`TcpStream`].

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::interest::Interest;
use crate::ready::Ready;
use crate::tcp::TcpStream;

/// The reading half of a stream, from [`TcpStream::into_split`].
///
/// As `tokio::net::tcp::OwnedReadHalf`.
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// The writing half of a stream, from [`TcpStream::into_split`].
///
/// As `tokio::net::tcp::OwnedWriteHalf`. Dropping it shuts the write direction down, unless
/// [`forget`](OwnedWriteHalf::forget) is used.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    shutdown_on_drop: bool,
}

/// Two halves that are not of the same stream; both are given back.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

pub(super) fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    let read = OwnedReadHalf {
        stream: stream.clone(),
    };
    let write = OwnedWriteHalf {
        stream,
        shutdown_on_drop: true,
    };
    (read, write)
}

fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.forget();
    let stream = Arc::into_inner(read.stream);
    Ok(stream.expect("a stream has two halves, and the other one is gone"))
}

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of the same socket")
    }
}

impl Error for ReuniteError {}

impl OwnedReadHalf {
    /// Puts the two halves together again.
    ///
    /// # Errors
    ///
    /// When they are not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }

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
        self.stream.poll_peek(cx, buf)
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
        self.stream.ready(interest).await
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
        self.stream.readable().await
    }

    /// As [`TcpStream::try_read`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(buf)
    }

    /// As [`TcpStream::try_read_vectored`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.stream.try_read_vectored(bufs)
    }

    /// As [`TcpStream::try_read_buf`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_read`].
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.stream.try_read_buf(buf)
    }

    /// The address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl OwnedWriteHalf {
    /// Puts the two halves together again.
    ///
    /// # Errors
    ///
    /// When they are not of the same stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops the half without shutting the write direction down.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
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
        self.stream.ready(interest).await
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
        self.stream.writable().await
    }

    /// As [`TcpStream::try_write`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_write`].
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.stream.try_write(buf)
    }

    /// As [`TcpStream::try_write_vectored`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::try_write`].
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.try_write_vectored(bufs)
    }

    /// The address of the other side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // Whoever wants to know shuts down before he drops.
            let _ = self.stream.shutdown_write();
        }
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.read(cx, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts the write direction down, which dropping need not do again then.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.stream.shutdown_write();
        if done.is_ok() {
            self.shutdown_on_drop = false;
        }
        Poll::Ready(done)
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}
