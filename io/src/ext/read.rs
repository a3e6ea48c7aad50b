//! `AsyncReadExt`.

use bytes::BufMut;

use super::number::{Big, Little, ReadNumber};
use super::read_some::{Read, ReadExact, ReadIntoBuf};
use super::read_to_end::{ReadToEnd, ReadToString};
use crate::AsyncRead;
use crate::util::{Chain, Take};

/// The methods that read a number, with what holds for all of them.
macro_rules! read_numbers {
    ($($(#[$doc:meta])* fn $name:ident() -> $number:ty, $order:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the reader ends before, and those
        /// of the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it
        /// tries again.
        ///
        /// # Cancel safety
        ///
        /// Not cancel safe, unless the number is of one byte: what has been read is lost.
        fn $name(&mut self) -> ReadNumber<&mut Self, $number, $order>
        where
            Self: Unpin,
        {
            ReadNumber::new(self)
        }
    )*};
}

/// The methods that every reader has.
///
/// As `tokio::io::AsyncReadExt`.
pub trait AsyncReadExt: AsyncRead {
    /// Reads this reader to its end, and then `next`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut text = String::new();
    /// (&b"head, "[..]).chain(&b"tail"[..]).read_to_string(&mut text).await.unwrap();
    /// assert_eq!(text, "head, tail");
    /// # });
    /// ```
    fn chain<R>(self, next: R) -> Chain<Self, R>
    where
        Self: Sized,
        R: AsyncRead,
    {
        Chain::new(self, next)
    }

    /// Reads what there is into the front of `buf`, and waits only if there is nothing.
    ///
    /// Returns how many bytes were read; zero means that the reader is at its end, perhaps only for
    /// now, or that `buf` is empty.
    ///
    /// # Errors
    ///
    /// Those of the reader; then nothing was read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: it either has read and is done, or has not read.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = &b"some bytes"[..];
    /// let mut buf = [0; 4];
    /// let len = reader.read(&mut buf).await.unwrap();
    /// assert_eq!(&buf[..len], b"some");
    /// # });
    /// ```
    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> Read<'a, Self>
    where
        Self: Unpin,
    {
        Read::new(self, buf)
    }

    /// Reads what there is into the room of `buf` and advances it, and waits only if there is nothing.
    ///
    /// Returns how many bytes were read; zero means that the reader is at its end, perhaps only for
    /// now, or that `buf` has no room. Unlike [`read`](AsyncReadExt::read) it needs no initialized
    /// memory: a `Vec` or a [`BytesMut`](bytes::BytesMut) can be read into as it was allocated.
    ///
    /// # Errors
    ///
    /// Those of the reader; then nothing was read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: it either has read and is done, or has not read.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut reader = &b"some bytes"[..];
    /// let mut buf = Vec::with_capacity(64);
    /// reader.read_buf(&mut buf).await.unwrap();
    /// assert_eq!(buf, b"some bytes");
    /// # });
    /// ```
    fn read_buf<'a, B>(&'a mut self, buf: &'a mut B) -> ReadIntoBuf<'a, Self, B>
    where
        Self: Unpin,
        B: BufMut + ?Sized,
    {
        ReadIntoBuf::new(self, buf)
    }

    /// Reads until `buf` is full; returns its length.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the reader ends before, and those of
    /// the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it tries
    /// again. What is in `buf` then is not specified.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: some bytes may be in `buf` already, and nobody says how many.
    fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> ReadExact<'a, Self>
    where
        Self: Unpin,
    {
        ReadExact::new(self, buf)
    }

    read_numbers! {
        /// Reads an unsigned integer of one byte.
        fn read_u8() -> u8, Big;

        /// Reads a signed integer of one byte.
        fn read_i8() -> i8, Big;

        /// Reads an unsigned integer of two bytes, the most significant first.
        fn read_u16() -> u16, Big;

        /// Reads a signed integer of two bytes, the most significant first.
        fn read_i16() -> i16, Big;

        /// Reads an unsigned integer of four bytes, the most significant first.
        fn read_u32() -> u32, Big;

        /// Reads a signed integer of four bytes, the most significant first.
        fn read_i32() -> i32, Big;

        /// Reads an unsigned integer of eight bytes, the most significant first.
        fn read_u64() -> u64, Big;

        /// Reads a signed integer of eight bytes, the most significant first.
        fn read_i64() -> i64, Big;

        /// Reads an unsigned integer of sixteen bytes, the most significant first.
        fn read_u128() -> u128, Big;

        /// Reads a signed integer of sixteen bytes, the most significant first.
        fn read_i128() -> i128, Big;

        /// Reads a floating-point number of four bytes, the most significant first.
        fn read_f32() -> f32, Big;

        /// Reads a floating-point number of eight bytes, the most significant first.
        fn read_f64() -> f64, Big;

        /// Reads an unsigned integer of two bytes, the least significant first.
        fn read_u16_le() -> u16, Little;

        /// Reads a signed integer of two bytes, the least significant first.
        fn read_i16_le() -> i16, Little;

        /// Reads an unsigned integer of four bytes, the least significant first.
        fn read_u32_le() -> u32, Little;

        /// Reads a signed integer of four bytes, the least significant first.
        fn read_i32_le() -> i32, Little;

        /// Reads an unsigned integer of eight bytes, the least significant first.
        fn read_u64_le() -> u64, Little;

        /// Reads a signed integer of eight bytes, the least significant first.
        fn read_i64_le() -> i64, Little;

        /// Reads an unsigned integer of sixteen bytes, the least significant first.
        fn read_u128_le() -> u128, Little;

        /// Reads a signed integer of sixteen bytes, the least significant first.
        fn read_i128_le() -> i128, Little;

        /// Reads a floating-point number of four bytes, the least significant first.
        fn read_f32_le() -> f32, Little;

        /// Reads a floating-point number of eight bytes, the least significant first.
        fn read_f64_le() -> f64, Little;
    }

    /// Reads to the end and appends it to `buf`; returns how many bytes that were.
    ///
    /// If the capacity of `buf` is exactly what is needed, it stays.
    ///
    /// # Errors
    ///
    /// Those of the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it
    /// tries again. What was read before is in `buf`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the count: what was read is in `buf`.
    fn read_to_end<'a>(&'a mut self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, Self>
    where
        Self: Unpin,
    {
        ReadToEnd::new(self, buf)
    }

    /// Reads to the end and appends it to `dst`; returns how many bytes that were.
    ///
    /// # Errors
    ///
    /// Those of the reader, but for [`Interrupted`](std::io::ErrorKind::Interrupted), after which it
    /// tries again, and [`InvalidData`](std::io::ErrorKind::InvalidData) for what is not UTF-8. After
    /// an error `dst` is as it was, and what was read is lost.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was read is lost, and so may be what `dst` held before.
    fn read_to_string<'a>(&'a mut self, dst: &'a mut String) -> ReadToString<'a, Self>
    where
        Self: Unpin,
    {
        ReadToString::new(self, dst)
    }

    /// A reader of the next `limit` bytes of this one, at most.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::AsyncReadExt;
    ///
    /// # futures::executor::block_on(async {
    /// let mut text = String::new();
    /// (&b"head, tail"[..]).take(4).read_to_string(&mut text).await.unwrap();
    /// assert_eq!(text, "head");
    /// # });
    /// ```
    fn take(self, limit: u64) -> Take<Self>
    where
        Self: Sized,
    {
        Take::new(self, limit)
    }
}

impl<R: AsyncRead + ?Sized> AsyncReadExt for R {}
