//! `BufStream`: both buffers at work, and made of a `BufReader` and a `BufWriter` in either order.

mod support;

use std::io::{Cursor, IoSlice, SeekFrom};
use std::pin::Pin;

use gmp_io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, BufReader, BufStream,
    BufWriter,
};
use support::{Call, Script, data, now, panic_of};

#[test]
fn reads_and_writes_are_buffered() {
    let mut stream = BufStream::with_capacity(8, 4, Script::reading([data("abcdef")]).vectored());
    assert_eq!(now(stream.read_u8()).unwrap(), b'a');
    assert_eq!(now(stream.fill_buf()).unwrap(), b"bcdef");
    stream.consume(5);
    now(stream.write_all(b"x")).unwrap();
    now(stream.write_all(b"y")).unwrap();
    assert!(stream.is_write_vectored());
    now(stream.write_vectored(&[IoSlice::new(b"z")])).unwrap();
    assert_eq!(stream.get_ref().calls, [Call::Read]);
    now(stream.flush()).unwrap();
    now(stream.write_all(b"!")).unwrap();
    now(stream.shutdown()).unwrap();
    assert_eq!(stream.get_ref().written, b"xyz!");
    let calls = [
        Call::Read,
        Call::Write(3),
        Call::Flush,
        Call::Write(1),
        Call::Shutdown,
    ];
    assert_eq!(stream.into_inner().calls, calls);
}

#[test]
fn the_buffers_survive_being_turned_inside_out() {
    let mut reader = BufReader::with_capacity(8, Script::reading([data("abc")]));
    assert_eq!(now(reader.read_u8()).unwrap(), b'a');
    let mut writer = BufWriter::with_capacity(8, reader);
    now(writer.write_all(b"xy")).unwrap();
    let mut stream = BufStream::from(writer);
    assert_eq!(now(stream.fill_buf()).unwrap(), b"bc");
    now(stream.flush()).unwrap();
    assert_eq!(stream.get_ref().written, b"xy");

    let mut inner = BufWriter::new(Script::reading([data("abc")]));
    now(inner.write_all(b"xy")).unwrap();
    let mut stream = BufStream::from(BufReader::new(inner));
    assert_eq!(now(stream.read_u8()).unwrap(), b'a');
    now(stream.flush()).unwrap();
    assert_eq!(stream.get_ref().written, b"xy");
}

#[test]
fn a_seek_settles_both_buffers() {
    let mut stream = BufStream::new(Cursor::new(b"0123456789".to_vec()));
    assert_eq!(now(stream.read_u8()).unwrap(), b'0');
    assert_eq!(now(stream.seek(SeekFrom::Current(2))).unwrap(), 3);
    now(stream.write_all(b"ab")).unwrap();
    assert_eq!(now(stream.rewind()).unwrap(), 0);
    let mut text = String::new();
    now(stream.read_to_string(&mut text)).unwrap();
    assert_eq!(text, "012ab56789");
}

#[test]
fn the_stream_is_within_reach() {
    let mut stream = BufStream::new(Script::default());
    stream.get_mut().written.push(b'a');
    Pin::new(&mut stream).get_pin_mut().written.push(b'b');
    assert_eq!(stream.get_ref().written, b"ab");
    assert!(format!("{stream:?}").starts_with("BufStream"));
}

#[test]
fn no_capacity_for_reading_panics_at_the_caller() {
    let (file, text) =
        panic_of(|| drop(BufStream::with_capacity(0, 1, Script::default()))).unwrap();
    assert_eq!(file, file!());
    assert_eq!(text, "capacity must be greater than zero");
}
