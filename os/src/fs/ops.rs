//! The free functions: one job on the blocking pool each.

use std::fs::{Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::owned;
use crate::blocking::asyncify;

/// The absolute path, with every symbolic link followed.
///
/// As [`std::fs::canonicalize`].
///
/// # Errors
///
/// `path` does not exist, or a part of it before the last is not a directory.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::canonicalize(path)).await
}

/// Copies the contents and the permission bits of `from` to `to` and says how many bytes that were.
///
/// What `to` held before is overwritten. As [`std::fs::copy`], which lets the kernel do the work
/// where it can.
///
/// # Errors
///
/// `from` is not a regular file, or may not be read, or `to` may not be written.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let from = from.as_ref().to_owned();
    let to = to.as_ref().to_owned();
    asyncify(move || std::fs::copy(from, to)).await
}

/// Makes one empty directory.
///
/// As [`std::fs::create_dir`]; see [`create_dir_all`] for one whose parents may be missing.
///
/// # Errors
///
/// `path` exists already, its parent does not, or the user may not.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::create_dir(path)).await
}

/// Makes a directory and whatever parents it lacks; one that exists already is no error.
///
/// As [`std::fs::create_dir_all`]. Safe to call from several tasks for the same path.
///
/// # Errors
///
/// A part of the path exists and is no directory, or the user may not.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::create_dir_all(path)).await
}

/// Gives the file at `original` a second name, `link`.
///
/// As [`std::fs::hard_link`].
///
/// # Errors
///
/// `original` does not exist, `link` does, or they are on different file systems.
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let original = original.as_ref().to_owned();
    let link = link.as_ref().to_owned();
    asyncify(move || std::fs::hard_link(original, link)).await
}

/// What the file system knows of `path`; of its target, if it is a symbolic link.
///
/// As [`std::fs::metadata`].
///
/// # Errors
///
/// `path` does not exist, or the user may not look into one of its parents.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::metadata(path)).await
}

/// Reads a whole file.
///
/// As [`std::fs::read`], in one job.
///
/// # Errors
///
/// What opening or reading it said.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// let certificate: Vec<u8> = gmp::fs::read("server.pem").await?;
/// # Ok(()) }
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::read(path)).await
}

/// Where a symbolic link points to.
///
/// As [`std::fs::read_link`].
///
/// # Errors
///
/// `path` does not exist or is no symbolic link.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::read_link(path)).await
}

/// Reads a whole file as text.
///
/// As [`std::fs::read_to_string`], in one job.
///
/// # Errors
///
/// What opening or reading it said, and `InvalidData` when it is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::read_to_string(path)).await
}

/// Removes an empty directory.
///
/// As [`std::fs::remove_dir`].
///
/// # Errors
///
/// `path` does not exist, is no directory, or is not empty.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::remove_dir(path)).await
}

/// Removes a directory and everything in it. Symbolic links are removed, not followed.
///
/// As [`std::fs::remove_dir_all`].
///
/// # Errors
///
/// What the first removal that failed said; what was removed by then stays removed.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::remove_dir_all(path)).await
}

/// Removes a file's name; the file goes with its last name and its last open descriptor.
///
/// As [`std::fs::remove_file`].
///
/// # Errors
///
/// `path` does not exist, is a directory, or the user may not.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::remove_file(path)).await
}

/// Gives a file or directory another name, in the place of what had that name before.
///
/// As [`std::fs::rename`].
///
/// # Errors
///
/// `from` does not exist, the two are on different file systems, or the user may not.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let from = from.as_ref().to_owned();
    let to = to.as_ref().to_owned();
    asyncify(move || std::fs::rename(from, to)).await
}

/// Changes the permission bits of a file or directory.
///
/// As [`std::fs::set_permissions`].
///
/// # Errors
///
/// `path` does not exist, or the user may not.
pub async fn set_permissions(path: impl AsRef<Path>, perm: Permissions) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::set_permissions(path, perm)).await
}

/// Makes a symbolic link named `link` that points to `original`, which need not exist.
///
/// As [`std::os::unix::fs::symlink`].
///
/// # Errors
///
/// `link` exists already, or the user may not.
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let original = original.as_ref().to_owned();
    let link = link.as_ref().to_owned();
    asyncify(move || std::os::unix::fs::symlink(original, link)).await
}

/// What the file system knows of `path`; of the link itself, if it is a symbolic link.
///
/// As [`std::fs::symlink_metadata`].
///
/// # Errors
///
/// `path` does not exist, or the user may not look into one of its parents.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::symlink_metadata(path)).await
}

/// Whether there is something at `path`; what it is may have changed when the answer arrives.
///
/// As [`std::fs::exists`]: a symbolic link to nothing counts as nothing.
///
/// # Errors
///
/// It cannot be told, such as when the user may not look into one of the parents.
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    asyncify(move || std::fs::exists(path)).await
}

/// Makes `contents` the whole content of the file at `path`, which is made if it does not exist.
///
/// As [`std::fs::write`], in one job. A `Vec<u8>`, a `String` or a `Bytes` goes along with the job;
/// anything else is copied first.
///
/// # Errors
///
/// What opening or writing it said; the file may be cut short then.
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    let contents = owned::into_owned(contents);
    asyncify(move || std::fs::write(path, contents)).await
}
