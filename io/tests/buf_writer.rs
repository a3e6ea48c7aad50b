//! `BufWriter`: everything arrives once and in order, in few writes, and nothing is lost to an error.

mod support;

use std::io::{self, Cursor, ErrorKind, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt, BufReader,
    BufWriter,
};
use proptest::prelude::*;
use support::{Call, Read, Script, Write, block_on, data, kind, now, poll_and_drop};

#[test]
fn small_writes_become_one_large_one() {
    let mut writer = BufWriter::with_capacity(4, Script::default());
    now(writer.write_all(b"ab")).unwrap();
    now(writer.write_all(b"cd")).unwrap();
    assert_eq!(writer.get_ref().calls, []);
    assert_eq!(writer.buffer(), b"abcd");
    now(writer.write_all(b"e")).unwrap();
    assert_eq!(writer.get_ref().calls, [Call::Write(4)]);
    now(writer.flush()).unwrap();
    assert_eq!(writer.buffer(), b"");
    let calls = [Call::Write(4), Call::Write(1), Call::Flush];
    assert_eq!(writer.get_ref().calls, calls);
    assert_eq!(writer.into_inner().written, b"abcde");
}

#[test]
fn a_large_write_follows_what_is_buffered_and_is_not_copied() {
    let mut writer = BufWriter::with_capacity(4, Script::writing([Write::UpTo(9), Write::UpTo(3)]));
    now(writer.write_all(b"a")).unwrap();
    assert_eq!(now(writer.write(b"bcdef")).unwrap(), 3);
    assert_eq!(writer.buffer(), b"");
    assert_eq!(writer.get_ref().calls, [Call::Write(1), Call::Write(5)]);
    assert_eq!(writer.get_ref().written, b"abcd");
}

#[test]
fn without_capacity_everything_goes_straight_through() {
    let mut writer = BufWriter::with_capacity(0, Script::default());
    now(writer.write_all(b"a")).unwrap();
    now(writer.write_vectored(&[IoSlice::new(b"b")])).unwrap();
    assert_eq!(writer.get_ref().written, b"ab");
}

#[test]
fn shutdown_passes_the_buffer_on() {
    let mut writer = BufWriter::new(Script::default());
    now(writer.write_all(b"ab")).unwrap();
    now(writer.shutdown()).unwrap();
    assert_eq!(writer.get_ref().calls, [Call::Write(2), Call::Shutdown]);
}

#[test]
fn after_an_error_the_buffer_holds_what_was_not_taken() {
    let mut writer = BufWriter::new(Script::writing([
        Write::UpTo(1),
        Write::Fail(ErrorKind::Interrupted),
        Write::UpTo(1),
        Write::Fail(ErrorKind::TimedOut),
        Write::UpTo(1),
        Write::UpTo(0),
    ]));
    now(writer.write_all(b"abcdef")).unwrap();
    assert_eq!(kind(now(writer.flush())), ErrorKind::TimedOut);
    assert_eq!(writer.buffer(), b"cdef");
    let error = now(writer.flush()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(error.to_string(), "failed to write the buffered data");
    assert_eq!(writer.buffer(), b"def");
    now(writer.flush()).unwrap();
    assert_eq!(writer.get_ref().written, b"abcdef");
}

#[test]
fn a_dropped_flush_writes_nothing_twice() {
    let mut writer = BufWriter::new(Script::writing([
        Write::UpTo(2),
        Write::Hang,
        Write::UpTo(1),
        Write::Hang,
    ]));
    now(writer.write_all(b"abcdef")).unwrap();
    assert!(poll_and_drop(writer.flush()).is_pending());
    assert!(poll_and_drop(writer.flush()).is_pending());
    assert_eq!(writer.get_ref().written, b"abc");
    // What comes in between goes behind.
    now(writer.write_all(b"g")).unwrap();
    now(writer.flush()).unwrap();
    assert_eq!(writer.get_ref().written, b"abcdefg");
}

fn slices<'a>(pieces: &[&'a str]) -> Vec<IoSlice<'a>> {
    pieces
        .iter()
        .map(|piece| IoSlice::new(piece.as_bytes()))
        .collect()
}

