//! Pipes in memory: `duplex` and `simplex`.
//!
//! A [`Pipe`] is a bounded queue of bytes with a place for one waiting reader and one waiting writer.
//! A [`DuplexStream`] holds two of them behind locks, one for each direction; a [`SimplexStream`] is
//! one of them, plain, for whoever has it alone or behind the lock of [`split`](super::split).
//!
//! A waker is somebody else's code, whether it is cloned, woken or dropped, and may use the very pipe
//! it was left in. So nothing of that happens under a lock: an operation that cannot be done is
//! tried again with the clone in hand, and what it displaced or has to wake is handed out as
//! a [`Leftover`].

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use gmp_executor::coop;
use gmp_executor::seam::wake_all;
use gmp_executor::wait::{self, WaitReason};
use parking_lot::Mutex;

use super::halves::{AfterPoll, split_with};
use super::{ReadHalf, WriteHalf};
use crate::{AsyncRead, AsyncWrite, ReadBuf};

/// One end of a pipe of both directions; see [`duplex`].
///
/// When one end is dropped, the other one can still read what is in the pipe, and then is at its
/// end; its writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe), also those that wait for
/// room. [`shutdown`](crate::AsyncWriteExt::shutdown) closes one direction.
///
/// As `tokio::io::DuplexStream`.
#[derive(Debug)]
pub struct DuplexStream {
    incoming: Arc<Mutex<Pipe>>,
    outgoing: Arc<Mutex<Pipe>>,
}

/// A pipe of one direction as one value that can be read and written; see [`simplex`].
///
/// As `tokio::io::SimplexStream`.
#[derive(Debug)]
pub struct SimplexStream {
    pipe: Pipe,
    /// Whether wake-ups are left to the halves that `simplex` made; if so, those of the last poll
    /// are in `leftover`.
    leaves_wakes: bool,
    leftover: Leftover,
}

/// Makes a pipe of both directions: two ends, like a pair of connected sockets in memory.
///
/// `max_buf_size` bytes fit in each direction before a write waits.
///
/// As `tokio::io::duplex`.
///
/// # Panics
///
/// If `max_buf_size` is zero.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut client, mut server) = io::duplex(64);
/// client.write_all(b"hello").await.unwrap();
/// client.shutdown().await.unwrap();
/// let mut request = String::new();
/// server.read_to_string(&mut request).await.unwrap();
/// assert_eq!(request, "hello");
/// # });
/// ```
#[track_caller]
pub fn duplex(max_buf_size: usize) -> (DuplexStream, DuplexStream) {
    let one = Arc::new(Mutex::new(Pipe::new(max_buf_size)));
    let two = Arc::new(Mutex::new(Pipe::new(max_buf_size)));
    let near = DuplexStream {
        incoming: one.clone(),
        outgoing: two.clone(),
    };
    let far = DuplexStream {
        incoming: two,
        outgoing: one,
    };
    (near, far)
}

/// Makes a pipe of one direction, as a half that reads and a half that writes.
///
/// `max_buf_size` bytes fit in it before a write waits. To end it, shut the writing half down:
/// dropping a half does not. [`ReadHalf::unsplit`] makes a [`SimplexStream`] of the halves.
///
/// As `tokio::io::simplex`.
///
/// # Panics
///
/// If `max_buf_size` is zero.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut reader, mut writer) = io::simplex(64);
/// writer.write_all(b"one way").await.unwrap();
/// writer.shutdown().await.unwrap();
/// let mut text = String::new();
/// reader.read_to_string(&mut text).await.unwrap();
/// assert_eq!(text, "one way");
/// # });
/// ```
#[track_caller]
pub fn simplex(max_buf_size: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    let mut stream = SimplexStream::new_unsplit(max_buf_size);
    stream.leaves_wakes = true;
    let after_poll = AfterPoll {
        leftover: |stream: Pin<&mut SimplexStream>| mem::take(&mut stream.get_mut().leftover),
        unsplit: |stream: &mut SimplexStream| stream.leaves_wakes = false,
    };
    split_with(stream, Some(after_poll))
}

/// What an operation leaves to be done when no lock is held.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Leftover {
    wake: Option<Waker>,
    displaced: Option<Waker>,
}

impl Leftover {
    fn wake(waker: Option<Waker>) -> Leftover {
        Leftover {
            wake: waker,
            displaced: None,
        }
    }

    /// Wakes what is to be woken. A waker that panics stops nobody: the bytes have moved already.
    pub(super) fn settle(self) {
        wake_all(self.wake);
        drop(self.displaced);
    }
}

/// A bounded queue of bytes.
#[derive(Debug)]
struct Pipe {
    bytes: VecDeque<u8>,
    len_max: usize,
    /// No more bytes come in, and those inside can still be read.
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// One side of a pipe.
#[derive(Clone, Copy)]
enum Side {
    Reader,
    Writer,
}

impl Pipe {
    #[track_caller]
    fn new(len_max: usize) -> Pipe {
        assert!(len_max > 0, "`max_buf_size` must be greater than 0");
        Pipe {
            bytes: VecDeque::new(),
            len_max,
            is_closed: false,
            reader: None,
            writer: None,
        }
    }

    fn waker(&mut self, side: Side) -> &mut Option<Waker> {
        match side {
            Side::Reader => &mut self.reader,
            Side::Writer => &mut self.writer,
        }
    }

    /// Closes the pipe for good and says whom to tell: whoever waits on the other side than `by`.
    fn close(&mut self, by: Side) -> Leftover {
        self.is_closed = true;
        Leftover::wake(self.waker(by.other()).take())
    }

