//! The owned halves of a [`UnixStream`].
//!
//! Both hold the stream by an `Arc`, and nobody else does: that is why
//! [`reunite`](OwnedReadHalf::reunite) can take it out again. The writer shuts its direction down
//! when it goes, unless it was told to [`forget`](OwnedWriteHalf::forget) that.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{SocketAddr, UnixStream};
use crate::{Interest, Ready};

/// The reading half of a stream, made by [`UnixStream::into_split`](crate::UnixStream::into_split).
///
/// As `tokio::net::unix::OwnedReadHalf`.
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<UnixStream>,
}

/// The writing half of a stream, made by [`UnixStream::into_split`](crate::UnixStream::into_split).
///
/// Dropping it shuts the writing direction down, so that the peer reads to the end.
/// As `tokio::net::unix::OwnedWriteHalf`.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<UnixStream>,
    shutdown_on_drop: bool,
}

pub(super) fn split(stream: UnixStream) -> (OwnedReadHalf, OwnedWriteHalf) {
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

fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<UnixStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.forget();
    let stream = Arc::try_unwrap(read.stream)
        .expect("the two halves are the only owners, and one of them has just gone");
    Ok(stream)
}

/// The halves given to `reunite` come from two streams; here they are back.
///
/// As `tokio::net::unix::ReuniteError`.
#[derive(Debug)]
pub struct ReuniteError(
    /// The reading half.
    pub OwnedReadHalf,
    /// The writing half.
    pub OwnedWriteHalf,
);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tried to reunite halves that are not from the same socket")
    }
}

impl Error for ReuniteError {}

impl OwnedReadHalf {
    /// Puts the two halves together again.
    ///
    /// # Errors
    ///
    /// When they come from two streams; the error holds them.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<UnixStream, ReuniteError> {
        reunite(self, other)
    }

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
        self.stream.ready(interest).await
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
        self.stream.readable().await
    }

    /// Reads what is there, as [`UnixStream::try_read`](crate::UnixStream::try_read).
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing to read yet, else what the
    /// operating system says.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(buf)
    }

    /// Reads what is there into the free part of `buf`, which is advanced.
    ///
    /// # Errors
    ///
    /// As [`try_read`](OwnedReadHalf::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.stream.try_read_buf(buf)
    }

    /// Reads what is there into several buffers, one after the other.
    ///
    /// # Errors
    ///
    /// As [`try_read`](OwnedReadHalf::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.stream.try_read_vectored(bufs)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl OwnedWriteHalf {
    /// Puts the two halves together again.
    ///
    /// # Errors
    ///
    /// When they come from two streams; the error holds them.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<UnixStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops the half without shutting the writing direction down.
    ///
    /// The direction ends when the reading half is dropped too.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }

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
        self.stream.ready(interest).await
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
        self.stream.writable().await
    }

    /// Writes as much as there is room for, as
    /// [`UnixStream::try_write`](crate::UnixStream::try_write).
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is no room, else what the operating
    /// system says.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.stream.try_write(buf)
    }

    /// Writes as much of several buffers as there is room for.
    ///
    /// # Errors
    ///
    /// As [`try_write`](OwnedWriteHalf::try_write).
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream.try_write_vectored(buf)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // A peer that has gone does not care, and there is nobody to tell.
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
        self.stream.poll_read_shared(cx, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write_shared(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write_vectored_shared(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = self.stream.shutdown_write();
        if done.is_ok() {
            self.get_mut().shutdown_on_drop = false;
        }
        Poll::Ready(done)
    }
}

impl AsRef<UnixStream> for OwnedReadHalf {
    fn as_ref(&self) -> &UnixStream {
        &self.stream
    }
}

impl AsRef<UnixStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &UnixStream {
        &self.stream
    }
}
