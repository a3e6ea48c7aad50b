//! [`Blocking`]: a reader or writer that blocks, behind the asynchronous traits.
//!
//! The reader or writer travels with its jobs, one at a time. A write is answered when its bytes
//! are copied; the next write or flush waits for it and reports its failure.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gmp_executor::coop;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::blocking::{DEFAULT_MAX_BUF_SIZE, Job, job_lost};
use crate::buf::Buf;

/// Whether the jobs run even when the runtime shuts down before they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jobs {
    /// For input: nobody is left to whom it could go.
    MayBeDropped,
    /// For output: somebody was told that it is on its way.
    Mandatory,
}

#[derive(Debug)]
pub(super) struct Blocking<T> {
    state: State<T>,
    jobs: Jobs,
    /// Whether something was written since the last flush began.
    need_flush: bool,
}

#[derive(Debug)]
enum State<T> {
    Idle(Buf, T),
    Busy(Job<Done<T>>),
    /// A job was lost, and the reader or writer with it.
    Gone,
}

/// What a job brings back.
type Done<T> = (io::Result<()>, Buf, T);

impl<T: Send + 'static> Blocking<T> {
    pub(super) fn new(inner: T, jobs: Jobs) -> Blocking<T> {
        Blocking {
            state: State::Idle(Buf::default(), inner),
            jobs,
            need_flush: false,
        }
    }

    /// Waits for the job under way and says how it went; `None` when there is none.
    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<()>>> {
        match &mut self.state {
            State::Idle(..) => Poll::Ready(Ok(None)),
            State::Gone => Poll::Ready(Err(job_lost())),
            State::Busy(job) => match ready!(Pin::new(job).poll(cx)) {
                Ok((result, buf, inner)) => {
                    self.state = State::Idle(buf, inner);
                    Poll::Ready(result.map(Some))
                }
                Err(error) => {
                    self.state = State::Gone;
                    Poll::Ready(Err(error.into()))
                }
            },
        }
    }

    /// Starts a job with the buffer and the reader or writer. Called only when none is under way.
    fn start(
        &mut self,
        operation: impl FnOnce(&mut Buf, &mut T) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let State::Idle(mut buf, mut inner) = std::mem::replace(&mut self.state, State::Gone)
        else {
            unreachable!("the job under way was waited for");
        };
        let job = move || {
            let result = operation(&mut buf, &mut inner);
            (result, buf, inner)
        };
        self.state = State::Busy(match self.jobs {
            Jobs::MayBeDropped => Job::start(job),
            Jobs::Mandatory => {
                Job::start_mandatory(job).ok_or_else(gmp_executor::shutdown_error)?
            }
        });
        Ok(())
    }
}

impl<T: Read + Send + Unpin + 'static> AsyncRead for Blocking<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        dst: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        loop {
            let finished = ready!(me.poll_done(cx))?.is_some();
            if let State::Idle(buf, _) = &mut me.state {
                if finished {
                    // Also when it read nothing: that is the end of the input.
                    buf.copy_to(dst);
                    return Poll::Ready(Ok(()));
                }
                if !buf.is_empty() {
                    let coop = ready!(coop::poll_proceed(cx));
                    buf.copy_to(dst);
                    coop.made_progress();
                    return Poll::Ready(Ok(()));
                }
            }
            let max = dst.remaining().min(DEFAULT_MAX_BUF_SIZE);
            me.start(move |buf, inner| buf.read_from(inner, max).map(drop))?;
        }
    }
}

impl<T: Write + Send + Unpin + 'static> AsyncWrite for Blocking<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        src: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        ready!(me.poll_done(cx))?;
        let mut n = 0;
        if let State::Idle(buf, _) = &mut me.state {
            n = buf.copy_from(src, DEFAULT_MAX_BUF_SIZE);
        }
        me.start(|buf, inner| buf.write_to(inner))?;
        me.need_flush = true;
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        loop {
            ready!(me.poll_done(cx))?;
            if !me.need_flush {
                return Poll::Ready(Ok(()));
            }
            me.start(|_, inner| inner.flush())?;
            me.need_flush = false;
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