#[test]
fn pieces_are_buffered_together() {
    for is_vectored in [false, true] {
        let script = Script::default().vectored_if(is_vectored);
        let mut writer = BufWriter::with_capacity(8, script);
        assert!(writer.is_write_vectored());
        assert_eq!(
            now(writer.write_vectored(&slices(&["", "ab", "", "cd"]))).unwrap(),
            4
        );
        assert_eq!(now(writer.write_vectored(&slices(&["", ""]))).unwrap(), 0);
        assert_eq!(now(writer.write_vectored(&[])).unwrap(), 0);
        assert_eq!(writer.buffer(), b"abcd");
        assert_eq!(writer.get_ref().calls, []);
    }
}

#[test]
fn large_pieces_stay_vectored_if_the_writer_can() {
    let mut writer = BufWriter::with_capacity(4, Script::default().vectored());
    now(writer.write_all(b"x")).unwrap();
    assert_eq!(
        now(writer.write_vectored(&slices(&["ab", "cdef"]))).unwrap(),
        6
    );
    let calls = [Call::Write(1), Call::WriteVectored(vec![2, 4])];
    assert_eq!(writer.get_ref().calls, calls);
    assert_eq!(writer.get_ref().written, b"xabcdef");
}

#[test]
fn a_writer_of_single_pieces_gets_the_first_and_the_rest_waits() {
    let mut writer = BufWriter::with_capacity(4, Script::default());
    // The first does not fit at all, so it goes straight through, alone.
    assert_eq!(
        now(writer.write_vectored(&slices(&["", "abcde", "f"]))).unwrap(),
        5
    );
    assert_eq!(writer.get_ref().calls, [Call::Write(5)]);
    // As many as fit.
    assert_eq!(
        now(writer.write_vectored(&slices(&["ab", "cde", "f"]))).unwrap(),
        2
    );
    assert_eq!(writer.buffer(), b"ab");
    // The first does not fit behind the others, so they go first.
    assert_eq!(
        now(writer.write_vectored(&slices(&["cde", "f", "g"]))).unwrap(),
        4
    );
    assert_eq!(writer.buffer(), b"cdef");
    assert_eq!(writer.get_ref().written, b"abcdeab");
}

#[test]
fn reads_go_straight_through() {
    let mut writer = BufWriter::new(BufReader::new(Script::reading([data("abc")])));
    assert_eq!(now(writer.read_u8()).unwrap(), b'a');
    assert_eq!(now(writer.fill_buf()).unwrap(), b"bc");
    writer.consume(1);
    assert_eq!(now(writer.fill_buf()).unwrap(), b"c");
}

#[test]
fn the_writer_is_within_reach() {
    let mut writer = BufWriter::with_capacity(4, vec![0]);
    now(writer.write_all(b"ab")).unwrap();
    writer.get_mut().push(1);
    Pin::new(&mut writer).get_pin_mut().push(2);
    assert_eq!(
        format!("{writer:?}"),
        "BufWriter { writer: [0, 1, 2], buffer: 2/4, written: 0 }"
    );
    assert_eq!(writer.into_inner(), [0, 1, 2]);
}

#[test]
fn a_seek_passes_the_buffer_on_before() {
    let mut writer = BufWriter::new(Cursor::new(Vec::new()));
    now(writer.write_all(b"abcdef")).unwrap();
    assert_eq!(now(writer.seek(SeekFrom::Current(-4))).unwrap(), 2);
    now(writer.write_all(b"CD")).unwrap();
    assert_eq!(now(writer.stream_position()).unwrap(), 4);
    assert_eq!(now(writer.rewind()).unwrap(), 0);
    now(writer.write_all(b"A")).unwrap();
    now(writer.flush()).unwrap();
    assert_eq!(writer.into_inner().into_inner(), b"AbCDef");
}

/// Fails its first seek; its other seeks take a poll more than they need.
struct Grudging {
    cursor: Cursor<Vec<u8>>,
    has_failed: bool,
    is_underway: bool,
}

