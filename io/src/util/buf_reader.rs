//! `BufReader`.

use std::fmt;
use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::BUF_SIZE;
use crate::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

pin_project! {
    /// A reader with a buffer, for many small reads from something that is better read in large pieces.
    ///
    /// It helps where each read of the inner reader is dear, such as a system call, and not where the
    /// inner reader is in memory already. What it has buffered is lost when it is dropped or taken
    /// apart with [`into_inner`](BufReader::into_inner), and a second `BufReader` on the same source
    /// misses it.
    ///
    /// Writing goes straight through, so that one `BufReader` can sit on a stream of both directions.
    ///
    /// As `tokio::io::BufReader`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::{AsyncBufReadExt, BufReader};
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = BufReader::new(&b"first\nsecond\n"[..]);
    /// let mut line = String::new();
    /// reader.read_line(&mut line).await.unwrap();
    /// assert_eq!(line, "first\n");
    /// # });
    /// ```
    pub struct BufReader<R> {
        #[pin]
        pub(super) inner: R,
        pub(super) state: ReadState,
    }
}

/// The buffer of a `BufReader` and where a seek stands: all of it but the reader.
pub(super) struct ReadState {
    buf: Box<[u8]>,
    /// The bytes from `start` to `end` have been read from the inner reader and not been consumed.
    start: usize,
    end: usize,
    seek: Seek,
}

/// Where a seek stands.
///
/// `start_seek` only notes the request: the inner reader may have to be asked twice, and waiting for
/// the first answer needs a `Context`.
#[derive(Clone, Copy)]
enum Seek {
    Idle,
    Requested(SeekFrom),
    /// The inner reader goes back by what is buffered; the offset is to follow. Only for an offset
    /// that, less the buffered bytes, is not an `i64`.
    GoingBack(i64),
    Underway,
}

impl ReadState {
    fn new(capacity: usize) -> ReadState {
        ReadState {
            buf: vec![0; capacity].into_boxed_slice(),
            start: 0,
            end: 0,
            seek: Seek::Idle,
        }
    }

    fn buffered(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    fn discard(&mut self) {
        self.start = 0;
        self.end = 0;
    }
}

impl<R: AsyncRead> BufReader<R> {
    /// Buffers `inner`, 8 KiB at a time.
    pub fn new(inner: R) -> Self {
        Self::with_capacity(BUF_SIZE, inner)
    }

    /// Buffers `inner`, `capacity` bytes at a time.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    #[track_caller]
    pub fn with_capacity(capacity: usize, inner: R) -> Self {
        assert!(capacity > 0, "capacity must be greater than zero");
        Self {
            inner,
            state: ReadState::new(capacity),
        }
    }

    /// The inner reader.
    ///
    /// Reading from it directly misses what is buffered.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The inner reader, mutably.
    ///
    /// Reading from it directly misses what is buffered.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// The inner reader, pinned.
    ///
    /// Reading from it directly misses what is buffered.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Takes the inner reader out; what is buffered is lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// What is buffered, perhaps nothing; unlike `fill_buf` it never reads.
    pub fn buffer(&self) -> &[u8] {
        self.state.buffered()
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.as_mut().project();
        if me.state.is_empty() && buf.remaining() >= me.state.buf.len() {
            // A detour through the buffer would only add a copy.
            let result = ready!(me.inner.poll_read(cx, buf));
            me.state.discard();
            return Poll::Ready(result);
        }
        let buffered = ready!(self.as_mut().poll_fill_buf(cx))?;
        let len = buffered.len().min(buf.remaining());
        buf.put_slice(&buffered[..len]);
        self.consume(len);
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let me = self.project();
        let state = me.state;
        if state.is_empty() {
            let mut buf = ReadBuf::new(&mut state.buf);
            ready!(me.inner.poll_read(cx, &mut buf))?;
            state.end = buf.filled().len();
            state.start = 0;
        }
        Poll::Ready(Ok(state.buffered()))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let state = self.project().state;
        state.start = state.end.min(state.start.saturating_add(amt));
    }
}

/// Seeks from where the consumer is, not from where the inner reader is, and empties the buffer.
///
/// A seek that goes nowhere empties it too; positions are always the inner reader's answers.
impl<R: AsyncRead + AsyncSeek> AsyncSeek for BufReader<R> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.project().state.seek = Seek::Requested(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let mut me = self.project();
        let state = me.state;
        loop {
            let inner = me.inner.as_mut();
            // Whatever fails below ends the seek.
            match std::mem::replace(&mut state.seek, Seek::Idle) {
                Seek::Idle => return inner.poll_complete(cx),
                Seek::Requested(SeekFrom::Current(offset)) => {
                    // A slice is never longer than `i64::MAX`.
                    let ahead = state.buffered().len() as i64;
                    if let Some(offset) = offset.checked_sub(ahead) {
                        inner.start_seek(SeekFrom::Current(offset))?;
                        state.seek = Seek::Underway;
                    } else {
                        inner.start_seek(SeekFrom::Current(-ahead))?;
                        state.seek = Seek::GoingBack(offset);
                    }
                }
                Seek::Requested(position) => {
                    inner.start_seek(position)?;
                    state.seek = Seek::Underway;
                }
                back @ Seek::GoingBack(offset) => {
                    if inner.poll_complete(cx)?.is_pending() {
                        state.seek = back;
                        return Poll::Pending;
                    }
                    // The inner reader is where the consumer was, so the buffer is stale by now,
                    // also if the next step fails.
                    state.discard();
                    me.inner.as_mut().start_seek(SeekFrom::Current(offset))?;
                    state.seek = Seek::Underway;
                }
                Seek::Underway => {
                    let Poll::Ready(position) = inner.poll_complete(cx)? else {
                        state.seek = Seek::Underway;
                        return Poll::Pending;
                    };
                    state.discard();
                    return Poll::Ready(Ok(position));
                }
            }
        }
    }
}

/// Straight through.
impl<R: AsyncRead + AsyncWrite> AsyncWrite for BufReader<R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_pin_mut().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_pin_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.state.buffered().len(), self.state.buf.len());
        f.debug_struct("BufReader")
            .field("reader", &self.inner)
            .field("buffer", &format_args!("{len}/{capacity}"))
            .finish()
    }
}
