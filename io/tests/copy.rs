//! `copy`, `copy_buf`: everything arrives, in large writes, flushed when it counts.

mod support;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use gmp_io::{AsyncRead, AsyncWrite, BufReader, BufWriter, ReadBuf, copy, copy_buf, duplex};
use proptest::prelude::*;
use support::{Call, Read, Script, Write, block_on, data, kind, now, poll_and_drop, poll_once};

#[test]
fn everything_is_copied_and_flushed_once_at_the_end() {
    let mut reader = Script::reading([data("abc"), data("de")]);
    let mut writer = Script::default();
    assert_eq!(now(copy(&mut reader, &mut writer)).unwrap(), 5);
    assert_eq!(writer.written, b"abcde");
    assert_eq!(writer.calls, [Call::Write(3), Call::Write(2), Call::Flush]);

    let mut reader = BufReader::with_capacity(3, Script::reading([data("abcde")]));
    let mut writer = Script::default();
    assert_eq!(now(copy_buf(&mut reader, &mut writer)).unwrap(), 5);
    assert_eq!(writer.calls, [Call::Write(3), Call::Write(2), Call::Flush]);
}

#[test]
fn while_the_reader_waits_what_was_written_is_flushed() {
    let reads = || [data("abc"), Read::Hang, Read::Hang, data("d"), Read::Hang];
    let flushed_once = [Call::Write(3), Call::Flush];

    let (mut reader, mut writer) = (Script::reading(reads()), Script::default());
    {
        let mut future = pin!(copy(&mut reader, &mut writer));
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(poll_once(future.as_mut()).is_pending());
    }
    assert_eq!(writer.calls, flushed_once);

    let (mut reader, mut writer) = (BufReader::new(Script::reading(reads())), Script::default());
    {
        let mut future = pin!(copy_buf(&mut reader, &mut writer));
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(poll_once(future.as_mut()).is_pending());
    }
    assert_eq!(writer.calls, flushed_once);
}

#[test]
fn while_the_writer_waits_the_buffer_is_topped_up() {
    let mut reader = Script::reading([data("a"), data("b"), data("c"), data("d")]);
    let mut writer = Script::writing([Write::Hang, Write::Hang]);
    {
        let mut future = pin!(copy(&mut reader, &mut writer));
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(matches!(poll_once(future), Poll::Ready(Ok(4))));
    }
    // One read before and one after each write that had to wait.
    assert_eq!(
        writer.calls,
        [Call::Write(1), Call::Write(3), Call::Write(4), Call::Flush]
    );
}

#[test]
fn interrupted_is_tried_again() {
    let interrupted = || Read::Fail(ErrorKind::Interrupted);
    let reads = || [interrupted(), data("abc"), interrupted()];
    let writes = || [Write::Fail(ErrorKind::Interrupted), Write::UpTo(1)];
    let mut writer = Script::writing(writes());
    assert_eq!(
        now(copy(&mut Script::reading(reads()), &mut writer)).unwrap(),
        3
    );
    assert_eq!(writer.written, b"abc");
    let mut writer = Script::writing(writes());
    let mut reader = BufReader::new(Script::reading(reads()));
    assert_eq!(now(copy_buf(&mut reader, &mut writer)).unwrap(), 3);
    assert_eq!(writer.written, b"abc");
}

#[test]
fn errors_of_either_side_are_returned() {
    let failing = || Script::reading([data("ab"), Read::Fail(ErrorKind::TimedOut)]);
    let mut writer = Script::default();
    let result = now(copy(&mut failing(), &mut writer));
    assert_eq!(kind(result), ErrorKind::TimedOut);
    assert_eq!(writer.written, b"ab");
    let result = now(copy_buf(&mut BufReader::new(failing()), &mut writer));
    assert_eq!(kind(result), ErrorKind::TimedOut);

    for (write, expected) in [
        (Write::Fail(ErrorKind::BrokenPipe), ErrorKind::BrokenPipe),
        (Write::UpTo(0), ErrorKind::WriteZero),
    ] {
        let mut writer = Script::writing([write.clone()]);
        assert_eq!(kind(now(copy(&mut &b"ab"[..], &mut writer))), expected);
        let mut writer = Script::writing([write]);
        assert_eq!(kind(now(copy_buf(&mut &b"ab"[..], &mut writer))), expected);
    }
    let error = now(copy(
        &mut &b"ab"[..],
        &mut Script::writing([Write::UpTo(0)]),
    ))
    .unwrap_err();
    assert_eq!(error.to_string(), "write zero byte into writer");
}

