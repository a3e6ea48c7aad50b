//! Children whose [`Child`](super::Child) was dropped before they ended: they are reaped all the same.
//!
//! Words: an *orphan* is such a child; a *stray* is an orphan that no pidfd speaks for.
//!
//! * An orphan with a pidfd takes the registration along, as a watch: when the child ends, netpoll's
//!   wake-up reaps it. That costs nothing until then, and lasts as long as the runtime that the pidfd
//!   is registered with.
//! * When that runtime shuts down, or there never was a pidfd, the orphan becomes a stray, or moves to
//!   the runtime it is dropped in. Strays are asked one by one, at each `SIGCHLD` that any runtime of
//!   the process receives, and when another child is spawned.
//!
//! A child that cannot be waited for (somebody else reaped it) is forgotten.

use std::os::fd::OwnedFd;
use std::process::Child as StdChild;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use gmp_executor::{Handle, coop};
use parking_lot::Mutex;

use super::notice::{self, Notice};
use crate::delivery::{self, Listener};
use crate::watch::{Source, Verdict, Watch};

/// Sees to it that a child is reaped when it ends.
pub(super) fn adopt(child: StdChild, notice: Option<Notice>) {
    match notice {
        Some(Notice::Pidfd(fd)) => {
            let orphan = Orphan {
                child: Some(child),
                moved: false,
            };
            Watch::with_registered(fd, orphan).look();
        }
        _ => stray(child),
    }
}

/// An orphan with a pidfd.
struct Orphan {
    /// `None` once it has become a stray.
    child: Option<StdChild>,
    /// Whether this is its second runtime.
    moved: bool,
}

impl Source for Orphan {
    fn readable(&mut self, pidfd: &OwnedFd) -> Verdict {
        let Some(child) = &mut self.child else {
            return Verdict::Enough;
        };
        match child.try_wait() {
            Ok(Some(_)) | Err(_) => Verdict::Enough,
            Ok(None) if !notice::has_ended(pidfd) => Verdict::Again,
            // A debugger holds the corpse: `SIGCHLD` comes when it lets go.
            Ok(None) => {
                self.child.take().into_iter().for_each(stray);
                Verdict::Enough
            }
        }
    }

    fn abandoned(mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        if self.moved {
            stray(child);
        } else {
            rehome(child);
        }
    }
}

/// Lets the current runtime watch over the orphan, if there is one; else it is a stray.
fn rehome(child: StdChild) {
    let has_netpoll = Handle::try_current().is_ok_and(|handle| handle.netpoll().is_some());
    let pidfd = has_netpoll
        .then(|| notice::open_pidfd(child.id()))
        .flatten();
    let Some(pidfd) = pidfd else {
        return stray(child);
    };
    let orphan = Orphan {
        child: Some(child),
        moved: true,
    };
    match Watch::new(pidfd, orphan) {
        Ok(watch) => watch.look(),
        Err((_, orphan)) => orphan.child.into_iter().for_each(stray),
    }
}

static STRAYS: Mutex<Vec<StdChild>> = Mutex::new(Vec::new());

/// Who asks the strays at each `SIGCHLD`; made when there is the first stray, kept for ever.
static SWEEPER: Mutex<Option<Arc<Sweeper>>> = Mutex::new(None);

fn stray(child: StdChild) {
    STRAYS.lock().push(child);
    delivery::ensure_received_here();
    // Fails when there are no descriptors left, say; the next spawn sweeps in any case.
    if let Some(sweeper) = sweeper() {
        sweeper.arm();
    }
    // After that: it may have ended before anybody listened.
    sweep();
}

fn sweeper() -> Option<Arc<Sweeper>> {
    let mut sweeper = SWEEPER.lock();
    if sweeper.is_none() {
        let listener = delivery::listen_anywhere(libc::SIGCHLD).ok()?;
        *sweeper = Some(Arc::new(Sweeper {
            listener: Mutex::new(listener),
        }));
    }
    sweeper.clone()
}

/// Reaps the strays that have ended.
pub(super) fn sweep() {
    STRAYS
        .lock()
        .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

/// Its waker is the callback: it is woken where the signal is published.
struct Sweeper {
    listener: Mutex<Listener>,
}

impl Sweeper {
    /// Leaves the waker with the listener.
    fn arm(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut cx = Context::from_waker(&waker);
        coop::with_unconstrained(|| {
            let mut listener = self.listener.lock();
            while listener.poll_take(&mut cx).is_ready() {}
        });
    }
}

impl Wake for Sweeper {
    fn wake(self: Arc<Self>) {
        // Armed first: a child that ends during the sweep brings another one.
        self.arm();
        sweep();
    }
}
