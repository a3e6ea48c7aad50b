//! Numbers: every width in both orders, in pieces, at the end, and against a full writer.

mod support;

use std::io::ErrorKind;

use gmp_io::{AsyncReadExt, AsyncWriteExt};
use proptest::prelude::*;
use support::{Read, Script, Write, block_on, data, kind, now, poll_and_drop};

/// One byte a poll, and a wait before each.
fn dripping(bytes: &[u8]) -> Script {
    Script::reading(bytes.iter().flat_map(|byte| [Read::Wait, data([*byte])]))
}

fn trickling() -> Script {
    Script::writing((0..16).flat_map(|_| [Write::Wait, Write::UpTo(1)]))
}

macro_rules! both_ways {
    ($($test:ident: $number:ty, $read:ident, $write:ident, $to_bytes:ident;)*) => {
        proptest! {$(
            #[test]
            fn $test(number: $number) {
                let bytes = number.$to_bytes();

                let mut written = Vec::new();
                now(written.$write(number)).unwrap();
                prop_assert_eq!(&written[..], &bytes[..]);
                let mut slow = trickling();
                block_on(slow.$write(number)).unwrap();
                prop_assert_eq!(&slow.written[..], &bytes[..]);

                // Bits, so that a NaN is equal to itself.
                let read = now((&bytes[..]).$read()).unwrap();
                prop_assert_eq!(read.$to_bytes(), bytes);
                let read = block_on(dripping(&bytes).$read()).unwrap();
                prop_assert_eq!(read.$to_bytes(), bytes);

                let short = &bytes[..bytes.len() - 1];
                prop_assert_eq!(kind(now((&short[..]).$read())), ErrorKind::UnexpectedEof);
            }
        )*}
    };
}

both_ways! {
    u8_: u8, read_u8, write_u8, to_be_bytes;
    i8_: i8, read_i8, write_i8, to_be_bytes;
    u16_: u16, read_u16, write_u16, to_be_bytes;
    i16_: i16, read_i16, write_i16, to_be_bytes;
    u32_: u32, read_u32, write_u32, to_be_bytes;
    i32_: i32, read_i32, write_i32, to_be_bytes;
    u64_: u64, read_u64, write_u64, to_be_bytes;
    i64_: i64, read_i64, write_i64, to_be_bytes;
    u128_: u128, read_u128, write_u128, to_be_bytes;
    i128_: i128, read_i128, write_i128, to_be_bytes;
    f32_: f32, read_f32, write_f32, to_be_bytes;
    f64_: f64, read_f64, write_f64, to_be_bytes;
    u16_le: u16, read_u16_le, write_u16_le, to_le_bytes;
    i16_le: i16, read_i16_le, write_i16_le, to_le_bytes;
    u32_le: u32, read_u32_le, write_u32_le, to_le_bytes;
    i32_le: i32, read_i32_le, write_i32_le, to_le_bytes;
    u64_le: u64, read_u64_le, write_u64_le, to_le_bytes;
    i64_le: i64, read_i64_le, write_i64_le, to_le_bytes;
    u128_le: u128, read_u128_le, write_u128_le, to_le_bytes;
    i128_le: i128, read_i128_le, write_i128_le, to_le_bytes;
    f32_le: f32, read_f32_le, write_f32_le, to_le_bytes;
    f64_le: f64, read_f64_le, write_f64_le, to_le_bytes;
}

#[test]
fn interrupted_is_tried_again_and_other_errors_are_not() {
    let interrupted = || Read::Fail(ErrorKind::Interrupted);
    let mut reader = Script::reading([interrupted(), data([1]), interrupted(), data([2])]);
    assert_eq!(now(reader.read_u16()).unwrap(), 0x0102);
    let mut reader = Script::reading([interrupted(), data([3]), Read::Fail(ErrorKind::TimedOut)]);
    assert_eq!(now(reader.read_u8()).unwrap(), 3);
    assert_eq!(kind(now(reader.read_u8())), ErrorKind::TimedOut);

    let interrupted = || Write::Fail(ErrorKind::Interrupted);
    let mut writer = Script::writing([interrupted(), Write::UpTo(1), interrupted()]);
    now(writer.write_u16(0x0102)).unwrap();
    assert_eq!(writer.written, [1, 2]);
    let mut writer = Script::writing([interrupted(), Write::Fail(ErrorKind::TimedOut)]);
    assert_eq!(kind(now(writer.write_i8(-1))), ErrorKind::TimedOut);
}

#[test]
fn a_writer_that_takes_no_more_is_an_error() {
    let mut writer = Script::writing([Write::UpTo(1), Write::UpTo(0)]);
    assert_eq!(kind(now(writer.write_u32(1))), ErrorKind::WriteZero);
    let mut writer = Script::writing([Write::UpTo(0)]);
    assert_eq!(kind(now(writer.write_u8(1))), ErrorKind::WriteZero);
}

#[test]
fn a_number_of_one_byte_is_cancel_safe() {
    let mut reader = Script::reading([Read::Hang, data([5])]);
    assert!(poll_and_drop(reader.read_u8()).is_pending());
    assert_eq!(now(reader.read_i8()).unwrap(), 5);
    let mut writer = Script::writing([Write::Hang]);
    assert!(poll_and_drop(writer.write_u8(1)).is_pending());
    assert_eq!(writer.written, []);
}

#[test]
fn numbers_follow_one_another() {
    let mut bytes = Vec::new();
    now(bytes.write_u8(1)).unwrap();
    now(bytes.write_i16_le(-2)).unwrap();
    now(bytes.write_f64(0.5)).unwrap();
    now(bytes.write_u128(7)).unwrap();
    let mut reader = &bytes[..];
    assert_eq!(now(reader.read_u8()).unwrap(), 1);
    assert_eq!(now(reader.read_i16_le()).unwrap(), -2);
    assert_eq!(now(reader.read_f64()).unwrap(), 0.5);
    assert_eq!(now(reader.read_u128()).unwrap(), 7);
    assert_eq!(kind(now(reader.read_u8())), ErrorKind::UnexpectedEof);
}
