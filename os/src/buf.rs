//! The bytes that travel with a job on the blocking pool.

use std::io::{self, Read, Write};

use gmp_io::ReadBuf;

/// Bytes on their way between a caller and a file, used again by each job of the same file.
///
/// `bytes[start..end]` waits to be taken; all of `bytes` is initialised memory, so that a reader
/// can be handed any part of it. It grows only while it is empty.
#[derive(Debug, Default)]
pub(crate) struct Buf {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buf {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Hands out as much as fits.
    pub(crate) fn copy_to(&mut self, dst: &mut ReadBuf<'_>) {
        let n = self.len().min(dst.remaining());
        dst.put_slice(&self.bytes[self.start..self.start + n]);
        self.start += n;
    }

    /// Takes in at most `max` bytes of `src` and says how many.
    pub(crate) fn copy_from(&mut self, src: &[u8], max: usize) -> usize {
        let n = src.len().min(max);
        self.reset();
        if n > self.bytes.len() {
            self.bytes = src[..n].to_vec();
        } else {
            self.bytes[..n].copy_from_slice(&src[..n]);
        }
        self.end = n;
        n
    }

    /// Takes in at most `max` bytes of all the slices together and says how many.
    #[cfg(feature = "fs")]
    pub(crate) fn copy_from_slices(&mut self, slices: &[io::IoSlice<'_>], max: usize) -> usize {
        let total = slices
            .iter()
            .fold(0, |sum: usize, slice| sum.saturating_add(slice.len()))
            .min(max);
        self.reset();
        self.grow(total);
        for slice in slices {
            let n = slice.len().min(total - self.end);
            self.bytes[self.end..self.end + n].copy_from_slice(&slice[..n]);
            self.end += n;
        }
        total
    }

    /// Reads once, at most `max` bytes; an interrupted read is repeated.
    pub(crate) fn read_from(&mut self, reader: &mut impl Read, max: usize) -> io::Result<usize> {
        self.reset();
        self.grow(max);
        let n = loop {
            match reader.read(&mut self.bytes[..max]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        assert!(n <= max, "read {n} bytes into a buffer of {max}");
        self.end = n;
        Ok(n)
    }

    /// Writes everything, and is empty afterwards, whether that succeeded or not.
    pub(crate) fn write_to(&mut self, writer: &mut impl Write) -> io::Result<()> {
        let result = writer.write_all(&self.bytes[self.start..self.end]);
        self.start = 0;
        self.end = 0;
        result
    }

    /// Forgets what was read ahead, and says by how much the file's cursor has to move for that.
    #[cfg(feature = "fs")]
    pub(crate) fn discard_read(&mut self) -> i64 {
        let ahead = i64::try_from(self.len()).expect("no allocation is larger than isize::MAX");
        self.start = 0;
        self.end = 0;
        -ahead
    }

    fn reset(&mut self) {
        assert!(self.is_empty(), "{} bytes would be overwritten", self.len());
        self.start = 0;
        self.end = 0;
    }

    fn grow(&mut self, len: usize) {
        if len > self.bytes.len() {
            // Fresh zeroed memory: for large buffers the operating system's, without a pass over it.
            self.bytes = vec![0; len];
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    fn take(buf: &mut Buf, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut dst = ReadBuf::new(&mut bytes);
        buf.copy_to(&mut dst);
        dst.filled().to_vec()
    }

    #[test]
    fn reads_at_most_max_and_hands_out_in_parts() {
        let mut buf = Buf::default();
        assert_eq!(buf.read_from(&mut &b"hello world"[..], 5).unwrap(), 5);
        assert_eq!(take(&mut buf, 2), b"he");
        assert_eq!(buf.len(), 3);
        assert_eq!(take(&mut buf, 10), b"llo");
        assert!(buf.is_empty());
    }

    #[test]
    fn memory_is_kept_between_uses() {
        let mut buf = Buf::default();
        buf.read_from(&mut &[1u8; 64][..], 64).unwrap();
        take(&mut buf, 64);
        let memory = buf.bytes.as_ptr();
        buf.read_from(&mut &b"ab"[..], 64).unwrap();
        assert_eq!(take(&mut buf, 64), b"ab");
        assert_eq!(buf.copy_from(&[7; 64], 64), 64);
        buf.write_to(&mut Vec::new()).unwrap();
        assert_eq!(buf.bytes.as_ptr(), memory);
    }

    #[test]
    fn end_of_file_leaves_it_empty() {
        let mut buf = Buf::default();
        assert_eq!(buf.read_from(&mut io::empty(), 16).unwrap(), 0);
        assert!(buf.is_empty());
    }

    #[test]
    fn interrupted_read_is_repeated_and_an_error_leaves_it_empty() {
        struct Flaky(Vec<io::Result<&'static [u8]>>);
        impl Read for Flaky {
            fn read(&mut self, dst: &mut [u8]) -> io::Result<usize> {
                let bytes = self.0.remove(0)?;
                dst[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
        }
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let mut flaky = Flaky(vec![
            interrupted(),
            interrupted(),
            Ok(b"abc"),
            Err(io::ErrorKind::UnexpectedEof.into()),
        ]);
        let mut buf = Buf::default();
        assert_eq!(buf.read_from(&mut flaky, 8).unwrap(), 3);
        assert_eq!(take(&mut buf, 8), b"abc");
        let error = buf.read_from(&mut flaky, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(buf.is_empty());
    }

    #[test]
    fn writes_everything_through_short_writes() {
        struct OneByte(Vec<u8>);
        impl Write for OneByte {
            fn write(&mut self, src: &[u8]) -> io::Result<usize> {
                self.0.push(src[0]);
                Ok(1)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut buf = Buf::default();
        assert_eq!(buf.copy_from(b"hello", 4), 4);
        let mut writer = OneByte(Vec::new());
        buf.write_to(&mut writer).unwrap();
        assert_eq!(writer.0, b"hell");
        assert!(buf.is_empty());
    }

    #[test]
    fn failed_write_drops_the_bytes() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut buf = Buf::default();
        buf.copy_from(b"hello", 100);
        assert_eq!(
            buf.write_to(&mut Full).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert!(buf.is_empty());
    }

    #[cfg(feature = "fs")]
    #[test]
    fn slices_are_joined_up_to_max() {
        let slices = [b"ab".as_slice(), b"", b"cdef", b"gh"].map(io::IoSlice::new);
        for (max, expected) in [
            (0, &b""[..]),
            (1, b"a"),
            (3, b"abc"),
            (6, b"abcdef"),
            (99, b"abcdefgh"),
        ] {
            let mut buf = Buf::default();
            assert_eq!(buf.copy_from_slices(&slices, max), expected.len());
            assert_eq!(take(&mut buf, 99), expected);
        }
    }

    #[cfg(feature = "fs")]
    #[test]
    fn discarded_bytes_are_a_step_back() {
        let mut buf = Buf::default();
        assert_eq!(buf.discard_read(), 0);
        buf.read_from(&mut &b"hello"[..], 5).unwrap();
        take(&mut buf, 2);
        assert_eq!(buf.discard_read(), -3);
        assert!(buf.is_empty());
    }

    #[test]
    #[should_panic = "3 bytes would be overwritten"]
    fn unread_bytes_are_never_overwritten() {
        let mut buf = Buf::default();
        buf.copy_from(b"abc", 3);
        buf.copy_from(b"d", 1);
    }
}
