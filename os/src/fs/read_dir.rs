//! [`ReadDir`]: a directory, read in chunks.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;

use crate::blocking::{Job, asyncify};

/// How many entries a job fetches. tokio's figure.
const CHUNK_SIZE: usize = 32;

/// Opens a directory to list it.
///
/// As [`std::fs::read_dir`]; the first 32 entries come with the same job.
///
/// # Errors
///
/// `path` does not exist, is no directory, or may not be read.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// let mut entries = gmp::fs::read_dir(".").await?;
/// while let Some(entry) = entries.next_entry().await? {
///     println!("{}", entry.path().display());
/// }
/// # Ok(()) }
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    asyncify(move || {
        let mut chunk = Chunk {
            entries: VecDeque::with_capacity(CHUNK_SIZE),
            std: std::fs::read_dir(path)?,
            ended: false,
        };
        chunk.fetch();
        Ok(ReadDir(State::Idle(chunk)))
    })
    .await
}

/// The entries of a directory, in the file system's order and without `.` and `..`.
///
/// They are fetched 32 at a time. An entry that is made or removed while the directory is being
/// read may or may not be seen, and none that stays is missed or seen twice, as far as the file
/// system promises that.
///
/// Returned by [`read_dir`].
#[derive(Debug)]
#[must_use = "it fetches nothing more unless it is asked for entries"]
pub struct ReadDir(State);

#[derive(Debug)]
enum State {
    Idle(Chunk),
    Busy(Job<Chunk>),
    /// The job was lost, and the directory with it.
    Gone,
}

/// What travels with the job.
#[derive(Debug)]
struct Chunk {
    entries: VecDeque<io::Result<DirEntry>>,
    std: std::fs::ReadDir,
    ended: bool,
}

impl Chunk {
    /// Fetches a chunk; an entry that cannot be read ends it.
    fn fetch(&mut self) {
        for _ in 0..CHUNK_SIZE {
            let Some(entry) = self.std.next() else {
                self.ended = true;
                return;
            };
            let failed = entry.is_err();
            self.entries.push_back(entry.map(DirEntry::new));
            if failed {
                return;
            }
        }
    }
}

impl ReadDir {
    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    ///
    /// What reading the directory said. One may go on after an error.
    ///
    /// # Cancel safety
    ///
    /// No entry is lost when the future is dropped.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// Polls for the next entry: [`next_entry`](ReadDir::next_entry) outside an `async` function.
    ///
    /// When several tasks poll the same listing, the last one is woken.
    ///
    /// # Errors
    ///
    /// What reading the directory said. One may go on after an error.
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match &mut self.0 {
                State::Idle(chunk) if chunk.entries.is_empty() && !chunk.ended => {}
                State::Idle(chunk) => {
                    let coop = ready!(coop::poll_proceed(cx));
                    coop.made_progress();
                    return Poll::Ready(chunk.entries.pop_front().transpose());
                }
                State::Busy(job) => {
                    let chunk = ready!(Pin::new(job).poll(cx));
                    self.0 = State::Gone;
                    self.0 = State::Idle(chunk?);
                    continue;
                }
                State::Gone => return Poll::Ready(Ok(None)),
            }
            if let State::Idle(mut chunk) = std::mem::replace(&mut self.0, State::Gone) {
                self.0 = State::Busy(Job::start(move || {
                    chunk.fetch();
                    chunk
                }));
            }
        }
    }
}

/// An entry of a directory.
///
/// Returned by [`ReadDir::next_entry`].
#[derive(Debug)]
pub struct DirEntry {
    /// What the directory itself says of the type; not every file system does.
    file_type: Option<FileType>,
    std: Arc<std::fs::DirEntry>,
}

impl DirEntry {
    /// On the blocking pool: on some file systems the type costs a system call.
    fn new(std: std::fs::DirEntry) -> DirEntry {
        DirEntry {
            file_type: std.file_type().ok(),
            std: Arc::new(std),
        }
    }

    /// The path given to [`read_dir`] with the entry's name behind it.
    pub fn path(&self) -> PathBuf {
        self.std.path()
    }

    /// The entry's name alone.
    pub fn file_name(&self) -> OsString {
        self.std.file_name()
    }

    /// What the file system knows of the entry; of the link itself, if it is a symbolic link.
    ///
    /// # Errors
    ///
    /// `NotFound`, when it has been removed since; and what else the operating system says.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let std = Arc::clone(&self.std);
        asyncify(move || std.metadata()).await
    }

    /// The type of the entry; a symbolic link is not followed. Costs nothing on most file systems.
    ///
    /// # Errors
    ///
    /// What the operating system says, where it has to be asked.
    pub async fn file_type(&self) -> io::Result<FileType> {
        if let Some(file_type) = self.file_type {
            return Ok(file_type);
        }
        let std = Arc::clone(&self.std);
        asyncify(move || std.file_type()).await
    }

    /// The number of the inode.
    pub fn ino(&self) -> u64 {
        self.std.ino()
    }
}
