//! I/O traits and utilities of gmp, tokio-shaped.
mod read_buf;
mod traits;

pub use read_buf::ReadBuf;
pub use std::io::{Error, ErrorKind, Result, SeekFrom};
pub use traits::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
