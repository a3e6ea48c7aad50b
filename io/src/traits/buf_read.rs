//! `AsyncBufRead`.

use std::io;
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::AsyncRead;

/// A source of bytes with a buffer that can be looked into.
///
/// What [`std::io::BufRead`] is for threads. The methods of
/// [`AsyncBufReadExt`](crate::AsyncBufReadExt) are what programs await.
///
/// As `tokio::io::AsyncBufRead`.
pub trait AsyncBufRead: AsyncRead {
    /// Tries to return what is in the buffer, and reads into it first when it is empty.
    ///
    /// * `Ready(Ok(bytes))`: the bytes stay in the buffer, and are returned again, until
    ///   [`consume`](AsyncBufRead::consume) takes them out. No bytes mean that the source is at its end.
    /// * `Pending`: the buffer is empty and the task of `cx` is woken once it is worth trying again.
    /// * `Ready(Err(_))`: the source failed.
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>;

    /// Takes `amt` bytes out of the buffer: they have been read.
    ///
    /// `amt` must be at most the number of bytes that `poll_fill_buf` returned last. Nothing is read
    /// from the source here.
    fn consume(self: Pin<&mut Self>, amt: usize);
}

macro_rules! through_deref {
    ($pointer:ty) => {
        impl<T: ?Sized + AsyncBufRead + Unpin> AsyncBufRead for $pointer {
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                Pin::new(&mut **self.get_mut()).poll_fill_buf(cx)
            }

            fn consume(mut self: Pin<&mut Self>, amt: usize) {
                Pin::new(&mut **self).consume(amt);
            }
        }
    };
}

through_deref!(Box<T>);
through_deref!(&mut T);

impl<P> AsyncBufRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncBufRead,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.as_deref_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.as_deref_mut().consume(amt);
    }
}

/// The slice is its own buffer.
impl AsyncBufRead for &[u8] {
    #[inline]
    fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(*self))
    }

    #[inline]
    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        *self = &self[amt..];
    }
}

/// The bytes from the cursor's position on are the buffer.
impl<T: AsRef<[u8]> + Unpin> AsyncBufRead for io::Cursor<T> {
    #[inline]
    fn poll_fill_buf(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(io::BufRead::fill_buf(self.get_mut()))
    }

    #[inline]
    fn consume(self: Pin<&mut Self>, amt: usize) {
        io::BufRead::consume(self.get_mut(), amt);
    }
}