#[test]
fn a_dropped_copy_buf_loses_nothing() {
    let mut reader = BufReader::new(Script::reading([data("abcd")]));
    let mut writer = Script::writing([Write::UpTo(1), Write::Hang]);
    assert!(poll_and_drop(copy_buf(&mut reader, &mut writer)).is_pending());
    assert_eq!(now(copy_buf(&mut reader, &mut writer)).unwrap(), 3);
    assert_eq!(writer.written, b"abcd");
}

/// Says that it wrote more than it was given.
struct Boasting;

impl AsyncWrite for Boasting {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len() + 1))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_writer_that_took_more_than_there_was_is_found_out() {
    let panic = support::panic_of(|| drop(now(copy(&mut &b"ab"[..], &mut Boasting))));
    assert_eq!(panic.unwrap().1, "the writer took 3 of 2 bytes");
}

/// An echo that answers only what was flushed: a copy that kept bytes back would wait for ever.
struct Echo(RefCell<EchoState>);

struct EchoState {
    written: VecDeque<u8>,
    flushed: usize,
    left: usize,
}

impl AsyncRead for &Echo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut echo = self.0.borrow_mut();
        if echo.left == 0 {
            return Poll::Ready(Ok(()));
        }
        if echo.flushed == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        echo.flushed -= 1;
        echo.left -= 1;
        let byte = echo
            .written
            .pop_front()
            .expect("what was flushed was written");
        buf.put_slice(&[byte]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for &Echo {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().written.extend(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut echo = self.0.borrow_mut();
        echo.flushed = echo.written.len();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_reader_that_waits_for_the_writer_is_not_waited_for() {
    let echo = Echo(RefCell::new(EchoState {
        written: VecDeque::from([1]),
        flushed: 1,
        left: 100,
    }));
    let mut writer = BufWriter::new(&echo);
    assert_eq!(block_on(copy(&mut &echo, &mut writer)).unwrap(), 100);
    echo.0.borrow_mut().left = 100;
    let mut reader = BufReader::new(&echo);
    assert_eq!(block_on(copy_buf(&mut reader, &mut writer)).unwrap(), 100);
}

#[test]
fn more_than_a_buffer_goes_through_a_narrow_pipe() {
    let bytes: Vec<u8> = (0..100_000).map(|n| n as u8).collect();
    let (mut near, mut far) = duplex(37);
    let send = async {
        let mut near = &mut near;
        let mut source = &bytes[..];
        copy(&mut source, &mut near).await.unwrap();
        gmp_io::AsyncWriteExt::shutdown(near).await.unwrap();
    };
    let mut received = Vec::new();
    let receive = copy(&mut far, &mut received);
    let ((), count) = block_on(futures::future::join(send, receive));
    assert_eq!(count.unwrap(), 100_000);
    assert_eq!(received, bytes);
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    // Large ones too, so that a piece is more than the buffer of a copy.
    let piece = prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 1..30),
        1 => (8_000usize..20_000).prop_map(|len| (0..len).map(|n| n as u8).collect()),
    ];
    proptest::collection::vec(piece, 0..8)
}

fn reads(pieces: &[Vec<u8>]) -> Script {
    Script::reading(
        pieces
            .iter()
            .flat_map(|piece| [Read::Wait, Read::Fail(ErrorKind::Interrupted), data(piece)]),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn everything_arrives_whatever_the_pieces(
        pieces in pieces(),
        capacity in 1usize..9_000,
        writes in proptest::collection::vec(1usize..5_000, 0..40),
    ) {
        let all = pieces.concat();
        let writer = || Script::writing(writes.iter().flat_map(|most| {
            [Write::Wait, Write::UpTo(*most), Write::Fail(ErrorKind::Interrupted)]
        }));

        let mut to = writer();
        let copied = block_on(copy(&mut reads(&pieces), &mut to)).unwrap();
        prop_assert_eq!(copied, all.len() as u64);
        prop_assert!(to.written == all);
        prop_assert_eq!(to.calls.last(), Some(&Call::Flush));

        let mut to = writer();
        let mut from = BufReader::with_capacity(capacity, reads(&pieces));
        let copied = block_on(copy_buf(&mut from, &mut to)).unwrap();
        prop_assert_eq!(copied, all.len() as u64);
        prop_assert!(to.written == all);
        prop_assert_eq!(to.calls.last(), Some(&Call::Flush));
    }
}
