//! [`File`]: an open file whose operations run on the blocking pool, one at a time.
//!
//! Words: a *job* is one system call (or a seek before it) on the blocking pool; the *buffer*
//! travels with the job and rests in the file in between.
//!
//! | state | the buffer is | it holds | next |
//! | --- | --- | --- | --- |
//! | `Idle` | here | what was read ahead, or nothing | a read is served from it, or starts a job |
//! | `Busy` | with the job | what is being read or written | whoever polls next collects the outcome |
//!
//! A read asks for what the caller has room for, so bytes are read ahead only when the caller
//! comes back with less room, or not at all (a cancelled read). The kernel's cursor is then ahead
//! of the caller's; each operation that depends on it (write, seek from the current position, set
//! the length) discards the bytes and steps the cursor back first.
//!
//! A write is answered as soon as its bytes are copied. Its failure is kept and becomes the answer
//! of the next write or flush.
//!
//! Whoever has `&mut File` reaches the state without a lock; the methods that take `&self` go
//! through the lock, and hold it while they wait for the job under way.

use std::fmt;
use std::fs::{File as StdFile, Metadata, Permissions};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use gmp_executor::coop;
use gmp_io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use gmp_sync::Mutex;

use super::{FileTimes, OpenOptions};
use crate::blocking::{DEFAULT_MAX_BUF_SIZE, Job, asyncify, job_lost};
use crate::buf::Buf;

/// An open file.
///
/// Reading, writing and seeking go through the `io` traits, the rest through methods. As in tokio,
/// every operation is a job on the blocking pool, of at most 2 MiB
/// ([`set_max_buf_size`](File::set_max_buf_size)), and the jobs of one `File` follow one another.
///
/// # Writing, and when it is done
///
/// A write is complete for its caller when the bytes are on their way to the pool. Only
/// `AsyncWriteExt::flush` waits until the operating system has them, and reports a failure;
/// otherwise the *next* write does. A file
/// that is dropped without a flush is still written, also when the runtime shuts down meanwhile,
/// but nobody learns when, or of an error. Flush says nothing of the disk: see
/// [`sync_all`](File::sync_all).
///
/// # Cancel safety
///
/// The job goes on when a read, write or flush is dropped; its outcome awaits the next operation.
/// No byte is lost: what a dropped read had read is what the next one gets.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// use gmp::fs::File;
/// use gmp::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, SeekFrom};
///
/// let mut file = File::options().read(true).write(true).open("table.bin").await?;
/// file.seek(SeekFrom::Start(512)).await?;
/// let count = file.read_u32().await?;
/// file.seek(SeekFrom::Start(512)).await?;
/// file.write_u32(count + 1).await?;
/// file.flush().await?;
/// # Ok(()) }
/// ```
pub struct File {
    std: Arc<StdFile>,
    inner: Mutex<Inner>,
    max_buf_size: usize,
    /// Where the seek that `futures` polls goes.
    #[cfg(feature = "futures-io")]
    seeking: Option<SeekFrom>,
}

struct Inner {
    state: State,
    /// What a write said whose outcome something other than a write or a flush collected.
    write_error: Option<io::ErrorKind>,
    /// Where the last seek arrived.
    pos: u64,
}

enum State {
    Idle(Buf),
    Busy(Job<(Outcome, Buf)>),
}

