//! What the tests share: scripted streams, counting wakers, one poll at a time.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    futures::executor::block_on(future)
}

/// What one poll of a read does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Data(Vec<u8>),
    Fail(ErrorKind),
    /// Waits, and wakes the task at once.
    Wait,
    /// Waits, and never wakes anybody.
    Hang,
    End,
}

/// What one poll of a write does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    UpTo(usize),
    Fail(ErrorKind),
    Wait,
    Hang,
}

/// What a script saw, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write(usize),
    WriteVectored(Vec<usize>),
    Flush,
    Shutdown,
}

/// A stream that plays a script. When the script is over it is at its end, and takes everything.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) reads: VecDeque<Read>,
    pub(crate) writes: VecDeque<Write>,
    pub(crate) written: Vec<u8>,
    pub(crate) calls: Vec<Call>,
    pub(crate) is_vectored: bool,
}

impl Script {
    pub(crate) fn reading(reads: impl IntoIterator<Item = Read>) -> Script {
        Script {
            reads: reads.into_iter().collect(),
            ..Script::default()
        }
    }

    pub(crate) fn writing(writes: impl IntoIterator<Item = Write>) -> Script {
        Script {
            writes: writes.into_iter().collect(),
            ..Script::default()
        }
    }

    pub(crate) fn vectored(self) -> Script {
        self.vectored_if(true)
    }

    pub(crate) fn vectored_if(mut self, is_vectored: bool) -> Script {
        self.is_vectored = is_vectored;
        self
    }

    /// How many bytes the next write takes of `len`.
    fn poll_take(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<usize>> {
        match self.writes.pop_front() {
            None => Poll::Ready(Ok(len)),
            Some(Write::UpTo(most)) => Poll::Ready(Ok(len.min(most))),
            Some(Write::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Write::Wait) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Write::Hang) => Poll::Pending,
        }
    }
}

pub(crate) fn data(bytes: impl AsRef<[u8]>) -> Read {
    Read::Data(bytes.as_ref().to_vec())
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.calls.push(Call::Read);
        match self.reads.pop_front() {
            None | Some(Read::End) => {}
            Some(Read::Data(mut bytes)) => {
                let rest = bytes.split_off(bytes.len().min(buf.remaining()));
                buf.put_slice(&bytes);
                if !rest.is_empty() {
                    self.reads.push_front(Read::Data(rest));
                }
            }
            Some(Read::Fail(kind)) => return Poll::Ready(Err(kind.into())),
            Some(Read::Wait) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Read::Hang) => return Poll::Pending,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls.push(Call::Write(buf.len()));
        let taken = self.poll_take(cx, buf.len());
        if let Poll::Ready(Ok(len)) = taken {
            self.written.extend_from_slice(&buf[..len]);
        }
        taken
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push(Call::Flush);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.calls.push(Call::Shutdown);
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let lens = bufs.iter().map(|buf| buf.len()).collect();
        self.calls.push(Call::WriteVectored(lens));
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.to_vec()).collect();
        let taken = self.poll_take(cx, all.len());
        if let Poll::Ready(Ok(len)) = taken {
            self.written.extend_from_slice(&all[..len]);
        }
        taken
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }
}

/// A waker that counts.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls once and drops the future: what a `select!` with another winner does.
pub(crate) fn poll_and_drop<F: Future>(future: F) -> Poll<F::Output> {
    poll_once(std::pin::pin!(future))
}

/// The only result that may come without waiting.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match poll_and_drop(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.expect_err("an error was expected").kind()
}

/// Where `f` panicked and with what, if it did.
pub(crate) fn panic_of(f: impl FnOnce()) -> Option<(String, String)> {
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::sync::Mutex;

    // The hook is one for the whole process.
    static HOOK: Mutex<()> = Mutex::new(());
    let _one_at_a_time = HOOK.lock().unwrap_or_else(|e| e.into_inner());
    let seen = Arc::new(Mutex::new(None));
    let thread = std::thread::current().id();
    let before = Arc::new(take_hook());
    set_hook({
        let (seen, before) = (seen.clone(), before.clone());
        Box::new(move |info| {
            if std::thread::current().id() != thread {
                return before(info);
            }
            let file = info.location().map(|at| at.file().to_owned());
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let text = text.map(str::to_owned);
            *seen.lock().unwrap() = file.zip(text);
        })
    });
    let result = catch_unwind(AssertUnwindSafe(f));
    drop(take_hook());
    set_hook(Box::new(move |info| before(info)));
    result.err()?;
    let seen = seen.lock().unwrap().take();
    Some(seen.expect("a panic with a text and a place"))
}
