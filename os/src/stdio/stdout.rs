//! [`Stdout`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::AsyncWrite;

use super::blocking::{Blocking, Jobs};

/// The standard output of the process.
///
/// Returned by [`stdout`].
#[derive(Debug)]
pub struct Stdout {
    std: Blocking<io::Stdout>,
}

/// A handle to the standard output of the process.
///
/// A write is answered when its bytes are on their way to the blocking pool; flush before the
/// process ends, or the last of them may be missing. Writes of one handle keep their order. Those
/// of several handles do not, and a line longer than a write may be torn: send lines through a
/// channel to one task that writes them, or use `println!`, when that matters.
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
/// let mut out = gmp::io::stdout();
/// out.write_all(b"hello\n").await?;
/// out.flush().await?;
/// # Ok(()) }
/// ```
pub fn stdout() -> Stdout {
    Stdout {
        std: Blocking::new(io::stdout(), Jobs::Mandatory),
    }
}

impl AsyncWrite for Stdout {
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

impl AsRawFd for Stdout {
    fn as_raw_fd(&self) -> RawFd {
        io::stdout().as_raw_fd()
    }
}

impl AsFd for Stdout {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor belongs to the process, not to this handle: the standard library
        // lends it out for `'static` too, and nothing here closes it.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}
