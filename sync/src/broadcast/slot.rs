//! A place of the ring: one value, and how many receivers have yet to read it.
//!
//! A reader takes the value out, clones it without the lock, and puts it back: the value is *lent*
//! meanwhile. `T` need not be `Sync`, so only one reader at a time may clone it, and the other readers
//! of this value wait until it is back. Nobody else does: a sender that comes round to the slot fills it
//! anew, and the reader keeps, then drops, the value that has no place any more.

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Panic;

/// How often a reader looks for a lent value before it sleeps.
const LOOKS: u32 = 8;

pub(super) struct Slot<T> {
    entry: Mutex<Entry<T>>,
    /// Told when a lent value is back, or its place taken.
    returned: Condvar,
}

struct Entry<T> {
    /// Of the value that was sent here last.
    position: u64,
    /// How many receivers have yet to read the value, those who are cloning it apart.
    remaining: usize,
    /// With `remaining` above zero, `None` means lent.
    value: Option<T>,
}

impl<T> Slot<T> {
    /// A slot that holds nothing, as if the value of `position` had been read by all.
    pub(super) fn new(position: u64) -> Self {
        Slot {
            entry: Mutex::new(Entry {
                position,
                remaining: 0,
                value: None,
            }),
            returned: Condvar::new(),
        }
    }

    /// Puts a value in, and returns the one that was there, which is not to be dropped under a lock.
    #[must_use]
    pub(super) fn fill(&self, position: u64, remaining: usize, value: T) -> Option<T> {
        let mut entry = self.entry.lock();
        entry.position = position;
        entry.remaining = remaining;
        let old = entry.value.replace(value);
        drop(entry);
        // Those who wait for the old value have missed it.
        self.returned.notify_all();
        old
    }

    /// Whether every receiver has read what was sent here last.
    pub(super) fn is_spent(&self) -> bool {
        self.entry.lock().remaining == 0
    }

    /// Takes the value of `position` out for one of the receivers that have yet to read it, and counts that
    /// one out; `None` if it is not here.
    pub(super) fn borrow(&self, position: u64) -> Option<Loan<'_, T>> {
        let mut entry = self.entry.lock();
        if entry.position != position {
            return None;
        }
        if entry.value.is_none() {
            entry = self.wait_for_return(entry, position)?;
        }
        let value = entry.value.take();
        entry.remaining -= 1;
        let is_last = entry.remaining == 0;
        drop(entry);
        Some(Loan {
            slot: self,
            position,
            value,
            is_last,
        })
    }

    #[cold]
    fn wait_for_return<'a>(
        &'a self,
        mut entry: MutexGuard<'a, Entry<T>>,
        position: u64,
    ) -> Option<MutexGuard<'a, Entry<T>>> {
        let mut looks = 0;
        while entry.position == position {
            if entry.value.is_some() {
                return Some(entry);
            }
            if looks < LOOKS {
                // Most clones take no longer than this.
                MutexGuard::unlocked(&mut entry, || (0..1 << looks).for_each(|_| spin_loop()));
                looks += 1;
            } else {
                self.returned.wait(&mut entry);
            }
        }
        None
    }

    /// Counts one of the receivers that have yet to read the value of `position` out, and returns the
    /// value if it was the last: it is not to be dropped under a lock.
    #[must_use]
    pub(super) fn release(&self, position: u64) -> Option<T> {
        let mut entry = self.entry.lock();
        if entry.position != position {
            return None;
        }
        entry.remaining -= 1;
        if entry.remaining == 0 {
            // A reader that has it now finds that nobody needs it back.
            return entry.value.take();
        }
        None
    }

    #[must_use]
    fn put_back(&self, position: u64, value: Option<T>) -> Option<T> {
        let mut entry = self.entry.lock();
        if entry.position != position || entry.remaining == 0 {
            return value;
        }
        entry.value = value;
        drop(entry);
        // One is enough: it puts the value back too.
        self.returned.notify_one();
        None
    }
}

/// A value taken out to be cloned. Dropping it puts the value back, if somebody needs it.
pub(super) struct Loan<'a, T> {
    slot: &'a Slot<T>,
    position: u64,
    value: Option<T>,
    is_last: bool,
}

impl<T> Loan<'_, T> {
    pub(super) fn clone_value(&self) -> T
    where
        T: Clone,
    {
        self.value
            .clone()
            .expect("a loan holds its value until it ends")
    }
}

impl<T> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        if !self.is_last {
            self.value = self.slot.put_back(self.position, self.value.take());
        }
    }
}

/// Drops a value, and keeps the first panic for later.
pub(super) fn drop_quietly<T>(value: Option<T>, panic: &mut Option<Panic>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        panic.get_or_insert(payload);
    }
}
