//! `BufReader`: the same bytes and positions as `std`'s, few reads, and writes straight through.

mod support;

use std::io::{self, Cursor, ErrorKind, IoSlice, Read as _, Seek as _, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt,
    BufReader, ReadBuf,
};
use proptest::prelude::*;
use support::{Call, Read, Script, block_on, data, kind, now, panic_of, poll_and_drop};

#[test]
fn small_reads_are_served_from_one_large_one() {
    let mut reader = BufReader::with_capacity(8, Script::reading([data("abcdefghij")]));
    let mut buf = [0; 3];
    for expected in [b"abc", b"def"] {
        assert_eq!(now(reader.read(&mut buf)).unwrap(), 3);
        assert_eq!(&buf, expected);
    }
    assert_eq!(reader.buffer(), b"gh");
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 2);
    assert_eq!(reader.get_ref().calls, [Call::Read]);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 2);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 0);
}

#[test]
fn a_large_read_passes_an_empty_buffer_by() {
    let mut reader = BufReader::with_capacity(4, Script::reading([data("abcdef"), data("gh")]));
    assert_eq!(now(reader.fill_buf()).unwrap(), b"abcd");
    reader.consume(1);
    let mut buf = [0; 8];
    // First what is buffered.
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 3);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 2);
    assert_eq!(&buf[..2], b"ef");
    assert_eq!(reader.buffer(), b"");
    assert_eq!(now(reader.read(&mut buf[..4])).unwrap(), 2);
    assert_eq!(reader.buffer(), b"");
}

#[test]
fn waits_and_errors_lose_nothing() {
    let mut reader = BufReader::with_capacity(
        4,
        Script::reading([
            data("ab"),
            Read::Wait,
            Read::Fail(ErrorKind::TimedOut),
            data("c"),
        ]),
    );
    let mut buf = [0; 2];
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 2);
    assert!(poll_and_drop(reader.read(&mut buf)).is_pending());
    assert_eq!(kind(now(reader.read(&mut buf))), ErrorKind::TimedOut);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 1);
    assert_eq!(buf[0], b'c');
}

#[test]
fn consuming_too_much_consumes_all() {
    let mut reader = BufReader::new(&b"abc"[..]);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"abc");
    reader.consume(usize::MAX);
    assert_eq!(reader.buffer(), b"");
    assert_eq!(now(reader.fill_buf()).unwrap(), b"");
}

#[test]
fn writes_go_straight_through() {
    let mut reader = BufReader::new(Script::default().vectored());
    now(reader.write_all(b"ab")).unwrap();
    assert!(reader.is_write_vectored());
    now(reader.write_vectored(&[IoSlice::new(b"c"), IoSlice::new(b"d")])).unwrap();
    now(reader.flush()).unwrap();
    now(reader.shutdown()).unwrap();
    let script = reader.into_inner();
    let pieces = Call::WriteVectored(vec![1, 1]);
    assert_eq!(
        script.calls,
        [Call::Write(2), pieces, Call::Flush, Call::Shutdown]
    );
    assert_eq!(script.written, b"abcd");
}

#[test]
fn the_reader_is_within_reach() {
    let mut reader = BufReader::new(&b"abc"[..]);
    assert_eq!(*reader.get_ref(), b"abc");
    *reader.get_mut() = b"xy";
    assert_eq!(*Pin::new(&mut reader).get_pin_mut(), b"xy");
    assert_eq!(now(reader.read_u8()).unwrap(), b'x');
    assert_eq!(
        format!("{reader:?}"),
        r#"BufReader { reader: [], buffer: 1/8192 }"#
    );
    assert_eq!(reader.into_inner(), b"");
}

#[test]
fn no_capacity_panics_at_the_caller() {
    let (file, text) = panic_of(|| drop(BufReader::with_capacity(0, &b""[..]))).unwrap();
    assert_eq!(file, file!());
    assert_eq!(text, "capacity must be greater than zero");
}

/// A cursor whose seeks take a poll more than they need, and that notes them.
struct SlowSeek {
    cursor: Cursor<Vec<u8>>,
    seeks: Vec<SeekFrom>,
    is_underway: bool,
}

impl SlowSeek {
    fn new(bytes: &[u8]) -> SlowSeek {
        SlowSeek {
            cursor: Cursor::new(bytes.to_vec()),
            seeks: Vec::new(),
            is_underway: false,
        }
    }
}

impl AsyncRead for SlowSeek {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.cursor).poll_read(cx, buf)
    }
}

