//! `copy_buf`.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;

use super::{is_interrupted, poll_may_go_on};
use crate::{AsyncBufRead, AsyncWrite};

/// How far the copy is.
#[derive(Default)]
struct Progress {
    copied: u64,
    needs_flush: bool,
}

/// Copies all that `reader` has to `writer`, straight from the reader's buffer, and flushes it;
/// returns how many bytes that were.
///
/// As `tokio::io::copy_buf`.
///
/// # Errors
///
/// The first error of the reader or the writer, but for
/// [`Interrupted`](io::ErrorKind::Interrupted) from a read or a write, after which it tries again.
/// What has been copied by then stays copied.
///
/// # Cancel safety
///
/// Dropping the future loses nothing but the count: what has been read and not been written is still
/// in the reader's buffer.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, BufReader};
///
/// # futures::executor::block_on(async {
/// let mut reader = BufReader::with_capacity(4, &b"all of it"[..]);
/// let mut writer = Vec::new();
/// assert_eq!(io::copy_buf(&mut reader, &mut writer).await.unwrap(), 9);
/// # });
/// ```
pub async fn copy_buf<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncBufRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut progress = Progress::default();
    poll_fn(|cx| progress.poll_copy(Pin::new(&mut *reader), Pin::new(&mut *writer), cx)).await
}

impl Progress {
    fn poll_copy<R, W>(
        &mut self,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncBufRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        let coop = ready!(coop::poll_proceed(cx));
        loop {
            let Poll::Ready(filled) = reader.as_mut().poll_fill_buf(cx) else {
                // Lest reader and writer wait for each other.
                if self.needs_flush {
                    ready!(writer.as_mut().poll_flush(cx))?;
                    self.needs_flush = false;
                }
                return Poll::Pending;
            };
            coop.made_progress();
            let bytes = match filled {
                Err(e) if is_interrupted(&e) => continue,
                filled => filled?,
            };
            if bytes.is_empty() {
                ready!(writer.as_mut().poll_flush(cx))?;
                return Poll::Ready(Ok(self.copied));
            }
            let written = match ready!(writer.as_mut().poll_write(cx, bytes)) {
                Err(e) if is_interrupted(&e) => continue,
                written => written?,
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            reader.as_mut().consume(written);
            self.copied += written as u64;
            self.needs_flush = true;
            ready!(poll_may_go_on(cx));
        }
    }
}
