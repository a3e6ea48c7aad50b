//! `BufWriter`.

use std::fmt;
use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{BUF_SIZE, is_interrupted};
use crate::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

pin_project! {
    /// A writer with a buffer, for many small writes to something that is better written in large pieces.
    ///
    /// Writes that fit stay in the buffer; it is passed on when the next one does not fit, and by
    /// [`flush`](crate::AsyncWriteExt::flush) and [`shutdown`](crate::AsyncWriteExt::shutdown).
    /// **What is in the buffer when the `BufWriter` is dropped is lost**: writing may have to wait,
    /// and a destructor cannot. Flush before.
    ///
    /// Reading goes straight through, so that one `BufWriter` can sit on a stream of both directions.
    ///
    /// As `tokio::io::BufWriter`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::{AsyncWriteExt, BufWriter};
    ///
    /// # futures::executor::block_on(async {
    /// let mut writer = BufWriter::new(Vec::new());
    /// for n in 0..3 {
    ///     writer.write_u8(n).await.unwrap();
    /// }
    /// assert!(writer.get_ref().is_empty());
    /// writer.flush().await.unwrap();
    /// assert_eq!(writer.get_ref(), &[0, 1, 2]);
    /// # });
    /// ```
    pub struct BufWriter<W> {
        #[pin]
        pub(super) inner: W,
        pub(super) state: WriteState,
    }
}

/// The buffer of a `BufWriter` and where a seek stands: all of it but the writer.
pub(super) struct WriteState {
    buf: Vec<u8>,
    /// How much of `buf` the inner writer has taken: more than none only while a flush waits.
    written: usize,
    seek: Seek,
}

/// Where a seek stands. `start_seek` only notes the request, since the buffer has to be passed on
/// first, which may have to wait.
#[derive(Clone, Copy)]
enum Seek {
    Idle,
    Requested(SeekFrom),
    Underway,
}

impl WriteState {
    fn new(capacity: usize) -> WriteState {
        WriteState {
            buf: Vec::with_capacity(capacity),
            written: 0,
            seek: Seek::Idle,
        }
    }

    fn room(&self) -> usize {
        self.buf.capacity() - self.buf.len()
    }

    /// Writes the buffer to `inner`. After an error it holds what was not taken.
    fn poll_write_out<W: AsyncWrite>(
        &mut self,
        mut inner: Pin<&mut W>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut result = Ok(());
        while self.written < self.buf.len() {
            match ready!(inner.as_mut().poll_write(cx, &self.buf[self.written..])) {
                Ok(0) => {
                    let text = "failed to write the buffered data";
                    result = Err(io::Error::new(io::ErrorKind::WriteZero, text));
                    break;
                }
                Ok(n) => self.written += n,
                Err(e) if is_interrupted(&e) => {}
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        self.buf.drain(..self.written);
        self.written = 0;
        Poll::Ready(result)
    }
}

impl<W: AsyncWrite> BufWriter<W> {
    /// Buffers writes to `inner`, 8 KiB of them.
    pub fn new(inner: W) -> Self {
        Self::with_capacity(BUF_SIZE, inner)
    }

    /// Buffers writes to `inner`, `cap` bytes of them.
    pub fn with_capacity(cap: usize, inner: W) -> Self {
        Self {
            inner,
            state: WriteState::new(cap),
        }
    }

    /// The inner writer.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// The inner writer, mutably.
    ///
    /// Writing to it directly overtakes what is buffered.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// The inner writer, pinned.
    ///
    /// Writing to it directly overtakes what is buffered.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().inner
    }

    /// Takes the inner writer out; what is buffered is lost.
    pub fn into_inner(self) -> W {
        self.inner
    }

    /// What is buffered.
    pub fn buffer(&self) -> &[u8] {
        &self.state.buf
    }

    fn poll_write_out(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.project();
        me.state.poll_write_out(me.inner, cx)
    }

    /// For an inner writer that takes one piece at a time: the first piece, and what fits behind it.
    fn poll_write_pieces(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(at) = bufs.iter().position(|buf| !buf.is_empty()) else {
            return Poll::Ready(Ok(0));
        };
        let first = &bufs[at];
        if first.len() > self.state.room() {
            ready!(self.as_mut().poll_write_out(cx))?;
        }
        let me = self.project();
        let state = me.state;
        if first.len() >= state.buf.capacity() {
            return me.inner.poll_write(cx, first);
        }
        let mut taken = 0;
        for buf in &bufs[at..] {
            if buf.len() > state.room() {
                break;
            }
            state.buf.extend_from_slice(buf);
            taken += buf.len();
        }
        Poll::Ready(Ok(taken))
    }
}

impl<W: AsyncWrite> AsyncWrite for BufWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.len() > self.state.room() {
            ready!(self.as_mut().poll_write_out(cx))?;
        }
        let me = self.project();
        if buf.len() >= me.state.buf.capacity() {
            return me.inner.poll_write(cx, buf);
        }
        me.state.buf.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_write_out(cx))?;
        self.get_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_write_out(cx))?;
        self.get_pin_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.inner.is_write_vectored() {
            return self.poll_write_pieces(cx, bufs);
        }
        // The same slice may be in there many times over, so the sum may not fit a `usize`.
        let total = bufs
            .iter()
            .fold(0, |sum: usize, buf| sum.saturating_add(buf.len()));
        if total > self.state.room() {
            ready!(self.as_mut().poll_write_out(cx))?;
        }
        let me = self.project();
        if total >= me.state.buf.capacity() {
            return me.inner.poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            me.state.buf.extend_from_slice(buf);
        }
        Poll::Ready(Ok(total))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

/// Passes on what is buffered, then seeks.
impl<W: AsyncWrite + AsyncSeek> AsyncSeek for BufWriter<W> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.project().state.seek = Seek::Requested(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let mut me = self.project();
        let state = me.state;
        if matches!(state.seek, Seek::Idle) {
            return me.inner.poll_complete(cx);
        }
        ready!(state.poll_write_out(me.inner.as_mut(), cx))?;
        if let Seek::Requested(position) = state.seek {
            // An earlier seek of the inner writer has to end before it takes another.
            ready!(me.inner.as_mut().poll_complete(cx))?;
            state.seek = Seek::Idle;
            me.inner.as_mut().start_seek(position)?;
            state.seek = Seek::Underway;
        }
        let result = ready!(me.inner.poll_complete(cx));
        state.seek = Seek::Idle;
        Poll::Ready(result)
    }
}

/// Straight through.
impl<W: AsyncWrite + AsyncRead> AsyncRead for BufWriter<W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_pin_mut().poll_read(cx, buf)
    }
}

/// Straight through.
impl<W: AsyncWrite + AsyncBufRead> AsyncBufRead for BufWriter<W> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_pin_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.get_pin_mut().consume(amt);
    }
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.state.buf.len(), self.state.buf.capacity());
        f.debug_struct("BufWriter")
            .field("writer", &self.inner)
            .field("buffer", &format_args!("{len}/{capacity}"))
            .field("written", &self.state.written)
            .finish()
    }
}
