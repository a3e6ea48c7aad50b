//! The registry: every G that is not done, in one shard a P.
//!
//! A task is entered by the P that spawns it and taken out by whoever completes it, under the
//! shard's lock, which is contended only when another P completes it. An entry holds a waker; the
//! waker keeps the task's allocation alive, and with it the metadata that the entry points to.

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

    /// Takes a task out that is done, or whose future was dropped. Idempotent.
    pub(crate) fn remove(&self, meta: &Meta) {
        if meta.clear_registered() {
            let entry = self.registry.lock().tasks.remove(meta.slot() as usize);
            // Outside the lock: it may be the last reference to an allocation.
            drop(entry);
        }
    }

    /// Marks the task as aborted and wakes it, if it is still registered.
    pub(crate) fn abort(&self, slot: u32, id: Id) {
        let waker = {
            let registry = self.registry.lock();
            let entry = registry.tasks.get(slot as usize);
            entry.filter(|entry| entry.meta().id() == id).map(|entry| {
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
        entry.is_some_and(|entry| entry.meta().id() == id)
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
        registry.tasks.iter().for_each(|(_, entry)| f(entry.meta()));
    }
}
