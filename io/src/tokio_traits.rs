//! The traits of the registry's tokio for types that have ours, as macros for the crates that own the
//! types; see the module for `futures` beside this one.
//!
//! ```
//! # use std::{io, pin::Pin, task::{Context, Poll}};
//! # use gmp_io::{AsyncRead, ReadBuf};
//! # struct Stream;
//! # impl AsyncRead for Stream {
//! #     fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>)
//! #         -> Poll<io::Result<()>> { Poll::Ready(Ok(())) }
//! # }
//! gmp_io::impl_tokio_io!(read: Stream);
//! ```
//!
//! and likewise with `buf_read`, `write` and `seek`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use tokio_io::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

/// `poll_read` into tokio's `ReadBuf`.
pub fn poll_read<R>(
    reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    theirs: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>>
where
    R: crate::AsyncRead + ?Sized,
{
    let known = theirs.initialized().len() - theirs.filled().len();
    // SAFETY: our `ReadBuf` never makes a byte uninitialized (its third invariant).
    let unfilled = unsafe { theirs.unfilled_mut() };
    let mut ours = crate::ReadBuf::uninit(unfilled);
    // SAFETY: theirs says that so many bytes behind the filled ones are initialized.
    unsafe { ours.assume_init(known) };
    let address = ours.initialized().as_ptr();
    let result = reader.poll_read(cx, &mut ours);
    assert_eq!(
        ours.initialized().as_ptr(),
        address,
        "the reader exchanged the buffer it was given"
    );
    let (filled, initialized) = (ours.filled().len(), ours.initialized().len());
    // SAFETY: ours is the unfilled part of theirs (just checked) and counts as initialized only what
    // is.
    unsafe { theirs.assume_init(initialized) };
    theirs.advance(filled);
    result
}

/// Implements a trait of the registry's tokio with the methods of ours.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_tokio_io {
    (read: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::tokio_traits::AsyncRead for $type {
            fn poll_read(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &mut $crate::tokio_traits::ReadBuf<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::tokio_traits::poll_read(self, cx, buf)
            }
        }
    };
    (buf_read: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::tokio_traits::AsyncBufRead for $type {
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
        impl $(<$($generics)*>)? $crate::tokio_traits::AsyncWrite for $type {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::AsyncWrite::poll_write(self, cx, buf)
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                $crate::AsyncWrite::poll_shutdown(self, cx)
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bufs: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                $crate::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                $crate::AsyncWrite::is_write_vectored(self)
            }
        }
    };
    (seek: $type:ty $(, [$($generics:tt)*])?) => {
        impl $(<$($generics)*>)? $crate::tokio_traits::AsyncSeek for $type {
            fn start_seek(
                self: ::std::pin::Pin<&mut Self>,
                position: ::std::io::SeekFrom,
            ) -> ::std::io::Result<()> {
                $crate::AsyncSeek::start_seek(self, position)
            }

            fn poll_complete(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<u64>> {
                $crate::AsyncSeek::poll_complete(self, cx)
            }
        }
    };
}
