//! Looking at the datagram that would be received next without taking it.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use gmp_io::ReadBuf;
use socket2::SockRef;

use super::{RECEIVE, UdpSocket, sender};
use crate::Interest;
use crate::sys::{self, retry};

/// Peeking.
impl UdpSocket {
    /// Copies the next datagram from the peer that the socket is connected to, and leaves it in the
    /// queue; returns how much of it fitted into `buf`.
    ///
    /// # Errors
    ///
    /// As [`recv`](UdpSocket::recv).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .async_io(RECEIVE, || retry(|| self.io.peek(buf)))
            .await
    }

    /// Polls for a datagram from the peer that the socket is connected to, and leaves it in the
    /// queue.
    ///
    /// It is copied to the unfilled part of `buf`, which is advanced. Keeps the waker of the last
    /// call.
    ///
    /// # Errors
    ///
    /// As [`recv`](UdpSocket::recv).
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_read_io(cx, || sys::recv_read_buf(self, buf, sys::PEEK))
    }

    /// Copies the next datagram from the peer that the socket is connected to, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv`](UdpSocket::recv).
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || retry(|| self.io.peek(buf)))
    }

    /// Copies the next datagram from anybody and leaves it in the queue; returns how much of it
    /// fitted into `buf`, and the sender.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .async_io(RECEIVE, || retry(|| self.io.peek_from(buf)))
            .await
    }

    /// Polls for a datagram from anybody and leaves it in the queue; returns the sender.
    ///
    /// It is copied to the unfilled part of `buf`, which is advanced. Keeps the waker of the last
    /// call.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let addr = ready!(self.io.poll_read_io(cx, || sys::recv_read_buf_from(
            self,
            buf,
            sys::PEEK
        )))?;
        Poll::Ready(sender(&addr))
    }

    /// Copies the next datagram from anybody, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UdpSocket::recv_from).
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io
            .try_io(Interest::READABLE, || retry(|| self.io.peek_from(buf)))
    }

    /// Waits for a datagram and tells who sent it; the datagram stays in the queue.
    ///
    /// Anybody may send datagrams, so the next one received is this one only if no other task
    /// receives from the socket meanwhile.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.async_io(RECEIVE, || self.sender_of_next()).await
    }

    /// Polls for a datagram and tells who sent it; the datagram stays in the queue.
    ///
    /// Keeps the waker of the last call.
    ///
    /// # Errors
    ///
    /// As [`recv_from`](UdpSocket::recv_from).
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_read_io(cx, || self.sender_of_next())
    }

    /// Tells who sent the next datagram, if there is one.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none, else as
    /// [`recv_from`](UdpSocket::recv_from).
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.try_io(Interest::READABLE, || self.sender_of_next())
    }

    fn sender_of_next(&self) -> io::Result<SocketAddr> {
        sender(&retry(|| SockRef::from(self).peek_sender())?)
    }
}
