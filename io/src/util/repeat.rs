//! `repeat`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;

use super::spend;
use crate::{AsyncRead, ReadBuf};

/// A reader of one byte, over and over; see [`repeat`].
#[derive(Debug)]
pub struct Repeat {
    byte: u8,
}

/// Makes a reader that fills every buffer with `byte` and never ends.
///
/// It never waits; like any leaf it takes from the task's budget. As `tokio::io::repeat`.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, AsyncReadExt};
///
/// # futures::executor::block_on(async {
/// let mut buf = [0; 3];
/// io::repeat(7).read_exact(&mut buf).await.unwrap();
/// assert_eq!(buf, [7, 7, 7]);
/// # });
/// ```
pub fn repeat(byte: u8) -> Repeat {
    Repeat { byte }
}

impl AsyncRead for Repeat {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(spend(cx));
        buf.put_bytes(self.byte, buf.remaining());
        Poll::Ready(Ok(()))
    }
}
