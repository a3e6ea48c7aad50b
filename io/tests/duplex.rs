//! `duplex`: bytes, ends, wakes, and wakers that use the pipe they were left in.

mod support;

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use gmp_io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use proptest::prelude::*;
use support::{Count, block_on, kind, now, panic_of, poll_and_drop, poll_once};

#[test]
fn each_end_reads_what_the_other_one_wrote() {
    let (mut a, mut b) = duplex(8);
    now(a.write_all(b"ping")).unwrap();
    now(b.write_all(b"pong")).unwrap();
    let mut buf = [0; 4];
    now(b.read_exact(&mut buf)).unwrap();
    assert_eq!(&buf, b"ping");
    now(a.read_exact(&mut buf)).unwrap();
    assert_eq!(&buf, b"pong");
    now(a.flush()).unwrap();
}

#[test]
fn a_full_pipe_takes_no_more_until_it_is_read() {
    let (mut a, mut b) = duplex(4);
    assert_eq!(now(a.write(b"abcdef")).unwrap(), 4);
    assert!(poll_and_drop(a.write(b"ef")).is_pending());
    assert_eq!(now(b.read(&mut [0; 1])).unwrap(), 1);
    assert_eq!(now(a.write(b"ef")).unwrap(), 1);
    let mut buf = [0; 9];
    assert_eq!(now(b.read(&mut buf)).unwrap(), 4);
    assert_eq!(&buf[..4], b"bcde");
    assert!(poll_and_drop(b.read(&mut buf)).is_pending());
}

#[test]
fn pieces_are_written_together() {
    let (mut a, mut b) = duplex(5);
    assert!(a.is_write_vectored());
    let bufs = [
        IoSlice::new(b"ab"),
        IoSlice::new(b""),
        IoSlice::new(b"cdef"),
    ];
    assert_eq!(now(a.write_vectored(&bufs)).unwrap(), 5);
    assert!(poll_and_drop(a.write_vectored(&bufs)).is_pending());
    let mut buf = [0; 5];
    now(b.read_exact(&mut buf)).unwrap();
    assert_eq!(&buf, b"abcde");
}

#[test]
fn nothing_takes_no_room_and_needs_no_bytes() {
    let (mut a, mut b) = duplex(1);
    assert_eq!(now(a.read(&mut [])).unwrap(), 0);
    now(b.write_all(b"x")).unwrap();
    assert_eq!(now(b.write(b"")).unwrap(), 0);
    assert_eq!(now(b.write_vectored(&[IoSlice::new(b"")])).unwrap(), 0);
    assert_eq!(now(b.write_vectored(&[])).unwrap(), 0);
    drop(a);
    // A closed pipe refuses even nothing.
    assert_eq!(kind(now(b.write(b""))), ErrorKind::BrokenPipe);
    assert_eq!(kind(now(b.write_vectored(&[]))), ErrorKind::BrokenPipe);
}

#[test]
fn shutdown_ends_one_direction() {
    let (mut a, mut b) = duplex(8);
    now(a.write_all(b"last")).unwrap();
    now(a.shutdown()).unwrap();
    now(a.shutdown()).unwrap();
    assert_eq!(kind(now(a.write(b"more"))), ErrorKind::BrokenPipe);
    let mut bytes = Vec::new();
    assert_eq!(now(b.read_to_end(&mut bytes)).unwrap(), 4);
    assert_eq!(now(b.read_to_end(&mut bytes)).unwrap(), 0);
    now(b.write_all(b"answer")).unwrap();
    assert_eq!(now(a.read(&mut [0; 9])).unwrap(), 6);
}

#[test]
fn a_dropped_end_leaves_what_it_wrote_and_takes_no_more() {
    let (mut a, mut b) = duplex(8);
    now(a.write_all(b"last")).unwrap();
    drop(a);
    assert_eq!(kind(now(b.write(b"x"))), ErrorKind::BrokenPipe);
    let mut bytes = Vec::new();
    assert_eq!(now(b.read_to_end(&mut bytes)).unwrap(), 4);
    assert_eq!(bytes, b"last");
}

/// Polls with a waker that counts; says how often it was woken.
fn waiting<F: Future>(future: Pin<&mut F>) -> Arc<Count> {
    let (count, waker) = Count::new();
    assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
    count
}