impl AsyncWrite for Grudging {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.cursor).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Grudging {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_failed, true) {
            return Err(ErrorKind::Other.into());
        }
        io::Seek::seek(&mut self.cursor, position)?;
        self.is_underway = true;
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if std::mem::take(&mut self.is_underway) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.cursor.position()))
    }
}

#[test]
fn a_seek_that_fails_is_over() {
    let mut writer = BufWriter::new(Grudging {
        cursor: Cursor::new(Vec::new()),
        has_failed: false,
        is_underway: false,
    });
    now(writer.write_all(b"abc")).unwrap();
    assert_eq!(
        kind(block_on(writer.seek(SeekFrom::Start(1)))),
        ErrorKind::Other
    );
    now(writer.write_all(b"d")).unwrap();
    assert_eq!(block_on(writer.seek(SeekFrom::Start(1))).unwrap(), 1);
    assert_eq!(writer.into_inner().cursor.into_inner(), b"abcd");
}

#[derive(Clone, Debug)]
enum Op {
    Write(Vec<u8>),
    Vectored(Vec<Vec<u8>>),
    Flush,
    /// Polls a flush once and drops it.
    HalfFlush,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        4 => bytes().prop_map(Op::Write),
        4 => proptest::collection::vec(bytes(), 0..5).prop_map(Op::Vectored),
        1 => Just(Op::Flush),
        1 => Just(Op::HalfFlush),
    ]
}

fn poll_of_a_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        6 => (1usize..12).prop_map(Write::UpTo),
        2 => Just(Write::Wait),
        1 => Just(Write::Fail(ErrorKind::Interrupted)),
        1 => Just(Write::Fail(ErrorKind::TimedOut)),
    ]
}

/// Runs it and says which bytes were accepted.
async fn accepted(writer: &mut BufWriter<Script>, op: &Op) -> Vec<u8> {
    match op {
        Op::Write(bytes) => match writer.write(bytes).await {
            Ok(len) => bytes[..len].to_vec(),
            Err(_) => Vec::new(),
        },
        Op::Vectored(pieces) => {
            let bufs: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            match writer.write_vectored(&bufs).await {
                Ok(len) => pieces.concat()[..len].to_vec(),
                Err(_) => Vec::new(),
            }
        }
        Op::Flush => {
            if writer.flush().await.is_ok() {
                assert_eq!(writer.buffer(), b"");
            }
            Vec::new()
        }
        Op::HalfFlush => {
            let _ = poll_and_drop(writer.flush());
            Vec::new()
        }
    }
}

proptest! {
    #[test]
    fn what_was_accepted_arrives_once_and_in_order(
        capacity in 0usize..16,
        is_vectored: bool,
        ops in proptest::collection::vec(op(), 0..30),
        polls in proptest::collection::vec(poll_of_a_write(), 0..40),
    ) {
        let mut script = Script::writing(polls);
        script.is_vectored = is_vectored;
        let mut writer = BufWriter::with_capacity(capacity, script);
        let mut expected = Vec::new();
        for op in &ops {
            expected.extend(block_on(accepted(&mut writer, op)));
            prop_assert!(writer.buffer().len() <= capacity);
            prop_assert!(expected.starts_with(&writer.get_ref().written));
        }
        writer.get_mut().writes.clear();
        now(writer.flush()).unwrap();
        prop_assert_eq!(&writer.get_ref().written, &expected);
    }
}

#[test]
fn a_script_can_be_read_and_written_at_once() {
    // The reading side of a `BufWriter` is not held up by its buffer.
    let mut script = Script::reading([Read::Wait, data("in")]);
    script.writes.push_back(Write::Hang);
    let mut writer = BufWriter::new(script);
    now(writer.write_all(b"out")).unwrap();
    assert!(poll_and_drop(writer.flush()).is_pending());
    let mut buf = [0; 2];
    block_on(writer.read_exact(&mut buf)).unwrap();
    assert_eq!(&buf, b"in");
}
