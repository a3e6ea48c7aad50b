//! `seek`: first wait for what is under way, then start, then wait.

mod support;

use std::collections::VecDeque;
use std::io::{self, Cursor, ErrorKind, SeekFrom};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use gmp_io::{AsyncSeek, AsyncSeekExt};
use support::{kind, now, poll_once};

#[derive(Debug, PartialEq)]
enum Step {
    Complete(Poll<Result<u64, ErrorKind>>),
    Start(SeekFrom, Result<(), ErrorKind>),
}
use Step::{Complete, Start};

/// Expects these calls in this order.
struct Seeker(VecDeque<Step>);

impl AsyncSeek for Seeker {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        match self.0.pop_front() {
            Some(Start(expected, result)) if expected == position => result.map_err(Into::into),
            other => panic!("start_seek({position:?}) instead of {other:?}"),
        }
    }

    fn poll_complete(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        match self.0.pop_front() {
            Some(Complete(result)) => result.map_err(Into::into),
            other => panic!("poll_complete instead of {other:?}"),
        }
    }
}

fn seeker(steps: impl IntoIterator<Item = Step>) -> Seeker {
    Seeker(steps.into_iter().collect())
}

const TO_FIVE: SeekFrom = SeekFrom::Start(5);

#[test]
fn it_waits_for_an_earlier_seek_and_then_for_its_own() {
    let mut seeker = seeker([
        Complete(Poll::Pending),
        Complete(Poll::Ready(Ok(1))),
        Start(TO_FIVE, Ok(())),
        Complete(Poll::Pending),
        Complete(Poll::Ready(Ok(5))),
    ]);
    let mut future = pin!(seeker.seek(TO_FIVE));
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(poll_once(future.as_mut()).is_pending());
    assert!(matches!(poll_once(future), Poll::Ready(Ok(5))));
    assert!(seeker.0.is_empty());
}

#[test]
fn an_error_at_any_step_is_returned() {
    let fail = |kind| Complete(Poll::Ready(Err(kind)));
    let ok = || Complete(Poll::Ready(Ok(0)));
    let mut early = seeker([fail(ErrorKind::TimedOut)]);
    assert_eq!(kind(now(early.seek(TO_FIVE))), ErrorKind::TimedOut);
    let mut start = seeker([ok(), Start(TO_FIVE, Err(ErrorKind::Other))]);
    assert_eq!(kind(now(start.seek(TO_FIVE))), ErrorKind::Other);
    let mut late = seeker([ok(), Start(TO_FIVE, Ok(())), fail(ErrorKind::InvalidInput)]);
    assert_eq!(kind(now(late.seek(TO_FIVE))), ErrorKind::InvalidInput);
}

#[test]
fn rewind_and_stream_position_are_seeks() {
    let ok = |position| Complete(Poll::Ready(Ok(position)));
    let mut seeker = seeker([
        ok(3),
        Start(SeekFrom::Current(0), Ok(())),
        ok(3),
        ok(3),
        Start(SeekFrom::Start(0), Ok(())),
        ok(0),
    ]);
    assert_eq!(now(seeker.stream_position()).unwrap(), 3);
    assert_eq!(now(seeker.rewind()).unwrap(), 0);
}

#[test]
fn a_cursor_seeks_as_in_std() {
    let mut cursor = Cursor::new([0; 10]);
    assert_eq!(now(cursor.seek(SeekFrom::Start(20))).unwrap(), 20);
    assert_eq!(now(cursor.seek(SeekFrom::Current(-15))).unwrap(), 5);
    assert_eq!(
        kind(now(cursor.seek(SeekFrom::End(-11)))),
        ErrorKind::InvalidInput
    );
    assert_eq!(now(cursor.stream_position()).unwrap(), 5);
    assert_eq!(now(cursor.rewind()).unwrap(), 0);
}
