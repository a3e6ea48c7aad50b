//! Opening FIFO files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Receiver, Sender, check_is_pipe};

/// How a FIFO file is opened as an end of a pipe.
///
/// As `tokio::net::unix::pipe::OpenOptions`.
///
/// # Examples
///
/// ```no_run
/// use gmp::net::unix::pipe;
///
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// let rx = pipe::OpenOptions::new().open_receiver("/tmp/fifo")?;
/// let tx = pipe::OpenOptions::new().open_sender("/tmp/fifo")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Options that are all `false`.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Whether the file is opened for both directions.
    ///
    /// A sender can then be opened although nobody has the file open for reading; and a receiver
    /// does not come to the end when the last sender goes. POSIX leaves it undefined; Linux does it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn read_write(&mut self, value: bool) -> &mut OpenOptions {
        self.read_write = value;
        self
    }

    /// Whether the check that the file is a FIFO is left out.
    ///
    /// For whoever knows that it is one; a regular file would fail when it is registered.
    pub fn unchecked(&mut self, value: bool) -> &mut OpenOptions {
        self.unchecked = value;
        self
    }

    /// Opens the FIFO file at `path` as a receiver.
    ///
    /// It need not have a sender yet. Reading then comes to the end at once (0 bytes) as long as no
    /// sender has ever opened the file.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the file is no FIFO, else what the
    /// operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn open_receiver<P: AsRef<Path>>(&self, path: P) -> io::Result<Receiver> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        Receiver::from_file_unchecked(self.open(options, path.as_ref())?)
    }

    /// Opens the FIFO file at `path` as a sender.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when the file is no FIFO, `ENXIO` when nobody
    /// has it open for reading, unless it is opened for
    /// [both directions](OpenOptions::read_write), else what the operating system says.
    ///
    /// # Panics
    ///
    /// Outside a runtime with I/O enabled.
    #[track_caller]
    pub fn open_sender<P: AsRef<Path>>(&self, path: P) -> io::Result<Sender> {
        let mut options = fs::OpenOptions::new();
        options.write(true);
        Sender::from_file_unchecked(self.open(options, path.as_ref())?)
    }

    fn open(&self, mut options: fs::OpenOptions, path: &Path) -> io::Result<File> {
        // Without this flag the call would wait for somebody to open the other end.
        options.custom_flags(libc::O_NONBLOCK);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.read_write {
            options.read(true).write(true);
        }
        let file = options.open(path)?;
        if !self.unchecked {
            check_is_pipe(&file)?;
        }
        Ok(file)
    }
}
