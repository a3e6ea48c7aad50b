//! The reading end of a pipe.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BufMut;
use gmp_io::{AsyncRead, ReadBuf};
use rustix::fs::OFlags;

use super::{prepare, set_blocking};
use crate::poll_evented::PollEvented;
use crate::sys::{self, retry};
use crate::{Interest, Ready};

/// The reading end of a pipe.
///
/// Reading comes to the end (0 bytes) when the last sender has gone. A FIFO file may get new senders
/// after that, which another read then serves; to not come to the end at all, open the file for
/// [both directions](super::OpenOptions::read_write), so that the receiver is a sender too.
/// As `tokio::net::unix::pipe::Receiver`.
#[derive(Debug)]
pub struct Receiver {
    io: PollEvented<File>,
}

impl Receiver {
    /// Makes a receiver of an open FIFO file, and puts it into non-blocking mode.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the file is no pipe or is not open for
    /// reading, else what the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_file(file: File) -> io::Result<Receiver> {
        Receiver::from_owned_fd(file.into())
    }

    /// Makes a receiver of the descriptor of a pipe, and puts it into non-blocking mode.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Receiver::from_file).
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_owned_fd(owned_fd: OwnedFd) -> io::Result<Receiver> {
        prepare(
            &owned_fd,
            OFlags::RDONLY,
            "not in O_RDONLY or O_RDWR access mode",
        )?;
        Receiver::from_owned_fd_unchecked(owned_fd)
    }

    /// Makes a receiver of an open file without any check.
    ///
    /// The file should be a pipe in non-blocking mode, open for reading.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_file_unchecked(file: File) -> io::Result<Receiver> {
        let io = PollEvented::registered(file, Interest::READABLE)?;
        Ok(Receiver { io })
    }

    /// Makes a receiver of a descriptor without any check.
    ///
    /// It should be a pipe in non-blocking mode, open for reading.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_owned_fd_unchecked(owned_fd: OwnedFd) -> io::Result<Receiver> {
        Receiver::from_file_unchecked(owned_fd.into())
    }

    /// Waits until the pipe is ready for one of the things in `interest`.
    ///
    /// [`READABLE`](Interest::READABLE) is what makes sense. Readiness is a hint: the `try_*` call
    /// that follows may still say [`WouldBlock`](io::ErrorKind::WouldBlock), and the set returned
    /// may be empty.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: readiness stays until an operation finds that it is gone.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.io.ready(interest).await
    }

    /// Waits until there is something to read, or the last sender has gone.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await?;
        Ok(())
    }

    /// Polls whether there is something to read.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_read`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(|_| ())
    }

    /// Reads what is there; returns how many bytes.
    ///
    /// 0 means that there is no sender any more, unless `buf` is empty.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing, or the netpoll has not yet
    /// told of anything; else what the operating system says.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || retry(|| (&*self.io).read(buf)))
    }

    /// Reads what is there into several buffers, one after the other; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Receiver::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, || {
            retry(|| (&*self.io).read_vectored(bufs))
        })
    }

    /// Reads what is there into the free part of `buf`, which is advanced; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Receiver::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, || sys::read_buf_mut(self, buf))
    }

    /// Calls `f` if the pipe is readable, and clears the readiness if `f` says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// For system calls of one's own on the descriptor, such as `splice`. `f` must say `WouldBlock`
    /// only when a system call on this pipe did, and must not use this receiver's own functions.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the pipe is not readable, else what `f` says.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.io.try_user_io(Interest::READABLE, f)
    }

    /// Takes the pipe out of the runtime, in blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
        let fd = self.into_nonblocking_fd()?;
        set_blocking(&fd)?;
        Ok(fd)
    }

    /// Takes the pipe out of the runtime, in non-blocking mode.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
        Ok(self.io.into_inner()?.into())
    }
}

impl AsyncRead for Receiver {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.poll_read(cx, buf)
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
