//! `simplex`: one direction, as two halves or as one value.

mod support;

use std::io::{ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use gmp_io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, SimplexStream, simplex};
use support::{Count, block_on, kind, now, panic_of, poll_and_drop, poll_once};

#[test]
fn one_value_reads_what_it_wrote() {
    let mut stream = SimplexStream::new_unsplit(4);
    assert!(stream.is_write_vectored());
    let bufs = [IoSlice::new(b"abc"), IoSlice::new(b"def")];
    assert_eq!(now(stream.write_vectored(&bufs)).unwrap(), 4);
    assert!(poll_and_drop(stream.write(b"e")).is_pending());
    let mut buf = [0; 3];
    assert_eq!(now(stream.read(&mut buf)).unwrap(), 3);
    assert_eq!(&buf, b"abc");
    now(stream.write_all(b"ef")).unwrap();
    now(stream.flush()).unwrap();
    now(stream.shutdown()).unwrap();
    assert_eq!(kind(now(stream.write(b"g"))), ErrorKind::BrokenPipe);
    let mut rest = String::new();
    now(stream.read_to_string(&mut rest)).unwrap();
    assert_eq!(rest, "def");
}

#[test]
fn the_halves_wake_each_other() {
    let (mut reader, mut writer) = simplex(1);
    assert!(writer.is_write_vectored());
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    let mut buf = [0; 1];
    {
        let mut read = pin!(reader.read(&mut buf));
        assert!(read.as_mut().poll(&mut cx).is_pending());
        now(writer.write_all(b"x")).unwrap();
        assert_eq!(count.wakes(), 1);
        assert!(poll_once(read).is_ready());
    }
    now(writer.write_all(b"y")).unwrap();
    {
        let mut write = pin!(writer.write(b"z"));
        assert!(write.as_mut().poll(&mut cx).is_pending());
        now(reader.read_u8()).unwrap();
        assert_eq!(count.wakes(), 2);
        assert!(poll_once(write).is_ready());
    }
    now(reader.read_u8()).unwrap();
    let mut read = pin!(reader.read(&mut buf));
    assert!(read.as_mut().poll(&mut cx).is_pending());
    now(writer.shutdown()).unwrap();
    assert_eq!(count.wakes(), 3);
    assert!(matches!(poll_once(read), Poll::Ready(Ok(0))));
}

/// A waker that polls its future to its end, there and then.
struct PollInWake<F>(Mutex<Pin<Box<F>>>, Mutex<bool>);

impl<F: Future<Output = ()> + Send> Wake for PollInWake<F> {
    fn wake(self: Arc<Self>) {
        let done = poll_once(self.0.lock().unwrap().as_mut()).is_ready();
        *self.1.lock().unwrap() = done;
    }
}

fn woken_in_place(future: impl Future<Output = ()> + Send + 'static, act: impl FnOnce()) {
    let task = Arc::new(PollInWake(Mutex::new(Box::pin(future)), Mutex::new(false)));
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(task.0.lock().unwrap().as_mut().poll(&mut cx).is_pending());
    act();
    assert!(*task.1.lock().unwrap());
}

/// With the wake-up inside the lock of the halves this would never end.
#[test]
fn a_waker_may_poll_the_other_half_in_its_wake() {
    for by_shutdown in [false, true] {
        let (mut reader, mut writer) = simplex(1);
        let reading = async move {
            reader.read(&mut [0; 1]).await.unwrap();
        };
        woken_in_place(reading, || {
            if by_shutdown {
                now(writer.shutdown()).unwrap();
            } else {
                now(writer.write_all(b"x")).unwrap();
            }
        });
    }
    let (mut reader, mut writer) = simplex(1);
    let writing = async move { writer.write_all(b"xy").await.unwrap() };
    woken_in_place(writing, || assert_eq!(now(reader.read_u8()).unwrap(), b'x'));
}

#[test]
fn the_halves_make_one_value_that_wakes_by_itself() {
    let (mut reader, mut writer) = simplex(8);
    now(writer.write_all(b"ab")).unwrap();
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    assert!(reader.is_pair_of(&writer));
    let mut stream = reader.unsplit(writer);
    assert_eq!(now(stream.read_u8()).unwrap(), b'b');
    let (count, waker) = Count::new();
    let mut cx = Context::from_waker(&waker);
    {
        let mut buf = [0; 1];
        assert!(pin!(stream.read(&mut buf)).poll(&mut cx).is_pending());
    }
    now(stream.write_all(b"c")).unwrap();
    assert_eq!(count.wakes(), 1);
    // And it can be split again, by the function for everything.
    let (mut reader, _writer) = gmp_io::split(stream);
    assert_eq!(now(reader.read_u8()).unwrap(), b'c');
}

#[test]
fn two_threads_move_bytes_through_the_halves() {
    let (mut reader, mut writer) = simplex(61);
    let bytes: Vec<u8> = (0..1 << 18).map(|n: u32| (n / 7) as u8).collect();
    let sent = bytes.clone();
    let sender = std::thread::spawn(move || {
        block_on(async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        })
    });
    let mut received = Vec::new();
    block_on(reader.read_to_end(&mut received)).unwrap();
    sender.join().unwrap();
    assert!(received == bytes);
}

#[test]
fn no_room_at_all_panics_at_the_caller() {
    for make in [|| drop(simplex(0)), || drop(SimplexStream::new_unsplit(0))] {
        let (file, text) = panic_of(make).unwrap();
        assert_eq!(file, file!());
        assert_eq!(text, "`max_buf_size` must be greater than 0");
    }
}
