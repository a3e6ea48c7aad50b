//! `read_until`, `read_line`, `fill_buf`.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::mem;
use std::pin::Pin;
use std::slice;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::AsyncBufRead;
use crate::util::is_interrupted;

/// Appends to `buf` what `reader` has up to `delimiter`, the delimiter too, or up to the end.
///
/// `read` counts the bytes over several polls; it starts over when the poll is done.
pub(crate) fn poll_read_until<R>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    buf: &mut Vec<u8>,
    read: &mut usize,
) -> Poll<io::Result<usize>>
where
    R: AsyncBufRead + ?Sized,
{
    loop {
        let available = match ready!(reader.as_mut().poll_fill_buf(cx)) {
            Err(e) if is_interrupted(&e) => continue,
            available => available?,
        };
        let found = memchr::memchr(delimiter, available);
        let len = found.map_or(available.len(), |at| at + 1);
        buf.extend_from_slice(&available[..len]);
        reader.as_mut().consume(len);
        *read += len;
        if found.is_some() || len == 0 {
            return Poll::Ready(Ok(mem::take(read)));
        }
    }
}

/// What becomes of the bytes that were read before an error.
#[derive(Clone, Copy)]
pub(super) enum OnError {
    /// They stay, if they are UTF-8.
    Keep,
    /// They go: the string is as it was.
    Restore,
}

/// Makes `output` of `bytes`, of which the last `read` were appended, if they are UTF-8; else of what
/// it was before.
pub(super) fn put_back(
    output: &mut String,
    bytes: Vec<u8>,
    read: usize,
    result: io::Result<usize>,
    on_error: OnError,
) -> io::Result<usize> {
    let before = bytes.len() - read;
    match String::from_utf8(bytes) {
        Ok(string) => {
            *output = string;
            if result.is_err() && matches!(on_error, OnError::Restore) {
                output.truncate(before);
            }
            result
        }
        Err(e) => {
            let reason = e.utf8_error();
            let mut bytes = e.into_bytes();
            bytes.truncate(before);
            *output = String::from_utf8(bytes).expect("these bytes were a string before");
            // The reader's own error comes first.
            result.and(Err(io::Error::new(io::ErrorKind::InvalidData, reason)))
        }
    }
}

pin_project! {
    /// Future of [`read_until`](crate::AsyncBufReadExt::read_until).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadUntil<'a, R: ?Sized> {
        reader: &'a mut R,
        delimiter: u8,
        buf: &'a mut Vec<u8>,
        read: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadUntil<'a, R> {
    pub(super) fn new(reader: &'a mut R, delimiter: u8, buf: &'a mut Vec<u8>) -> Self {
        ReadUntil {
            reader,
            delimiter,
            buf,
            read: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadUntil<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let reader = Pin::new(&mut **me.reader);
        poll_read_until(reader, cx, *me.delimiter, me.buf, me.read)
    }
}

pin_project! {
    /// Future of [`read_line`](crate::AsyncBufReadExt::read_line).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadLine<'a, R: ?Sized> {
        reader: &'a mut R,
        // Empty while the future reads: its bytes are in `bytes`, until they are known to be UTF-8.
        output: &'a mut String,
        bytes: Vec<u8>,
        read: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadLine<'a, R> {
    pub(super) fn new(reader: &'a mut R, output: &'a mut String) -> Self {
        ReadLine {
            reader,
            bytes: mem::take(output).into_bytes(),
            output,
            read: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLine<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let reader = Pin::new(&mut **me.reader);
        let result = ready!(poll_read_until(reader, cx, b'\n', me.bytes, me.read));
        // On success the count is in the result and `read` starts over.
        let read = result.as_ref().map_or(*me.read, |read| *read);
        let bytes = mem::take(me.bytes);
        *me.read = 0;
        Poll::Ready(put_back(me.output, bytes, read, result, OnError::Keep))
    }
}

pin_project! {
    /// Future of [`fill_buf`](crate::AsyncBufReadExt::fill_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct FillBuf<'a, R: ?Sized> {
        // `None` once the future is done.
        reader: Option<&'a mut R>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> FillBuf<'a, R> {
    pub(super) fn new(reader: &'a mut R) -> Self {
        FillBuf {
            reader: Some(reader),
            _pinned: PhantomPinned,
        }
    }
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let reader = me.reader.take().expect("Polled after completion.");
        match Pin::new(&mut *reader).poll_fill_buf(cx) {
            Poll::Ready(Ok(bytes)) => {
                let (start, len) = (bytes.as_ptr(), bytes.len());
                // SAFETY: the reader lends the bytes for as long as it is borrowed, which is `'a`:
                // the only reference to it was taken out of this future and goes no further, so
                // nobody can use the reader while the slice lives. (The borrow checker cannot see
                // that the other arms do not hold on to the slice.)
                Poll::Ready(Ok(unsafe { slice::from_raw_parts(start, len) }))
            }
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Pending => {
                *me.reader = Some(reader);
                Poll::Pending
            }
        }
    }
}
