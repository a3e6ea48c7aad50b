//! The queues of runnable Gs: a P's own, with stealing, and the global one.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_deque::{Steal, Stealer, Worker};
use parking_lot::Mutex;

use crate::task::G;

/// What a P's own queue holds; beyond it half of the queue goes to the global one, as in Go.
pub(crate) const LOCAL_CAPACITY: usize = 256;

/// What one visit to the global queue brings at most.
const GLOBAL_BATCH_MAX: usize = 128;

/// The FIFO queue of a P. Its holder pushes and pops; anybody steals.
pub(crate) struct LocalQueue {
    /// Touched only by the M that holds the P and is inside (see `ownership`).
    worker: UnsafeCell<Worker<G>>,
    stealer: Stealer<G>,
}

// SAFETY: `worker` is reached only through `LocalQueue::holder`, whose contract makes that exclusive;
// `Stealer` is `Sync`, and a `G` may be sent to another thread.
unsafe impl Sync for LocalQueue {}

impl LocalQueue {
    pub(crate) fn new() -> LocalQueue {
        let worker = Worker::new_fifo();
        let stealer = worker.stealer();
        LocalQueue {
            worker: UnsafeCell::new(worker),
            stealer,
        }
    }

    /// The holder's end of the queue.
    ///
    /// # Safety
    ///
    /// The calling thread holds the P and is inside, for as long as the reference lives.
    #[inline]
    pub(crate) unsafe fn holder(&self) -> &Worker<G> {
        // SAFETY: the caller is the only thread inside this P, so nobody else has this reference.
        unsafe { &*self.worker.get() }
    }

    pub(crate) fn len(&self) -> usize {
        self.stealer.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stealer.is_empty()
    }

    /// Moves half of this queue into `thief` and returns one G of it to run.
    pub(crate) fn steal_half(&self, thief: &Worker<G>) -> Option<G> {
        loop {
            let half = self.half();
            match self.stealer.steal_batch_with_limit_and_pop(thief, half) {
                Steal::Success(g) => return Some(g),
                Steal::Empty => return None,
                Steal::Retry => std::hint::spin_loop(),
            }
        }
    }

    /// Moves half of this queue into `thief`, if no other thief is in the way; says whether it did.
    pub(crate) fn move_half(&self, thief: &Worker<G>) -> bool {
        let stolen = self.stealer.steal_batch_with_limit(thief, self.half());
        stolen.is_success()
    }

    fn half(&self) -> usize {
        self.len().div_ceil(2).clamp(1, LOCAL_CAPACITY / 2)
    }
}

/// The queue of Gs that belong to no P: woken from foreign threads, preempted, or overflowed.
pub(crate) struct GlobalQueue {
    len: AtomicUsize,
    queue: Mutex<VecDeque<G>>,
}

impl GlobalQueue {
    pub(crate) fn new() -> GlobalQueue {
        GlobalQueue {
            len: AtomicUsize::new(0),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// How many Gs are queued; may lag behind a push or a pop that is under way.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&self, g: G) {
        let mut queue = self.queue.lock();
        queue.push_back(g);
        self.len.store(queue.len(), Ordering::Relaxed);
    }

    /// Appends a batch in order.
    pub(crate) fn push_batch(&self, batch: impl IntoIterator<Item = G>) {
        let mut queue = self.queue.lock();
        queue.extend(batch);
        self.len.store(queue.len(), Ordering::Relaxed);
    }

    pub(crate) fn pop(&self) -> Option<G> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let g = queue.pop_front();
        self.len.store(queue.len(), Ordering::Relaxed);
        g
    }

    /// Takes the fair share of one of `procs` Ps, `len / procs + 1`, at most 128 and what fits into
    /// `local`: the first G is returned, the others go to `local`.
    pub(crate) fn pop_batch(&self, procs: usize, local: &Worker<G>) -> Option<G> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let room = LOCAL_CAPACITY.saturating_sub(local.len());
        let share = (queue.len() / procs + 1)
            .min(GLOBAL_BATCH_MAX)
            .min(room + 1)
            .min(queue.len());
        let mut batch = queue.drain(..share);
        let first = batch.next();
        batch.for_each(|g| local.push(g));
        self.len.store(queue.len(), Ordering::Relaxed);
        first
    }
}
