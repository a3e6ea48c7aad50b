//! `AsyncSeekExt`.

use std::future::Future;
use std::io::{self, SeekFrom};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::AsyncSeek;

/// The methods that everything with a position has.
///
/// As `tokio::io::AsyncSeekExt`.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use std::io::Cursor;
///
/// use gmp::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
///
/// # futures::executor::block_on(async {
/// let mut cursor = Cursor::new(b"hello");
/// assert_eq!(cursor.seek(SeekFrom::End(-2)).await.unwrap(), 3);
/// assert_eq!(cursor.read_u8().await.unwrap(), b'l');
/// assert_eq!(cursor.stream_position().await.unwrap(), 4);
/// # });
/// ```
pub trait AsyncSeekExt: AsyncSeek {
    /// Moves to `pos` and returns the new position, counted from the start.
    ///
    /// It waits for an earlier move to end before it starts its own. Whether a position beyond the
    /// end is allowed is up to the type.
    ///
    /// # Errors
    ///
    /// A position before the start, and whatever goes wrong underneath.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the move under way: the position is one of the two.
    fn seek(&mut self, pos: SeekFrom) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        Seek {
            seeker: self,
            request: Some(pos),
            _pinned: PhantomPinned,
        }
    }

    /// Moves to the start: `seek(SeekFrom::Start(0))`.
    fn rewind(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Start(0))
    }

    /// Returns the position: `seek(SeekFrom::Current(0))`.
    fn stream_position(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Current(0))
    }
}

impl<S: AsyncSeek + ?Sized> AsyncSeekExt for S {}

pin_project! {
    /// Future of [`seek`](AsyncSeekExt::seek).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Seek<'a, S: ?Sized> {
        seeker: &'a mut S,
        // `None` once the move has started.
        request: Option<SeekFrom>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<S: AsyncSeek + Unpin + ?Sized> Future for Seek<'_, S> {
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let mut seeker = Pin::new(&mut **me.seeker);
        if let Some(position) = *me.request {
            ready!(seeker.as_mut().poll_complete(cx))?;
            seeker.as_mut().start_seek(position)?;
            *me.request = None;
        }
        seeker.poll_complete(cx)
    }
}
