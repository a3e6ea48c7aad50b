//! `Lines`.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::AsyncBufRead;
use crate::ext::poll_read_until;

pin_project! {
    /// The lines of a reader; see [`lines`](crate::AsyncBufReadExt::lines).
    ///
    /// As `tokio::io::Lines`.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Lines<R> {
        #[pin]
        reader: R,
        line: Vec<u8>,
    }
}

impl<R: AsyncBufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Lines {
            reader,
            line: Vec::new(),
        }
    }

    /// Polls for the next line.
    ///
    /// `Ready(Ok(None))` is the end, and the task of `cx` is woken after `Pending` when it is worth
    /// trying again.
    pub fn poll_next_line(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let me = self.project();
        let read = ready!(poll_read_until(me.reader, cx, b'\n', me.line, &mut 0))?;
        // A poll that had to wait may have left the last line in here, without an end.
        if read == 0 && me.line.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let mut line = mem::take(me.line);
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        }
        let line = String::from_utf8(line);
        Poll::Ready(
            line.map(Some)
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        )
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line, without its `\n` or `\r\n`; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the reader, and [`InvalidData`](io::ErrorKind::InvalidData) for a line that is not
    /// UTF-8; that line is lost, and the next call returns the one behind it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what has been read of the line stays in the `Lines`.
    pub async fn next_line(&mut self) -> io::Result<Option<String>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_line(cx)).await
    }

    /// The inner reader, mutably.
    ///
    /// Reading from it directly may tear a line.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// The inner reader.
    pub fn get_ref(&mut self) -> &R {
        &self.reader
    }

    /// Takes the inner reader out; what has been read of an unfinished line is lost.
    pub fn into_inner(self) -> R {
        self.reader
    }
}
