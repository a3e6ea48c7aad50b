//! The types and functions around the traits.

mod buf_reader;
mod buf_stream;
mod buf_writer;
mod chain;
mod copy;
mod copy_bidirectional;
mod copy_buf;
mod empty;
mod halves;
mod join;
mod lines;
mod pipe;
mod repeat;
mod sink;
mod split;
mod take;

use std::io;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;

pub use buf_reader::BufReader;
pub use buf_stream::BufStream;
pub use buf_writer::BufWriter;
pub use chain::Chain;
pub use copy::copy;
pub use copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use copy_buf::copy_buf;
pub use empty::{Empty, empty};
pub use halves::{ReadHalf, WriteHalf, split};
pub use join::{Join, join};
pub use lines::Lines;
pub use pipe::{DuplexStream, SimplexStream, duplex, simplex};
pub use repeat::{Repeat, repeat};
pub use sink::{Sink, sink};
pub use split::Split;
pub use take::Take;

/// The size of a buffer when nobody chose one: that of `std` and tokio.
pub(crate) const BUF_SIZE: usize = 8 * 1024;

/// Pays for an operation that never waits.
#[inline]
fn spend(cx: &mut Context<'_>) -> Poll<()> {
    ready!(coop::poll_proceed(cx)).made_progress();
    Poll::Ready(())
}

/// Goes on, or yields when the budget is spent or the slice is over; costs no budget.
///
/// For loops over readers and writers of other people, which may never wait and never pay.
#[inline]
fn poll_may_go_on(cx: &mut Context<'_>) -> Poll<()> {
    if coop::has_budget_remaining() {
        Poll::Ready(())
    } else {
        coop::poll_proceed(cx).map(drop)
    }
}

/// Whether an operation was only disturbed, and is to be tried again.
#[inline]
pub(crate) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}