#[test]
fn a_waiting_reader_is_woken_once_by_bytes_or_the_end() {
    type Act = fn(&mut Option<DuplexStream>);
    let acts: [Act; 4] = [
        |peer| now(peer.as_mut().unwrap().write_all(b"x")).unwrap(),
        |peer| {
            drop(now(peer
                .as_mut()
                .unwrap()
                .write_vectored(&[IoSlice::new(b"x")])))
        },
        |peer| now(peer.as_mut().unwrap().shutdown()).unwrap(),
        |peer| drop(peer.take()),
    ];
    for act in acts {
        let (mut a, b) = duplex(8);
        let mut b = Some(b);
        let mut buf = [0; 1];
        let mut read = pin!(a.read(&mut buf));
        let count = waiting(read.as_mut());
        assert_eq!(now(b.as_mut().unwrap().write(b"")).unwrap(), 0);
        assert_eq!(count.wakes(), 0, "no bytes, no wake");
        act(&mut b);
        assert_eq!(count.wakes(), 1);
        assert!(poll_once(read).is_ready());
    }
}

#[test]
fn a_waiting_writer_is_woken_once_by_room_or_the_end() {
    for by_drop in [false, true] {
        let (mut a, b) = duplex(1);
        let mut b = Some(b);
        now(a.write_all(b"x")).unwrap();
        let mut write = pin!(a.write(b"y"));
        let count = waiting(write.as_mut());
        assert_eq!(now(b.as_mut().unwrap().read(&mut [])).unwrap(), 0);
        assert_eq!(count.wakes(), 0, "no room, no wake");
        if by_drop {
            drop(b.take());
        } else {
            now(b.as_mut().unwrap().read_u8()).unwrap();
        }
        assert_eq!(count.wakes(), 1);
        let Poll::Ready(result) = poll_once(write) else {
            panic!("there is room or an end");
        };
        assert_eq!(result.is_err(), by_drop);
    }
}

