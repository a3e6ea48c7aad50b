//! `chain`: the second reader begins where the first ends, and not before.

mod support;

use std::io::ErrorKind;
use std::pin::Pin;

use gmp_io::{AsyncBufReadExt, AsyncReadExt};
use support::{Call, Read, Script, block_on, data, kind, now};

#[test]
fn the_second_follows_the_first() {
    let first = Script::reading([data("ab"), Read::Wait, data("c")]);
    let second = Script::reading([Read::Wait, data("de")]);
    let mut chain = first.chain(second);
    let mut text = String::new();
    assert_eq!(block_on(chain.read_to_string(&mut text)).unwrap(), 5);
    assert_eq!(text, "abcde");
}

#[test]
fn no_room_is_not_the_end_of_the_first() {
    let mut chain = (&b"a"[..]).chain(&b"b"[..]);
    assert_eq!(now(chain.read(&mut [])).unwrap(), 0);
    assert_eq!(now(chain.read_u16()).unwrap(), 0x6162);
}

#[test]
fn the_first_is_not_asked_again_after_its_end() {
    let first = Script::reading([data("a"), Read::End, data("never")]);
    let mut chain = first.chain(Script::reading([data("b")]));
    let mut bytes = Vec::new();
    now(chain.read_to_end(&mut bytes)).unwrap();
    assert_eq!(bytes, b"ab");
    let (first, second) = chain.into_inner();
    assert_eq!(first.calls, [Call::Read, Call::Read]);
    assert_eq!(second.calls, [Call::Read, Call::Read]);
}

#[test]
fn an_error_is_not_the_end() {
    let first = Script::reading([Read::Fail(ErrorKind::TimedOut), data("a")]);
    let mut chain = first.chain(&b"b"[..]);
    assert_eq!(kind(now(chain.read_u8())), ErrorKind::TimedOut);
    assert_eq!(now(chain.read_u8()).unwrap(), b'a');
    assert_eq!(now(chain.read_u8()).unwrap(), b'b');
}

#[test]
fn the_buffers_follow_one_another() {
    let mut chain = (&b"ab"[..]).chain(&b"cd"[..]);
    for expected in [&b"ab"[..], b"b", b"cd", b"d", b""] {
        assert_eq!(now(chain.fill_buf()).unwrap(), expected);
        chain.consume(expected.len().min(1));
    }
}

#[test]
fn both_are_within_reach() {
    let mut chain = (&b"ab"[..]).chain(&b"cd"[..]);
    assert_eq!(chain.get_ref(), (&&b"ab"[..], &&b"cd"[..]));
    *chain.get_mut().0 = b"x";
    *Pin::new(&mut chain).get_pin_mut().1.get_mut() = b"y";
    assert_eq!(
        format!("{chain:?}"),
        "Chain { first: [120], second: [121] }"
    );
    assert_eq!(now(chain.read_u16()).unwrap(), 0x7879);
    assert_eq!(chain.into_inner(), (&b""[..], &b""[..]));
}
