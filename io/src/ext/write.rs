//! `AsyncWriteExt`.

use std::io::IoSlice;

use bytes::Buf;

use super::number::{Number, WriteNumber};
use super::write_some::{Flush, Shutdown, Write, WriteAll, WriteAllBuf, WriteBuf, WriteVectored};
use crate::AsyncWrite;

/// The methods that write a number, with what holds for all of them.
macro_rules! write_numbers {
    ($($(#[$doc:meta])* fn $name:ident($number:ty, $order:ident);)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// [`WriteZero`](std::io::ErrorKind::WriteZero) if the writer takes no more, and those of the
        /// writer, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it tries
        /// again.
        ///
        /// # Cancel safety
        ///
        /// Not cancel safe, unless the number is of one byte: a part may have been written.
        fn $name(&mut self, n: $number) -> WriteNumber<&mut Self, $number>
        where
            Self: Unpin,
        {
            WriteNumber::new(self, n.$order())
        }
    )*};
}

/// The methods that every writer has.
///
/// As `tokio::io::AsyncWriteExt`.
pub trait AsyncWriteExt: AsyncWrite {
    /// Writes as much of the front of `src` as the writer takes at once; waits only if it takes nothing.
    ///
    /// Returns how many bytes were written; zero means that `src` is empty or, usually, that the
    /// writer takes no more.
    ///
    /// # Errors
    ///
    /// Those of the writer; then nothing was written.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future writes nothing: it either has written and is done, or has not written.
    fn write<'a>(&'a mut self, src: &'a [u8]) -> Write<'a, Self>
    where
        Self: Unpin,
    {
        Write::new(self, src)
    }

    /// Writes as much of the front of all `bufs` together as the writer takes at once.
    ///
    /// For a writer that cannot do that, this writes from the first buffer that is not empty.
    ///
    /// # Errors
    ///
    /// Those of the writer; then nothing was written.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future writes nothing: it either has written and is done, or has not written.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use std::io::IoSlice;
    ///
    /// use gmp::io::AsyncWriteExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut writer = Vec::new();
    /// let bufs = [IoSlice::new(b"head, "), IoSlice::new(b"body")];
    /// assert_eq!(writer.write_vectored(&bufs).await.unwrap(), 10);
    /// # });
    /// ```
    fn write_vectored<'a, 'b>(&'a mut self, bufs: &'a [IoSlice<'b>]) -> WriteVectored<'a, 'b, Self>
    where
        Self: Unpin,
    {
        WriteVectored::new(self, bufs)
    }

    /// Writes as much of `src` as the writer takes at once, and advances it by that.
    ///
    /// Returns how many bytes were written; zero means that `src` is empty or, usually, that the
    /// writer takes no more. When the writer can, the pieces of `src` are written together.
    ///
    /// # Errors
    ///
    /// Those of the writer; then nothing was written.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future writes nothing: it either has written and is done, or has not written.
    fn write_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteBuf::new(self, src)
    }

    /// Writes all of `src` and advances it, piece by piece.
    ///
    /// When the writer can, the pieces of `src` are written together.
    ///
    /// # Errors
    ///
    /// [`WriteZero`](std::io::ErrorKind::WriteZero) if the writer takes no more, and those of the
    /// writer, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it tries again.
    /// `src` then holds what was not written.
    ///
    /// # Cancel safety
    ///
    /// After dropping the future `src` holds what was not written, so another call goes on from there.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use bytes::Buf;
    /// use gmp::io::AsyncWriteExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut writer = Vec::new();
    /// let mut message = (&b"head, "[..]).chain(&b"body"[..]);
    /// writer.write_all_buf(&mut message).await.unwrap();
    /// assert_eq!(writer, b"head, body");
    /// assert!(!message.has_remaining());
    /// # });
    /// ```
    fn write_all_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteAllBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteAllBuf::new(self, src)
    }

    /// Writes all of `src`.
    ///
    /// # Errors
    ///
    /// [`WriteZero`](std::io::ErrorKind::WriteZero) if the writer takes no more, and those of the
    /// writer, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it tries again.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part may have been written, and nobody says how much.
    /// [`write_all_buf`](AsyncWriteExt::write_all_buf) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncWriteExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut writer = Vec::new();
    /// writer.write_all(b"all of it").await.unwrap();
    /// assert_eq!(writer, b"all of it");
    /// # });
    /// ```
    fn write_all<'a>(&'a mut self, src: &'a [u8]) -> WriteAll<'a, Self>
    where
        Self: Unpin,
    {
        WriteAll::new(self, src)
    }

    write_numbers! {
        /// Writes an unsigned integer of one byte.
        fn write_u8(u8, to_big);

        /// Writes a signed integer of one byte.
        fn write_i8(i8, to_big);

        /// Writes an unsigned integer of two bytes, the most significant first.
        fn write_u16(u16, to_big);

        /// Writes a signed integer of two bytes, the most significant first.
        fn write_i16(i16, to_big);

        /// Writes an unsigned integer of four bytes, the most significant first.
        fn write_u32(u32, to_big);

        /// Writes a signed integer of four bytes, the most significant first.
        fn write_i32(i32, to_big);

        /// Writes an unsigned integer of eight bytes, the most significant first.
        fn write_u64(u64, to_big);

        /// Writes a signed integer of eight bytes, the most significant first.
        fn write_i64(i64, to_big);

        /// Writes an unsigned integer of sixteen bytes, the most significant first.
        fn write_u128(u128, to_big);

        /// Writes a signed integer of sixteen bytes, the most significant first.
        fn write_i128(i128, to_big);

        /// Writes a floating-point number of four bytes, the most significant first.
        fn write_f32(f32, to_big);

        /// Writes a floating-point number of eight bytes, the most significant first.
        fn write_f64(f64, to_big);

        /// Writes an unsigned integer of two bytes, the least significant first.
        fn write_u16_le(u16, to_little);

        /// Writes a signed integer of two bytes, the least significant first.
        fn write_i16_le(i16, to_little);

        /// Writes an unsigned integer of four bytes, the least significant first.
        fn write_u32_le(u32, to_little);

        /// Writes a signed integer of four bytes, the least significant first.
        fn write_i32_le(i32, to_little);

        /// Writes an unsigned integer of eight bytes, the least significant first.
        fn write_u64_le(u64, to_little);

        /// Writes a signed integer of eight bytes, the least significant first.
        fn write_i64_le(i64, to_little);

        /// Writes an unsigned integer of sixteen bytes, the least significant first.
        fn write_u128_le(u128, to_little);

        /// Writes a signed integer of sixteen bytes, the least significant first.
        fn write_i128_le(i128, to_little);

        /// Writes a floating-point number of four bytes, the least significant first.
        fn write_f32_le(f32, to_little);

        /// Writes a floating-point number of eight bytes, the least significant first.
        fn write_f64_le(f64, to_little);
    }

    /// Passes on everything that has been written so far.
    ///
    /// # Errors
    ///
    /// Those of the writer; some of it may not have been passed on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what has not been passed on is still in the writer, and
    /// another call goes on from there.
    fn flush(&mut self) -> Flush<'_, Self>
    where
        Self: Unpin,
    {
        Flush::new(self)
    }

    /// Flushes, and then ends the stream in this direction.
    ///
    /// Nothing may be written after it. On a socket the other side reads to the end.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: another call goes on from there.
    fn shutdown(&mut self) -> Shutdown<'_, Self>
    where
        Self: Unpin,
    {
        Shutdown::new(self)
    }
}

impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}
