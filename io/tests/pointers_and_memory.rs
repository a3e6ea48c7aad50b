//! The traits through pointers, and for bytes in memory.

mod support;

use std::io::{Cursor, IoSlice, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use gmp_io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, ReadBuf,
};
use support::{Call, Script, data, now};

async fn read_all(mut reader: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[test]
fn a_pointer_reads_as_what_it_points_to() {
    let script = || Script::reading([data("ab"), data("c")]);
    assert_eq!(now(read_all(&mut script())), b"abc");
    assert_eq!(now(read_all(Box::new(script()))), b"abc");
    assert_eq!(now(read_all(Box::pin(script()))), b"abc");
    assert_eq!(now(read_all(Pin::new(&mut script()))), b"abc");
    let dynamic: Box<dyn AsyncRead + Unpin> = Box::new(script());
    assert_eq!(now(read_all(dynamic)), b"abc");
    let pinned: Pin<Box<dyn AsyncRead>> = Box::pin(script());
    assert_eq!(now(read_all(pinned)), b"abc");
}

#[test]
fn a_pointer_buffers_as_what_it_points_to() {
    fn check(mut reader: impl AsyncBufRead + Unpin) {
        assert_eq!(now(reader.fill_buf()).unwrap(), b"abc");
        AsyncBufReadExt::consume(&mut reader, 2);
        assert_eq!(now(reader.fill_buf()).unwrap(), b"c");
    }
    let mut bytes = &b"abc"[..];
    let pointer = &mut bytes;
    check(pointer);
    assert_eq!(bytes, b"c");
    check(Box::new(&b"abc"[..]));
    check(Box::pin(&b"abc"[..]));
    check(Box::new(&b"abc"[..]) as Box<dyn AsyncBufRead + Unpin>);
    check(Cursor::new(b"abc"));
}

#[test]
fn a_pointer_seeks_as_what_it_points_to() {
    fn check(mut seeker: impl AsyncSeek + Unpin) {
        assert_eq!(now(seeker.seek(SeekFrom::End(-1))).unwrap(), 2);
        assert_eq!(now(seeker.stream_position()).unwrap(), 2);
    }
    let cursor = || Cursor::new(b"abc");
    let mut pointed_to = cursor();
    let pointer = &mut pointed_to;
    check(pointer);
    check(Box::new(cursor()));
    check(Box::pin(cursor()));
    check(Box::new(cursor()) as Box<dyn AsyncSeek + Unpin>);
}

#[test]
fn a_pointer_writes_as_what_it_points_to() {
    fn check(mut writer: impl AsyncWrite + Unpin, is_vectored: bool) {
        assert_eq!(writer.is_write_vectored(), is_vectored);
        now(writer.write_all(b"a")).unwrap();
        let bufs = [IoSlice::new(b"b"), IoSlice::new(b"c")];
        assert_eq!(now(writer.write_vectored(&bufs)).unwrap(), 2);
        now(writer.flush()).unwrap();
        now(writer.shutdown()).unwrap();
    }
    let expected = [
        Call::Write(1),
        Call::WriteVectored(vec![1, 1]),
        Call::Flush,
        Call::Shutdown,
    ];
    for vectored in [false, true] {
        let mut script = Script::default().vectored_if(vectored);
        check(&mut script, vectored);
        check(Box::new(&mut script), vectored);
        check(Box::pin(&mut script), vectored);
        check(
            Box::new(&mut script) as Box<dyn AsyncWrite + Unpin + '_>,
            vectored,
        );
        assert_eq!(script.written, b"abcabcabcabc");
        let four_times: Vec<Call> = expected.iter().cloned().cycle().take(16).collect();
        assert_eq!(script.calls, four_times);
    }
}

/// Has nothing but the required methods.
#[derive(Default)]
struct Plain(Vec<u8>);

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.0.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn without_vectored_writes_the_first_piece_that_is_not_empty_is_written() {
    let mut writer = Plain::default();
    assert!(!writer.is_write_vectored());
    let bufs = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"c")];
    assert_eq!(now(writer.write_vectored(&bufs)).unwrap(), 2);
    assert_eq!(now(writer.write_vectored(&[])).unwrap(), 0);
    assert_eq!(now(writer.write_vectored(&[IoSlice::new(b"")])).unwrap(), 0);
    assert_eq!(writer.0, b"ab");
}

