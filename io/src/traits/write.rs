//! `AsyncWrite`.

use std::io::{self, IoSlice};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A destination for bytes.
///
/// What [`std::io::Write`] is for threads: where that blocks the thread, these methods return
/// `Pending` and see to it that the task is woken. Programs rarely call them themselves; the methods
/// of [`AsyncWriteExt`](crate::AsyncWriteExt) are what they await.
///
/// As `tokio::io::AsyncWrite`.
pub trait AsyncWrite {
    /// Tries to write the front of `buf`.
    ///
    /// * `Ready(Ok(n))`: the first `n` bytes were accepted, never more than there are. Zero means
    ///   that `buf` is empty or, usually, that nothing will be accepted any more.
    /// * `Pending`: nothing was accepted, and the task of `cx` is woken once it is worth trying again.
    /// * `Ready(Err(_))`: nothing was accepted, and the destination says why.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>>;

    /// Tries to pass on everything that has been accepted so far.
    ///
    /// `Pending` means that the task of `cx` is woken once it is worth trying again.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Tries to flush and then to end the stream in this direction.
    ///
    /// For a protocol that says good-bye (TLS, a half-closed TCP connection) this is the place. It
    /// includes [`poll_flush`](AsyncWrite::poll_flush), so there is no need to flush before. A
    /// wrapper shuts down what it wraps after its own part is done. Once it has returned
    /// `Ready(Ok(()))` nothing may be written any more; whether that panics or fails is up to the
    /// implementation. One that has nothing to end returns `Ready(Ok(()))`.
    ///
    /// # Errors
    ///
    /// What went wrong. The stream should be taken for broken: it may have ended or not, and
    /// whether another try makes sense depends on the type.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Tries to write the front of all `bufs` together.
    ///
    /// As [`poll_write`](AsyncWrite::poll_write) with the concatenation of `bufs`. Unless it is
    /// overridden it writes the first of them that is not empty; whoever overrides it should
    /// override [`is_write_vectored`](AsyncWrite::is_write_vectored) too.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty());
        self.poll_write(cx, first.map_or(&[], |buf| buf))
    }

    /// Whether [`poll_write_vectored`](AsyncWrite::poll_write_vectored) is better than copying the
    /// pieces together and calling [`poll_write`](AsyncWrite::poll_write).
    ///
    /// `false` unless it is overridden.
    fn is_write_vectored(&self) -> bool {
        false
    }
}

macro_rules! through_deref {
    ($pointer:ty) => {
        impl<T: ?Sized + AsyncWrite + Unpin> AsyncWrite for $pointer {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut **self).poll_write(cx, buf)
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).poll_shutdown(cx)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut **self).poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                (**self).is_write_vectored()
            }
        }
    };
}

through_deref!(Box<T>);
through_deref!(&mut T);

impl<P> AsyncWrite for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_deref_mut().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_deref_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        (**self).is_write_vectored()
    }
}

/// In memory: what `std::io::Write` does, at once.
macro_rules! through_std {
    ($memory:ty) => {
        impl AsyncWrite for $memory {
            #[inline]
            fn poll_write(
                mut self: Pin<&mut Self>,
                _cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(io::Write::write(&mut *self, buf))
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            #[inline]
            fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            #[inline]
            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                _cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(io::Write::write_vectored(&mut *self, bufs))
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                true
            }
        }
    };
}

through_std!(Vec<u8>);
through_std!(io::Cursor<&mut [u8]>);
through_std!(io::Cursor<&mut Vec<u8>>);
through_std!(io::Cursor<Vec<u8>>);
through_std!(io::Cursor<Box<[u8]>>);
