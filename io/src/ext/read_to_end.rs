//! `read_to_end`, `read_to_string`.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::read_line::{OnError, put_back};
use crate::util::is_interrupted;
use crate::{AsyncRead, ReadBuf};

/// The least room to read into, and the size of a probe.
const PROBE: usize = 32;

/// What is known about a vector that is being read into.
#[derive(Debug)]
struct Known {
    /// How many bytes of the vector's allocation are initialized: at least its length, at most its
    /// capacity. It saves a reader that wants initialized bytes from clearing them again each time.
    initialized: usize,
    /// The capacity the vector came with.
    capacity_first: usize,
    /// How many bytes have been appended.
    read: usize,
}

impl Known {
    fn new(vec: &Vec<u8>) -> Known {
        Known {
            initialized: vec.len(),
            capacity_first: vec.capacity(),
            read: 0,
        }
    }

    /// Reads until the reader ends.
    ///
    /// # Safety
    ///
    /// `vec` is the vector that this was made for, and only this method has touched it since.
    unsafe fn poll_read_to_end<R>(
        &mut self,
        vec: &mut Vec<u8>,
        mut reader: Pin<&mut R>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>
    where
        R: AsyncRead + ?Sized,
    {
        loop {
            let result = if self.is_full_as_given(vec) {
                self.poll_probe(vec, reader.as_mut(), cx)
            } else {
                // SAFETY: our caller promises the same.
                unsafe { self.poll_read_once(vec, reader.as_mut(), cx) }
            };
            match ready!(result) {
                Ok(0) => return Poll::Ready(Ok(self.read)),
                Ok(len) => self.read += len,
                Err(e) if is_interrupted(&e) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// Whether the caller's own allocation is used up: it may have been made to measure, so it is
    /// worth looking for the end before it grows. One too small to be measured grows at once.
    fn is_full_as_given(&self, vec: &Vec<u8>) -> bool {
        vec.capacity() - vec.len() < PROBE
            && vec.capacity() == self.capacity_first
            && vec.capacity() >= PROBE
    }

    /// Reads once, a few bytes, and grows the vector only if they do not fit.
    fn poll_probe<R>(
        &mut self,
        vec: &mut Vec<u8>,
        reader: Pin<&mut R>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>
    where
        R: AsyncRead + ?Sized,
    {
        let mut probe = [MaybeUninit::uninit(); PROBE];
        let mut buf = ReadBuf::uninit(&mut probe);
        ready!(reader.poll_read(cx, &mut buf))?;
        let bytes = buf.filled();
        let capacity = vec.capacity();
        vec.extend_from_slice(bytes);
        self.initialized = if vec.capacity() == capacity {
            self.initialized.max(vec.len())
        } else {
            vec.len()
        };
        Poll::Ready(Ok(bytes.len()))
    }

    /// Reads once, into what room the vector has; it grows first when that is little.
    ///
    /// # Safety
    ///
    /// As [`poll_read_to_end`](Known::poll_read_to_end).
    unsafe fn poll_read_once<R>(
        &mut self,
        vec: &mut Vec<u8>,
        reader: Pin<&mut R>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>
    where
        R: AsyncRead + ?Sized,
    {
        let len = vec.len();
        if vec.capacity() - len < PROBE {
            vec.reserve(PROBE);
            // Growing moves the contents and nothing else.
            self.initialized = len;
        }
        debug_assert!((len..=vec.capacity()).contains(&self.initialized));
        let mut buf = ReadBuf::uninit(vec.spare_capacity_mut());
        // SAFETY: the bytes of the allocation below `initialized` are: our caller promises that
        // nobody else moved, shrank or grew the vector since this was noted.
        unsafe { buf.assume_init(self.initialized - len) };
        let address = buf.initialized().as_ptr();
        let result = reader.poll_read(cx, &mut buf);
        assert_eq!(
            buf.initialized().as_ptr(),
            address,
            "the reader exchanged the buffer it was given"
        );
        let filled = buf.filled().len();
        // Also when it has to wait or failed: it may have initialized a part.
        self.initialized = len + buf.initialized().len();
        // SAFETY: `buf` is the vector's spare capacity (just checked) and filled that far, so the
        // bytes up to there are in the allocation and initialized.
        unsafe { vec.set_len(len + filled) };
        result.map_ok(|()| filled)
    }
}

pin_project! {
    /// Future of [`read_to_end`](crate::AsyncReadExt::read_to_end).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadToEnd<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut Vec<u8>,
        known: Known,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToEnd<'a, R> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut Vec<u8>) -> Self {
        ReadToEnd {
            reader,
            known: Known::new(buf),
            buf,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToEnd<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        // SAFETY: `known` was made for the vector behind `buf`, which this future borrows all the
        // time and uses nowhere else.
        unsafe {
            me.known
                .poll_read_to_end(me.buf, Pin::new(&mut **me.reader), cx)
        }
    }
}

pin_project! {
    /// Future of [`read_to_string`](crate::AsyncReadExt::read_to_string).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadToString<'a, R: ?Sized> {
        reader: &'a mut R,
        // Empty while the future reads: its bytes are in `bytes`, until they are known to be UTF-8.
        output: &'a mut String,
        bytes: Vec<u8>,
        known: Known,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToString<'a, R> {
    pub(super) fn new(reader: &'a mut R, output: &'a mut String) -> Self {
        let bytes = mem::take(output).into_bytes();
        ReadToString {
            reader,
            output,
            known: Known::new(&bytes),
            bytes,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToString<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.project();
        let reader = Pin::new(&mut **me.reader);
        // SAFETY: `known` belongs to `bytes`, which this future owns and uses nowhere else until it
        // takes the two apart below.
        let result = ready!(unsafe { me.known.poll_read_to_end(me.bytes, reader, cx) });
        let bytes = mem::take(me.bytes);
        let read = mem::replace(me.known, Known::new(me.bytes)).read;
        Poll::Ready(put_back(me.output, bytes, read, result, OnError::Restore))
    }
}
