//! `write`, `write_vectored`, `write_buf`, `write_all`, `write_all_buf`, `flush`, `shutdown`.

use std::future::Future;
use std::io::{self, IoSlice};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use pin_project_lite::pin_project;

use crate::AsyncWrite;
use crate::util::is_interrupted;

/// How many pieces of a `Buf` one vectored write takes. Linux takes up to 1,024 at a time; more than
/// these cost stack and hardly ever occur.
const PIECES_MAX: usize = 64;

pin_project! {
    /// Future of [`write`](crate::AsyncWriteExt::write).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Write<'a, W: ?Sized> {
        writer: &'a mut W,
        buf: &'a [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Write<'a, W> {
    pub(super) fn new(writer: &'a mut W, buf: &'a [u8]) -> Self {
        Write {
            writer,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Write<'_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        Pin::new(&mut **me.writer).poll_write(cx, me.buf)
    }
}

pin_project! {
    /// Future of [`write_vectored`](crate::AsyncWriteExt::write_vectored).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteVectored<'a, 'b, W: ?Sized> {
        writer: &'a mut W,
        bufs: &'a [IoSlice<'b>],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, 'b, W: ?Sized> WriteVectored<'a, 'b, W> {
    pub(super) fn new(writer: &'a mut W, bufs: &'a [IoSlice<'b>]) -> Self {
        WriteVectored {
            writer,
            bufs,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteVectored<'_, '_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        Pin::new(&mut **me.writer).poll_write_vectored(cx, me.bufs)
    }
}

/// Writes once from `buf`, as many of its pieces as the writer takes together, and advances it.
fn poll_write_from<W, B>(
    writer: &mut W,
    buf: &mut B,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>>
where
    W: AsyncWrite + Unpin,
    B: Buf,
{
    let mut writer = Pin::new(writer);
    let written = if writer.is_write_vectored() {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let count = buf.chunks_vectored(&mut pieces);
        ready!(writer.as_mut().poll_write_vectored(cx, &pieces[..count]))?
    } else {
        ready!(writer.as_mut().poll_write(cx, buf.chunk()))?
    };
    buf.advance(written);
    Poll::Ready(Ok(written))
}

pin_project! {
    /// Future of [`write_buf`](crate::AsyncWriteExt::write_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteBuf<'a, W, B> {
        writer: &'a mut W,
        buf: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W, B> WriteBuf<'a, W, B> {
    pub(super) fn new(writer: &'a mut W, buf: &'a mut B) -> Self {
        WriteBuf {
            writer,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteBuf<'_, W, B> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        if !me.buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        poll_write_from(&mut **me.writer, &mut **me.buf, cx)
    }
}

pin_project! {
    /// Future of [`write_all_buf`](crate::AsyncWriteExt::write_all_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteAllBuf<'a, W, B> {
        writer: &'a mut W,
        buf: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W, B> WriteAllBuf<'a, W, B> {
    pub(super) fn new(writer: &'a mut W, buf: &'a mut B) -> Self {
        WriteAllBuf {
            writer,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteAllBuf<'_, W, B> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        while me.buf.has_remaining() {
            match ready!(poll_write_from(&mut **me.writer, &mut **me.buf, cx)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

pin_project! {
    /// Future of [`write_all`](crate::AsyncWriteExt::write_all).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteAll<'a, W: ?Sized> {
        writer: &'a mut W,
        // What is left to write.
        buf: &'a [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> WriteAll<'a, W> {
    pub(super) fn new(writer: &'a mut W, buf: &'a [u8]) -> Self {
        WriteAll {
            writer,
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        while !me.buf.is_empty() {
            match ready!(Pin::new(&mut **me.writer).poll_write(cx, me.buf)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => *me.buf = &me.buf[written..],
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

pin_project! {
    /// Future of [`flush`](crate::AsyncWriteExt::flush).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Flush<'a, W: ?Sized> {
        writer: &'a mut W,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Flush<'a, W> {
    pub(super) fn new(writer: &'a mut W) -> Self {
        Flush {
            writer,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Flush<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut **self.project().writer).poll_flush(cx)
    }
}

pin_project! {
    /// Future of [`shutdown`](crate::AsyncWriteExt::shutdown).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Shutdown<'a, W: ?Sized> {
        writer: &'a mut W,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Shutdown<'a, W> {
    pub(super) fn new(writer: &'a mut W) -> Self {
        Shutdown {
            writer,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Shutdown<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut **self.project().writer).poll_shutdown(cx)
    }
}
