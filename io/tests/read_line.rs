//! `read_until`, `read_line`, `fill_buf`: what is appended, what stays after an error or a drop.

mod support;

use std::io::ErrorKind;
use std::pin::pin;
use std::task::Poll;

use gmp_io::{AsyncBufReadExt, BufReader};
use support::{Call, Read, Script, block_on, data, kind, now, panic_of, poll_and_drop, poll_once};

fn buffered(reads: impl IntoIterator<Item = Read>) -> BufReader<Script> {
    BufReader::with_capacity(4, Script::reading(reads))
}

#[test]
fn read_until_stops_behind_the_delimiter() {
    let mut reader = buffered([data("ab-cdefg"), Read::Wait, data("h-"), data("i")]);
    let mut buf = Vec::from(*b"x");
    assert_eq!(now(reader.read_until(b'-', &mut buf)).unwrap(), 3);
    assert_eq!(buf, b"xab-");
    assert_eq!(block_on(reader.read_until(b'-', &mut buf)).unwrap(), 7);
    assert_eq!(buf, b"xab-cdefgh-");
    assert_eq!(now(reader.read_until(b'-', &mut buf)).unwrap(), 1);
    assert_eq!(now(reader.read_until(b'-', &mut buf)).unwrap(), 0);
    assert_eq!(buf, b"xab-cdefgh-i");
}

#[test]
fn read_until_retries_interrupted_and_keeps_what_came_before_an_error() {
    let mut reader = buffered([
        data("ab"),
        Read::Fail(ErrorKind::Interrupted),
        data("c"),
        Read::Fail(ErrorKind::TimedOut),
        data("d-"),
    ]);
    let mut buf = Vec::new();
    assert_eq!(
        kind(now(reader.read_until(b'-', &mut buf))),
        ErrorKind::TimedOut
    );
    assert_eq!(buf, b"abc");
    assert_eq!(now(reader.read_until(b'-', &mut buf)).unwrap(), 2);
    assert_eq!(buf, b"abcd-");
}

#[test]
fn a_dropped_read_until_leaves_what_it_read_in_the_buffer() {
    let mut reader = buffered([data("ab"), Read::Hang, data("c-")]);
    let mut buf = Vec::new();
    assert!(poll_and_drop(reader.read_until(b'-', &mut buf)).is_pending());
    assert_eq!(buf, b"ab");
    assert_eq!(now(reader.read_until(b'-', &mut buf)).unwrap(), 2);
    assert_eq!(buf, b"abc-");
}

#[test]
fn a_pending_read_until_counts_over_its_polls() {
    let mut reader = buffered([data("ab"), Read::Hang, data("c-")]);
    let mut buf = Vec::new();
    let mut future = pin!(reader.read_until(b'-', &mut buf));
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(matches!(poll_once(future), Poll::Ready(Ok(4))));
}

#[test]
fn read_line_appends_with_the_line_feed() {
    let mut reader = buffered([data("one\ntw"), Read::Wait, data("o\r\nthree")]);
    let mut line = String::from("> ");
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 4);
    assert_eq!(line, "> one\n");
    assert_eq!(block_on(reader.read_line(&mut line)).unwrap(), 5);
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 5);
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 0);
    assert_eq!(line, "> one\ntwo\r\nthree");
}

#[test]
fn read_line_takes_a_character_that_comes_in_pieces() {
    let mut reader = buffered([data([0xe2]), Read::Wait, data([0x82]), data([0xac, b'\n'])]);
    let mut line = String::new();
    assert_eq!(block_on(reader.read_line(&mut line)).unwrap(), 4);
    assert_eq!(line, "\u{20ac}\n");
}

#[test]
fn a_line_that_is_not_utf8_is_lost_and_the_next_one_is_not() {
    let mut reader = buffered([data(b"a\xffb\nnext\n")]);
    let mut line = String::from("before");
    assert_eq!(
        kind(now(reader.read_line(&mut line))),
        ErrorKind::InvalidData
    );
    assert_eq!(line, "before");
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 5);
    assert_eq!(line, "beforenext\n");
}

#[test]
fn before_an_error_read_line_keeps_what_is_utf8() {
    let fail = || Read::Fail(ErrorKind::TimedOut);
    let mut line = String::from("x");
    let mut reader = buffered([data("ab"), fail(), data("c\n")]);
    assert_eq!(kind(now(reader.read_line(&mut line))), ErrorKind::TimedOut);
    assert_eq!(line, "xab");
    assert_eq!(now(reader.read_line(&mut line)).unwrap(), 2);
    assert_eq!(line, "xabc\n");

    let mut line = String::from("x");
    let mut reader = buffered([data("ab"), data([0xff]), fail()]);
    assert_eq!(kind(now(reader.read_line(&mut line))), ErrorKind::TimedOut);
    assert_eq!(line, "x");
}

#[test]
fn fill_buf_reads_only_into_an_empty_buffer() {
    let mut reader = buffered([data("ab"), Read::Hang, data("c")]);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"ab");
    assert_eq!(now(reader.fill_buf()).unwrap(), b"ab");
    assert_eq!(reader.get_ref().calls, [Call::Read]);
    reader.consume(1);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"b");
    reader.consume(1);
    assert!(poll_and_drop(reader.fill_buf()).is_pending());
    assert_eq!(now(reader.fill_buf()).unwrap(), b"c");
    reader.consume(1);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"");
}

#[test]
fn fill_buf_gives_the_reader_back_with_the_slice() {
    let mut reader = buffered([Read::Hang, data("abc")]);
    let slice = {
        let mut future = Box::pin(reader.fill_buf());
        assert!(poll_once(future.as_mut()).is_pending());
        let Poll::Ready(Ok(slice)) = poll_once(future.as_mut()) else {
            panic!("the script has bytes");
        };
        // The slice outlives the future, not the reader; and the future cannot lend it again.
        let (_, text) = panic_of(|| drop(poll_once(future.as_mut()))).unwrap();
        assert_eq!(text, "Polled after completion.");
        slice
    };
    assert_eq!(slice, b"abc");
    reader.consume(3);
}

#[test]
fn fill_buf_hands_errors_on() {
    let mut reader = buffered([Read::Fail(ErrorKind::Interrupted), data("a")]);
    assert_eq!(kind(now(reader.fill_buf())), ErrorKind::Interrupted);
    assert_eq!(now(reader.fill_buf()).unwrap(), b"a");
}
