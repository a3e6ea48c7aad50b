//! [`OpenOptions`].

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::File;
use crate::blocking::asyncify;

/// How a [`File`] is opened: for what, and what happens when it is or is not there.
///
/// As [`std::fs::OpenOptions`], from which it also converts. Every option is off at first.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// use gmp::fs::OpenOptions;
///
/// let journal = OpenOptions::new()
///     .append(true)
///     .create(true)
///     .mode(0o600)
///     .open("journal.log")
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

impl OpenOptions {
    /// Options with everything off.
    pub fn new() -> OpenOptions {
        OpenOptions(std::fs::OpenOptions::new())
    }

    /// Whether the file can be read.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.0.read(read);
        self
    }

    /// Whether the file can be written; what it holds is overwritten in place.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.0.write(write);
        self
    }

    /// Whether every write goes to the end of the file, wherever the cursor is.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.0.append(append);
        self
    }

    /// Whether the file is emptied when it is opened; needs [`write`](OpenOptions::write).
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.0.truncate(truncate);
        self
    }

    /// Whether the file is made when it does not exist; needs `write` or `append`.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.0.create(create);
        self
    }

    /// Whether the file must be made, and must not exist, in one atomic step; needs `write` or
    /// `append`, and makes `create` and `truncate` meaningless.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.0.create_new(create_new);
        self
    }

    /// The mode bits of a file that is made, before the umask. `0o666` by default.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.0.mode(mode);
        self
    }

    /// Further flags for `open(2)`, such as `O_NOFOLLOW`; those of the access mode are ignored.
    /// A second call replaces what the first one said.
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.0.custom_flags(flags);
        self
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// As [`std::fs::OpenOptions::open`]: `NotFound`, `PermissionDenied`, `AlreadyExists` with
    /// `create_new`, `InvalidInput` for options that contradict each other, and what else the
    /// operating system says.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped after the job began, the file may be made or emptied; it is
    /// closed again at once.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref().to_owned();
        let options = self.0.clone();
        asyncify(move || options.open(path))
            .await
            .map(File::from_std)
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> OpenOptions {
        OpenOptions(options)
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}
