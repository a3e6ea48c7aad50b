//! [`Watch`]: a descriptor that is served where netpoll finds it readable, without a task.
//!
//! Some descriptors belong to the runtime and not to one of its tasks: the self-pipe of the
//! signals, the pidfd of a child that nobody waits for. A watch registers such a descriptor and
//! makes the *waker* that it leaves there the callback: netpoll wakes outside its locks, on
//! whatever thread polls, and waking a watch means looking at the descriptor.
//!
//! The registration holds the waker, which holds the watch, which holds the registration. The
//! circle is meant: nobody else keeps a watch alive. It is broken when the source has had enough or
//! netpoll is shut down, whichever comes first.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use gmp_executor::coop;
use gmp_net::{AsyncFd, Interest};
use parking_lot::Mutex;

/// Registers a descriptor for reading with the current runtime.
///
/// # Errors
///
/// The runtime is shut down, or the operating system refused.
pub(crate) fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, and always the same descriptor.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// What is done with the descriptor. Must not panic.
pub(crate) trait Source: Sized + Send + 'static {
    /// The descriptor is readable, or was a moment ago. Reads it empty, as netpoll tells of edges.
    fn readable(&mut self, fd: &OwnedFd) -> Verdict;

    /// The runtime that watched is shutting down: `readable` will not be called again.
    fn abandoned(self) {}
}

/// Whether a source wants to be called again.
#[must_use]
pub(crate) enum Verdict {
    /// When the descriptor is readable again.
    Again,
    /// The descriptor can be closed.
    #[cfg_attr(not(feature = "process"), allow(dead_code))]
    Enough,
}

pub(crate) struct Watch<S: Source> {
    state: Mutex<State<S>>,
}

/// One thread looks at a time, and without holding the lock; whoever comes meanwhile makes it look
/// once more.
enum State<S: Source> {
    /// Nobody looks.
    Waiting(AsyncFd<OwnedFd>, S),
    /// Somebody looks, and has taken the rest along.
    Looking { again: bool },
    /// The source had enough, or netpoll was shut down.
    Over,
}

impl<S: Source> Watch<S> {
    /// Registers the descriptor with the current runtime. Nothing happens until the first
    /// [`look`](Watch::look).
    ///
    /// # Errors
    ///
    /// What registering it said; the source comes back.
    pub(crate) fn new(fd: OwnedFd, source: S) -> Result<Arc<Watch<S>>, (io::Error, S)> {
        match register(fd) {
            Ok(fd) => Ok(Watch::with_registered(fd, source)),
            Err(error) => Err((error, source)),
        }
    }

    /// Watches a descriptor that is registered already.
    pub(crate) fn with_registered(fd: AsyncFd<OwnedFd>, source: S) -> Arc<Watch<S>> {
        Arc::new(Watch {
            state: Mutex::new(State::Waiting(fd, source)),
        })
    }

    /// Whether the descriptor is closed, or about to be.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.state.lock(), State::Over)
    }

    /// Looks at the descriptor, calls the source if it is readable, and leaves the waker there.
    pub(crate) fn look(self: &Arc<Self>) {
        let Some((mut fd, mut source)) = self.begin() else {
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        loop {
            match serve(&mut fd, &mut source, &waker) {
                Served::Waiting => match self.finish(fd, source) {
                    None => return,
                    Some(rest) => (fd, source) = rest,
                },
                Served::Over => {
                    *self.state.lock() = State::Over;
                    return;
                }
                Served::Abandoned => {
                    *self.state.lock() = State::Over;
                    drop(fd);
                    source.abandoned();
                    return;
                }
            }
        }
    }

    /// The descriptor and its source, unless they are somewhere else.
    fn begin(&self) -> Option<(AsyncFd<OwnedFd>, S)> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Looking { again: false }) {
            State::Waiting(fd, source) => Some((fd, source)),
            State::Looking { .. } => {
                *state = State::Looking { again: true };
                None
            }
            State::Over => {
                *state = State::Over;
                None
            }
        }
    }

    /// Puts them back, or returns them when somebody asked for another look meanwhile.
    fn finish(&self, fd: AsyncFd<OwnedFd>, source: S) -> Option<(AsyncFd<OwnedFd>, S)> {
        let mut state = self.state.lock();
        if let State::Looking { again: true } = *state {
            *state = State::Looking { again: false };
            return Some((fd, source));
        }
        *state = State::Waiting(fd, source);
        None
    }
}

enum Served {
    /// The waker is in place.
    Waiting,
    Over,
    Abandoned,
}

fn serve<S: Source>(fd: &mut AsyncFd<OwnedFd>, source: &mut S, waker: &Waker) -> Served {
    let mut cx = Context::from_waker(waker);
    // The budget, if there is one, is that of a task which happens to be polled on this thread.
    coop::with_unconstrained(|| {
        loop {
            match fd.poll_read_ready(&mut cx) {
                Poll::Pending => return Served::Waiting,
                Poll::Ready(Err(_)) => return Served::Abandoned,
                Poll::Ready(Ok(mut guard)) => match source.readable(guard.get_inner()) {
                    Verdict::Again => guard.clear_ready(),
                    Verdict::Enough => return Served::Over,
                },
            }
        }
    })
}

impl<S: Source> Wake for Watch<S> {
    fn wake(self: Arc<Self>) {
        self.look();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.look();
    }
}
