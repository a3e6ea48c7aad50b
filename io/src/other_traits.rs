//! The traits of `futures` and of the registry's tokio for the types of this crate, if the features
//! `futures-io` and `tokio-io` are on.

/// Implements the traits of those features that are on; see the modules `futures_traits` and
/// `tokio_traits`. Each line names a trait of ours that the type has.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_other_traits {
    ($($trait:ident: $type:ty $(, [$($generics:tt)*])?;)*) => {
        $(
            $crate::impl_futures_io!($trait: $type $(, [$($generics)*])?);
            $crate::impl_tokio_io!($trait: $type $(, [$($generics)*])?);
        )*
    };
}

#[cfg(not(feature = "futures-io"))]
#[doc(hidden)]
#[macro_export]
macro_rules! impl_futures_io {
    ($($anything:tt)*) => {};
}

#[cfg(not(feature = "tokio-io"))]
#[doc(hidden)]
#[macro_export]
macro_rules! impl_tokio_io {
    ($($anything:tt)*) => {};
}

#[cfg(any(feature = "futures-io", feature = "tokio-io"))]
mod types {
    use crate::*;

    impl_other_traits! {
        read: BufReader<R>, [R: AsyncRead];
        buf_read: BufReader<R>, [R: AsyncRead];
        write: BufReader<RW>, [RW: AsyncRead + AsyncWrite];
        seek: BufReader<R>, [R: AsyncRead + AsyncSeek];
        read: BufWriter<RW>, [RW: AsyncRead + AsyncWrite];
        buf_read: BufWriter<RW>, [RW: AsyncBufRead + AsyncWrite];
        write: BufWriter<W>, [W: AsyncWrite];
        seek: BufWriter<W>, [W: AsyncWrite + AsyncSeek];
        read: BufStream<RW>, [RW: AsyncRead + AsyncWrite];
        buf_read: BufStream<RW>, [RW: AsyncRead + AsyncWrite];
        write: BufStream<RW>, [RW: AsyncRead + AsyncWrite];
        seek: BufStream<RW>, [RW: AsyncRead + AsyncWrite + AsyncSeek];
        read: Chain<T, U>, [T: AsyncRead, U: AsyncRead];
        buf_read: Chain<T, U>, [T: AsyncBufRead, U: AsyncBufRead];
        read: Take<R>, [R: AsyncRead];
        buf_read: Take<R>, [R: AsyncBufRead];
        read: Join<R, W>, [R: AsyncRead, W];
        buf_read: Join<R, W>, [R: AsyncBufRead, W];
        write: Join<R, W>, [R, W: AsyncWrite];
        read: ReadHalf<T>, [T: AsyncRead];
        write: WriteHalf<T>, [T: AsyncWrite];
        read: DuplexStream;
        write: DuplexStream;
        read: SimplexStream;
        write: SimplexStream;
        read: Empty;
        buf_read: Empty;
        write: Empty;
        seek: Empty;
        write: Sink;
        read: Repeat;
    }
}
