//! The registry: every G that is not done, in one shard a P.
//!
//! A task is entered by the P that spawns it, under the shard's lock. Whoever completes it marks it
//! DONE; the entry is taken out later, by the M that did it, together with others ([`Sweep`]): so
//! the lock, and the memory that it guards, do not travel between cores with every task that is
//! stolen.
//!
//! # Invariants
//!
//! 1. An entry holds a waker; the waker keeps the task's allocation alive, and with it the metadata
//!    that the entry points to.
//! 2. A shard outlives its tasks that are not DONE. The runtime's handle and every thread of the
//!    runtime own the shards, and a runtime's shutdown ends only its registered tasks or leaves
//!    them in the hands of such a thread; a `LocalSet` owns its shard and drains it when dropped.
//!    So a task need not count its reference, and must not use it once it is DONE.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use slab::Slab;

use super::{G, Id, Meta};
use crate::local::LocalShared;
use crate::scheduler::Scheduler;

/// Where the Gs of a shard go when they become runnable.
pub(crate) enum Target {
    Scheduler(Arc<Scheduler>),
    Local(Arc<LocalShared>),
}

pub(crate) struct Shard {
    target: Target,
    registry: Mutex<Registry>,
}

struct Registry {
    closed: bool,
    tasks: Slab<Entry>,
}

struct Entry {
    waker: Waker,
    /// Valid as long as `waker` lives: both belong to the same allocation.
    meta: NonNull<Meta>,
}

// SAFETY: an entry is a waker and a pointer to a `Meta`, which is `Sync` and outlives the waker.
unsafe impl Send for Entry {}

impl Entry {
    fn meta(&self) -> &Meta {
        // SAFETY: the metadata lives in the allocation that `self.waker` keeps alive.
        unsafe { self.meta.as_ref() }
    }

    /// Whether this is the entry of the task with that id, and the task is not done.
    fn is(&self, id: Id) -> bool {
        self.meta().id() == id && !self.meta().is_done()
    }
}

impl Shard {
    pub(crate) fn new(target: Target) -> Arc<Shard> {
        Arc::new(Shard {
            target,
            registry: Mutex::new(Registry {
                closed: false,
                tasks: Slab::new(),
            }),
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Enters a task that has just been made; `false` when the shard is closed.
    #[must_use]
    pub(crate) fn insert(&self, g: &G) -> bool {
        let waker = g.waker();
        let meta = g.metadata();
        let mut registry = self.registry.lock();
        if registry.closed && !meta.is_mandatory() {
            drop(registry);
            return false;
        }
        let slot = registry.tasks.insert(Entry {
            waker,
            meta: NonNull::from(meta),
        });
        meta.set_registered(slot as u32);
        true
    }

    /// Takes out the entry of a task that is DONE.
    pub(crate) fn remove(&self, slot: u32) {
        let entry = self.registry.lock().tasks.remove(slot as usize);
        // Outside the lock: it may be the last reference to an allocation.
        drop(entry);
    }

    /// Marks the task as aborted and wakes it, if it is still registered.
    pub(crate) fn abort(&self, slot: u32, id: Id) {
        let waker = {
            let registry = self.registry.lock();
            let entry = registry.tasks.get(slot as usize);
            entry.filter(|entry| entry.is(id)).map(|entry| {
                entry.meta().abort();
                entry.waker.clone()
            })
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the task is still registered, that is not done.
    pub(crate) fn contains(&self, slot: u32, id: Id) -> bool {
        let registry = self.registry.lock();
        let entry = registry.tasks.get(slot as usize);
        entry.is_some_and(|entry| entry.is(id))
    }

    /// No more tasks: every registered one is aborted and woken, and later spawns are refused.
    pub(crate) fn close(&self) {
        let wakers: Vec<Waker> = {
            let mut registry = self.registry.lock();
            registry.closed = true;
            let tasks = registry.tasks.iter();
            tasks
                .filter(|(_, entry)| !entry.meta().is_mandatory())
                .map(|(_, entry)| {
                    entry.meta().abort();
                    entry.waker.clone()
                })
                .collect()
        };
        crate::seam::wake_all(wakers);
    }

    /// Whether no task is registered.
    pub(crate) fn is_empty(&self) -> bool {
        self.registry.lock().tasks.is_empty()
    }

    /// How many async tasks are registered.
    pub(crate) fn len(&self) -> usize {
        let registry = self.registry.lock();
        let tasks = registry.tasks.iter();
        tasks
            .filter(|(_, entry)| !entry.meta().is_blocking())
            .count()
    }

    /// Calls `f` for each task's record, under the shard's lock: `f` must not call user code.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Meta)) {
        let registry = self.registry.lock();
        let tasks = registry.tasks.iter();
        tasks
            .filter(|(_, entry)| !entry.meta().is_done())
            .for_each(|(_, entry)| f(entry.meta()));
    }
}

/// Entries of tasks that are DONE, to be taken out together.
pub(crate) struct Sweep {
    done: RefCell<Vec<NonNull<Meta>>>,
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
    pub(crate) unsafe fn add(&self, meta: &Meta) {
        let mut done = self.done.borrow_mut();
        done.push(NonNull::from(meta));
        if done.len() == Self::BATCH {
            drop(done);
            self.now();
        }
    }

    /// Takes the entries out.
    #[cold]
    pub(crate) fn now(&self) {
        let mut wakers = [const { None }; Self::BATCH];
        let mut done = self.done.borrow_mut();
        while let Some(first) = done.last().copied() {
            // SAFETY: its entry is still in the registry and keeps the allocation alive.
            let shard = unsafe { first.as_ref() }.owner;
            // SAFETY: the caller of `add` vouched for the shard.
            let mut registry = unsafe { shard.as_ref() }.registry.lock();
            let mut taken = 0;
            while let Some(meta) = done.last() {
                // SAFETY: as above, until the entry is dropped below, outside the lock.
                let meta = unsafe { meta.as_ref() };
                if meta.owner != shard {
                    break;
                }
                let entry = registry.tasks.remove(meta.slot() as usize);
                wakers[taken] = Some(entry.waker);
                taken += 1;
                done.pop();
            }
            drop(registry);
            // Outside the lock: each may be the last reference to an allocation.
            wakers.fill(None);
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.now();
    }
}