enum Outcome {
    Read(io::Result<usize>),
    Write(io::Result<()>),
    Seek(io::Result<u64>),
    SetLen(io::Result<()>),
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// It does not exist, or the user may not read it.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().read(true).open(path).await
    }

    /// Opens a file for writing: an empty one, whatever was there before.
    ///
    /// # Errors
    ///
    /// The user may not write there, or `path` is a directory.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .await
    }

    /// Makes a new file and opens it for reading and writing.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, when there is something at `path`; and what else `create` fails for.
    pub async fn create_new<P: AsRef<Path>>(path: P) -> io::Result<File> {
        Self::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .await
    }

    /// The options to open a file with: [`OpenOptions::new`].
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes over a file of the standard library's.
    pub fn from_std(std: StdFile) -> File {
        File {
            std: Arc::new(std),
            inner: Mutex::new(Inner {
                state: State::Idle(Buf::default()),
                write_error: None,
                pos: 0,
            }),
            max_buf_size: DEFAULT_MAX_BUF_SIZE,
            #[cfg(feature = "futures-io")]
            seeking: None,
        }
    }

    /// Waits until the file's contents and metadata are on the disk, after the write under way.
    ///
    /// # Errors
    ///
    /// What `fsync(2)` said. The failure of a write is left for the next write or flush.
    pub async fn sync_all(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.complete_in_flight().await;
        let std = Arc::clone(&self.std);
        asyncify(move || std.sync_all()).await
    }

    /// As [`sync_all`](File::sync_all), but of the metadata only what is needed to read the contents.
    ///
    /// # Errors
    ///
    /// What `fdatasync(2)` said.
    pub async fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.complete_in_flight().await;
        let std = Arc::clone(&self.std);
        asyncify(move || std.sync_data()).await
    }

    /// Cuts the file off at `size` bytes, or extends it to as many with zeros.
    ///
    /// The cursor stays where it is, even when that is behind the end then.
    ///
    /// # Errors
    ///
    /// The file is not open for writing, or cannot be that large.
    ///
    /// # Cancel safety
    ///
    /// Once begun, it happens, before the next operation on this file.
    pub async fn set_len(&self, size: u64) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.complete_in_flight().await;
        let std = Arc::clone(&self.std);
        let (buf, back) = inner.take_buf_for_cursor();
        inner.state = State::Busy(Job::start(move || {
            let result = step_back(&std, back).and_then(|()| std.set_len(size));
            (Outcome::SetLen(result), buf)
        }));
        match poll_fn(|cx| inner.poll_outcome(cx)).await? {
            Some(Outcome::SetLen(result)) => result,
            _ => Err(job_lost()),
        }
    }

    /// What the operating system knows of the file.
    ///
    /// Does not wait for the write under way.
    ///
    /// # Errors
    ///
    /// What `fstat(2)` said.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let std = Arc::clone(&self.std);
        asyncify(move || std.metadata()).await
    }

    /// A second `File` for the same open file: the two share the cursor.
    ///
    /// Waits for the operation under way. The buffer size comes along; bytes that were read ahead
    /// stay with the original.
    ///
    /// # Errors
    ///
    /// There is no descriptor left.
    pub async fn try_clone(&self) -> io::Result<File> {
        self.inner.lock().await.complete_in_flight().await;
        let std = Arc::clone(&self.std);
        let mut clone = File::from_std(asyncify(move || std.try_clone()).await?);
        clone.max_buf_size = self.max_buf_size;
        Ok(clone)
    }

    /// Gives the file back as one of the standard library's, after the operation under way.
    ///
    /// Bytes that were read ahead are lost to it, as the failure of a write is.
    ///
    /// # Panics
    ///
    /// When a job of a dropped future still uses the file and there is no descriptor left for a
    /// duplicate of it.
    pub async fn into_std(mut self) -> StdFile {
        self.inner.get_mut().complete_in_flight().await;
        match Arc::try_unwrap(self.std) {
            Ok(std) => std,
            Err(shared) => shared
                .try_clone()
                .expect("a cancelled operation still uses the file, and it cannot be duplicated"),
        }
    }

    /// Gives the file back as one of the standard library's, unless an operation is under way.
    ///
    /// # Errors
    ///
    /// The `File` itself, when an operation is under way.
    #[allow(clippy::result_large_err)] // tokio's signature
    pub fn try_into_std(mut self) -> Result<StdFile, Self> {
        match Arc::try_unwrap(self.std) {
            Ok(std) => Ok(std),
            Err(shared) => {
                self.std = shared;
                Err(self)
            }
        }
    }

    /// Changes the file's permission bits.
    ///
    /// # Errors
    ///
    /// The user may not.
    pub async fn set_permissions(&self, perm: Permissions) -> io::Result<()> {
        let std = Arc::clone(&self.std);
        asyncify(move || std.set_permissions(perm)).await
    }

    /// Changes the file's timestamps, after the operation under way, which would change them again.
    ///
    /// # Errors
    ///
    /// The user may not, or the file system cannot hold such a time.
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.inner.lock().await.complete_in_flight().await;
        let std = Arc::clone(&self.std);
        let times = times.into_std();
        asyncify(move || std.set_times(times)).await
    }

    /// Changes the time of the last modification: [`set_times`](File::set_times) with that alone.
    ///
    /// # Errors
    ///
    /// As [`set_times`](File::set_times).
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    /// Limits how many bytes one read or write carries; 2 MiB unless it is set.
    ///
    /// More means fewer trips to the blocking pool, and as much memory for the buffer.
    ///
    /// # Panics
    ///
    /// When the size is zero.
    #[track_caller]
    pub fn set_max_buf_size(&mut self, max_buf_size: usize) {
        assert!(max_buf_size > 0, "`max_buf_size` must be greater than 0");
        self.max_buf_size = max_buf_size;
    }

    /// How many bytes one read or write carries at most.
    pub fn max_buf_size(&self) -> usize {
        self.max_buf_size
    }

    /// A write of whatever `fill` puts into the buffer and counts.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        fill: impl FnOnce(&mut Buf, usize) -> usize,
    ) -> Poll<io::Result<usize>> {
        let inner = self.inner.get_mut();
        if let Some(kind) = inner.write_error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        while let Some(outcome) = ready!(inner.poll_outcome(cx))? {
            if let Outcome::Write(result) = outcome {
                result?;
            }
        }

        let (mut buf, back) = inner.take_buf_for_cursor();
        let n = fill(&mut buf, self.max_buf_size);
        let std = Arc::clone(&self.std);
        let job = Job::start_mandatory(move || {
            let result = step_back(&std, back).and_then(|()| buf.write_to(&mut &*std));
            (Outcome::Write(result), buf)
        });
        inner.state = State::Busy(job.ok_or_else(job_lost)?);
        Poll::Ready(Ok(n))
    }
}

