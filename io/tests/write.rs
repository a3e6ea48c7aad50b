//! `write` and its relatives: what they pass on, what they retry, what a drop loses.

mod support;

use std::io::{ErrorKind, IoSlice};
use std::pin::pin;
use std::task::Poll;

use bytes::{Buf, Bytes};
use gmp_io::AsyncWriteExt;
use proptest::prelude::*;
use support::{Call, Script, Write, block_on, kind, now, poll_and_drop, poll_once};

#[test]
fn write_returns_what_was_taken() {
    let mut writer = Script::writing([Write::UpTo(2), Write::Wait, Write::UpTo(9), Write::UpTo(0)]);
    assert_eq!(now(writer.write(b"abc")).unwrap(), 2);
    assert_eq!(block_on(writer.write(b"cd")).unwrap(), 2);
    assert_eq!(now(writer.write(b"e")).unwrap(), 0);
    assert_eq!(writer.written, b"abcd");
}

#[test]
fn write_hands_errors_on() {
    let mut writer = Script::writing([Write::Fail(ErrorKind::Interrupted)]);
    assert_eq!(kind(now(writer.write(b"abc"))), ErrorKind::Interrupted);
}

#[test]
fn a_dropped_write_has_written_nothing() {
    let mut writer = Script::writing([Write::Hang, Write::Hang]);
    assert!(poll_and_drop(writer.write(b"abc")).is_pending());
    let mut buf = Bytes::from_static(b"abc");
    assert!(poll_and_drop(writer.write_buf(&mut buf)).is_pending());
    assert_eq!(buf.remaining(), 3);
    assert_eq!(writer.written, b"");
}