#[test]
fn the_last_waker_is_the_one_that_counts() {
    let (mut a, mut b) = duplex(1);
    let mut buf = [0; 1];
    let mut read = pin!(a.read(&mut buf));
    let first = waiting(read.as_mut());
    let second = waiting(read.as_mut());
    now(b.write_all(b"x")).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn polling_again_with_the_same_waker_keeps_it() {
    let (mut a, mut b) = duplex(1);
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let mut buf = [0; 1];
    let mut read = pin!(a.read(&mut buf));
    for _ in 0..3 {
        assert!(read.as_mut().poll(&mut cx).is_pending());
    }
    // The test's, the one in `waker`, and the one in the pipe.
    assert_eq!(Arc::strong_count(&count), 3);
    now(b.write_all(b"x")).unwrap();
    assert_eq!(count.wakes(), 1);
    assert_eq!(Arc::strong_count(&count), 2);
}

/// A waker that polls its future to its end, there and then.
struct PollInWake<F>(Mutex<Pin<Box<F>>>, Mutex<bool>);

impl<F: Future<Output = ()> + Send> Wake for PollInWake<F> {
    fn wake(self: Arc<Self>) {
        let done = poll_once(self.0.lock().unwrap().as_mut()).is_ready();
        *self.1.lock().unwrap() = done;
    }
}

/// Runs `act` while `future` waits with such a waker.
fn woken_in_place(future: impl Future<Output = ()> + Send + 'static, act: impl FnOnce()) {
    let task = Arc::new(PollInWake(Mutex::new(Box::pin(future)), Mutex::new(false)));
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(task.0.lock().unwrap().as_mut().poll(&mut cx).is_pending());
    act();
    assert!(*task.1.lock().unwrap());
}

#[test]
fn a_waker_may_use_the_pipe_in_its_wake() {
    let reading = |mut stream: DuplexStream| async move {
        stream.read(&mut [0; 1]).await.unwrap();
    };
    let (a, mut b) = duplex(1);
    woken_in_place(reading(a), || now(b.write_all(b"x")).unwrap());
    let (a, mut b) = duplex(1);
    woken_in_place(reading(a), || now(b.shutdown()).unwrap());
    let (a, b) = duplex(1);
    woken_in_place(reading(a), || drop(b));

    let writing = |mut stream: DuplexStream| async move {
        let _ = stream.write_all(b"xy").await;
    };
    let (a, mut b) = duplex(1);
    woken_in_place(writing(a), || assert_eq!(now(b.read_u8()).unwrap(), b'x'));
    let (a, b) = duplex(1);
    woken_in_place(writing(a), || drop(b));
}

/// A waker that holds an end of the pipe, which is closed when the waker is dropped.
struct Owner {
    _end: Mutex<DuplexStream>,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_displaced_waker_may_own_the_other_end() {
    let (mut a, b) = duplex(1);
    let mut buf = [0; 1];
    let mut read = pin!(a.read(&mut buf));
    let owner = Waker::from(Arc::new(Owner {
        _end: Mutex::new(b),
    }));
    assert!(
        read.as_mut()
            .poll(&mut Context::from_waker(&owner))
            .is_pending()
    );
    drop(owner);
    // Displaces the last reference to the other end, and so closes the pipe.
    let count = waiting(read.as_mut());
    assert_eq!(count.wakes(), 1);
    assert!(matches!(poll_once(read), Poll::Ready(Ok(0))));
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("a waker's own business");
    }
}

#[test]
fn a_waker_that_panics_loses_no_bytes_and_no_other_wake() {
    let (mut a, mut b) = duplex(1);
    let waker = Waker::from(Arc::new(Panicking));
    {
        let mut buf = [0; 1];
        let mut read = pin!(a.read(&mut buf));
        assert!(
            read.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(now(b.write(b"x")).unwrap(), 1);
    }
    assert_eq!(now(a.read_u8()).unwrap(), b'x');

    // One end's drop has two to wake: the reader of one pipe and the writer of the other.
    now(a.write_all(b"x")).unwrap();
    let (mut reader, mut writer) = gmp_io::split(a);
    let mut buf = [0; 1];
    let mut read = pin!(reader.read(&mut buf));
    assert!(
        read.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let mut write = pin!(writer.write(b"y"));
    let count = waiting(write.as_mut());
    drop(b);
    assert_eq!(count.wakes(), 1);
}

#[test]
fn no_room_at_all_panics_at_the_caller() {
    let (file, text) = panic_of(|| drop(duplex(0))).unwrap();
    assert_eq!(file, file!());
    assert_eq!(text, "`max_buf_size` must be greater than 0");
}

#[test]
fn a_pipe_without_a_bound_grows_with_what_is_in_it() {
    let (mut a, mut b) = duplex(usize::MAX);
    let bytes = vec![1; 1 << 20];
    now(a.write_all(&bytes)).unwrap();
    let mut read = vec![0; 1 << 20];
    now(b.read_exact(&mut read)).unwrap();
    assert_eq!(read, bytes);
}

#[test]
fn two_threads_move_a_megabyte_through_a_few_bytes() {
    let (mut a, mut b) = duplex(61);
    let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| (n / 7) as u8).collect();
    let sent = bytes.clone();
    let sender = std::thread::spawn(move || {
        block_on(async {
            a.write_all(&sent).await.unwrap();
            a.shutdown().await.unwrap();
            // The same back.
            let mut back = Vec::new();
            a.read_to_end(&mut back).await.unwrap();
            back
        })
    });
    let mut received = Vec::new();
    block_on(async {
        b.read_to_end(&mut received).await.unwrap();
        b.write_all(&received).await.unwrap();
        drop(b);
    });
    assert!(received == bytes);
    assert!(sender.join().unwrap() == bytes);
}

#[derive(Clone, Debug)]
enum Op {
    Write(Vec<u8>),
    Pieces(Vec<Vec<u8>>),
    Read(usize),
    Shutdown,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        8 => bytes().prop_map(Op::Write),
        8 => proptest::collection::vec(bytes(), 0..4).prop_map(Op::Pieces),
        16 => (0usize..20).prop_map(Op::Read),
        1 => Just(Op::Shutdown),
    ]
}

proptest! {
    #[test]
    fn it_is_a_bounded_queue(len_max in 1usize..20, ops in proptest::collection::vec(op(), 0..60)) {
        let (mut near, mut far) = duplex(len_max);
        let mut queue: VecDeque<u8> = VecDeque::new();
        let mut is_closed = false;
        for op in &ops {
            match op {
                Op::Write(_) | Op::Pieces(_) => {
                    let pieces = match op {
                        Op::Pieces(pieces) => pieces.clone(),
                        Op::Write(bytes) => vec![bytes.clone()],
                        _ => unreachable!(),
                    };
                    let bufs: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
                    let all = pieces.concat();
                    match poll_and_drop(near.write_vectored(&bufs)) {
                        Poll::Ready(Ok(len)) => {
                            prop_assert_eq!(len, all.len().min(len_max - queue.len()));
                            prop_assert!(len > 0 || all.is_empty());
                            queue.extend(&all[..len]);
                        }
                        Poll::Ready(Err(e)) => {
                            prop_assert!(is_closed);
                            prop_assert_eq!(e.kind(), ErrorKind::BrokenPipe);
                        }
                        Poll::Pending => prop_assert_eq!(queue.len(), len_max),
                    }
                }
                Op::Read(len) => {
                    let mut buf = vec![0; *len];
                    match poll_and_drop(far.read(&mut buf)) {
                        Poll::Ready(Ok(read)) => {
                            let expected: Vec<u8> = queue.drain(..read).collect();
                            prop_assert_eq!(&buf[..read], &expected[..]);
                            prop_assert!(read == *len || queue.is_empty());
                            prop_assert!(read > 0 || *len == 0 || is_closed);
                        }
                        Poll::Ready(Err(e)) => prop_assert!(false, "{}", e),
                        Poll::Pending => prop_assert!(queue.is_empty() && !is_closed && *len > 0),
                    }
                }
                Op::Shutdown => {
                    now(near.shutdown()).unwrap();
                    is_closed = true;
                }
            }
        }
    }
}
