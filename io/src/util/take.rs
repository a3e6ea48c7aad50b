//! `Take`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// A reader that ends after a number of bytes; see [`take`](crate::AsyncReadExt::take).
    #[derive(Debug)]
    #[must_use = "readers do nothing unless read from"]
    pub struct Take<R> {
        #[pin]
        inner: R,
        left: u64,
    }
}

impl<R: AsyncRead> Take<R> {
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Take { inner, left: limit }
    }

    /// How many bytes may still be read. The inner reader may end earlier.
    pub fn limit(&self) -> u64 {
        self.left
    }

    /// Sets how many bytes may still be read, whatever has been read so far.
    pub fn set_limit(&mut self, limit: u64) {
        self.left = limit;
    }

    /// The inner reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The inner reader, mutably. What is read from it directly does not count.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// The inner reader, pinned. What is read from it directly does not count.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Takes the inner reader out.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: AsyncRead> AsyncRead for Take<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.project();
        if *me.left == 0 {
            // Asking the inner reader could wait for something that nobody will look at.
            return Poll::Ready(Ok(()));
        }
        let mut part = buf.take(usize::try_from(*me.left).unwrap_or(usize::MAX));
        let address = part.initialized().as_ptr();
        ready!(me.inner.poll_read(cx, &mut part))?;
        assert_eq!(
            part.initialized().as_ptr(),
            address,
            "the reader exchanged the buffer it was given"
        );
        let filled = part.filled().len();
        let initialized = part.initialized().len();
        // SAFETY: `part` still is the start of the unfilled part of `buf` (just checked), and a
        // `ReadBuf` counts as initialized only what is.
        unsafe { buf.assume_init(initialized) };
        buf.advance(filled);
        *me.left -= filled as u64;
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncBufRead> AsyncBufRead for Take<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let me = self.project();
        if *me.left == 0 {
            return Poll::Ready(Ok(&[]));
        }
        let buf = ready!(me.inner.poll_fill_buf(cx))?;
        Poll::Ready(Ok(&buf[..at_most(buf.len(), *me.left)]))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let me = self.project();
        // Whoever consumes more than there is must not get below zero.
        let amt = at_most(amt, *me.left);
        *me.left -= amt as u64;
        me.inner.consume(amt);
    }
}

fn at_most(len: usize, limit: u64) -> usize {
    usize::try_from(limit).map_or(len, |limit| len.min(limit))
}
