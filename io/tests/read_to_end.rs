//! `read_to_end`, `read_to_string`: how the vector grows, what stays after an error or a drop.

mod support;

use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use gmp_io::{AsyncRead, AsyncReadExt, ReadBuf};
use proptest::prelude::*;
use support::{Read, Script, block_on, data, kind, now, poll_once};

#[test]
fn it_appends_and_counts_only_its_own() {
    let mut reader = Script::reading([
        data("cd"),
        Read::Fail(ErrorKind::Interrupted),
        Read::Wait,
        data("e"),
    ]);
    let mut buf = Vec::from(*b"ab");
    assert_eq!(block_on(reader.read_to_end(&mut buf)).unwrap(), 3);
    assert_eq!(buf, b"abcde");
    assert_eq!(block_on(reader.read_to_end(&mut buf)).unwrap(), 0);
}

#[test]
fn what_was_read_before_an_error_stays() {
    let mut reader = Script::reading([data("ab"), Read::Fail(ErrorKind::TimedOut), data("c")]);
    let mut buf = Vec::new();
    assert_eq!(kind(now(reader.read_to_end(&mut buf))), ErrorKind::TimedOut);
    assert_eq!(buf, b"ab");
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), 1);
    assert_eq!(buf, b"abc");
}

#[test]
fn a_drop_loses_nothing_but_the_count() {
    let mut reader = Script::reading([data("ab"), Read::Hang, data("c")]);
    let mut buf = Vec::new();
    assert!(poll_once(pin!(reader.read_to_end(&mut buf))).is_pending());
    assert_eq!(buf, b"ab");
    assert_eq!(now(reader.read_to_end(&mut buf)).unwrap(), 1);
    assert_eq!(buf, b"abc");
}

#[test]
fn a_vector_made_to_measure_does_not_grow() {
    let bytes: Vec<u8> = (0..200).collect();
    for len in [32, 33, 64, 100, 200] {
        for capacity in len..len + 40 {
            for piece in [1, 7, len] {
                let reads = bytes[..len].chunks(piece).map(data);
                let mut buf = Vec::with_capacity(capacity);
                assert_eq!(buf.capacity(), capacity);
                now(Script::reading(reads).read_to_end(&mut buf)).unwrap();
                assert_eq!(buf, &bytes[..len]);
                assert_eq!(buf.capacity(), capacity, "{len} in pieces of {piece}");
            }
        }
    }
}

#[test]
fn a_vector_that_is_too_small_doubles() {
    let bytes = [1; 42];
    let mut buf = Vec::with_capacity(36);
    now((&bytes[..]).read_to_end(&mut buf)).unwrap();
    // Once for the bytes, once more for room behind them: no probing in an allocation of its own.
    assert_eq!(buf.capacity(), 36 * 4);
}

#[test]
fn an_empty_source_costs_the_least_allocation() {
    let mut buf = Vec::new();
    now((&b""[..]).read_to_end(&mut buf)).unwrap();
    assert!(buf.capacity() <= 32);
}

/// Checks that what it initialized is still known to be at the next read, also after a wait.
struct Initializing {
    reads: usize,
    known: usize,
}

impl AsyncRead for Initializing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buf.initialized().len() - buf.filled().len();
        assert_eq!(known, self.known, "read {}", self.reads);
        self.reads += 1;
        match self.reads {
            1 => {
                buf.initialize_unfilled_to(10).fill(b'a');
                buf.advance(3);
                self.known = 7;
            }
            2 => {
                buf.initialize_unfilled_to(20)[..7].fill(b'b');
                self.known = 20;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            3 => {
                buf.advance(7);
                self.known = 13;
            }
            4 => return Poll::Ready(Err(ErrorKind::Interrupted.into())),
            _ => {}
        }
        Poll::Ready(Ok(()))
    }
}

#[test]
fn what_a_reader_initialized_is_remembered() {
    let mut buf = Vec::with_capacity(100);
    let mut reader = Initializing { reads: 0, known: 0 };
    assert_eq!(block_on(reader.read_to_end(&mut buf)).unwrap(), 10);
    assert_eq!(buf, b"aaabbbbbbb");
    assert_eq!(reader.reads, 5);
}

#[test]
fn a_string_gets_what_is_utf8() {
    let mut reader = Script::reading([
        data("gr\u{fc}"),
        data([0xc3]),
        Read::Wait,
        data([0x9f, b'e']),
    ]);
    let mut text = String::from("Sch\u{f6}ne ");
    assert_eq!(block_on(reader.read_to_string(&mut text)).unwrap(), 7);
    assert_eq!(text, "Sch\u{f6}ne gr\u{fc}\u{df}e");
}

#[test]
fn a_string_is_as_it_was_after_an_error() {
    let fail = || Read::Fail(ErrorKind::TimedOut);
    let cases = [
        (vec![data("ab"), fail()], ErrorKind::TimedOut),
        (vec![data([0xff]), fail()], ErrorKind::TimedOut),
        (vec![data("ab"), data([0xff])], ErrorKind::InvalidData),
    ];
    for (reads, expected) in cases {
        let mut text = String::from("before");
        let mut reader = Script::reading(reads);
        assert_eq!(kind(now(reader.read_to_string(&mut text))), expected);
        assert_eq!(text, "before");
    }
}

proptest! {
    #[test]
    fn it_reads_all_whatever_the_pieces(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..80), 0..20),
        capacity in 0usize..400,
        before in proptest::collection::vec(any::<u8>(), 0..10),
        waits: bool,
    ) {
        let all = pieces.concat();
        let reads = pieces.iter().flat_map(|piece| {
            let wait = waits.then_some(Read::Wait);
            wait.into_iter().chain([data(piece)])
        });
        let mut buf = Vec::with_capacity(capacity);
        buf.extend_from_slice(&before);
        let read = block_on(Script::reading(reads).read_to_end(&mut buf)).unwrap();
        prop_assert_eq!(read, all.len());
        prop_assert_eq!(buf, [before, all].concat());
    }
}
