//! Netpoll: who waits for which descriptor, and who polls the kernel for them.
//!
//! The words: a *source* is a descriptor somebody may wait for; its *readiness* is what it is known
//! to be ready for; a *poller* is an epoll instance with the sources registered there. **A poller
//! belongs to a P**, like its queue and its timers:
//!
//! * A source is registered once, edge-triggered, for both directions, with the poller of the P on
//!   which an operation first would have blocked (`source.rs`).
//! * The M that holds the P polls it from time to time, and waits in it when it has nothing else to
//!   do: readiness and wake-ups arrive at the same place, in one system call (`poller.rs`,
//!   `wakeup.rs`).
//! * Thieves poll it without waiting. A source whose readiness the same thief takes several times
//!   running moves to the thief's poller, so that tasks that talk to each other end up on one P. When
//!   every P is busy nobody steals; then sources follow their data: now and then the kernel is asked
//!   on which CPU a socket's last packet was processed, which over loopback is the sender's, and the
//!   source moves to the P that runs there. A round trip between two CPUs costs half as much again.
//!
//! From edge to task: the kernel reports an edge with the source's token; the poller looks the
//! source up, adds to its readiness (`readiness.rs`), takes the wakers of those it satisfies
//! (`waiters.rs`), and wakes them when it holds no lock. The task tries its operation; when that
//! would block it clears the readiness, unless another edge has come, and waits.
//!
//! After a read or write that was short the readiness is cleared at once: the kernel's buffer is
//! empty, or full, and the next edge will tell.

mod poller;
mod readiness;
mod registration;
mod source;
mod sys;
mod waiters;
mod wakeup;

#[cfg(all(test, not(gmp_loom)))]
mod tests;

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gmp_executor::{context, seam};

use poller::{Buffers, Poller};
pub(crate) use readiness::ReadyEvent;
pub(crate) use registration::{Registration, reason_of};
use source::Source;
pub(crate) use waiters::Direction;
use waiters::WakerBatch;

/// The readiness of descriptors: a poller a P.
///
/// Give it to the executor as its [`seam::Netpoll`]; sockets created within that runtime find it.
#[derive(Debug)]
pub struct Netpoll {
    shared: Arc<Shared>,
}

/// What the sources hold on to.
#[derive(Debug)]
struct Shared {
    pollers: Box<[Poller]>,
    shut: AtomicBool,
    /// Where the next source goes whose user holds no P.
    next: AtomicUsize,
    /// Counts the sources whose data came from another P.
    apart: AtomicUsize,
}

thread_local! {
    /// The memory of this thread's polls, while none is going on.
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

impl Netpoll {
    /// Makes the pollers of a runtime with `procs` Ps.
    ///
    /// # Errors
    ///
    /// When the system is out of descriptors or memory.
    ///
    /// # Panics
    ///
    /// If `procs` is zero.
    pub fn new(procs: usize) -> io::Result<Netpoll> {
        Netpoll::with_event_limits(procs, poller::EVENTS_MAX, poller::EVENTS_MAX_BUSY)
    }

    /// As [`new`](Netpoll::new), with other limits to how many events one poll takes: one that `waiting`
    /// for them, and one of a `busy` P that does not wait.
    ///
    /// # Errors
    ///
    /// As [`new`](Netpoll::new).
    ///
    /// # Panics
    ///
    /// If `procs` or a limit is zero.
    pub fn with_event_limits(procs: usize, waiting: usize, busy: usize) -> io::Result<Netpoll> {
        assert!(waiting > 0 && busy > 0, "a poll takes at least one event");
        assert!(procs > 0, "a runtime has at least one P");
        let pollers = (0..procs)
            .map(|_| Poller::new(waiting, busy))
            .collect::<io::Result<_>>()?;
        Ok(Netpoll {
            shared: Arc::new(Shared {
                pollers,
                shut: AtomicBool::new(false),
                next: AtomicUsize::new(0),
                apart: AtomicUsize::new(0),
            }),
        })
    }
}

impl seam::Netpoll for Netpoll {
    fn poll(&self, p: usize, by: usize, timeout: Option<Duration>) -> io::Result<usize> {
        let poller = self.shared.poller(p);
        if timeout == Some(Duration::ZERO) && !poller.has_sources() {
            return Ok(0);
        }
        let mut buffers = BUFFERS
            .try_with(Cell::take)
            .ok()
            .flatten()
            .unwrap_or_else(|| Box::new(Buffers::new()));
        let thief = (by != p && by < self.shared.pollers.len()).then_some(by);
        let woken = poller.poll(thief, timeout, &mut buffers);
        for (token, source) in buffers.moving() {
            source.move_to(p, token, by);
        }
        for (token, source) in buffers.following() {
            source.follow(p, token);
        }
        let _ = BUFFERS.try_with(|kept| kept.set(Some(buffers)));
        woken
    }

    fn notify(&self, p: usize) {
        self.shared.poller(p).notify();
    }

    fn has_sources(&self, p: usize) -> bool {
        self.shared.poller(p).has_sources()
    }

    fn shutdown(&self) {
        // Release: pairs with the Acquire in `is_shut`. A source that is not registered anywhere
        // learns of the end by this flag, the others by their readiness.
        self.shared.shut.store(true, Ordering::Release);
        let mut wakers = WakerBatch::default();
        for poller in &self.shared.pollers {
            poller.shutdown(&mut wakers);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Shared {
    fn poller(&self, p: usize) -> &Poller {
        &self.pollers[p]
    }

    /// Where a source of P `p` is to move, the last packet to which was processed on `cpu`.
    fn p_of_sender(&self, p: usize, cpu: usize) -> Option<usize> {
        let runs_there = |poller: &Poller| poller.ran_on(cpu);
        if runs_there(self.poller(p)) {
            return None;
        }
        let to = self.pollers.iter().position(runs_there)?;
        // If both ends of a connection went where the other one is, they would be apart for ever.
        let turn = self.apart.fetch_add(1, Ordering::Relaxed);
        turn.is_multiple_of(2).then_some(to)
    }

    fn is_shut(&self) -> bool {
        // Acquire: pairs with the Release in `shutdown`.
        self.shut.load(Ordering::Acquire)
    }

    /// The P that a source used by this thread belongs to: the thread's own, if it is in our
    /// runtime, else any, in turn.
    fn p_of_caller(self: &Arc<Self>) -> usize {
        let hint = context::with_current(|handle| {
            let ours = handle
                .netpoll()
                .and_then(|netpoll| netpoll.as_any().downcast_ref::<Netpoll>())
                .is_some_and(|netpoll| Arc::ptr_eq(&netpoll.shared, self));
            ours.then(|| handle.p_hint())
        });
        match hint {
            Ok(Some(p)) if p < self.pollers.len() => p,
            _ => self.next.fetch_add(1, Ordering::Relaxed) % self.pollers.len(),
        }
    }

    /// The netpoll of the runtime that this thread is in.
    #[track_caller]
    fn current() -> Arc<Shared> {
        let found = context::with_current(|handle| {
            let netpoll = handle.netpoll()?;
            Some(netpoll.as_any().downcast_ref::<Netpoll>()?.shared.clone())
        });
        match found {
            Ok(Some(shared)) => shared,
            Ok(None) => panic!("{IO_DISABLED}"),
            Err(error) => panic!("{error}"),
        }
    }
}

const IO_DISABLED: &str = "A Tokio 1.x context was found, but IO is disabled. \
     Call `enable_io` on the runtime builder to enable IO.";

/// The error of every operation once the runtime is gone.
fn gone() -> io::Error {
    gmp_executor::shutdown_error()
}
