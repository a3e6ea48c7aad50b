//! `Chain`.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::{AsyncBufRead, AsyncRead, ReadBuf};

pin_project! {
    /// Two readers, one after the other; see [`chain`](crate::AsyncReadExt::chain).
    #[must_use = "readers do nothing unless read from"]
    pub struct Chain<T, U> {
        #[pin]
        first: T,
        #[pin]
        second: U,
        first_ended: bool,
    }
}

impl<T: AsyncRead, U: AsyncRead> Chain<T, U> {
    pub(crate) fn new(first: T, second: U) -> Self {
        Chain {
            first,
            second,
            first_ended: false,
        }
    }

    /// Both readers.
    pub fn get_ref(&self) -> (&T, &U) {
        (&self.first, &self.second)
    }

    /// Both readers, mutably.
    ///
    /// Reading from them directly may confuse the order of what the chain returns.
    pub fn get_mut(&mut self) -> (&mut T, &mut U) {
        (&mut self.first, &mut self.second)
    }

    /// Both readers, pinned.
    ///
    /// Reading from them directly may confuse the order of what the chain returns.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> (Pin<&mut T>, Pin<&mut U>) {
        let me = self.project();
        (me.first, me.second)
    }

    /// Takes the readers out.
    pub fn into_inner(self) -> (T, U) {
        (self.first, self.second)
    }
}

impl<T: AsyncRead, U: AsyncRead> AsyncRead for Chain<T, U> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.project();
        if !*me.first_ended {
            let room = buf.remaining();
            ready!(me.first.poll_read(cx, buf))?;
            // Nothing read into no room says nothing about the end.
            if room == 0 || buf.remaining() != room {
                return Poll::Ready(Ok(()));
            }
            *me.first_ended = true;
        }
        me.second.poll_read(cx, buf)
    }
}

impl<T: AsyncBufRead, U: AsyncBufRead> AsyncBufRead for Chain<T, U> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let me = self.project();
        if !*me.first_ended {
            let buf = ready!(me.first.poll_fill_buf(cx))?;
            if !buf.is_empty() {
                return Poll::Ready(Ok(buf));
            }
            *me.first_ended = true;
        }
        me.second.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let me = self.project();
        if *me.first_ended {
            me.second.consume(amt);
        } else {
            me.first.consume(amt);
        }
    }
}

impl<T: fmt::Debug, U: fmt::Debug> fmt::Debug for Chain<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("first", &self.first)
            .field("second", &self.second)
            .finish()
    }
}
