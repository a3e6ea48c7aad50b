//! Files and directories, without blocking the tasks beside.
//!
//! The operating system offers no readiness for files, so each operation runs as a job on the
//! blocking pool, as in tokio. One trip there and back costs far more than a small read: read and
//! write in large pieces, or put a `BufReader` or `BufWriter` around a [`File`]; and where several
//! operations belong together, one `spawn_blocking` around `std::fs` beats a chain of these.
//!
//! The free functions mirror [`std::fs`]. They take a path, copy it, and answer what `std` answers.
//!
//! # Cancel safety
//!
//! A job that has begun runs to its end: dropping the future of [`write()`], [`copy`] or [`rename`]
//! does not undo or prevent anything, it only forgets the answer.
//!
//! # Errors
//!
//! Beside what the operating system says: an error of kind `Other`, when the runtime shut down
//! before the job began.
//!
//! # Panics
//!
//! Every operation here panics when it is called from outside a runtime.
//!
//! # Examples
//!
//! ```no_run
//! use gmp::fs::File;
//! use gmp::io::{AsyncReadExt, AsyncWriteExt};
//!
//! #[gmp::main]
//! async fn main() -> std::io::Result<()> {
//!     let mut log = File::create("greetings.txt").await?;
//!     log.write_all(b"good morning\n").await?;
//!     log.flush().await?; // before this, the bytes may still be on their way
//!
//!     let mut text = String::new();
//!     File::open("greetings.txt").await?.read_to_string(&mut text).await?;
//!     assert_eq!(text, "good morning\n");
//!     gmp::fs::remove_file("greetings.txt").await
//! }
//! ```

mod dir_builder;
mod file;
mod file_times;
mod open_options;
mod ops;
mod owned;
mod read_dir;

pub use self::dir_builder::DirBuilder;
pub use self::file::File;
pub use self::file_times::FileTimes;
pub use self::open_options::OpenOptions;
pub use self::ops::{
    canonicalize, copy, create_dir, create_dir_all, hard_link, metadata, read, read_link,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename, set_permissions, symlink,
    symlink_metadata, try_exists, write,
};
pub use self::read_dir::{DirEntry, ReadDir, read_dir};