#[test]
fn a_vectored_write_stays_vectored() {
    let bufs = [IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    let mut writer = Script::writing([Write::UpTo(3)]).vectored();
    assert_eq!(now(writer.write_vectored(&bufs)).unwrap(), 3);
    assert_eq!(writer.calls, [Call::WriteVectored(vec![2, 2])]);
    assert_eq!(writer.written, b"abc");
}

#[test]
fn write_buf_writes_all_pieces_together_if_the_writer_can() {
    let mut writer = Script::writing([Write::UpTo(3)]).vectored();
    let mut buf = Bytes::from_static(b"ab").chain(&b"cd"[..]);
    assert_eq!(now(writer.write_buf(&mut buf)).unwrap(), 3);
    assert_eq!(now(writer.write_buf(&mut buf)).unwrap(), 1);
    assert_eq!(now(writer.write_buf(&mut buf)).unwrap(), 0);
    assert_eq!(
        writer.calls,
        [
            Call::WriteVectored(vec![2, 2]),
            Call::WriteVectored(vec![1])
        ]
    );

    let mut writer = Script::default();
    let mut buf = Bytes::from_static(b"ab").chain(&b"cd"[..]);
    assert_eq!(now(writer.write_buf(&mut buf)).unwrap(), 2);
    assert_eq!(writer.calls, [Call::Write(2)]);
    assert_eq!(buf.remaining(), 2);
}

/// Many pieces of one byte.
struct Crumbs(usize);

impl Buf for Crumbs {
    fn remaining(&self) -> usize {
        self.0
    }

    fn chunk(&self) -> &[u8] {
        &b"."[..self.0.min(1)]
    }

    fn advance(&mut self, cnt: usize) {
        self.0 -= cnt;
    }

    fn chunks_vectored<'a>(&'a self, dst: &mut [IoSlice<'a>]) -> usize {
        let count = dst.len().min(self.0);
        dst[..count].fill(IoSlice::new(b"."));
        count
    }
}

#[test]
fn many_pieces_are_written_64_at_a_time() {
    let mut writer = Script::default().vectored();
    now(writer.write_all_buf(&mut Crumbs(150))).unwrap();
    let lens: Vec<_> = writer
        .calls
        .iter()
        .map(|call| match call {
            Call::WriteVectored(lens) => lens.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lens, [64, 64, 22]);
}

#[test]
fn write_all_goes_on_until_all_is_written() {
    let mut writer = Script::writing([
        Write::UpTo(2),
        Write::Fail(ErrorKind::Interrupted),
        Write::Wait,
        Write::UpTo(1),
    ]);
    block_on(writer.write_all(b"abcdef")).unwrap();
    assert_eq!(writer.written, b"abcdef");
    let lens = [6, 4, 4, 4, 3].map(Call::Write);
    assert_eq!(writer.calls, lens);
    now(writer.write_all(b"")).unwrap();
    assert_eq!(writer.calls.len(), 5);
}

#[test]
fn write_all_fails_when_nothing_is_taken_any_more() {
    let mut writer = Script::writing([Write::UpTo(2), Write::UpTo(0)]);
    assert_eq!(kind(now(writer.write_all(b"abc"))), ErrorKind::WriteZero);
    let mut writer = Script::writing([Write::UpTo(2), Write::Fail(ErrorKind::BrokenPipe)]);
    assert_eq!(kind(now(writer.write_all(b"abc"))), ErrorKind::BrokenPipe);
    assert_eq!(writer.written, b"ab");
}

#[test]
fn write_all_buf_advances_by_what_was_written_whatever_happens() {
    let mut buf = Bytes::from_static(b"abcdef");
    let mut writer = Script::writing([
        Write::UpTo(1),
        Write::Fail(ErrorKind::Interrupted),
        Write::UpTo(1),
        Write::Fail(ErrorKind::TimedOut),
        Write::UpTo(1),
        Write::UpTo(0),
        Write::UpTo(1),
        Write::Hang,
    ]);
    assert_eq!(
        kind(now(writer.write_all_buf(&mut buf))),
        ErrorKind::TimedOut
    );
    assert_eq!(buf, "cdef");
    assert_eq!(
        kind(now(writer.write_all_buf(&mut buf))),
        ErrorKind::WriteZero
    );
    assert_eq!(buf, "def");
    // Dropped while it waits: it can be taken up where it was.
    assert!(poll_and_drop(writer.write_all_buf(&mut buf)).is_pending());
    assert_eq!(buf, "ef");
    now(writer.write_all_buf(&mut buf)).unwrap();
    assert_eq!(writer.written, b"abcdef");
    assert!(buf.is_empty());
}

#[test]
fn a_pending_write_all_keeps_its_place() {
    let mut writer = Script::writing([Write::UpTo(2), Write::Hang]);
    let mut future = pin!(writer.write_all(b"abcd"));
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(matches!(poll_once(future), Poll::Ready(Ok(()))));
    assert_eq!(writer.written, b"abcd");
}

#[test]
fn flush_and_shutdown_reach_the_writer() {
    let mut writer = Script::default();
    now(writer.flush()).unwrap();
    now(writer.shutdown()).unwrap();
    assert_eq!(writer.calls, [Call::Flush, Call::Shutdown]);
}

proptest! {
    #[test]
    fn everything_arrives_in_order(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..6),
        takes in proptest::collection::vec(1usize..8, 0..40),
        is_vectored: bool,
    ) {
        let all = pieces.concat();
        let script = || {
            let mut script = Script::writing(takes.iter().flat_map(|most| {
                [Write::Wait, Write::Fail(ErrorKind::Interrupted), Write::UpTo(*most)]
            }));
            script.is_vectored = is_vectored;
            script
        };
        let mut writer = script();
        block_on(writer.write_all(&all)).unwrap();
        prop_assert_eq!(&writer.written, &all);

        let mut writer = script();
        let bytes = |piece: &Vec<u8>| Bytes::copy_from_slice(piece);
        let (first, rest) = pieces.split_first().unwrap();
        let mut buf = bytes(first).chain(bytes(&rest.concat()));
        block_on(writer.write_all_buf(&mut buf)).unwrap();
        prop_assert_eq!(&writer.written, &all);
        prop_assert!(!buf.has_remaining());
    }
}
