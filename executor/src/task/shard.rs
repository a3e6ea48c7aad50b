//! The registry: every task that has waited and is not done, in one shard a P.
//!
//! A task is entered when its first poll ends with `Pending`: one that runs through never meets the
//! registry's lock. Until then its G is in a queue or in an M's hands, and shutdown finds it there.
//! Whoever completes a task takes its entry out, an M several at a time ([`Sweep`]), so that the lock
//! does not travel between cores with every task that was stolen.
//!
//! The registry is what lets a runtime drop its tasks at shutdown and a dump see them. It also keeps a task
//! without wakers alive until the runtime ends, as tokio does.
//!
//! # Invariants
//!
//! 1. An entry owns a reference to its task.
//! 2. A shard outlives its tasks that are not done. The runtime's handle and every thread of the
//!    runtime own the shards; a runtime's shutdown ends its tasks, or leaves them in the hands of such a
//!    thread; a `LocalSet` owns its shard and drains it when dropped. A shard that is dropped with
//!    entries nevertheless is leaked. So a task need not count its reference, and must not use it
//!    once it is done.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use slab::Slab;

use super::cell::{self, Header};
use super::{Meta, Target};
use crate::context;
use crate::scheduler::Scheduler;
use crate::seam::Timers;

pub(crate) struct Shard {
    target: Target,
    closed: AtomicBool,
    /// Async tasks made for this shard, minus those done, by threads that do not count for themselves.
    alive: AtomicIsize,
    /// Apart from the fields above, which everybody reads.
    registry: CachePadded<Mutex<Slab<Entry>>>,
}

/// A reference to a task.
struct Entry(NonNull<Header>);

// SAFETY: a task's reference may be dropped, and its state used, on any thread.
unsafe impl Send for Entry {}

impl Entry {
    fn task(&self) -> &Header {
        // SAFETY: invariant 1.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: the entry's reference, which is not used any more.
        unsafe { cell::drop_reference(self.0) }
    }
}

impl Shard {
    pub(crate) fn new(target: Target) -> Arc<Shard> {
        Arc::new(Shard {
            target,
            closed: AtomicBool::new(false),
            alive: AtomicIsize::new(0),
            registry: CachePadded::new(Mutex::new(Slab::new())),
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The timers that a blocking job among these tasks keeps from stepping by themselves.
    pub(super) fn pausable_timers(&self) -> Option<Arc<dyn Timers>> {
        match &self.target {
            Target::Scheduler(scheduler) => scheduler.pausable_timers().cloned(),
            Target::Local(_) => None,
        }
    }

    /// No task is to be polled for the first time any more.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Enters a task, whose entry gets a reference that the caller provides; `false` when closed.
    #[must_use]
    pub(super) fn insert(&self, header: NonNull<Header>) -> bool {
        // SAFETY: the caller has a reference.
        let meta = unsafe { header.as_ref() }.meta();
        let mut registry = self.registry.lock();
        if self.closed.load(Ordering::Relaxed) && !meta.is_mandatory() {
            return false;
        }
        let slot = registry.insert(Entry(header));
        meta.set_registered(slot as u32);
        true
    }

    fn remove(&self, slot: u32) {
        let entry = self.registry.lock().remove(slot as usize);
        // Outside the lock.
        drop(entry);
    }

    /// No more tasks: every registered one is aborted, and new ones are dropped at their first poll.
    pub(crate) fn close(&self) {
        let tasks: Vec<Entry> = {
            let registry = self.registry.lock();
            // Release: pairs with the Acquire in `is_closed`. Under the lock, so that no task slips
            // in behind.
            self.closed.store(true, Ordering::Release);
            let entries = registry.iter().map(|(_, entry)| entry);
            entries
                .filter(|entry| !entry.task().meta().is_mandatory())
                .map(|entry| {
                    entry.task().state.add_reference();
                    Entry(entry.0)
                })
                .collect()
        };
        for task in &tasks {
            // SAFETY: the reference just made.
            unsafe { cell::abort(task.0) }
        }
    }

    /// Whether somebody has the G of a registered task in hand and is about to queue it.
    pub(crate) fn has_runnable(&self) -> bool {
        let registry = self.registry.lock();
        registry
            .iter()
            .any(|(_, entry)| entry.task().state.is_runnable())
    }

    /// Whether tasks are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.registry.lock().is_empty()
    }

    /// Counts an async task that is spawned or done, on a thread that does not count for itself.
    pub(crate) fn count_alive(&self, by: isize) {
        self.alive.fetch_add(by, Ordering::Relaxed);
    }

    fn is_of(&self, scheduler: &Scheduler) -> bool {
        match &self.target {
            Target::Local(_) => false,
            Target::Scheduler(own) => std::ptr::eq(Arc::as_ptr(own), scheduler),
        }
    }

    /// The shard's part of the number of tasks alive; a part may be negative.
    pub(crate) fn alive(&self) -> isize {
        self.alive.load(Ordering::Relaxed)
    }

    /// Calls `f` for each task's record, under the shard's lock: `f` must not call user code.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Meta)) {
        let registry = self.registry.lock();
        registry
            .iter()
            .for_each(|(_, entry)| f(entry.task().meta()));
    }
}

/// The task's future is gone: the entry goes too, now or with others. RUNNING is the caller's.
pub(super) fn retire(meta: &Meta) {
    // SAFETY: RUNNING is set, so the task is not done.
    let shard = unsafe { meta.owner() };
    let swept = context::hot(|hot| {
        let Some(m) = hot.m().filter(|m| shard.is_of(m.scheduler())) else {
            return false;
        };
        if !meta.is_blocking() {
            m.count_alive(-1);
        }
        if meta.is_registered() {
            // SAFETY: the M's thread owns the runtime's shards, and outlives the M.
            unsafe { m.sweep.add(meta) };
        }
        true
    });
    if !swept {
        if !meta.is_blocking() {
            shard.count_alive(-1);
        }
        if meta.is_registered() {
            shard.remove(meta.slot());
        }
    }
}

/// Registry entries of tasks that an M has completed, to be taken out together.
pub(crate) struct Sweep {
    done: RefCell<Vec<(NonNull<Shard>, u32)>>,
}

impl Sweep {
    const BATCH: usize = 32;

    pub(crate) fn new() -> Sweep {
        Sweep {
            done: RefCell::new(Vec::with_capacity(Self::BATCH)),
        }
    }

    /// Notes a registered task whose future has just been dropped on this thread.
    ///
    /// # Safety
    ///
    /// The task's shard outlives this `Sweep`, or its next [`now`](Sweep::now).
    unsafe fn add(&self, meta: &Meta) {
        let mut done = self.done.borrow_mut();
        done.push((meta.owner, meta.slot()));
        if done.len() == Self::BATCH {
            drop(done);
            self.now();
        }
    }

    /// Takes the entries out.
    pub(crate) fn now(&self) {
        let mut done = self.done.borrow_mut();
        while let Some(&(shard, _)) = done.last() {
            let mut entries = [const { None }; Self::BATCH];
            {
                // SAFETY: the caller of `add` vouched for the shard.
                let mut registry = unsafe { shard.as_ref() }.registry.lock();
                for place in &mut entries {
                    match done.pop_if(|(other, _)| *other == shard) {
                        Some((_, slot)) => *place = Some(registry.remove(slot as usize)),
                        None => break,
                    }
                }
            }
            // Outside the lock.
            drop(entries);
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.now();
    }
}
