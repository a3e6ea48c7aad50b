//! `split`, `unsplit`, `join`.

mod support;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf, join,
    split,
};
use support::{Call, Script, data, now, panic_of};

#[test]
fn the_halves_are_the_stream() {
    let (mut reader, mut writer) = split(Script::reading([data("abc")]).vectored());
    assert!(writer.is_write_vectored());
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    now(writer.write_all(b"x")).unwrap();
    now(writer.write_vectored(&[IoSlice::new(b"y"), IoSlice::new(b"z")])).unwrap();
    now(writer.flush()).unwrap();
    now(writer.shutdown()).unwrap();
    let stream = reader.unsplit(writer);
    assert_eq!(stream.written, b"xyz");
    let pieces = Call::WriteVectored(vec![1, 1]);
    let calls = [
        Call::Read,
        Call::Write(1),
        pieces,
        Call::Flush,
        Call::Shutdown,
    ];
    assert_eq!(stream.calls, calls);
    let (_, writer) = split(Script::default());
    assert!(!writer.is_write_vectored());
}

#[test]
fn only_the_halves_of_one_stream_are_a_pair() {
    let (reader_1, writer_1) = split(Script::default());
    let (reader_2, writer_2) = split(Script::default());
    assert!(reader_1.is_pair_of(&writer_1) && writer_1.is_pair_of(&reader_1));
    assert!(!reader_1.is_pair_of(&writer_2) && !writer_1.is_pair_of(&reader_2));
    let (file, text) = panic_of(|| drop(reader_1.unsplit(writer_2))).unwrap();
    assert_eq!(file, file!());
    assert_eq!(
        text,
        "Unrelated `split::Write` passed to `split::Read::unsplit`."
    );
}

#[test]
fn the_stream_goes_with_its_last_half() {
    let (near, mut far) = gmp_io::duplex(8);
    let (reader, writer) = split(near);
    drop(reader);
    assert!(support::poll_and_drop(far.read_u8()).is_pending());
    drop(writer);
    assert!(now(far.read_u8()).is_err());
}

#[test]
fn halves_say_no_more_than_what_they_are() {
    let (reader, writer) = split(Script::default());
    assert_eq!(
        format!("{reader:?} {writer:?}"),
        "ReadHalf { .. } WriteHalf { .. }"
    );
}

#[test]
fn halves_work_from_two_threads() {
    let (near, far) = gmp_io::duplex(16);
    let (mut reader, mut writer) = split(near);
    let (mut far_reader, mut far_writer) = split(far);
    let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let copy = gmp_io::copy(&mut far_reader, &mut far_writer);
            support::block_on(copy).unwrap();
            support::block_on(far_writer.shutdown()).unwrap();
        });
        scope.spawn(|| {
            support::block_on(writer.write_all(&bytes)).unwrap();
            support::block_on(writer.shutdown()).unwrap();
        });
        let mut back = Vec::new();
        support::block_on(reader.read_to_end(&mut back)).unwrap();
        assert!(back == bytes);
        echo.join().unwrap();
    });
    let _near = reader.unsplit(writer);
}

/// Panics when it is read.
struct Panicking;

impl AsyncRead for Panicking {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        panic!("a reader's own business");
    }
}

impl AsyncWrite for Panicking {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// As in tokio: nobody knows in which state the stream is.
#[test]
fn after_a_panic_in_one_half_the_other_one_panics_too() {
    let (mut reader, mut writer) = split(Panicking);
    assert!(panic_of(|| drop(now(reader.read_u8()))).is_some());
    let (_, text) = panic_of(|| drop(now(writer.write(b"x")))).unwrap();
    assert!(text.contains("no earlier poll of the stream panicked"));
}

#[test]
fn joined_each_side_does_its_own() {
    let reader = BufReader::new(Script::reading([data("abc")]));
    let mut joined = join(reader, Script::default().vectored());
    assert_eq!(now(joined.read_u8()).unwrap(), b'a');
    assert_eq!(now(joined.fill_buf()).unwrap(), b"bc");
    joined.consume(2);
    assert!(joined.is_write_vectored());
    now(joined.write_all(b"x")).unwrap();
    now(joined.write_vectored(&[IoSlice::new(b"y")])).unwrap();
    now(joined.flush()).unwrap();
    now(joined.shutdown()).unwrap();
    assert_eq!(joined.writer().written, b"xy");
    assert_eq!(joined.reader().buffer(), b"");
    joined.writer_mut().written.push(b'z');
    joined.reader_mut().get_mut().reads.push_back(data("d"));
    assert_eq!(Pin::new(&mut joined).reader_pin_mut().buffer(), b"");
    assert_eq!(Pin::new(&mut joined).writer_pin_mut().written, b"xyz");
    assert!(format!("{joined:?}").starts_with("Join { reader: "));
    let (reader, writer) = joined.into_inner();
    assert_eq!(reader.into_inner().reads, [data("d")]);
    assert_eq!(writer.calls.len(), 4);
}