    /// Moves bytes out; says how many.
    fn read(&mut self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        if self.bytes.is_empty() && !self.is_closed && buf.remaining() > 0 {
            return Poll::Pending;
        }
        let (front, back) = self.bytes.as_slices();
        let front = &front[..front.len().min(buf.remaining())];
        buf.put_slice(front);
        let back = &back[..back.len().min(buf.remaining())];
        buf.put_slice(back);
        let len = front.len() + back.len();
        self.bytes.drain(..len);
        Poll::Ready(Ok(len))
    }

    /// Moves bytes in; says how many.
    fn write(&mut self, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = self.len_max - self.bytes.len();
        let mut left = room;
        for buf in bufs {
            let buf = &buf[..buf.len().min(left)];
            self.bytes.extend(buf);
            left -= buf.len();
        }
        if room == 0 && bufs.iter().any(|buf| !buf.is_empty()) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(room - left))
    }

    /// One try of `operation` from `side`, with the clone of the task's waker or before there is one.
    fn attempt(
        &mut self,
        side: Side,
        cx: &Context<'_>,
        waker: &mut Option<Waker>,
        operation: &mut impl FnMut(&mut Pipe) -> Poll<io::Result<usize>>,
    ) -> Attempt {
        let result = operation(self);
        let leftover = match &result {
            Poll::Ready(Ok(len)) if *len > 0 => Leftover::wake(self.waker(side.other()).take()),
            Poll::Ready(_) => Leftover::default(),
            Poll::Pending => {
                let slot = self.waker(side);
                if slot.as_ref().is_some_and(|slot| slot.will_wake(cx.waker())) {
                    Leftover::default()
                } else if waker.is_some() {
                    mem::swap(slot, waker);
                    Leftover {
                        wake: None,
                        displaced: waker.take(),
                    }
                } else {
                    return Attempt::NeedsWaker;
                }
            }
        };
        Attempt::Done(result, leftover)
    }
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Reader => Side::Writer,
            Side::Writer => Side::Reader,
        }
    }
}

/// What came out of one try.
enum Attempt {
    Done(Poll<io::Result<usize>>, Leftover),
    /// It has to wait, and nothing has happened yet: try again with a clone of the task's waker.
    NeedsWaker,
}

/// Runs an operation of `side` as a leaf: with budget, wait reason and waker.
///
/// `attempt` makes one try, under whatever lock there is, and lets go of the lock.
fn poll_leaf(
    cx: &mut Context<'_>,
    mut attempt: impl FnMut(&Context<'_>, &mut Option<Waker>) -> Attempt,
    settle: impl FnOnce(Leftover),
) -> Poll<io::Result<usize>> {
    let coop = ready!(coop::poll_proceed(cx));
    let mut waker = None;
    let (result, leftover) = loop {
        match attempt(cx, &mut waker) {
            Attempt::Done(result, leftover) => break (result, leftover),
            Attempt::NeedsWaker => waker = Some(cx.waker().clone()),
        }
    };
    if result.is_ready() {
        coop.made_progress();
    } else {
        wait::record(WaitReason::Duplex);
    }
    settle(leftover);
    result
}

fn poll_shared(
    pipe: &Mutex<Pipe>,
    side: Side,
    cx: &mut Context<'_>,
    mut operation: impl FnMut(&mut Pipe) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    let attempt = |cx: &Context<'_>, waker: &mut Option<Waker>| {
        pipe.lock().attempt(side, cx, waker, &mut operation)
    };
    poll_leaf(cx, attempt, Leftover::settle)
}

impl AsyncRead for DuplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_shared(&self.incoming, Side::Reader, cx, |pipe| pipe.read(buf)).map_ok(drop)
    }
}

impl AsyncWrite for DuplexStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let leftover = self.outgoing.lock().close(Side::Writer);
        leftover.settle();
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_shared(&self.outgoing, Side::Writer, cx, |pipe| pipe.write(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

impl Drop for DuplexStream {
    fn drop(&mut self) {
        let reader = self.outgoing.lock().close(Side::Writer);
        let writer = self.incoming.lock().close(Side::Reader);
        reader.settle();
        writer.settle();
    }
}

impl SimplexStream {
    /// Makes a pipe of one direction as one value; [`simplex`] makes it as two halves.
    ///
    /// `max_buf_size` bytes fit in it before a write waits.
    ///
    /// # Panics
    ///
    /// If `max_buf_size` is zero.
    #[track_caller]
    pub fn new_unsplit(max_buf_size: usize) -> SimplexStream {
        SimplexStream {
            pipe: Pipe::new(max_buf_size),
            leaves_wakes: false,
            leftover: Leftover::default(),
        }
    }

    fn poll_pipe(
        &mut self,
        side: Side,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&mut Pipe) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let pipe = &mut self.pipe;
        let attempt = |cx: &Context<'_>, waker: &mut Option<Waker>| {
            pipe.attempt(side, cx, waker, &mut operation)
        };
        let mut kept = Leftover::default();
        let result = poll_leaf(cx, attempt, |leftover| kept = leftover);
        self.settle(kept);
        result
    }

    fn settle(&mut self, leftover: Leftover) {
        if self.leaves_wakes {
            self.leftover = leftover;
        } else {
            leftover.settle();
        }
    }
}

impl AsyncRead for SimplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut()
            .poll_pipe(Side::Reader, cx, |pipe| pipe.read(buf))
            .map_ok(drop)
    }
}

impl AsyncWrite for SimplexStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let leftover = self.pipe.close(Side::Writer);
        self.settle(leftover);
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_pipe(Side::Writer, cx, |pipe| pipe.write(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
