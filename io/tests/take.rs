//! `take`: never a byte too many, and no question behind the limit.

mod support;

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, ReadBuf};
use proptest::prelude::*;
use support::{Call, Read, Script, data, kind, now};

#[test]
fn it_ends_at_the_limit_without_asking() {
    let mut take = Script::reading([data("abcdef"), Read::Hang]).take(4);
    let mut buf = [0; 8];
    assert_eq!(now(take.read(&mut buf)).unwrap(), 4);
    assert_eq!(&buf[..4], b"abcd");
    assert_eq!(take.limit(), 0);
    assert_eq!(now(take.read(&mut buf)).unwrap(), 0);
    assert_eq!(take.get_ref().calls, [Call::Read]);
    assert_eq!(now(take.into_inner().read(&mut buf)).unwrap(), 2);
}

#[test]
fn it_may_end_before_the_limit() {
    let mut take = (&b"abc"[..]).take(u64::MAX);
    let mut bytes = Vec::new();
    assert_eq!(now(take.read_to_end(&mut bytes)).unwrap(), 3);
    assert_eq!(take.limit(), u64::MAX - 3);
}

#[test]
fn the_limit_can_be_changed() {
    let mut take = (&b"abcdef"[..]).take(1);
    assert_eq!(now(take.read_u8()).unwrap(), b'a');
    assert_eq!(kind(now(take.read_u8())), ErrorKind::UnexpectedEof);
    take.set_limit(2);
    assert_eq!(now(take.read_u16()).unwrap(), 0x6263);
    take.get_mut().consume(1);
    take.set_limit(10);
    assert_eq!(**Pin::new(&mut take).get_pin_mut(), *b"ef");
    assert_eq!(format!("{take:?}"), "Take { inner: [101, 102], left: 10 }");
}

#[test]
fn errors_and_waits_cost_nothing() {
    let mut take =
        Script::reading([Read::Wait, Read::Fail(ErrorKind::TimedOut), data("a")]).take(1);
    assert!(support::poll_and_drop(take.read_u8()).is_pending());
    assert_eq!(kind(now(take.read_u8())), ErrorKind::TimedOut);
    assert_eq!(take.limit(), 1);
    assert_eq!(now(take.read_u8()).unwrap(), b'a');
}

#[test]
fn the_buffer_ends_at_the_limit() {
    let mut take = (&b"abcdef"[..]).take(4);
    assert_eq!(now(take.fill_buf()).unwrap(), b"abcd");
    take.consume(3);
    assert_eq!(now(take.fill_buf()).unwrap(), b"d");
    // More than there is takes what there is.
    take.consume(100);
    assert_eq!(now(take.fill_buf()).unwrap(), b"");
    assert_eq!(take.limit(), 0);
    assert_eq!(*take.get_ref(), b"ef");
}

/// Initializes all it is given and fills one byte.
struct Initializing;

impl AsyncRead for Initializing {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.initialize_unfilled();
        buf.put_slice(b"x");
        Poll::Ready(Ok(()))
    }
}

#[test]
fn what_the_reader_initialized_is_passed_on() {
    let mut storage = [std::mem::MaybeUninit::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut storage);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let poll = Pin::new(&mut Initializing.take(5)).poll_read(&mut cx, &mut buf);
    assert!(poll.is_ready());
    assert_eq!(buf.filled(), b"x");
    assert_eq!(buf.initialized(), b"x\0\0\0\0");
}

proptest! {
    #[test]
    fn it_reads_as_std_does(len in 0usize..40, limit in 0u64..50, reads in proptest::collection::vec(0usize..15, 0..10)) {
        use std::io::Read as _;
        let bytes = vec![1; len];
        let mut ours = AsyncReadExt::take(&bytes[..], limit);
        let mut std = std::io::Read::take(&bytes[..], limit);
        for n in reads {
            let mut buf = vec![0; n];
            prop_assert_eq!(now(AsyncReadExt::read(&mut ours, &mut buf)).unwrap(), std.read(&mut buf).unwrap());
            prop_assert_eq!(ours.limit(), std.limit());
        }
    }
}
