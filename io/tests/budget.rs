//! Who takes from the budget, and how much: 128 operations a poll of a task.

mod support;

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use gmp_executor::coop;
use gmp_io::{
    AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy,
    copy_bidirectional, copy_buf, duplex, empty, repeat, simplex, sink,
};
use support::{Count, poll_and_drop};

const BUDGET: usize = 128;

/// How many of them are done before one has to yield; then its waker has been woken.
fn done_in_one_poll(mut operation: impl FnMut(&mut Context<'_>) -> Poll<()>) -> usize {
    coop::with_full_budget(|| {
        let (count, waker) = Count::new();
        let mut cx = Context::from_waker(&waker);
        for done in 0..10_000 {
            if operation(&mut cx).is_pending() {
                assert_eq!(count.wakes(), 1, "who yields is woken");
                assert!(!coop::has_budget_remaining());
                return done;
            }
        }
        panic!("never yields");
    })
}

macro_rules! each_costs_one {
    ($($stream:ident = $make:expr => $operation:expr;)*) => {$({
        #[allow(unused_mut, reason = "not all of them need it")]
        let mut $stream = $make;
        let done = done_in_one_poll(|cx| pin!($operation).poll(cx).map(drop));
        assert_eq!(done, BUDGET, stringify!($operation));
    })*};
}

#[test]
fn what_never_waits_costs_one_each() {
    each_costs_one! {
        stream = empty() => stream.read(&mut [0; 4]);
        stream = empty() => gmp_io::AsyncBufReadExt::fill_buf(&mut stream);
        stream = empty() => stream.write(b"x");
        stream = empty() => stream.write_vectored(&[]);
        stream = empty() => stream.flush();
        stream = empty() => stream.shutdown();
        stream = sink() => stream.write(b"x");
        stream = sink() => stream.write_vectored(&[]);
        stream = sink() => stream.flush();
        stream = sink() => stream.shutdown();
        stream = repeat(1) => stream.read(&mut [0; 4]);
    }
    // Before and after the seek.
    let mut stream = empty();
    let done = done_in_one_poll(|cx| pin!(stream.rewind()).poll(cx).map(drop));
    assert_eq!(done, BUDGET / 2);
}

#[test]
fn pipes_cost_one_each() {
    let mut ends = duplex(1 << 20);
    each_costs_one! {
        ends = &mut ends => ends.0.write(b"x");
        ends = &mut ends => ends.0.write_vectored(&[std::io::IoSlice::new(b"x")]);
        ends = &mut ends => ends.1.read(&mut [0; 1]);
    }
    let mut halves = simplex(1 << 20);
    each_costs_one! {
        halves = &mut halves => halves.1.write(b"x");
        halves = &mut halves => halves.0.read(&mut [0; 1]);
    }
}

#[test]
fn waiting_costs_nothing() {
    let (mut a, mut b) = duplex(8);
    coop::with_full_budget(|| {
        for _ in 0..1000 {
            assert!(poll_and_drop(a.read_u8()).is_pending());
        }
        for _ in 0..BUDGET / 2 {
            assert!(poll_and_drop(b.write_u8(1)).is_ready());
            assert!(poll_and_drop(a.read_u8()).is_ready());
        }
        assert!(!coop::has_budget_remaining());
        assert!(poll_and_drop(b.write_u8(1)).is_pending());
    });
}

#[test]
fn outside_a_task_there_is_no_budget() {
    let mut stream = repeat(1);
    for _ in 0..10 * BUDGET {
        assert!(poll_and_drop(stream.read_u8()).is_ready());
    }
}

#[test]
fn an_endless_copy_yields() {
    let yields_once = |future: &mut dyn FnMut(&mut Context<'_>) -> bool| {
        coop::with_full_budget(|| {
            let (count, waker) = Count::new();
            assert!(!future(&mut Context::from_waker(&waker)));
            assert!(count.wakes() >= 1);
        });
    };
    let (mut from, mut to) = (repeat(1), sink());
    let mut future = Box::pin(copy(&mut from, &mut to));
    for _ in 0..3 {
        yields_once(&mut |cx| future.as_mut().poll(cx).is_ready());
    }
    drop(future);

    let mut from = gmp_io::BufReader::new(repeat(1));
    let mut future = Box::pin(copy_buf(&mut from, &mut to));
    yields_once(&mut |cx| future.as_mut().poll(cx).is_ready());
    drop(future);

    let mut a = gmp_io::join(repeat(1), sink());
    let mut b = gmp_io::join(repeat(2), sink());
    let mut future = Box::pin(copy_bidirectional(&mut a, &mut b));
    yields_once(&mut |cx| future.as_mut().poll(cx).is_ready());
}

/// Never waits, never ends and never pays.
struct Free;

impl AsyncRead for Free {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.initialize_unfilled();
        let room = buf.remaining();
        buf.advance(room);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Free {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Both ends of the copy are somebody else's, and the task has spent its budget: the copy must not
/// go round for ever behind that.
#[test]
fn a_copy_between_strangers_yields_when_the_budget_is_spent() {
    coop::with_full_budget(|| {
        let mut other = empty();
        for _ in 0..BUDGET - 1 {
            assert!(poll_and_drop(other.flush()).is_ready());
        }
        assert!(poll_and_drop(copy(&mut Free, &mut Free)).is_pending());
    });
    coop::with_full_budget(|| {
        let mut other = empty();
        for _ in 0..BUDGET - 1 {
            assert!(poll_and_drop(other.flush()).is_ready());
        }
        let mut from = gmp_io::BufReader::new(Free);
        assert!(poll_and_drop(copy_buf(&mut from, &mut Free)).is_pending());
    });
}
