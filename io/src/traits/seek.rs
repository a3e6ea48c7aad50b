//! `AsyncSeek`.

use std::io::{self, SeekFrom};
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Something with a position that can be moved.
///
/// What [`std::io::Seek`] is for threads, in two steps: one starts the move, the other waits for it.
/// The methods of [`AsyncSeekExt`](crate::AsyncSeekExt) are what programs await.
///
/// As `tokio::io::AsyncSeek`.
pub trait AsyncSeek {
    /// Starts to move the position.
    ///
    /// `Ok` means that the move is under way; [`poll_complete`](AsyncSeek::poll_complete) tells how
    /// it ended. Whether a position beyond the end is allowed is up to the implementation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Other`](io::ErrorKind::Other) may come back while an earlier move, or another
    /// operation, is still under way: wait with `poll_complete` before.
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()>;

    /// Waits for the move and returns the new position, counted from the start.
    ///
    /// The position is that of the last `start_seek`: what has been read or written since may or may
    /// not be in it, and if there was no `start_seek` it may be anything.
    ///
    /// # Errors
    ///
    /// A position before the start is an error.
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>>;
}

macro_rules! through_deref {
    ($pointer:ty) => {
        impl<T: ?Sized + AsyncSeek + Unpin> AsyncSeek for $pointer {
            fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
                Pin::new(&mut **self).start_seek(position)
            }

            fn poll_complete(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<u64>> {
                Pin::new(&mut **self).poll_complete(cx)
            }
        }
    };
}

through_deref!(Box<T>);
through_deref!(&mut T);

impl<P> AsyncSeek for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncSeek,
{
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.as_deref_mut().start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.as_deref_mut().poll_complete(cx)
    }
}

/// Moves at once.
impl<T: AsRef<[u8]> + Unpin> AsyncSeek for io::Cursor<T> {
    #[inline]
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        io::Seek::seek(&mut *self, position).map(drop)
    }

    #[inline]
    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position()))
    }
}