impl Inner {
    /// Waits for the job under way and says what it brought; `None` when there is none.
    ///
    /// The buffer is back afterwards; when the job was lost, it is a new one.
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Outcome>>> {
        let State::Busy(job) = &mut self.state else {
            return Poll::Ready(Ok(None));
        };
        match ready!(Pin::new(job).poll(cx)) {
            Ok((outcome, buf)) => {
                self.state = State::Idle(buf);
                if let Outcome::Seek(Ok(pos)) = outcome {
                    self.pos = pos;
                }
                Poll::Ready(Ok(Some(outcome)))
            }
            Err(error) => {
                self.state = State::Idle(Buf::default());
                Poll::Ready(Err(error.into()))
            }
        }
    }

    /// Takes the buffer out for a job whose effect depends on the cursor: empty, together with the
    /// step back that makes up for what was read ahead. Leaves a new buffer behind.
    ///
    /// Called only when no job is under way.
    fn take_buf_for_cursor(&mut self) -> (Buf, i64) {
        match &mut self.state {
            State::Idle(buf) => {
                let mut buf = std::mem::take(buf);
                let back = buf.discard_read();
                (buf, back)
            }
            State::Busy(_) => unreachable!("the outcome of the job under way was collected"),
        }
    }

    /// Waits for the job under way; the failure of a write is kept for the next write or flush.
    async fn complete_in_flight(&mut self) {
        if let Err(error) = poll_fn(|cx| self.poll_flush(cx)).await {
            self.write_error = Some(error.kind());
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.write_error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        Poll::Ready(match ready!(self.poll_outcome(cx))? {
            Some(Outcome::Write(result)) => result,
            _ => Ok(()),
        })
    }

    /// Keeps the failure of a write that a read or a seek collected.
    fn keep_write_error(&mut self, outcome: &Outcome) {
        if let Outcome::Write(Err(error)) = outcome {
            self.write_error = Some(error.kind());
        }
    }
}

/// Moves the cursor by `back`, which is not positive; by nothing without a system call.
fn step_back(mut file: &StdFile, back: i64) -> io::Result<()> {
    if back != 0 {
        file.seek(SeekFrom::Current(back))?;
    }
    Ok(())
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        dst: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let inner = me.inner.get_mut();
        loop {
            if let State::Idle(buf) = &mut inner.state {
                if !buf.is_empty() || dst.remaining() == 0 {
                    let coop = ready!(coop::poll_proceed(cx));
                    buf.copy_to(dst);
                    coop.made_progress();
                    return Poll::Ready(Ok(()));
                }
                let mut buf = std::mem::take(buf);
                let std = Arc::clone(&me.std);
                let max = dst.remaining().min(me.max_buf_size);
                inner.state = State::Busy(Job::start(move || {
                    let result = buf.read_from(&mut &*std, max);
                    (Outcome::Read(result), buf)
                }));
            }
            match ready!(inner.poll_outcome(cx))? {
                Some(Outcome::Read(result)) => {
                    result?;
                    if let State::Idle(buf) = &mut inner.state {
                        buf.copy_to(dst);
                    }
                    return Poll::Ready(Ok(()));
                }
                Some(outcome) => inner.keep_write_error(&outcome),
                None => {}
            }
        }
    }
}

