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

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use gmp_executor::{Config, Flavor, Runtime};

    const LIMIT: Duration = Duration::from_secs(600);

    fn runtime() -> Runtime {
        let mut config = Config::new(Flavor::MultiThread, 2);
        config.netpoll = Some(Arc::new(gmp_net::Netpoll::new(2).unwrap()));
        Runtime::new(config).unwrap()
    }

    /// Reads what is there and sends it; has enough when it reads a `.`.
    struct Reader {
        sender: mpsc::Sender<Vec<u8>>,
        calls: Arc<AtomicUsize>,
    }

    impl Source for Reader {
        fn readable(&mut self, fd: &OwnedFd) -> Verdict {
            self.calls.fetch_add(1, Ordering::Relaxed);
            let mut bytes = [0; 64];
            loop {
                match rustix::io::read(fd, &mut bytes) {
                    Ok(n) => self.sender.send(bytes[..n].to_vec()).unwrap(),
                    Err(_) => return Verdict::Again,
                }
                if bytes[0] == b'.' {
                    return Verdict::Enough;
                }
            }
        }

        fn abandoned(self) {
            self.sender.send(b"abandoned".to_vec()).unwrap();
        }
    }

    struct Watched {
        watch: Arc<Watch<Reader>>,
        calls: Arc<AtomicUsize>,
        received: mpsc::Receiver<Vec<u8>>,
        peer: std::os::unix::net::UnixStream,
    }

    fn watched(rt: &Runtime) -> Watched {
        let (ours, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (sender, received) = mpsc::channel();
        let calls = Arc::<AtomicUsize>::default();
        let reader = Reader {
            sender,
            calls: calls.clone(),
        };
        let _entered = rt.enter();
        let Ok(watch) = Watch::new(ours.into(), reader) else {
            panic!("the socket was not registered");
        };
        watch.look();
        Watched {
            watch,
            calls,
            received,
            peer,
        }
    }

    #[test]
    fn the_source_is_called_for_each_edge_by_an_idle_runtime() {
        let rt = runtime();
        let mut watched = watched(&rt);
        for i in 0..100u8 {
            watched.peer.write_all(&[b'a' + i % 26]).unwrap();
            let read = watched.received.recv_timeout(LIMIT).unwrap();
            assert_eq!(read, [b'a' + i % 26]);
        }
        assert!(!watched.watch.is_over());
    }

    #[test]
    fn enough_closes_the_descriptor() {
        let rt = runtime();
        let mut watched = watched(&rt);
        watched.peer.write_all(b".").unwrap();
        assert_eq!(watched.received.recv_timeout(LIMIT).unwrap(), b".");
        // The end of the stream: nobody holds the other end any more.
        assert_eq!(watched.peer.read(&mut [0; 8]).unwrap(), 0);
        assert!(watched.watch.is_over());
        watched.watch.look();
        // The circle of references is broken: this is the last one.
        let start = std::time::Instant::now();
        while Arc::strong_count(&watched.watch) > 1 {
            assert!(start.elapsed() < LIMIT);
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_shutdown_abandons_the_source() {
        let rt = runtime();
        let mut watched = watched(&rt);
        drop(rt);
        assert_eq!(watched.received.recv_timeout(LIMIT).unwrap(), b"abandoned");
        assert_eq!(watched.peer.read(&mut [0; 8]).unwrap(), 0);
        assert!(watched.watch.is_over());
    }

    #[test]
    fn one_thread_looks_at_a_time_and_no_byte_is_missed() {
        let rt = runtime();
        let mut watched = watched(&rt);
        let lookers: Vec<_> = (0..4)
            .map(|_| {
                let watch = watched.watch.clone();
                std::thread::spawn(move || {
                    while !watch.is_over() {
                        watch.look();
                    }
                })
            })
            .collect();
        for _ in 0..2000 {
            watched.peer.write_all(b"x").unwrap();
        }
        let mut received = 0;
        while received < 2000 {
            received += watched.received.recv_timeout(LIMIT).unwrap().len();
        }
        watched.peer.write_all(b".").unwrap();
        for looker in lookers {
            looker.join().unwrap();
        }
        assert_eq!(received, 2000);
        assert!(watched.calls.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn a_source_may_look_again_from_within() {
        struct Nested(Option<Arc<Watch<Nested>>>, mpsc::Sender<()>);
        impl Source for Nested {
            fn readable(&mut self, fd: &OwnedFd) -> Verdict {
                if let Some(watch) = &self.0 {
                    watch.look();
                }
                match rustix::io::read(fd, &mut [0; 8]) {
                    Ok(_) => {
                        self.1.send(()).unwrap();
                        Verdict::Enough
                    }
                    Err(_) => Verdict::Again,
                }
            }
        }
        let rt = runtime();
        let (ours, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (sender, received) = mpsc::channel();
        let watch = {
            let _entered = rt.enter();
            Watch::new(ours.into(), Nested(None, sender)).ok().unwrap()
        };
        if let State::Waiting(_, source) = &mut *watch.state.lock() {
            source.0 = Some(watch.clone());
        }
        watch.look();
        peer.write_all(b"x").unwrap();
        received.recv_timeout(LIMIT).unwrap();
    }
}
