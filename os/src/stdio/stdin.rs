//! [`Stdin`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::{AsyncRead, ReadBuf};

use super::blocking::{Blocking, Jobs};

/// The standard input of the process.
///
/// Returned by [`stdin`].
#[derive(Debug)]
pub struct Stdin {
    std: Blocking<io::Stdin>,
}

/// A handle to the standard input of the process.
///
/// Every handle reads through the one buffer of [`std::io::stdin`]; what one of them took, no other
/// gets. Input from a terminal, a pipe or a redirected file is all the same.
///
/// # Shutdown
///
/// A read that waits for input occupies a thread of the blocking pool and cannot be cancelled, as
/// in tokio: dropping the future leaves the thread waiting, its bytes go to the next read of the
/// *same* handle, and dropping the runtime waits until the user presses enter. For an interactive
/// program, read in a thread of its own (`std::thread::spawn`) and send the lines through a
/// channel, or end the runtime with `shutdown_background` or `shutdown_timeout`.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// use gmp::io::{AsyncBufReadExt, BufReader};
///
/// let mut lines = BufReader::new(gmp::io::stdin()).lines();
/// while let Some(line) = lines.next_line().await? {
///     println!("{}", line.to_uppercase());
/// }
/// # Ok(()) }
/// ```
pub fn stdin() -> Stdin {
    Stdin {
        std: Blocking::new(io::stdin(), Jobs::MayBeDropped),
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.std).poll_read(cx, buf)
    }
}

impl AsRawFd for Stdin {
    fn as_raw_fd(&self) -> RawFd {
        io::stdin().as_raw_fd()
    }
}

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: descriptor 0 belongs to the process, not to this handle: the standard library
        // lends it out for `'static` too, and nothing here closes it.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}