impl AsyncSeek for SlowSeek {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        assert!(!self.is_underway, "one seek at a time");
        self.seeks.push(position);
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
fn a_seek_starts_where_the_consumer_is() {
    let mut reader = BufReader::with_capacity(6, SlowSeek::new(b"0123456789"));
    assert_eq!(now(reader.read_u16()).unwrap(), 0x3031);
    assert_eq!(reader.buffer(), b"2345");
    assert_eq!(block_on(reader.seek(SeekFrom::Current(1))).unwrap(), 3);
    assert_eq!(reader.get_ref().seeks, [SeekFrom::Current(-3)]);
    assert_eq!(reader.buffer(), b"");
    assert_eq!(now(reader.read_u8()).unwrap(), b'3');
    assert_eq!(block_on(reader.stream_position()).unwrap(), 4);
    assert_eq!(block_on(reader.seek(SeekFrom::End(-1))).unwrap(), 9);
    assert_eq!(now(reader.read_u8()).unwrap(), b'9');
}

#[test]
fn an_offset_too_large_to_correct_takes_two_seeks() {
    let mut reader = BufReader::with_capacity(6, SlowSeek::new(b"0123456789"));
    now(reader.read_u8()).unwrap();
    let result = block_on(reader.seek(SeekFrom::Current(i64::MIN)));
    assert_eq!(kind(result), ErrorKind::InvalidInput);
    let seeks = [SeekFrom::Current(-5), SeekFrom::Current(i64::MIN)];
    assert_eq!(reader.get_ref().seeks, seeks);
    // The first seek has been made, so what was buffered is read again.
    assert_eq!(reader.buffer(), b"");
    assert_eq!(now(reader.read_u8()).unwrap(), b'1');
}

#[test]
fn a_seek_that_fails_keeps_the_buffer() {
    let mut reader = BufReader::with_capacity(6, SlowSeek::new(b"0123456789"));
    now(reader.read_u8()).unwrap();
    let result = block_on(reader.seek(SeekFrom::Current(-2)));
    assert_eq!(kind(result), ErrorKind::InvalidInput);
    assert_eq!(reader.buffer(), b"12345");
    assert_eq!(now(reader.read_u8()).unwrap(), b'1');
    assert_eq!(block_on(reader.stream_position()).unwrap(), 2);
}

#[derive(Clone, Debug)]
enum Op {
    Read(usize),
    Exact(usize),
    Fill(usize),
    Seek(SeekFrom),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0usize..20).prop_map(Op::Read),
        (0usize..20).prop_map(Op::Exact),
        (0usize..20).prop_map(Op::Fill),
        (0u64..80).prop_map(|n| Op::Seek(SeekFrom::Start(n))),
        (-20i64..20).prop_map(|n| Op::Seek(SeekFrom::Current(n))),
        (-80i64..20).prop_map(|n| Op::Seek(SeekFrom::End(n))),
        prop_oneof![Just(i64::MIN), Just(i64::MAX)].prop_map(|n| Op::Seek(SeekFrom::Current(n))),
    ]
}

type Std = std::io::BufReader<Cursor<Vec<u8>>>;

/// What came of it, in a form to compare.
fn std_outcome(reader: &mut Std, op: &Op) -> Result<(u64, Vec<u8>), ErrorKind> {
    let outcome = match *op {
        Op::Read(n) => {
            let mut buf = vec![0; n];
            reader.read(&mut buf).map(|read| (read as u64, buf))
        }
        Op::Exact(n) => {
            let mut buf = vec![0; n];
            reader.read_exact(&mut buf).map(|()| (n as u64, buf))
        }
        Op::Fill(n) => {
            let filled = std::io::BufRead::fill_buf(reader).map(|buf| buf.to_vec());
            filled.map(|buf| {
                std::io::BufRead::consume(reader, n.min(buf.len()));
                (0, buf)
            })
        }
        Op::Seek(to) => reader.seek(to).map(|position| (position, Vec::new())),
    };
    outcome.map_err(|e| e.kind())
}

async fn our_outcome(
    reader: &mut BufReader<SlowSeek>,
    op: &Op,
) -> Result<(u64, Vec<u8>), ErrorKind> {
    let outcome = match *op {
        Op::Read(n) => {
            let mut buf = vec![0; n];
            reader.read(&mut buf).await.map(|read| (read as u64, buf))
        }
        Op::Exact(n) => {
            let mut buf = vec![0; n];
            reader.read_exact(&mut buf).await.map(|n| (n as u64, buf))
        }
        Op::Fill(n) => {
            let filled = reader.fill_buf().await.map(|buf| buf.to_vec());
            filled.map(|buf| {
                reader.consume(n.min(buf.len()));
                (0, buf)
            })
        }
        Op::Seek(to) => reader.seek(to).await.map(|position| (position, Vec::new())),
    };
    outcome.map_err(|e| e.kind())
}

proptest! {
    #[test]
    fn it_does_what_std_does(
        len in 0usize..70,
        capacity in 1usize..16,
        ops in proptest::collection::vec(op(), 0..30),
    ) {
        let bytes: Vec<u8> = (0..len as u8).collect();
        let mut std = Std::with_capacity(capacity, Cursor::new(bytes.clone()));
        let mut ours = BufReader::with_capacity(capacity, SlowSeek::new(&bytes));
        for op in &ops {
            let expected = std_outcome(&mut std, op);
            let outcome = block_on(our_outcome(&mut ours, op));
            // After a short `read_exact` neither says where it is.
            let is_lost = matches!(op, Op::Exact(_)) && expected.is_err();
            prop_assert_eq!(outcome, expected, "{:?}", op);
            if is_lost {
                break;
            }
            let position = std.stream_position().unwrap();
            let consumed = ours.get_ref().cursor.position() - ours.buffer().len() as u64;
            prop_assert_eq!(consumed, position, "after {:?}", op);
        }
    }
}
