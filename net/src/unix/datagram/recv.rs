//! Receiving datagrams.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use gmp_io::ReadBuf;

use super::UnixDatagram;
use crate::Interest;
use crate::sys::{self, retry};
use crate::unix::SocketAddr;

/// Receiving.
impl UnixDatagram {
    /// Receives a datagram; returns its length.
    ///
    /// What does not fit into `buf` is lost. The datagram may be empty.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .async_io(Interest::READABLE, || retry(|| self.io.recv(buf)))
            .await
    }

    /// Polls for a datagram.
    ///
    /// It goes to the unfilled part of `buf`, which is advanced. Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`recv`](UnixDatagram::recv).
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_read_io(cx, || sys::recv_read_buf(self, buf, sys::TAKE))
    }

    /// Receives a datagram, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv`](UnixDatagram::recv).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || retry(|| self.io.recv(buf)))
    }

    /// Receives a datagram into the free part of `buf`, which is advanced.
    ///
    /// # Errors
    ///
    /// As [`recv`](UnixDatagram::recv).
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .async_io(Interest::READABLE, || sys::recv_buf_mut(self, buf))
            .await
    }

    /// Receives a datagram into the free part of `buf`, which is advanced, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv`](UnixDatagram::recv).
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || sys::recv_buf_mut(self, buf))
    }

    /// Receives a datagram; returns its length and the sender, which is unnamed unless it was bound.
    ///
    /// What does not fit into `buf` is lost. The datagram may be empty.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (n, addr) = self
            .io
            .async_io(Interest::READABLE, || retry(|| self.io.recv_from(buf)))
            .await?;
        Ok((n, SocketAddr(addr)))
    }

    /// Polls for a datagram; returns the sender.
    ///
    /// It goes to the unfilled part of `buf`, which is advanced. Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UnixDatagram::recv_from).
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let addr = ready!(self.io.poll_read_io(cx, || sys::recv_read_buf_from(
            self,
            buf,
            sys::TAKE
        )))?;
        Poll::Ready(Ok(SocketAddr::from_kernel(&addr)))
    }

    /// Receives a datagram, if there is one; returns its length and the sender.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UnixDatagram::recv_from).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (n, addr) = self
            .io
            .try_io(Interest::READABLE, || retry(|| self.io.recv_from(buf)))?;
        Ok((n, SocketAddr(addr)))
    }

    /// Receives a datagram into the free part of `buf`, which is advanced; returns its length and
    /// the sender.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UnixDatagram::recv_from).
    ///
    /// # Cancel safety
    ///
    /// A dropped future has received nothing.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.io
            .async_io(Interest::READABLE, || {
                let (n, addr) = sys::recv_buf_mut_from(self, buf)?;
                Ok((n, SocketAddr::from_kernel(&addr)))
            })
            .await
    }

    /// Receives a datagram into the free part of `buf`, which is advanced, if there is one; returns
    /// its length and the sender.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UnixDatagram::recv_from).
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.io.try_io(Interest::READABLE, || {
            let (n, addr) = sys::recv_buf_mut_from(self, buf)?;
            Ok((n, SocketAddr::from_kernel(&addr)))
        })
    }
}
