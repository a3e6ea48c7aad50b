//! `copy_bidirectional`: two directions that end one by one, and together on an error.

mod support;

use std::io::ErrorKind;
use std::pin::pin;
use std::task::Poll;

use gmp_io::{
    AsyncReadExt, AsyncWriteExt, copy_bidirectional, copy_bidirectional_with_sizes, duplex,
};
use proptest::prelude::*;
use support::{Call, Read, Script, Write, block_on, data, kind, now, panic_of, poll_once};

#[test]
fn each_side_gets_what_the_other_one_sent_and_is_shut_down() {
    let mut a = Script::reading([data("abc")]);
    let mut b = Script::reading([data("de"), Read::Wait, data("f")]);
    let copied = block_on(copy_bidirectional(&mut a, &mut b)).unwrap();
    assert_eq!(copied, (3, 3));
    assert_eq!(a.written, b"def");
    assert_eq!(b.written, b"abc");
    for side in [&a, &b] {
        let shutdowns = side
            .calls
            .iter()
            .filter(|call| **call == Call::Shutdown)
            .count();
        assert_eq!(shutdowns, 1);
    }
}

#[test]
fn one_direction_goes_on_when_the_other_has_ended() {
    let (mut client, mut a) = duplex(64);
    let (mut b, mut server) = duplex(64);
    let mut copy = pin!(copy_bidirectional(&mut a, &mut b));
    now(client.write_all(b"request")).unwrap();
    now(client.shutdown()).unwrap();
    assert!(poll_once(copy.as_mut()).is_pending());
    let mut request = Vec::new();
    // The server sees the end while its own direction is open.
    now(server.read_to_end(&mut request)).unwrap();
    assert_eq!(request, b"request");
    now(server.write_all(b"response")).unwrap();
    assert!(poll_once(copy.as_mut()).is_pending());
    let mut response = [0; 8];
    now(client.read_exact(&mut response)).unwrap();
    assert_eq!(&response, b"response");
    drop(server);
    assert!(matches!(poll_once(copy), Poll::Ready(Ok((7, 8)))));
}

#[test]
fn a_blocked_direction_does_not_block_the_other() {
    let mut a = Script::reading([data("ab"), Read::End]);
    let mut b = Script::reading([data("cd"), Read::End]);
    b.writes.extend([Write::Hang, Write::Hang]);
    let mut copy = Box::pin(copy_bidirectional(&mut a, &mut b));
    assert!(poll_once(copy.as_mut()).is_pending());
    assert!(poll_once(copy.as_mut()).is_pending());
    assert!(matches!(poll_once(copy.as_mut()), Poll::Ready(Ok((2, 2)))));
    drop(copy);
    assert_eq!(a.written, b"cd");
    assert_eq!(a.calls.last(), Some(&Call::Shutdown));
    assert_eq!(b.written, b"ab");
}

#[test]
fn an_error_ends_both() {
    let mut a = Script::reading([Read::Hang]);
    let mut b = Script::reading([Read::Fail(ErrorKind::ConnectionReset)]);
    let result = now(copy_bidirectional(&mut a, &mut b));
    assert_eq!(kind(result), ErrorKind::ConnectionReset);

    let mut a = Script::reading([data("a")]);
    let mut b = Script::reading([Read::Hang]);
    b.writes.push_back(Write::Fail(ErrorKind::BrokenPipe));
    let result = now(copy_bidirectional(&mut a, &mut b));
    assert_eq!(kind(result), ErrorKind::BrokenPipe);
}

#[test]
fn the_sizes_are_those_of_the_buffers() {
    let mut a = Script::reading([data("abcdef")]);
    let mut b = Script::reading([data("uvwxyz")]);
    let copied = now(copy_bidirectional_with_sizes(&mut a, &mut b, 4, 2)).unwrap();
    assert_eq!(copied, (6, 6));
    let lens = |script: &Script| {
        let len = |call: &Call| match call {
            Call::Write(len) => Some(*len),
            _ => None,
        };
        script.calls.iter().filter_map(len).collect::<Vec<_>>()
    };
    assert_eq!(lens(&b), [4, 2]);
    assert_eq!(lens(&a), [2, 2, 2]);
}

#[test]
fn sizes_of_zero_panic() {
    for (sizes, name) in [((0, 1), "a_to_b_buf_size"), ((1, 0), "b_to_a_buf_size")] {
        let (mut a, mut b) = (Script::default(), Script::default());
        let copy = copy_bidirectional_with_sizes(&mut a, &mut b, sizes.0, sizes.1);
        let (_, text) = panic_of(|| drop(now(copy))).unwrap();
        assert_eq!(text, format!("`{name}` must be greater than 0"));
    }
}

fn side(pieces: &[Vec<u8>], writes: &[usize]) -> Script {
    let mut script = Script::reading(
        pieces
            .iter()
            .flat_map(|piece| [Read::Wait, Read::Fail(ErrorKind::Interrupted), data(piece)]),
    );
    script.writes.extend(writes.iter().flat_map(|most| {
        [
            Write::Fail(ErrorKind::Interrupted),
            Write::Wait,
            Write::UpTo(*most),
        ]
    }));
    script
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..30), 0..8)
}

proptest! {
    #[test]
    fn everything_arrives_whatever_the_pieces(
        from_a in pieces(),
        from_b in pieces(),
        to_a in proptest::collection::vec(1usize..9, 0..20),
        to_b in proptest::collection::vec(1usize..9, 0..20),
        size_a in 1usize..40,
        size_b in 1usize..40,
    ) {
        let (mut a, mut b) = (side(&from_a, &to_a), side(&from_b, &to_b));
        let copied = block_on(copy_bidirectional_with_sizes(&mut a, &mut b, size_a, size_b)).unwrap();
        let (sent, received) = (from_a.concat(), from_b.concat());
        prop_assert_eq!(copied, (sent.len() as u64, received.len() as u64));
        prop_assert_eq!(b.written, sent);
        prop_assert_eq!(a.written, received);
    }
}
