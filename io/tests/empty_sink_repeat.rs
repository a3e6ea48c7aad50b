//! `empty`, `sink`, `repeat`.

mod support;

use std::io::{IoSlice, SeekFrom};

use gmp_io::{
    AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, empty, repeat, sink,
};
use support::now;

#[test]
fn empty_has_nothing() {
    let mut empty = empty();
    assert_eq!(now(empty.read(&mut [0; 4])).unwrap(), 0);
    assert_eq!(now(empty.fill_buf()).unwrap(), b"");
    empty.consume(0);
    assert_eq!(now(empty.seek(SeekFrom::Start(7))).unwrap(), 0);
    assert_eq!(now(empty.seek(SeekFrom::End(-7))).unwrap(), 0);
    assert_eq!(now(empty.stream_position()).unwrap(), 0);
    assert_eq!(format!("{empty:?}"), "Empty { .. }");
}

#[test]
fn empty_and_sink_swallow_everything() {
    fn check(mut writer: impl AsyncWrite + Unpin) {
        assert!(writer.is_write_vectored());
        assert_eq!(now(writer.write(b"abc")).unwrap(), 3);
        let bufs = [IoSlice::new(b"ab"), IoSlice::new(b"c")];
        assert_eq!(now(writer.write_vectored(&bufs)).unwrap(), 3);
        now(writer.flush()).unwrap();
        now(writer.shutdown()).unwrap();
        assert_eq!(now(writer.write(b"after")).unwrap(), 5);
    }
    check(empty());
    check(sink());
    assert_eq!(format!("{:?}", sink()), "Sink { .. }");
}

#[test]
fn repeat_fills_every_buffer() {
    let mut repeat = repeat(7);
    let mut buf = [0; 100];
    assert_eq!(now(repeat.read(&mut buf)).unwrap(), 100);
    assert_eq!(buf, [7; 100]);
    let mut vec = Vec::new();
    assert_eq!(now(repeat.take(1000).read_to_end(&mut vec)).unwrap(), 1000);
    assert_eq!(vec, [7; 1000]);
}