#[test]
fn a_slice_is_read_from_its_front() {
    let mut bytes = &b"abcd"[..];
    let mut buf = [0; 3];
    assert_eq!(now(bytes.read(&mut buf)).unwrap(), 3);
    assert_eq!(&buf, b"abc");
    assert_eq!(bytes, b"d");
    assert_eq!(now(bytes.read(&mut buf)).unwrap(), 1);
    assert_eq!(now(bytes.read(&mut buf)).unwrap(), 0);
}

#[test]
fn a_cursor_beyond_the_end_is_at_the_end() {
    for position in [3, 4, u64::from(u32::MAX) + 1, u64::MAX] {
        let mut cursor = Cursor::new(b"abc");
        cursor.set_position(position);
        assert_eq!(now(cursor.read(&mut [0; 4])).unwrap(), 0);
        assert_eq!(now(cursor.fill_buf()).unwrap(), b"");
        assert_eq!(cursor.position(), position);
    }
}

#[test]
fn a_cursor_reads_from_where_it_is() {
    let mut cursor = Cursor::new(Vec::from(*b"abcdef"));
    cursor.set_position(2);
    let mut buf = [0; 3];
    assert_eq!(now(cursor.read(&mut buf)).unwrap(), 3);
    assert_eq!(&buf, b"cde");
    assert_eq!(cursor.position(), 5);
    assert_eq!(now(cursor.seek(SeekFrom::Current(-1))).unwrap(), 4);
    assert!(now(cursor.seek(SeekFrom::Current(-10))).is_err());
    assert_eq!(now(cursor.read_u8()).unwrap(), b'e');
}

#[test]
fn memory_is_written_as_std_does() {
    let bufs = [IoSlice::new(b"cd"), IoSlice::new(b"ef")];

    let mut vec = Vec::from(*b"x");
    assert!(vec.is_write_vectored());
    now(vec.write_all(b"ab")).unwrap();
    assert_eq!(now(vec.write_vectored(&bufs)).unwrap(), 4);
    assert_eq!(vec, b"xabcdef");

    let mut array = [0; 5];
    let mut cursor = Cursor::new(&mut array[..]);
    now(cursor.write_all(b"ab")).unwrap();
    assert_eq!(now(cursor.write_vectored(&bufs)).unwrap(), 3);
    assert_eq!(now(cursor.write(b"g")).unwrap(), 0);
    assert_eq!(&array, b"abcde");

    let mut boxed = Cursor::new(Box::from([0; 2]));
    assert_eq!(now(boxed.write(b"abc")).unwrap(), 2);
    assert_eq!(&boxed.into_inner()[..], b"ab");

    let mut owned = Cursor::new(Vec::new());
    owned.set_position(1);
    now(owned.write_all(b"ab")).unwrap();
    now(owned.flush()).unwrap();
    now(owned.shutdown()).unwrap();
    assert_eq!(owned.into_inner(), b"\0ab");

    let mut vec = Vec::new();
    let mut borrowed = Cursor::new(&mut vec);
    assert!(borrowed.is_write_vectored());
    now(borrowed.write_vectored(&bufs)).unwrap();
    assert_eq!(vec, b"cdef");
}

#[test]
fn a_read_into_no_room_reads_nothing() {
    let mut bytes = &b"abc"[..];
    let mut none = ReadBuf::new(&mut []);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        Pin::new(&mut bytes)
            .poll_read(&mut cx, &mut none)
            .is_ready()
    );
    assert_eq!(bytes, b"abc");
}
