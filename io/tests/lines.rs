//! `lines` and `split`: the same as `std`'s, whatever the pieces, and no line lost to a drop.

mod support;

use std::io::{BufRead, ErrorKind};

use gmp_io::{AsyncBufReadExt, BufReader};
use proptest::prelude::*;
use support::{Read, Script, block_on, data, kind, now, poll_and_drop};

fn buffered(reads: impl IntoIterator<Item = Read>) -> BufReader<Script> {
    BufReader::with_capacity(4, Script::reading(reads))
}

#[test]
fn a_line_comes_without_its_end() {
    let mut lines = buffered([data("one\r\n\n\r\ntwo\rx\nlast")]).lines();
    for expected in ["one", "", "", "two\rx", "last"] {
        assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some(expected));
    }
    assert_eq!(now(lines.next_line()).unwrap(), None);
    assert_eq!(now(lines.next_line()).unwrap(), None);
}

#[test]
fn a_dropped_next_line_loses_nothing() {
    let mut lines =
        buffered([data("on"), Read::Hang, data("e\ntw"), Read::Hang, Read::End]).lines();
    assert!(poll_and_drop(lines.next_line()).is_pending());
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("one"));
    // The last line has no end, and all of it was read by the poll that had to wait.
    assert!(poll_and_drop(lines.next_line()).is_pending());
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("tw"));
    assert_eq!(now(lines.next_line()).unwrap(), None);
}

#[test]
fn a_line_survives_an_error_in_its_middle() {
    let mut lines = buffered([data("on"), Read::Fail(ErrorKind::TimedOut), data("e\n")]).lines();
    assert_eq!(kind(now(lines.next_line())), ErrorKind::TimedOut);
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("one"));
}

#[test]
fn the_reader_is_within_reach() {
    let mut lines = buffered([data("one\ntwo\n")]).lines();
    assert_eq!(now(lines.next_line()).unwrap().as_deref(), Some("one"));
    assert_eq!(lines.get_ref().buffer(), b"");
    lines.get_mut().get_mut().reads.clear();
    assert_eq!(now(lines.next_line()).unwrap(), None);
    assert_eq!(lines.into_inner().buffer(), b"");
}

#[test]
fn a_segment_comes_without_its_delimiter() {
    let mut segments = buffered([data("a,,bc"), Read::Wait, data(",\n")]).split(b',');
    for expected in ["a", "", "bc", "\n"] {
        let segment = block_on(segments.next_segment()).unwrap();
        assert_eq!(segment.as_deref(), Some(expected.as_bytes()));
    }
    assert_eq!(now(segments.next_segment()).unwrap(), None);
}

#[test]
fn a_dropped_next_segment_loses_nothing() {
    let mut segments =
        buffered([data("a"), Read::Hang, data("b,c"), Read::Hang, Read::End]).split(b',');
    assert!(poll_and_drop(segments.next_segment()).is_pending());
    assert_eq!(now(segments.next_segment()).unwrap(), Some(b"ab".to_vec()));
    assert!(poll_and_drop(segments.next_segment()).is_pending());
    assert_eq!(now(segments.next_segment()).unwrap(), Some(b"c".to_vec()));
    assert_eq!(now(segments.next_segment()).unwrap(), None);
}

/// Bytes in which line ends, characters in pieces and nonsense are frequent.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![
        4 => Just(b'\n'),
        2 => Just(b'\r'),
        6 => Just(b'a'),
        1 => Just(0xc3),
        1 => Just(0xa4),
    ];
    proptest::collection::vec(proptest::collection::vec(byte, 1..10), 0..12)
}

/// The pieces with a wait before each.
fn script(pieces: &[Vec<u8>]) -> Script {
    Script::reading(pieces.iter().flat_map(|piece| [Read::Wait, data(piece)]))
}

proptest! {
    #[test]
    fn lines_are_those_of_std(pieces in pieces(), capacity in 1usize..9) {
        let all = pieces.concat();
        let mut lines = BufReader::with_capacity(capacity, script(&pieces)).lines();
        for expected in BufRead::lines(&all[..]) {
            let line = block_on(lines.next_line());
            match expected {
                Ok(expected) => prop_assert_eq!(line.unwrap(), Some(expected)),
                Err(e) => prop_assert_eq!(kind(line), e.kind()),
            }
        }
        prop_assert_eq!(block_on(lines.next_line()).unwrap(), None);
    }

    #[test]
    fn segments_are_those_of_std(pieces in pieces(), capacity in 1usize..9) {
        let all = pieces.concat();
        let mut segments = BufReader::with_capacity(capacity, script(&pieces)).split(b'\r');
        for expected in BufRead::split(&all[..], b'\r') {
            prop_assert_eq!(block_on(segments.next_segment()).unwrap(), Some(expected.unwrap()));
        }
        prop_assert_eq!(block_on(segments.next_segment()).unwrap(), None);
    }

    #[test]
    fn lines_survive_a_drop_at_every_wait(pieces in pieces(), capacity in 1usize..9) {
        let all = pieces.concat();
        let mut lines = BufReader::with_capacity(capacity, script(&pieces)).lines();
        let mut waits = 0;
        for expected in BufRead::lines(&all[..]) {
            // Each poll is the only one of its future.
            let line = loop {
                match poll_and_drop(lines.next_line()) {
                    std::task::Poll::Ready(line) => break line,
                    std::task::Poll::Pending => waits += 1,
                }
            };
            match expected {
                Ok(expected) => prop_assert_eq!(line.unwrap(), Some(expected)),
                Err(e) => prop_assert_eq!(kind(line), e.kind()),
            }
        }
        prop_assert!(waits <= pieces.len());
    }
}
