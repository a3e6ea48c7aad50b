//! The macros that give a type the traits of `futures` and of the registry's tokio.
#![cfg(any(feature = "futures-io", feature = "tokio-io"))]

mod support;

use std::io::{self, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use gmp_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use support::{Call, Script, data};

/// A type of this crate that has gmp's traits by passing everything on.
struct Own<T>(T);

impl<T: AsyncRead + Unpin> AsyncRead for Own<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<T: AsyncBufRead + Unpin> AsyncBufRead for Own<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().0).poll_fill_buf(cx)
    }

    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        Pin::new(&mut self.0).consume(amt);
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Own<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

impl<T: AsyncSeek + Unpin> AsyncSeek for Own<T> {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.0).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.0).poll_complete(cx)
    }
}

const WRITTEN: [Call; 1] = [Call::Flush];

#[cfg(feature = "futures-io")]
mod futures_traits {
    use futures::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

    use super::*;

    gmp_io::impl_futures_io!(read: Own<T>, [T: gmp_io::AsyncRead + Unpin]);
    gmp_io::impl_futures_io!(buf_read: Own<T>, [T: gmp_io::AsyncBufRead + Unpin]);
    gmp_io::impl_futures_io!(write: Own<T>, [T: gmp_io::AsyncWrite + Unpin]);

    #[test]
    fn futures_methods_work() {
        support::block_on(async {
            let mut reader = Own(&b"one\ntwo"[..]);
            let mut line = String::new();
            reader.read_line(&mut line).await.unwrap();
            assert_eq!(line, "one\n");
            let mut rest = [0; 3];
            reader.read_exact(&mut rest).await.unwrap();
            assert_eq!(&rest, b"two");

            let mut writer = Own(Script::reading([data("x")]).vectored());
            assert_eq!(writer.read(&mut rest).await.unwrap(), 1);
            writer.write_all(b"a").await.unwrap();
            let bufs = [IoSlice::new(b"b"), IoSlice::new(b"c")];
            assert_eq!(writer.write_vectored(&bufs).await.unwrap(), 2);
            writer.flush().await.unwrap();
            writer.close().await.unwrap();
            assert_eq!(writer.0.written, b"abc");
            assert_eq!(writer.0.calls[2], Call::WriteVectored(vec![1, 1]));
            assert_eq!(writer.0.calls[3..], [WRITTEN[0].clone(), Call::Shutdown]);
        });
    }
}

#[cfg(feature = "tokio-io")]
mod tokio_traits {
    use std::io::Cursor;
    use std::mem::MaybeUninit;

    use gmp_io::tokio_traits as tokio;

    use super::*;

    gmp_io::impl_tokio_io!(read: Own<T>, [T: gmp_io::AsyncRead + Unpin]);
    gmp_io::impl_tokio_io!(buf_read: Own<T>, [T: gmp_io::AsyncBufRead + Unpin]);
    gmp_io::impl_tokio_io!(write: Own<T>, [T: gmp_io::AsyncWrite + Unpin]);
    gmp_io::impl_tokio_io!(seek: Own<T>, [T: gmp_io::AsyncSeek + Unpin]);

    /// Initializes a part, fills less of it, and tells how much it found initialized.
    struct Initializing(usize);

    impl AsyncRead for Initializing {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.0 = buf.initialized().len();
            buf.initialize_unfilled_to(4);
            buf.put_slice(b"ab");
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn what_is_initialized_is_known_on_both_sides() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut storage = [MaybeUninit::uninit(); 8];
        let mut buf = tokio::ReadBuf::uninit(&mut storage);
        let mut reader = Own(Initializing(99));
        for (round, known) in [0, 2].into_iter().enumerate() {
            let poll = tokio::AsyncRead::poll_read(Pin::new(&mut reader), &mut cx, &mut buf);
            assert!(matches!(poll, Poll::Ready(Ok(()))));
            assert_eq!(reader.0.0, known);
            assert_eq!(buf.filled().len(), 2 * (round + 1));
            assert_eq!(buf.initialized().len(), 2 * (round + 1) + 2);
        }
        assert_eq!(buf.filled(), b"abab");
    }

    #[test]
    fn everything_else_is_passed_on() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut writer = Own(Script::default().vectored());
        assert!(tokio::AsyncWrite::is_write_vectored(&writer));
        let mut pinned = Pin::new(&mut writer);
        let bufs = [IoSlice::new(b"b"), IoSlice::new(b"c")];
        assert!(tokio::AsyncWrite::poll_write(pinned.as_mut(), &mut cx, b"a").is_ready());
        assert!(tokio::AsyncWrite::poll_write_vectored(pinned.as_mut(), &mut cx, &bufs).is_ready());
        assert!(tokio::AsyncWrite::poll_flush(pinned.as_mut(), &mut cx).is_ready());
        assert!(tokio::AsyncWrite::poll_shutdown(pinned, &mut cx).is_ready());
        assert_eq!(writer.0.written, b"abc");
        assert_eq!(writer.0.calls[2..], [WRITTEN[0].clone(), Call::Shutdown]);

        let mut cursor = Own(Cursor::new(b"abc"));
        let mut pinned = Pin::new(&mut cursor);
        tokio::AsyncSeek::start_seek(pinned.as_mut(), SeekFrom::End(-2)).unwrap();
        let position = tokio::AsyncSeek::poll_complete(pinned.as_mut(), &mut cx);
        assert!(matches!(position, Poll::Ready(Ok(1))));
        let filled = tokio::AsyncBufRead::poll_fill_buf(pinned.as_mut(), &mut cx);
        assert!(matches!(filled, Poll::Ready(Ok(b"bc"))));
        tokio::AsyncBufRead::consume(pinned, 1);
        assert_eq!(cursor.0.position(), 2);
    }
}
