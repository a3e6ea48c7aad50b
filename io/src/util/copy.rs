//! `copy`, and the machine behind it and `copy_bidirectional`.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;

use super::{BUF_SIZE, is_interrupted, poll_may_go_on};
use crate::{AsyncRead, AsyncWrite, ReadBuf};

/// Copies from a reader to a writer, in one direction, until the reader ends.
///
/// It reads as much as there is and fits before it writes, and while the writer has to wait, so that
/// writes are large; and it flushes when there is nothing to read or write, lest reader and writer
/// wait for each other.
#[derive(Debug)]
pub(super) struct Copier {
    buf: Box<[u8]>,
    /// The bytes from `start` to `end` have been read and not been written.
    start: usize,
    end: usize,
    read_ended: bool,
    needs_flush: bool,
    copied: u64,
}

impl Copier {
    pub(super) fn new(buf_size: usize) -> Copier {
        Copier {
            buf: vec![0; buf_size].into_boxed_slice(),
            start: 0,
            end: 0,
            read_ended: false,
            needs_flush: false,
            copied: 0,
        }
    }

    fn can_read(&self) -> bool {
        !self.read_ended && self.end < self.buf.len()
    }

    /// Reads once, behind what is in the buffer.
    fn poll_fill<R>(
        &mut self,
        mut reader: Pin<&mut R>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + ?Sized,
    {
        let mut buf = ReadBuf::new(&mut self.buf);
        buf.set_filled(self.end);
        loop {
            match ready!(reader.as_mut().poll_read(cx, &mut buf)) {
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
                Ok(()) => break,
            }
        }
        let end = buf.filled().len();
        self.read_ended = end == self.end;
        self.end = end;
        Poll::Ready(Ok(()))
    }

    /// Writes once.
    fn poll_drain<W>(
        &mut self,
        mut writer: Pin<&mut W>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + ?Sized,
    {
        let bytes = &self.buf[self.start..self.end];
        let written = loop {
            match ready!(writer.as_mut().poll_write(cx, bytes)) {
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
                Ok(0) => {
                    let text = "write zero byte into writer";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::WriteZero, text)));
                }
                Ok(written) => break written,
            }
        };
        assert!(
            written <= bytes.len(),
            "the writer took {written} of {} bytes",
            bytes.len()
        );
        self.needs_flush = true;
        self.copied += written as u64;
        self.start += written;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// Flushes what has been written, if anything.
    fn poll_flush<W>(&mut self, writer: Pin<&mut W>, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + ?Sized,
    {
        ready!(writer.poll_flush(cx))?;
        self.needs_flush = false;
        Poll::Ready(Ok(()))
    }

    /// Copies until the reader ends or one of the two has to wait; then says how much in all.
    ///
    /// A poll takes one from the budget, however much it copies: reader and writer pay for themselves.
    pub(super) fn poll_copy<R, W>(
        &mut self,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        let coop = ready!(coop::poll_proceed(cx));
        loop {
            if self.can_read() {
                match self.poll_fill(reader.as_mut(), cx) {
                    Poll::Ready(result) => {
                        coop.made_progress();
                        result?;
                    }
                    // There is something to write meanwhile.
                    Poll::Pending if self.start < self.end => {}
                    Poll::Pending => {
                        if self.needs_flush {
                            ready!(self.poll_flush(writer.as_mut(), cx))?;
                            coop.made_progress();
                        }
                        return Poll::Pending;
                    }
                }
            }
            while self.start < self.end {
                let Poll::Ready(result) = self.poll_drain(writer.as_mut(), cx) else {
                    if self.can_read() {
                        ready!(self.poll_fill(reader.as_mut(), cx))?;
                        coop.made_progress();
                    }
                    return Poll::Pending;
                };
                coop.made_progress();
                result?;
            }
            if self.read_ended {
                ready!(self.poll_flush(writer.as_mut(), cx))?;
                coop.made_progress();
                return Poll::Ready(Ok(self.copied));
            }
            ready!(poll_may_go_on(cx));
        }
    }
}

/// Copies all that `reader` has to `writer` and flushes it; returns how many bytes that were.
///
/// Uses a buffer of 8 KiB. [`copy_buf`](crate::copy_buf) uses the reader's own buffer instead, for
/// readers that have one. As `tokio::io::copy`, and as [`std::io::copy`] for threads.
///
/// # Errors
///
/// The first error of the reader or the writer, but for
/// [`Interrupted`](io::ErrorKind::Interrupted) from a read or a write, after which it tries again.
/// What has been copied by then stays copied.
///
/// # Cancel safety
///
/// Dropping the future loses what has been read and not been written.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io;
///
/// # futures::executor::block_on(async {
/// let mut reader = &b"all of it"[..];
/// let mut writer = Vec::new();
/// assert_eq!(io::copy(&mut reader, &mut writer).await.unwrap(), 9);
/// assert_eq!(writer, b"all of it");
/// # });
/// ```
pub async fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut copier = Copier::new(BUF_SIZE);
    poll_fn(|cx| copier.poll_copy(Pin::new(&mut *reader), Pin::new(&mut *writer), cx)).await
}
