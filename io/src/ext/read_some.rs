//! `read`, `read_buf`, `read_exact`.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use pin_project_lite::pin_project;

use crate::util::is_interrupted;
use crate::{AsyncRead, ReadBuf};

pin_project! {
    /// Future of [`read`](crate::AsyncReadExt::read).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Read<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> Read<'a, R> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut [u8]) -> Self {
        Read {
            reader,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for Read<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let me = self.project();
        let mut buf = ReadBuf::new(me.buf);
        ready!(Pin::new(&mut **me.reader).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

pin_project! {
    /// Future of [`read_buf`](crate::AsyncReadExt::read_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadIntoBuf<'a, R: ?Sized, B: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized, B: ?Sized> ReadIntoBuf<'a, R, B> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut B) -> Self {
        ReadIntoBuf {
            reader,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<R, B> Future for ReadIntoBuf<'_, R, B>
where
    R: AsyncRead + Unpin + ?Sized,
    B: BufMut + ?Sized,
{
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let me = self.project();
        if !me.buf.has_remaining_mut() {
            return Poll::Ready(Ok(0));
        }
        let chunk = me.buf.chunk_mut();
        // SAFETY: a `ReadBuf` never makes a byte uninitialized (its third invariant).
        let chunk = unsafe { chunk.as_uninit_slice_mut() };
        let mut buf = ReadBuf::uninit(chunk);
        let address = buf.initialized().as_ptr();
        ready!(Pin::new(&mut **me.reader).poll_read(cx, &mut buf))?;
        assert_eq!(
            buf.initialized().as_ptr(),
            address,
            "the reader exchanged the buffer it was given"
        );
        let len = buf.filled().len();
        // SAFETY: the first `len` bytes of the chunk are filled, so they are initialized: `buf` is
        // the chunk (just checked).
        unsafe { me.buf.advance_mut(len) };
        Poll::Ready(Ok(len))
    }
}

pin_project! {
    /// Future of [`read_exact`](crate::AsyncReadExt::read_exact).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadExact<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: ReadBuf<'a>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadExact<'a, R> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut [u8]) -> Self {
        ReadExact {
            reader,
            buf: ReadBuf::new(buf),
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadExact<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let me = self.project();
        let buf = me.buf;
        while buf.remaining() > 0 {
            let room = buf.remaining();
            match ready!(Pin::new(&mut **me.reader).poll_read(cx, buf)) {
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
                Ok(()) if buf.remaining() == room => {
                    let end = io::ErrorKind::UnexpectedEof;
                    return Poll::Ready(Err(io::Error::new(end, "early eof")));
                }
                Ok(()) => {}
            }
        }
        Poll::Ready(Ok(buf.capacity()))
    }
}
