//! [`Stderr`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::AsyncWrite;

use super::blocking::{Blocking, Jobs};

/// The standard error of the process.
///
/// Returned by [`stderr`].
#[derive(Debug)]
pub struct Stderr {
    std: Blocking<io::Stderr>,
}

/// A handle to the standard error of the process.
///
/// Nothing buffers behind it, but a write is answered when its bytes are on their way to the
/// blocking pool; flush to wait for them. Writes of one handle keep their order, those of several
/// handles do not.
///
/// # Shutdown
///
/// A write that was answered is carried out even when the runtime shuts down meanwhile; a runtime
/// that is dropped waits for it.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// use gmp::io::AsyncWriteExt;
///
/// let mut err = gmp::io::stderr();
/// err.write_all(b"out of paper\n").await?;
/// err.flush().await?;
/// # Ok(()) }
/// ```
pub fn stderr() -> Stderr {
    Stderr {
        std: Blocking::new(io::stderr(), Jobs::Mandatory),
    }
}

impl AsyncWrite for Stderr {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.std).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.std).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.std).poll_shutdown(cx)
    }
}

impl AsRawFd for Stderr {
    fn as_raw_fd(&self) -> RawFd {
        io::stderr().as_raw_fd()
    }
}

impl AsFd for Stderr {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor belongs to the process, not to this handle: the standard library
        // lends it out for `'static` too, and nothing here closes it.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}
