//! `split`: one stream as a reading and a writing half that may live in different tasks.
//!
//! The halves share the stream behind a lock that is held for the time of one poll. Only one half
//! can be polled at a time; the other one's thread waits for that long.
//!
//! A poll of a [`SimplexStream`](super::SimplexStream) wakes the other half, and that waker may poll
//! the other half then and there, which would wait for the lock for ever. So for
//! [`simplex`](super::simplex) the stream keeps what is to be woken until the lock is free:
//! [`AfterPoll`] says how to get at it.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use super::pipe::Leftover;
use crate::{AsyncRead, AsyncWrite, ReadBuf};

/// The half that reads; see [`split`].
pub struct ReadHalf<T> {
    inner: Arc<Inner<T>>,
}

/// The half that writes; see [`split`].
pub struct WriteHalf<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    /// Pinned for as long as there is a half: it leaves only in `unsplit`, which wants it `Unpin`.
    stream: Mutex<T>,
    is_write_vectored: bool,
    after_poll: Option<AfterPoll<T>>,
}

/// For a stream that leaves the wake-ups of its polls to the halves.
pub(super) struct AfterPoll<T> {
    /// What the last poll left.
    pub(super) leftover: fn(Pin<&mut T>) -> Leftover,
    /// The stream is on its own again.
    pub(super) unsplit: fn(&mut T),
}

/// Splits a stream in two halves.
///
/// Works for anything; streams that know how to be split (sockets) have methods of their own that
/// need no lock. [`ReadHalf::unsplit`] puts the halves together again. When both are gone the stream
/// is dropped; dropping one does not close its direction.
///
/// As `tokio::io::split`.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (near, mut far) = io::duplex(16);
/// let (mut reader, mut writer) = io::split(near);
/// writer.write_all(b"ping").await.unwrap();
/// far.write_all(b"pong").await.unwrap();
/// let mut buf = [0; 4];
/// reader.read_exact(&mut buf).await.unwrap();
/// assert_eq!(&buf, b"pong");
/// let near = reader.unsplit(writer);
/// # drop(near);
/// # });
/// ```
pub fn split<T>(stream: T) -> (ReadHalf<T>, WriteHalf<T>)
where
    T: AsyncRead + AsyncWrite,
{
    split_with(stream, None)
}

pub(super) fn split_with<T: AsyncWrite>(
    stream: T,
    after_poll: Option<AfterPoll<T>>,
) -> (ReadHalf<T>, WriteHalf<T>) {
    let inner = Arc::new(Inner {
        is_write_vectored: stream.is_write_vectored(),
        stream: Mutex::new(stream),
        after_poll,
    });
    let reader = ReadHalf {
        inner: inner.clone(),
    };
    (reader, WriteHalf { inner })
}

impl<T> Inner<T> {
    /// Runs one poll of the stream.
    fn with_stream<R>(&self, poll: impl FnOnce(Pin<&mut T>) -> R) -> R {
        let mut guard = self
            .stream
            .lock()
            .expect("no earlier poll of the stream panicked");
        // SAFETY: the stream stays where it is until it is dropped, unless it is `Unpin`; see the
        // field. Nobody else makes a `&mut T` of it.
        let mut stream = unsafe { Pin::new_unchecked(&mut *guard) };
        let result = poll(stream.as_mut());
        if let Some(after) = &self.after_poll {
            let leftover = (after.leftover)(stream);
            drop(guard);
            leftover.settle();
        }
        result
    }
}

impl<T> ReadHalf<T> {
    /// Whether `other` is the other half of the same stream.
    pub fn is_pair_of(&self, other: &WriteHalf<T>) -> bool {
        other.is_pair_of(self)
    }

    /// Puts the halves together again.
    ///
    /// # Panics
    ///
    /// If they are not halves of the same stream, which [`is_pair_of`](ReadHalf::is_pair_of) tells
    /// before, or if a poll of the stream panicked.
    #[track_caller]
    pub fn unsplit(self, wr: WriteHalf<T>) -> T
    where
        T: Unpin,
    {
        assert!(
            self.is_pair_of(&wr),
            "Unrelated `split::Write` passed to `split::Read::unsplit`."
        );
        drop(wr);
        let inner = Arc::into_inner(self.inner).expect("a stream has two halves");
        let mut stream = inner
            .stream
            .into_inner()
            .expect("no earlier poll of the stream panicked");
        if let Some(after) = inner.after_poll {
            (after.unsplit)(&mut stream);
        }
        stream
    }
}

impl<T> WriteHalf<T> {
    /// Whether `other` is the other half of the same stream.
    pub fn is_pair_of(&self, other: &ReadHalf<T>) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl<T: AsyncRead> AsyncRead for ReadHalf<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.with_stream(|stream| stream.poll_read(cx, buf))
    }
}

impl<T: AsyncWrite> AsyncWrite for WriteHalf<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner.with_stream(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.with_stream(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.with_stream(|stream| stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner
            .with_stream(|stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored
    }
}

impl<T: fmt::Debug> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the stream: that would need the lock.
        f.debug_struct("ReadHalf").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteHalf").finish_non_exhaustive()
    }
}