impl AsyncSeek for File {
    fn start_seek(self: Pin<&mut Self>, mut pos: SeekFrom) -> io::Result<()> {
        let me = self.get_mut();
        let inner = me.inner.get_mut();
        if let State::Busy(_) = inner.state {
            return Err(io::Error::other(
                "other file operation is pending, call poll_complete before start_seek",
            ));
        }
        let (buf, mut back) = inner.take_buf_for_cursor();
        match &mut pos {
            // One system call instead of two, unless the sum overflows.
            SeekFrom::Current(offset) => {
                if let Some(sum) = offset.checked_add(back) {
                    *offset = sum;
                    back = 0;
                }
            }
            // These do not depend on where the cursor was.
            SeekFrom::Start(_) | SeekFrom::End(_) => back = 0,
        }
        let std = Arc::clone(&me.std);
        inner.state = State::Busy(Job::start(move || {
            let result = step_back(&std, back).and_then(|()| (&*std).seek(pos));
            (Outcome::Seek(result), buf)
        }));
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let inner = self.get_mut().inner.get_mut();
        loop {
            match ready!(inner.poll_outcome(cx))? {
                None => return Poll::Ready(Ok(inner.pos)),
                Some(Outcome::Seek(result)) => return Poll::Ready(result),
                Some(outcome) => inner.keep_write_error(&outcome),
            }
        }
    }
}

/// One method where ours are two. A seek that is polled again is the same one if it goes to the same
/// place.
#[cfg(feature = "futures-io")]
impl gmp_io::futures_traits::AsyncSeek for File {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pos: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        if self.seeking != Some(pos) {
            // The outcome of another operation, or of a seek that nobody waits for any more.
            let _ = ready!(AsyncSeek::poll_complete(self.as_mut(), cx));
            AsyncSeek::start_seek(self.as_mut(), pos)?;
            self.seeking = Some(pos);
        }
        let result = ready!(AsyncSeek::poll_complete(self.as_mut(), cx));
        self.seeking = None;
        Poll::Ready(result)
    }
}

impl AsyncWrite for File {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        src: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_with(cx, |buf, max| buf.copy_from(src, max))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_with(cx, |buf, max| buf.copy_from_slices(bufs, max))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner.get_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // tokio's name: programs that swap gmp in compare it.
        f.debug_struct("tokio::fs::File")
            .field("std", &self.std)
            .finish()
    }
}

impl From<StdFile> for File {
    fn from(std: StdFile) -> Self {
        Self::from_std(std)
    }
}

impl From<OwnedFd> for File {
    fn from(fd: OwnedFd) -> Self {
        Self::from_std(StdFile::from(fd))
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.std.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.std.as_raw_fd()
    }
}

impl FromRawFd for File {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller's contract is the same: the descriptor is open, and given away.
        Self::from_std(unsafe { StdFile::from_raw_fd(fd) })
    }
}
