//! [`DirBuilder`].

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::blocking::asyncify;

/// Makes directories in a given manner.
///
/// As [`std::fs::DirBuilder`].
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// gmp::fs::DirBuilder::new()
///     .recursive(true)
///     .mode(0o700)
///     .create("cache/thumbnails")
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    mode: Option<u32>,
}

impl DirBuilder {
    /// A builder with `std`'s defaults: one directory, mode `0o777` before the umask.
    pub fn new() -> Self {
        DirBuilder::default()
    }

    /// Whether missing parents are made too and an existing directory is no error; off by default.
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// The mode bits of the directories made.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the directory.
    ///
    /// # Errors
    ///
    /// Without `recursive`: `path` exists already or its parent does not. In any case: a part of it
    /// is no directory, or the user may not.
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_owned();
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(self.recursive);
        if let Some(mode) = self.mode {
            builder.mode(mode);
        }
        asyncify(move || builder.create(path)).await
    }
}
