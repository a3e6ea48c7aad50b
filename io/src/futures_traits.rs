//! The traits of `futures` for types that have ours, as macros for the crates that own the types.
//!
//! Only the crate of the type, or that of the trait, may implement the trait, so there can be no
//! implementation for all of gmp's types in one place. A crate writes, for each
//! of its types,
//!
//! ```
//! # use std::{io, pin::Pin, task::{Context, Poll}};
//! # use gmp_io::{AsyncRead, ReadBuf};
//! # struct Stream;
//! # impl AsyncRead for Stream {
//! #     fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>)
//! #         -> Poll<io::Result<()>> { Poll::Ready(Ok(())) }
//! # }
//! # struct Wrapper<T>(T);
//! # impl<T: AsyncRead + Unpin> AsyncRead for Wrapper<T> {
//! #     fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>)
//! #         -> Poll<io::Result<()>> { Pin::new(&mut self.0).poll_read(cx, buf) }
//! # }
//! gmp_io::impl_futures_io!(read: Stream);
//! gmp_io::impl_futures_io!(read: Wrapper<T>, [T: AsyncRead + Unpin]);
//! ```
//!
//! and likewise with `buf_read` and `write`; without the feature the macro is empty. A `seek` is ignored:
//! `futures::io::AsyncSeek` is one method where ours are two, so what bridges them has to remember
//! whether the seek has started. `File` does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};

use crate::ReadBuf;

/// `poll_read` as `futures` has it.
pub fn poll_read<R>(
    reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    buf: &mut [u8],
) -> Poll<io::Result<usize>>
where
    R: crate::AsyncRead + ?Sized,
{
    let mut buf = ReadBuf::new(buf);
    ready!(reader.poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}

/// Implements a trait of `futures` with the methods of ours.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_futures_io {
    (seek: $type:ty $(, [$($generics:tt)*])?) => {};
    (read: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::futures_traits::AsyncRead for $type {
            fn poll_read(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &mut [u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::futures_traits::poll_read(self, cx, buf)
            }
        }
    };
    (buf_read: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::futures_traits::AsyncBufRead for $type {
            fn poll_fill_buf(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<&[u8]>> {
                $crate::AsyncBufRead::poll_fill_buf(self, cx)
            }

            fn consume(self: ::std::pin::Pin<&mut Self>, amt: usize) {
                $crate::AsyncBufRead::consume(self, amt)
            }
        }
    };
    (write: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::futures_traits::AsyncWrite for $type {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::AsyncWrite::poll_write(self, cx, buf)
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bufs: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_close(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::AsyncWrite::poll_shutdown(self, cx)
            }
        }
    };
}
