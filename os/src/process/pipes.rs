//! The parent's ends of a child's standard streams.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};
use gmp_net::unix::pipe::{Receiver, Sender};

/// Writes to a child's standard input.
///
/// The child sees the end of its input when this is dropped; shutting it down does nothing. Found in
/// [`Child::stdin`](super::Child::stdin).
///
/// Writing fails with `BrokenPipe` when the child has closed its input or ended.
#[derive(Debug)]
pub struct ChildStdin {
    inner: Sender,
}

/// Reads a child's standard output.
///
/// It ends when the child, and everybody who inherited the stream from it, has closed it. Found in
/// [`Child::stdout`](super::Child::stdout).
#[derive(Debug)]
pub struct ChildStdout {
    inner: Receiver,
}

/// Reads a child's standard error.
///
/// It ends when the child, and everybody who inherited the stream from it, has closed it. Found in
/// [`Child::stderr`](super::Child::stderr).
#[derive(Debug)]
pub struct ChildStderr {
    inner: Receiver,
}

macro_rules! common {
    ($ours:ident, $end:ident) => {
        impl $ours {
            /// Takes over a pipe of the standard library's, and puts it into non-blocking mode.
            ///
            /// # Errors
            ///
            /// What the operating system says.
            ///
            /// # Panics
            ///
            /// Outside a runtime, and in one that was built without I/O.
            #[track_caller]
            pub fn from_std(inner: std::process::$ours) -> io::Result<Self> {
                let fd = OwnedFd::from(inner);
                rustix::io::ioctl_fionbio(&fd, true)?;
                $end::from_owned_fd_unchecked(fd).map(|inner| Self { inner })
            }

            /// Gives the descriptor back, in blocking mode.
            ///
            /// # Errors
            ///
            /// What the operating system says.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                self.inner.into_blocking_fd()
            }
        }

        /// The stream becomes that of another child, in blocking mode, as programs expect it.
        impl TryInto<Stdio> for $ours {
            type Error = io::Error;

            fn try_into(self) -> io::Result<Stdio> {
                self.into_owned_fd().map(Stdio::from)
            }
        }

        impl AsRawFd for $ours {
            fn as_raw_fd(&self) -> RawFd {
                self.inner.as_raw_fd()
            }
        }

        impl AsFd for $ours {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.inner.as_fd()
            }
        }
    };
}

common!(ChildStdin, Sender);
common!(ChildStdout, Receiver);
common!(ChildStderr, Receiver);

impl AsyncWrite for ChildStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl AsyncRead for ChildStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncRead for ChildStderr {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}
