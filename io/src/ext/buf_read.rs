//! `AsyncBufReadExt`.

use std::pin::Pin;

use super::read_line::{FillBuf, ReadLine, ReadUntil};
use crate::AsyncBufRead;
use crate::util::{Lines, Split};

/// The methods that every buffered reader has.
///
/// As `tokio::io::AsyncBufReadExt`.
pub trait AsyncBufReadExt: AsyncBufRead {
    /// Reads up to `byte`, or up to the end, and appends it to `buf`, `byte` included.
    ///
    /// Returns how many bytes were appended; zero means that the reader is at its end.
    ///
    /// # Errors
    ///
    /// Those of the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it
    /// tries again. What was read before is in `buf`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what was read is in `buf`, and another call goes on from
    /// there. Only the count starts over.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncBufReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = &b"key=value"[..];
    /// let mut buf = Vec::new();
    /// assert_eq!(reader.read_until(b'=', &mut buf).await.unwrap(), 4);
    /// assert_eq!(buf, b"key=");
    /// # });
    /// ```
    fn read_until<'a>(&'a mut self, byte: u8, buf: &'a mut Vec<u8>) -> ReadUntil<'a, Self>
    where
        Self: Unpin,
    {
        ReadUntil::new(self, byte, buf)
    }

    /// Reads up to the end of the line, or up to the end, and appends it to `buf`, `\n` included.
    ///
    /// Returns how many bytes were appended; zero means that the reader is at its end.
    ///
    /// # Errors
    ///
    /// Those of the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it
    /// tries again; what was read before is in `buf` if it is UTF-8, and lost if not. A line that is
    /// not UTF-8 is an [`InvalidData`](std::io::ErrorKind::InvalidData), is lost, and leaves `buf` as
    /// it was.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was read is lost, and so may be what `buf` held before.
    /// [`read_until`](AsyncBufReadExt::read_until) and [`lines`](AsyncBufReadExt::lines) keep it.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncBufReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = &b"one\ntwo"[..];
    /// let mut line = String::new();
    /// assert_eq!(reader.read_line(&mut line).await.unwrap(), 4);
    /// assert_eq!(line, "one\n");
    /// # });
    /// ```
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> ReadLine<'a, Self>
    where
        Self: Unpin,
    {
        ReadLine::new(self, buf)
    }

    /// The segments of this reader between one `byte` and the next, without it.
    ///
    /// What [`std::io::BufRead::split`] is for threads; here
    /// [`next_segment`](Split::next_segment) takes the place of the iterator.
    fn split(self, byte: u8) -> Split<Self>
    where
        Self: Sized + Unpin,
    {
        Split::new(self, byte)
    }

    /// Returns what is in the buffer, and reads into it first when it is empty.
    ///
    /// The bytes stay in the buffer until [`consume`](AsyncBufReadExt::consume) takes them out. No
    /// bytes mean that the reader is at its end.
    ///
    /// # Errors
    ///
    /// Those of the reader.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::{AsyncBufReadExt, BufReader};
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = BufReader::new(&b"look first"[..]);
    /// assert_eq!(reader.fill_buf().await.unwrap(), b"look first");
    /// reader.consume(5);
    /// assert_eq!(reader.fill_buf().await.unwrap(), b"first");
    /// # });
    /// ```
    fn fill_buf(&mut self) -> FillBuf<'_, Self>
    where
        Self: Unpin,
    {
        FillBuf::new(self)
    }

    /// Takes `amt` bytes out of the buffer: they have been read.
    ///
    /// `amt` must be at most the number of bytes that
    /// [`fill_buf`](AsyncBufReadExt::fill_buf) returned last.
    fn consume(&mut self, amt: usize)
    where
        Self: Unpin,
    {
        Pin::new(self).consume(amt);
    }

    /// The lines of this reader, without their `\n` or `\r\n`.
    ///
    /// What [`std::io::BufRead::lines`] is for threads; here [`next_line`](Lines::next_line) takes the
    /// place of the iterator.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncBufReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut lines = (&b"one\r\ntwo"[..]).lines();
    /// assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("one"));
    /// assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("two"));
    /// assert_eq!(lines.next_line().await.unwrap(), None);
    /// # });
    /// ```
    fn lines(self) -> Lines<Self>
    where
        Self: Sized,
    {
        Lines::new(self)
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}
