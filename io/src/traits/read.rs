//! `AsyncRead`.

use std::io;
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::ReadBuf;

/// A source of bytes.
///
/// What [`std::io::Read`] is for threads: where that blocks the thread, `poll_read` returns
/// `Pending` and sees to it that the task is woken. Programs rarely call it themselves; the methods
/// of [`AsyncReadExt`](crate::AsyncReadExt) are what they await.
///
/// As `tokio::io::AsyncRead`.
pub trait AsyncRead {
    /// Tries to read into the unfilled part of `buf`.
    ///
    /// * `Ready(Ok(()))`: what was read has been appended to the filled part. When that has not
    ///   grown, the source is at its end, or `buf` had no room.
    /// * `Pending`: nothing was read, and the task of `cx` is woken once it is worth trying again.
    /// * `Ready(Err(_))`: nothing was read, and the source says why.
    ///
    /// An implementation must not change what is filled already, and must not shrink the filled part.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;
}

macro_rules! through_deref {
    ($(#[$attr:meta])* $pointer:ty) => {
        impl<T: ?Sized + AsyncRead + Unpin> AsyncRead for $pointer {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut **self).poll_read(cx, buf)
            }
        }
    };
}

through_deref!(Box<T>);
through_deref!(&mut T);

impl<P> AsyncRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_read(cx, buf)
    }
}

/// Reads from the front of the slice, which then begins behind what was read.
impl AsyncRead for &[u8] {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (head, tail) = self.split_at(self.len().min(buf.remaining()));
        buf.put_slice(head);
        *self = tail;
        Poll::Ready(Ok(()))
    }
}

/// Reads from the cursor's position; a position beyond the end is the end.
impl<T: AsRef<[u8]> + Unpin> AsyncRead for io::Cursor<T> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = self.get_ref().as_ref();
        let start = usize::try_from(self.position()).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let len = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..len]);
        let position = self.position() + len as u64;
        self.set_position(position);
        Poll::Ready(Ok(()))
    }
}
