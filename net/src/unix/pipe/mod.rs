//! Unix pipes: anonymous ones and FIFO files.
//!
//! An end of a pipe is one direction only, so a [`Sender`] is registered for writing alone and a
//! [`Receiver`] for reading. As `tokio::net::unix::pipe`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, OFlags};

use crate::sys;

mod open_options;
mod receiver;
mod sender;

pub use self::open_options::OpenOptions;
pub use self::receiver::Receiver;
pub use self::sender::Sender;

/// Makes an anonymous pipe.
///
/// To give one end to a child process, turn it into a descriptor with
/// [`into_blocking_fd`](Sender::into_blocking_fd). As `tokio::net::unix::pipe::pipe`.
///
/// # Errors
///
/// What the operating system said.
///
/// # Panics
///
/// Outside a runtime with I/O enabled.
///
/// # Examples
///
/// ```no_run
/// use gmp::io::{AsyncReadExt, AsyncWriteExt};
/// use gmp::net::unix::pipe;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let (mut tx, mut rx) = pipe::pipe()?;
/// tx.write_all(b"hello").await?;
/// drop(tx);
///
/// let mut text = String::new();
/// rx.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (rx, tx) = sys::nonblocking_pipe()?;
    Ok((
        Sender::from_owned_fd_unchecked(tx)?,
        Receiver::from_owned_fd_unchecked(rx)?,
    ))
}

/// Fails unless `fd` is a pipe or a FIFO.
fn check_is_pipe(fd: impl AsFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a pipe"));
    }
    Ok(())
}

/// Puts `fd` into non-blocking mode, provided that it is a pipe opened for `access` or for both
/// directions; `refusal` is the error's text if it is not.
fn prepare(fd: &OwnedFd, access: OFlags, refusal: &'static str) -> io::Result<()> {
    check_is_pipe(fd)?;
    let flags = rustix::fs::fcntl_getfl(fd)?;
    let mode = flags & OFlags::RWMODE;
    if mode != access && mode != OFlags::RDWR {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, refusal));
    }
    if !flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    }
    Ok(())
}

fn set_blocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    rustix::fs::fcntl_setfl(fd, flags - OFlags::NONBLOCK)?;
    Ok(())
}
