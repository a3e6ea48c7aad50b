//! Sending datagrams.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::UnixDatagram;
use super::room::{Room, can_wait, has_room};
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
        loop {
            let sent = self
                .io
                .async_io(Interest::WRITABLE, || self.send_if_room(buf, target))
                .await?;
            match sent {
                Some(n) => return Ok(n),
                None => Room::new(target)?.wait().await?,
            }
        }
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
        loop {
            let room = self.room.lock().clone();
            if let Some(room) = room.filter(|room| room.is_at(target)) {
                ready!(room.poll_wait(cx))?;
            }
            let attempt = || self.send_if_room(buf, target);
            let sent = ready!(self.io.poll_write_io(cx, attempt))?;
            let room = match sent {
                Some(_) => None,
                None => Some(Arc::new(Room::new(target)?)),
            };
            // The one before goes when the lock is free: it holds a waker.
            let _before = std::mem::replace(&mut *self.room.lock(), room);
            if let Some(n) = sent {
                return Poll::Ready(Ok(n));
            }
        }
    }

    /// `None` when it is the receiver that has no room.
    fn send_if_room(&self, buf: &[u8], target: &Path) -> io::Result<Option<usize>> {
        match retry(|| self.io.send_to(buf, target)) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && can_wait()
                    && has_room(&*self.io) =>
            {
                Ok(None)
            }
            done => done.map(Some),
        }
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
