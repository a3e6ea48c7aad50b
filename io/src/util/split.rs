//! `Split`.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::AsyncBufRead;
use crate::ext::poll_read_until;

pin_project! {
    /// The segments of a reader between delimiters; see [`split`](crate::AsyncBufReadExt::split).
    ///
    /// As `tokio::io::Split`.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Split<R> {
        #[pin]
        reader: R,
        segment: Vec<u8>,
        delimiter: u8,
    }
}

impl<R: AsyncBufRead> Split<R> {
    pub(crate) fn new(reader: R, delimiter: u8) -> Self {
        Split {
            reader,
            segment: Vec::new(),
            delimiter,
        }
    }

    /// Polls for the next segment.
    ///
    /// `Ready(Ok(None))` is the end, and the task of `cx` is woken after `Pending` when it is worth
    /// trying again.
    pub fn poll_next_segment(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        let me = self.project();
        let delimiter = *me.delimiter;
        let read = ready!(poll_read_until(
            me.reader, cx, delimiter, me.segment, &mut 0
        ))?;
        // A poll that had to wait may have left the last segment in here, without an end.
        if read == 0 && me.segment.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let mut segment = mem::take(me.segment);
        segment.pop_if(|last| *last == delimiter);
        Poll::Ready(Ok(Some(segment)))
    }
}

impl<R: AsyncBufRead + Unpin> Split<R> {
    /// The next segment, without its delimiter; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the reader.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what has been read of the segment stays in the `Split`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod gmp { pub mod io { pub use gmp_io::*; } }
    /// use gmp::io::{AsyncBufReadExt, BufReader};
    ///
    /// # futures::executor::block_on(async {
    /// let mut fields = BufReader::new(&b"a,bc"[..]).split(b',');
    /// assert_eq!(fields.next_segment().await.unwrap(), Some(b"a".to_vec()));
    /// assert_eq!(fields.next_segment().await.unwrap(), Some(b"bc".to_vec()));
    /// assert_eq!(fields.next_segment().await.unwrap(), None);
    /// # });
    /// ```
    pub async fn next_segment(&mut self) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_segment(cx)).await
    }
}
