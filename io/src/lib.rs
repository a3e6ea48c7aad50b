//! I/O in gmp: tokio's traits, and everything around them that needs neither a poller nor a thread.
//!
//! * [`AsyncRead`], [`AsyncWrite`], [`AsyncBufRead`], [`AsyncSeek`]: what a source, a destination,
//!   a buffered source and something with a position can do, one poll at a time; [`ReadBuf`] is
//!   the buffer that a source fills.
//! * [`AsyncReadExt`], [`AsyncWriteExt`], [`AsyncBufReadExt`], [`AsyncSeekExt`]: the methods that
//!   programs await, for everything that implements the trait of the same name.
//! * Buffers: [`BufReader`], [`BufWriter`], [`BufStream`]. Parts and sums: [`split()`] and
//!   [`join()`], [`Take`] and [`Chain`]. Pipes in memory: [`duplex`] and [`simplex`].
//!   Copying: [`copy`], [`copy_buf`], [`copy_bidirectional`].
//!
//! Names, signatures, panics, cancel safety and auto traits are those of `tokio::io`. Sockets and
//! standard streams, which implement the traits, are in other crates.
//!
//! A future of this crate is a *leaf* only where it can wait by itself or could go on for ever: the
//! pipes, `empty`, `sink`, `repeat` and the copies. These take from the task's budget, and the pipes
//! record why the task waits. Everything else leaves that to the reader or writer it stands on.

mod ext;
#[cfg(feature = "futures-io")]
#[doc(hidden)]
pub mod futures_traits;
mod other_traits;
mod read_buf;
#[cfg(feature = "tokio-io")]
#[doc(hidden)]
pub mod tokio_traits;
mod traits;
mod util;

pub use std::io::{Error, ErrorKind, Result, SeekFrom};

pub use ext::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
pub use read_buf::ReadBuf;
pub use traits::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
pub use util::{
    BufReader, BufStream, BufWriter, Chain, DuplexStream, Empty, Join, Lines, ReadHalf, Repeat,
    SimplexStream, Sink, Split, Take, WriteHalf, copy, copy_bidirectional,
    copy_bidirectional_with_sizes, copy_buf, duplex, empty, join, repeat, simplex, sink, split,
};
