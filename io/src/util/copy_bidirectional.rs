//! `copy_bidirectional`.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::BUF_SIZE;
use super::copy::Copier;
use crate::{AsyncRead, AsyncWrite};

/// How far one direction is.
enum Direction {
    Copying(Copier),
    /// The reader has ended after so many bytes; the writer is to learn it.
    ShuttingDown(u64),
    Done(u64),
}

impl Direction {
    fn new(buf_size: usize) -> Direction {
        Direction::Copying(Copier::new(buf_size))
    }

    fn poll<R, W>(
        &mut self,
        reader: &mut R,
        writer: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            *self = match self {
                Direction::Copying(copier) => {
                    let (reader, writer) = (Pin::new(&mut *reader), Pin::new(&mut *writer));
                    Direction::ShuttingDown(ready!(copier.poll_copy(reader, writer, cx))?)
                }
                Direction::ShuttingDown(copied) => {
                    ready!(Pin::new(&mut *writer).poll_shutdown(cx))?;
                    Direction::Done(*copied)
                }
                Direction::Done(copied) => return Poll::Ready(Ok(*copied)),
            };
        }
    }
}

/// Copies between `a` and `b` in both directions at once, until both have ended.
///
/// When one side ends, the other is shut down, and the opposite direction goes on. Returns how many
/// bytes went from `a` to `b` and from `b` to `a`. Uses two buffers of 8 KiB.
///
/// As `tokio::io::copy_bidirectional`.
///
/// # Errors
///
/// The first error of either side, which ends both directions, but for
/// [`Interrupted`](io::ErrorKind::Interrupted) from a read or a write, after which it tries again.
/// What has been read and not been written is lost.
///
/// # Cancel safety
///
/// Dropping the future loses what has been read and not been written.
///
/// # Examples
///
/// ```
/// # mod gmp { pub mod io { pub use gmp_io::*; } }
/// use gmp::io::{self, AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut client, mut inbound) = io::duplex(64);
/// let (mut outbound, mut server) = io::duplex(64);
/// client.write_all(b"request").await.unwrap();
/// client.shutdown().await.unwrap();
/// server.write_all(b"response").await.unwrap();
/// server.shutdown().await.unwrap();
/// let (sent, received) = io::copy_bidirectional(&mut inbound, &mut outbound).await.unwrap();
/// assert_eq!((sent, received), (7, 8));
/// # });
/// ```
pub async fn copy_bidirectional<A, B>(a: &mut A, b: &mut B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    copy_both(a, b, Direction::new(BUF_SIZE), Direction::new(BUF_SIZE)).await
}

/// Copies as [`copy_bidirectional`] does, with buffers of these sizes.
///
/// As `tokio::io::copy_bidirectional_with_sizes`.
///
/// # Panics
///
/// If one of the sizes is zero.
///
/// # Errors
///
/// Those of [`copy_bidirectional`].
///
/// # Cancel safety
///
/// Dropping the future loses what has been read and not been written.
pub async fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    assert!(
        a_to_b_buf_size > 0,
        "`a_to_b_buf_size` must be greater than 0"
    );
    assert!(
        b_to_a_buf_size > 0,
        "`b_to_a_buf_size` must be greater than 0"
    );
    let (there, back) = (
        Direction::new(a_to_b_buf_size),
        Direction::new(b_to_a_buf_size),
    );
    copy_both(a, b, there, back).await
}

async fn copy_both<A, B>(
    a: &mut A,
    b: &mut B,
    mut there: Direction,
    mut back: Direction,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    poll_fn(|cx| {
        // Both are polled each time: one of them may wait for what the other one moves.
        let sent = there.poll(a, b, cx)?;
        let received = back.poll(b, a, cx)?;
        Poll::Ready(Ok((ready!(sent), ready!(received))))
    })
    .await
}
