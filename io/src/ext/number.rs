//! `read_u8` to `read_f64_le` and `write_u8` to `write_f64_le`: numbers as bytes.

use std::fmt;
use std::future::Future;
use std::io;
use std::marker::{PhantomData, PhantomPinned};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::util::is_interrupted;
use crate::{AsyncRead, AsyncWrite, ReadBuf};

/// A number of a fixed size.
pub trait Number: Sized {
    /// `[u8; size_of::<Self>()]`.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Copy + Default + fmt::Debug;

    /// From bytes, the most significant first.
    fn from_big(bytes: Self::Bytes) -> Self;
    /// From bytes, the least significant first.
    fn from_little(bytes: Self::Bytes) -> Self;
    /// To bytes, the most significant first.
    fn to_big(self) -> Self::Bytes;
    /// To bytes, the least significant first.
    fn to_little(self) -> Self::Bytes;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            type Bytes = [u8; size_of::<$number>()];

            fn from_big(bytes: Self::Bytes) -> Self {
                Self::from_be_bytes(bytes)
            }

            fn from_little(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }

            fn to_big(self) -> Self::Bytes {
                self.to_be_bytes()
            }

            fn to_little(self) -> Self::Bytes {
                self.to_le_bytes()
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

/// The order of the bytes of a number.
pub trait Order {
    /// Makes a number of its bytes.
    fn decode<N: Number>(bytes: N::Bytes) -> N;
}

/// The most significant byte first.
#[derive(Debug)]
pub struct Big;

/// The least significant byte first.
#[derive(Debug)]
pub struct Little;

impl Order for Big {
    fn decode<N: Number>(bytes: N::Bytes) -> N {
        N::from_big(bytes)
    }
}

impl Order for Little {
    fn decode<N: Number>(bytes: N::Bytes) -> N {
        N::from_little(bytes)
    }
}

pin_project! {
    /// Future of the methods that read a number.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadNumber<R, N: Number, O> {
        #[pin]
        reader: R,
        bytes: N::Bytes,
        read: u8,
        _order: PhantomData<O>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<R, N: Number, O> ReadNumber<R, N, O> {
    pub(super) fn new(reader: R) -> Self {
        ReadNumber {
            reader,
            bytes: N::Bytes::default(),
            read: 0,
            _order: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead, N: Number, O: Order> Future for ReadNumber<R, N, O> {
    type Output = io::Result<N>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut me = self.project();
        let bytes = me.bytes.as_mut();
        while usize::from(*me.read) < bytes.len() {
            let mut buf = ReadBuf::new(&mut bytes[usize::from(*me.read)..]);
            match ready!(me.reader.as_mut().poll_read(cx, &mut buf)) {
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
                Ok(()) if buf.filled().is_empty() => {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                // At most sixteen.
                Ok(()) => *me.read += buf.filled().len() as u8,
            }
        }
        Poll::Ready(Ok(O::decode(*me.bytes)))
    }
}

pin_project! {
    /// Future of the methods that write a number.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteNumber<W, N: Number> {
        #[pin]
        writer: W,
        bytes: N::Bytes,
        written: u8,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<W, N: Number> WriteNumber<W, N> {
    pub(super) fn new(writer: W, bytes: N::Bytes) -> Self {
        WriteNumber {
            writer,
            bytes,
            written: 0,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite, N: Number> Future for WriteNumber<W, N> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut me = self.project();
        let bytes = me.bytes.as_ref();
        while usize::from(*me.written) < bytes.len() {
            let rest = &bytes[usize::from(*me.written)..];
            match ready!(me.writer.as_mut().poll_write(cx, rest)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                // At most sixteen.
                Ok(written) => *me.written += written as u8,
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        Poll::Ready(Ok(()))
    }
}
