//! `read`, `read_buf`, `read_exact`: what they return, what they retry, what a drop loses.

mod support;

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, BytesMut};
use gmp_io::{AsyncRead, AsyncReadExt, ReadBuf};
use support::{Call, Read, Script, block_on, data, kind, now, poll_and_drop, poll_once};

#[test]
fn read_returns_what_there_is() {
    let mut reader = Script::reading([data("abc"), data("de")]);
    let mut buf = [0; 8];
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 3);
    assert_eq!(&buf[..3], b"abc");
    assert_eq!(now(reader.read(&mut buf[..1])).unwrap(), 1);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 1);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 0);
}

#[test]
fn read_waits_and_hands_errors_on() {
    let mut reader = Script::reading([
        Read::Wait,
        data("a"),
        Read::Fail(ErrorKind::Interrupted),
        Read::Fail(ErrorKind::ConnectionReset),
    ]);
    let mut buf = [0; 8];
    assert_eq!(block_on(reader.read(&mut buf)).unwrap(), 1);
    assert_eq!(kind(now(reader.read(&mut buf))), ErrorKind::Interrupted);
    assert_eq!(kind(now(reader.read(&mut buf))), ErrorKind::ConnectionReset);
}

#[test]
fn a_dropped_read_has_read_nothing() {
    let mut reader = Script::reading([Read::Hang, data("abc")]);
    let mut buf = [0; 8];
    assert!(poll_and_drop(reader.read(&mut buf)).is_pending());
    assert_eq!(buf, [0; 8]);
    assert_eq!(now(reader.read(&mut buf)).unwrap(), 3);
}

#[test]
fn read_buf_fills_room_that_was_never_initialized() {
    let mut reader = Script::reading([data("abc"), data("def")]);
    let mut buf = BytesMut::with_capacity(4);
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 3);
    assert!(now(reader.read_buf(&mut buf)).unwrap() >= 1);
    assert!(buf.starts_with(b"abcd"));
}

#[test]
fn read_buf_into_no_room_does_not_read() {
    let mut reader = Script::reading([data("abc")]);
    let mut none: &mut [u8] = &mut [];
    assert_eq!(now(reader.read_buf(&mut none)).unwrap(), 0);
    assert_eq!(reader.calls, []);
    let mut limited = Vec::new().limit(2);
    assert_eq!(now(reader.read_buf(&mut limited)).unwrap(), 2);
    assert_eq!(now(reader.read_buf(&mut limited)).unwrap(), 0);
    assert_eq!(limited.into_inner(), b"ab");
}

#[test]
fn read_buf_takes_a_dynamic_buffer() {
    let mut reader = Script::reading([data("abc")]);
    let mut vec = Vec::new();
    let dynamic: &mut dyn BufMut = &mut vec;
    assert_eq!(now(reader.read_buf(dynamic)).unwrap(), 3);
    assert_eq!(vec, b"abc");
}

#[test]
fn a_dropped_read_buf_has_read_nothing() {
    let mut reader = Script::reading([Read::Hang, data("abc")]);
    let mut buf = Vec::new();
    assert!(poll_and_drop(reader.read_buf(&mut buf)).is_pending());
    assert_eq!(buf, b"");
    assert_eq!(now(reader.read_buf(&mut buf)).unwrap(), 3);
    assert_eq!(buf, b"abc");
}

#[test]
fn read_exact_goes_on_until_it_is_full() {
    let mut reader = Script::reading([
        data("ab"),
        Read::Fail(ErrorKind::Interrupted),
        Read::Wait,
        data("cdef"),
    ]);
    let mut buf = [0; 4];
    assert_eq!(block_on(reader.read_exact(&mut buf)).unwrap(), 4);
    assert_eq!(&buf, b"abcd");
    assert_eq!(now(reader.read_exact(&mut [])).unwrap(), 0);
    assert_eq!(now(reader.read_u8()).unwrap(), b'e');
}

#[test]
fn read_exact_fails_at_an_early_end() {
    let mut reader = Script::reading([data("ab")]);
    let error = now(reader.read_exact(&mut [0; 3])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "early eof");
    let mut reader = Script::reading([data("ab"), Read::Fail(ErrorKind::TimedOut)]);
    assert_eq!(
        kind(now(reader.read_exact(&mut [0; 3]))),
        ErrorKind::TimedOut
    );
}

#[test]
fn a_pending_read_exact_keeps_its_place() {
    let mut reader = Script::reading([data("ab"), Read::Hang, data("cd")]);
    let mut buf = [0; 4];
    let mut future = pin!(reader.read_exact(&mut buf));
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(matches!(poll_once(future), Poll::Ready(Ok(4))));
    assert_eq!(&buf, b"abcd");
    assert_eq!(reader.calls, [Call::Read, Call::Read, Call::Read]);
}

/// Puts another buffer in the place of the one it is given.
struct Exchanging;

impl AsyncRead for Exchanging {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        *buf = ReadBuf::new(Box::leak(Box::from([7; 64])));
        buf.advance(64);
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_reader_that_exchanges_the_buffer_cannot_make_bytes_up() {
    let message = "the reader exchanged the buffer it was given";
    let mut room = [MaybeUninit::<u8>::uninit(); 16];
    type Run<'a> = Box<dyn FnOnce() + 'a>;
    let panics: [(&str, Run<'_>); 4] = [
        (
            "read_buf",
            Box::new(|| {
                let mut room = &mut room[..];
                let _ = now(Exchanging.read_buf(&mut room));
            }),
        ),
        (
            "take",
            Box::new(|| drop(now(Exchanging.take(8).read(&mut [0; 16])))),
        ),
        (
            "read_to_end",
            Box::new(|| drop(now(Exchanging.read_to_end(&mut Vec::new())))),
        ),
        (
            "read_to_string",
            Box::new(|| {
                let _ = now(Exchanging.read_to_string(&mut String::new()));
            }),
        ),
    ];
    for (method, run) in panics {
        let (_, text) = support::panic_of(run).unwrap_or_else(|| panic!("{method}: no panic"));
        assert!(text.contains(message), "{method}: {text}");
    }
}

#[test]
fn read_buf_works_with_a_chain_of_buffers() {
    let mut reader = Script::reading([data("abcd")]);
    let (mut one, mut two) = ([0; 3], [0; 3]);
    let mut both = (&mut one[..]).chain_mut(&mut two[..]);
    // One chunk at a time.
    assert_eq!(now(reader.read_buf(&mut both)).unwrap(), 3);
    assert_eq!(now(reader.read_buf(&mut both)).unwrap(), 1);
    assert_eq!(both.remaining_mut(), 2);
    assert_eq!((&one, &two), (b"abc", b"d\0\0"));
    assert_eq!((&one[..]).remaining(), 3);
}
