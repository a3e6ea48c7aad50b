//! The writing end of a pipe.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::AsyncWrite;
use rustix::fs::OFlags;

use super::{prepare, set_blocking};
use crate::poll_evented::PollEvented;
use crate::sys::retry;
use crate::{Interest, Ready};

/// The writing end of a pipe.
///
/// Opening a FIFO file for writing fails with `ENXIO` as long as nobody has it open for reading: try
/// again later, or open it for [both directions](super::OpenOptions::read_write). A sender opened so
/// keeps the pipe open for reading too, so what it writes is lost if it is dropped before a reader
/// comes.
///
/// Writing when the last receiver has gone fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
/// As `tokio::net::unix::pipe::Sender`.
#[derive(Debug)]
pub struct Sender {
    io: PollEvented<File>,
}

impl Sender {
    /// Makes a sender of an open FIFO file, and puts it into non-blocking mode.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the file is no pipe or is not open for
    /// writing, else what the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_file(file: File) -> io::Result<Sender> {
        Sender::from_owned_fd(file.into())
    }

    /// Makes a sender of the descriptor of a pipe, and puts it into non-blocking mode.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Sender::from_file).
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_owned_fd(owned_fd: OwnedFd) -> io::Result<Sender> {
        prepare(
            &owned_fd,
            OFlags::WRONLY,
            "not in O_WRONLY or O_RDWR access mode",
        )?;
        Sender::from_owned_fd_unchecked(owned_fd)
    }

    /// Makes a sender of an open file without any check.
    ///
    /// The file should be a pipe in non-blocking mode, open for writing.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_file_unchecked(file: File) -> io::Result<Sender> {
        let io = PollEvented::registered(file, Interest::WRITABLE)?;
        Ok(Sender { io })
    }

    /// Makes a sender of a descriptor without any check.
    ///
    /// It should be a pipe in non-blocking mode, open for writing.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn from_owned_fd_unchecked(owned_fd: OwnedFd) -> io::Result<Sender> {
        Sender::from_file_unchecked(owned_fd.into())
    }

    /// Waits until the pipe is ready for one of the things in `interest`.
    ///
    /// [`WRITABLE`](Interest::WRITABLE) is what makes sense. Readiness is a hint: the `try_*` call
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

    /// Waits until something can be written, or the last receiver has gone.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await?;
        Ok(())
    }

    /// Polls whether something can be written.
    ///
    /// Keeps the waker of the last such call, or of the last `poll_write*`.
    ///
    /// # Errors
    ///
    /// When the runtime has shut down.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(|_| ())
    }

    /// Writes as much of `buf` as there is room for; returns how many bytes.
    ///
    /// Up to `PIPE_BUF` bytes (4,096 on Linux) are written whole or not at all.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is no room, or the netpoll has not yet
    /// told of any; [`BrokenPipe`](io::ErrorKind::BrokenPipe) when there is no receiver; else what
    /// the operating system says.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, || retry(|| (&*self.io).write(buf)))
    }

    /// Writes as much of several buffers as there is room for; returns how many bytes.
    ///
    /// # Errors
    ///
    /// As [`try_write`](Sender::try_write).
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, || {
            retry(|| (&*self.io).write_vectored(buf))
        })
    }

    /// Calls `f` if the pipe is writable, and clears the readiness if `f` says
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// For system calls of one's own on the descriptor, such as `splice`. `f` must say `WouldBlock`
    /// only when a system call on this pipe did, and must not use this sender's own functions.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when the pipe is not writable, else what `f` says.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.io.try_user_io(Interest::WRITABLE, f)
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

impl AsyncWrite for Sender {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: a pipe ends when its last sender is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsRawFd for Sender {
    fn as_raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }
}
