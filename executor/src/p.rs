//! P: the right to run Gs, and what belongs to it.

use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::m::Record;
use crate::oversleep::SleepsUntil;
use crate::queue::LocalQueue;
use crate::runnext::RunNext;
use crate::task::G;

/// A processor. There are as many as `worker_threads`; an M that holds one runs Gs.
///
/// The ticks and counters are written by the holder alone (a load and a store, no read-modify-write)
/// and read by anybody.
pub(crate) struct P {
    pub(crate) queue: LocalQueue,
    pub(crate) runnext: RunNext<G>,
    /// Polls begun. Tells the monitor one poll from the next.
    pub(crate) polltick: AtomicU32,
    /// Slices begun: a G that came out of runnext inherits the slice of the one before it.
    pub(crate) schedtick: AtomicU32,
    /// The `polltick` of a poll that the monitor has seen last for a while: while it is the current
    /// one, thieves may take the runnext.
    pub(crate) slow_poll: AtomicU32,
    /// The `schedtick` of a slice that the monitor has seen last too long: while it is the current one, the next
    /// runnext goes to the tail, unless an event put it there.
    ended_slice: AtomicU32,
    /// Somebody has been told of what is in the queue, unless the queue is empty. Not of a G that yielded alone,
    /// nor of a few that netpoll or timers have just readied. Written by the holder alone.
    pub(crate) told: AtomicBool,
    /// A [`GlobalTurn`]. Of the P and not of its M, which may lose the P at each G. Written by the holder alone.
    pub(crate) global_turn: AtomicU8,
    /// After the next long poll the queue comes before what an event has readied. Written by the holder alone.
    pub(crate) queue_next: AtomicBool,
    /// Where the task was spawned that is being polled; null between polls of the scheduler's own.
    location: AtomicPtr<Location<'static>>,
    /// The M that holds the P, or watches it while the P is idle; and the one that watches while a
    /// thread in `block_on` has borrowed it.
    holder: Mutex<Holder>,
    /// Until when the M that waits on behalf of the P sleeps.
    pub(crate) sleeps_until: SleepsUntil,
    pub(crate) stats: Stats,
}

/// Whose turn it is when an M looks around.
pub(crate) struct GlobalTurn;

impl GlobalTurn {
    /// The global queue's.
    pub(crate) const NEXT: u8 = 0;
    /// The P's own, since the last look took a G of the global queue.
    pub(crate) const HAD: u8 = 1;
    /// The global queue's in any case: at the last look it stood back.
    pub(crate) const OWED: u8 = 2;
}

#[derive(Default)]
struct Holder {
    record: Option<Arc<Record>>,
    watcher: Option<Arc<Record>>,
}

/// What a P counts. Cumulative.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) polls: AtomicU64,
    pub(crate) parks: AtomicU64,
    pub(crate) unparks: AtomicU64,
    pub(crate) steals: AtomicU64,
    pub(crate) steal_operations: AtomicU64,
    pub(crate) overflows: AtomicU64,
    pub(crate) netpolls: AtomicU64,
    pub(crate) retakes: AtomicU64,
    busy_ns: AtomicU64,
}

/// Adds to a counter that only the calling thread writes.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl Stats {
    pub(crate) fn add_busy(&self, busy: Duration) {
        bump(&self.busy_ns, busy.as_nanos() as u64);
    }

    pub(crate) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }
}

impl P {
    pub(crate) fn new() -> P {
        P {
            queue: LocalQueue::new(),
            runnext: RunNext::new(),
            polltick: AtomicU32::new(1),
            schedtick: AtomicU32::new(0),
            slow_poll: AtomicU32::new(0),
            ended_slice: AtomicU32::new(u32::MAX),
            told: AtomicBool::new(false),
            global_turn: AtomicU8::new(GlobalTurn::NEXT),
            queue_next: AtomicBool::new(false),
            location: AtomicPtr::new(ptr::null_mut()),
            holder: Mutex::new(Holder::default()),
            sleeps_until: SleepsUntil::new(),
            stats: Stats::default(),
        }
    }

    /// A poll of a task spawned at `location` begins. Holder only.
    #[inline]
    pub(crate) fn poll_begins(&self, location: &'static Location<'static>, new_slice: bool) {
        let tick = self.polltick.load(Ordering::Relaxed).wrapping_add(1);
        self.polltick.store(tick, Ordering::Relaxed);
        if new_slice {
            self.slice_begins();
        }
        self.location
            .store(ptr::from_ref(location).cast_mut(), Ordering::Relaxed);
        bump(&self.stats.polls, 1);
    }

    /// The slice that began with `schedtick` has lasted too long. One that has begun since is not meant.
    pub(crate) fn end_slice(&self, schedtick: u32) {
        self.ended_slice.store(schedtick, Ordering::Relaxed);
    }

    /// Whether the slice has lasted too long.
    #[inline]
    pub(crate) fn is_slice_over(&self) -> bool {
        self.ended_slice.load(Ordering::Relaxed) == self.schedtick.load(Ordering::Relaxed)
    }

    /// Holder only.
    #[inline]
    pub(crate) fn slice_begins(&self) {
        let tick = self.schedtick.load(Ordering::Relaxed).wrapping_add(1);
        self.schedtick.store(tick, Ordering::Relaxed);
    }

    /// Where the task was spawned that is polled now, or was polled last.
    pub(crate) fn location(&self) -> Option<&'static Location<'static>> {
        // SAFETY: only `&'static Location`s are ever stored, or null.
        unsafe { self.location.load(Ordering::Relaxed).as_ref() }
    }

    /// Whether thieves may take the runnext: its P is busy with a poll that lasts.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow_poll.load(Ordering::Relaxed) == self.polltick.load(Ordering::Relaxed)
    }

    pub(crate) fn set_holder(&self, record: Option<Arc<Record>>) {
        self.holder.lock().record = record;
    }

    /// A thread in `block_on` uses the P.
    pub(crate) fn lend(&self, borrower: Arc<Record>) {
        let mut holder = self.holder.lock();
        holder.watcher = holder.record.replace(borrower);
    }

    /// The P is its watcher's again.
    pub(crate) fn take_back(&self) {
        let mut holder = self.holder.lock();
        holder.record = holder.watcher.take();
    }

    pub(crate) fn holder(&self) -> Option<Arc<Record>> {
        self.holder.lock().record.clone()
    }

    /// Whether the P has Gs queued that somebody else may take.
    pub(crate) fn has_stealable(&self) -> bool {
        !self.queue.is_empty() || (self.is_slow() && !self.runnext.is_empty())
    }
}
