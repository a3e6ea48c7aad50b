//! What the tests of the sockets share.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use gmp_executor::coop::unconstrained;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

pub mod rt;

/// Far above what any test needs.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a test on a `current_thread` runtime and then on one with two Ps; a test that hangs ends the
/// process.
pub fn run<F: Future>(test: impl Fn() -> F) {
    let _watchdog = Watchdog::new();
    for runtime in [rt::current_thread(), rt::multi_thread()] {
        runtime.block_on(test());
    }
}

/// As [`run`], but no operation is denied because the budget is spent or the monitor wants the P: for
/// tests that tell what is ready from what is not.
pub fn run_unconstrained<F: Future>(test: impl Fn() -> F) {
    run(|| unconstrained(test()));
}

/// As [`run_unconstrained`], on a `current_thread` runtime alone: for tests that say when the netpoll
/// is polled.
pub fn run_current_thread<F: Future>(test: impl Fn() -> F) {
    let _watchdog = Watchdog::new();
    rt::current_thread().block_on(unconstrained(test()));
}

/// Ends the process unless it is dropped in time.
pub struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

impl Watchdog {
    pub fn new() -> Watchdog {
        let (alive, dropped) = mpsc::channel();
        let name = thread::current().name().unwrap_or("?").to_owned();
        thread::spawn(move || {
            if dropped.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} hangs");
                std::process::abort();
            }
        });
        Watchdog(alive)
    }
}

/// A directory of the test's own.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gmp-net-{}-{n}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Dir(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl AsRef<Path> for Dir {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// Counts its wakes.
pub struct Wakes(AtomicUsize);

impl Wakes {
    pub fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        (wakes.clone(), wakes.into())
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once with the task's own waker.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

/// Calls `f` with a context, once.
pub async fn with_cx<T>(mut f: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|cx| Poll::Ready(f(cx))).await
}

/// Gives the netpoll the chance to report something.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Calls `f` until it does not say that it would block, with yields between.
pub async fn insist<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match f() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => yield_now().await,
            done => return done,
        }
    }
}

pub async fn read<R: AsyncRead + Unpin>(reader: &mut R, buf: &mut [u8]) -> io::Result<usize> {
    let mut buf = ReadBuf::new(buf);
    poll_fn(|cx| Pin::new(&mut *reader).poll_read(cx, &mut buf)).await?;
    Ok(buf.filled().len())
}

pub async fn read_exact<R: AsyncRead + Unpin>(reader: &mut R, buf: &mut [u8]) -> io::Result<()> {
    let mut n = 0;
    while n < buf.len() {
        match read(reader, &mut buf[n..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => n += more,
        }
    }
    Ok(())
}

pub async fn read_to_end<R: AsyncRead + Unpin>(reader: &mut R) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    loop {
        match read(reader, &mut buf).await? {
            0 => return Ok(all),
            n => all.extend_from_slice(&buf[..n]),
        }
    }
}

pub async fn write<W: AsyncWrite + Unpin>(writer: &mut W, buf: &[u8]) -> io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *writer).poll_write(cx, buf)).await
}

pub async fn write_all<W: AsyncWrite + Unpin>(writer: &mut W, mut buf: &[u8]) -> io::Result<()> {
    while !buf.is_empty() {
        let n = write(writer, buf).await?;
        buf = &buf[n..];
    }
    Ok(())
}

pub async fn write_vectored<W: AsyncWrite + Unpin>(
    writer: &mut W,
    bufs: &[IoSlice<'_>],
) -> io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *writer).poll_write_vectored(cx, bufs)).await
}

pub async fn shutdown<W: AsyncWrite + Unpin>(writer: &mut W) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut *writer).poll_flush(cx)).await?;
    poll_fn(|cx| Pin::new(&mut *writer).poll_shutdown(cx)).await
}

/// A buffer whose contents can be told from other ones'.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 251) as u8).collect()
}

/// Asserts that the operation would have to wait.
#[track_caller]
pub fn assert_would_block<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Where `f` panics, if it does.
pub fn panic_of(f: impl FnOnce() + std::panic::UnwindSafe) -> Option<String> {
    let caught = std::panic::catch_unwind(f).err()?;
    let text = caught
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| caught.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Some(text.unwrap_or_default())
}
