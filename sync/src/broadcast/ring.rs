//! The ring of values, and how a value is read while others want its place.
//!
//! A *place* has a [`Word`], the position of the value that it holds, and the value. A *slot* is a place
//! for each position in turn, and, rarely, spare ones behind it.
//!
//! A reader owns the place while it clones the value: `T` need not be `Sync`, so the readers of one value
//! take turns, and sleep if they have to. Nobody else waits for a clone. A receiver that is dropped counts
//! itself out beside the owner. A sender that comes round to a place that is being read *abandons* it: it
//! puts the new value into a spare place, which it may have to allocate, and whoever reads the old one
//! empties the abandoned place, which is then spare itself.
//!
//! # Invariants
//!
//! 1. A place is filled, and abandoned, under the tail's lock.
//! 2. In a slot one place at most is neither vacant nor abandoned, and that one holds the position that was
//!    sent to the slot last.
//! 3. Places live as long as the ring: a reader may look at any of them.
//!
//! # Designs not taken
//!
//! *A lock for each slot, held while cloning*, as in tokio: a sender that has come round waits for the
//! clone, with the tail's lock in its hands, and so does everybody; a `clone` that uses the channel
//! deadlocks. *Taking the value out and putting it back*: moves every value twice and takes the lock twice,
//! which halves the speed of reading. *Counted values*: an allocation for each.

use std::hint::spin_loop;
use std::mem::needs_drop;
use std::ptr;
use std::sync::PoisonError;

use gmp_executor::loom::{AtomicPtr, AtomicU64, Condvar, Mutex, Ordering, UnsafeCell};

use super::word::{Abandon, Done, Release, Take, Word};

/// How often somebody who needs a place looks whether its owner is done, for longer each time, before
/// a reader sleeps and a sender goes elsewhere. Most clones take less.
#[cfg(not(gmp_loom))]
const LOOKS: u32 = 5;
#[cfg(gmp_loom)]
const LOOKS: u32 = 0;

/// The position of nothing: the one that is never reached.
const VACANT: u64 = u64::MAX;

pub(super) struct Ring<T> {
    /// Their number is a power of two.
    slots: Box<[Slot<T>]>,
    sleepers: Sleepers,
}

struct Slot<T> {
    place: Place<T>,
    spare: Spare<T>,
}

/// More places of a slot: a boxed slot, or null. Once there it stays, by invariant 3.
struct Spare<T>(AtomicPtr<Slot<T>>);

struct Place<T> {
    word: Word,
    /// Of the value, or VACANT. Written by the owner; whoever is not may look, and look again as owner.
    position: AtomicU64,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is touched by the owner only, by rule 1 of `word`, and goes from one thread to the
// next with the ownership, so `T: Send` is enough.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T> Ring<T> {
    /// A ring of so many slots, a power of two.
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Ring {
            slots: (0..capacity).map(|_| Slot::new()).collect(),
            sleepers: Sleepers::new(),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot<T> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Puts a value in for so many receivers, and returns the one that it overwrites, which is not to be
    /// dropped under a lock. Under the tail's lock.
    #[inline]
    #[must_use]
    pub(super) fn fill(&self, position: u64, count: usize, value: T) -> Option<T> {
        let slot = self.slot(position);
        if slot.spare.get().is_none() && slot.place.word.take() == Take::Taken {
            return self.put(&slot.place, position, count, value);
        }
        self.fill_elsewhere(position, count, value)
    }

    #[cold]
    fn fill_elsewhere(&self, position: u64, count: usize, value: T) -> Option<T> {
        let slot = self.slot(position);
        let overwritten = position.wrapping_sub(self.capacity());
        let mut wake = false;
        if let Some(place) = slot.find(overwritten) {
            if place.take_soon() {
                return self.put(place, position, count, value);
            }
            match place.word.abandon() {
                Abandon::Taken => return self.put(place, position, count, value),
                Abandon::Abandoned { wake: waited } => wake = waited,
            }
        }
        // By invariant 2 whatever can be taken now is vacant.
        let old = self.put(slot.take_vacant(), position, count, value);
        debug_assert!(old.is_none(), "a vacant place had a value");
        if wake {
            // They have missed the value.
            self.sleepers.wake();
        }
        old
    }

    /// Fills a place that the caller owns, and gives it up.
    #[inline]
    fn put(&self, place: &Place<T>, position: u64, count: usize, value: T) -> Option<T> {
        // SAFETY: the caller owns the place.
        let old = unsafe { place.replace(Some(value)) };
        // Relaxed: the word publishes it.
        place.position.store(position, Ordering::Relaxed);
        if place.word.leave(count) {
            self.sleepers.wake();
        }
        old
    }

    /// Whether everybody has read the value of `position`, or it is not there.
    pub(super) fn is_spent(&self, position: u64) -> bool {
        let place = self.slot(position).find(position);
        place.is_none_or(|place| place.word.is_spent())
    }

    /// Makes the caller, who has yet to read it, the owner of the value of `position`; `None` if the value
    /// is not there, which is certain only under the tail's lock.
    #[inline]
    pub(super) fn borrow(&self, position: u64) -> Option<Loan<'_, T>> {
        let place = self.slot(position).find(position)?;
        if place.word.take() != Take::Taken && !self.wait_for(place, position) {
            return None;
        }
        let mut loan = Loan {
            sleepers: &self.sleepers,
            place,
            was_counted: false,
        };
        // The place may have been filled anew between the look and the taking.
        loan.was_counted = place.is_at(position);
        loan.was_counted.then_some(loan)
    }

    /// Waits until the caller owns the place; `false` if it has changed hands.
    #[cold]
    fn wait_for(&self, place: &Place<T>, position: u64) -> bool {
        if place.take_soon() {
            return true;
        }
        loop {
            match place.word.take() {
                Take::Taken => return true,
                Take::Abandoned => return false,
                Take::Busy if !place.is_at(position) => return false,
                Take::Busy => self.sleepers.sleep(&place.word),
            }
        }
    }

    /// Counts the caller, who has yet to read it, out of the value of `position`, and returns the value if
    /// the caller was the last: it is not to be dropped under a lock. Under the tail's lock.
    #[must_use]
    pub(super) fn release(&self, position: u64) -> Option<T> {
        let place = self.slot(position).find(position)?;
        match place.word.release() {
            Release::Nothing => None,
            Release::Spent => {
                // SAFETY: the word says that it is ours.
                let value = unsafe { place.replace(None) };
                if place.word.leave(0) {
                    self.sleepers.wake();
                }
                value
            }
        }
    }
}

impl<T> Slot<T> {
    fn new() -> Self {
        Slot {
            place: Place {
                word: Word::new(),
                position: AtomicU64::new(VACANT),
                value: UnsafeCell::new(None),
            },
            spare: Spare(AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The place that holds `position`. It may be abandoned, and it may change hands at once, unless the
    /// tail's lock is held: then the last one sent here is found, and stays.
    #[inline]
    fn find(&self, position: u64) -> Option<&Place<T>> {
        let mut slot = self;
        loop {
            if slot.place.is_at(position) {
                return Some(&slot.place);
            }
            slot = slot.spare.get()?;
        }
    }

    /// Takes a place that can be taken at once. Under the tail's lock.
    fn take_vacant(&self) -> &Place<T> {
        let mut slot = self;
        while slot.place.word.take() != Take::Taken {
            slot = slot.spare.get_or_add();
        }
        &slot.place
    }
}

impl<T> Spare<T> {
    #[inline]
    fn get(&self) -> Option<&Slot<T>> {
        // Acquire: pairs with the Release in `get_or_add`.
        let slot = self.0.load(Ordering::Acquire);
        // SAFETY: it is null, or a box that was leaked into here and lives as long as `self`.
        unsafe { slot.as_ref() }
    }

    /// Under the tail's lock: nobody else adds.
    fn get_or_add(&self) -> &Slot<T> {
        if self.get().is_none() {
            let slot = Box::into_raw(Box::new(Slot::new()));
            // Release: pairs with the Acquire in `get`.
            self.0.store(slot, Ordering::Release);
        }
        self.get().expect("a spare slot was added")
    }
}

impl<T> Drop for Spare<T> {
    fn drop(&mut self) {
        // Relaxed: whoever drops it has come after all others.
        let slot = self.0.load(Ordering::Relaxed);
        if !slot.is_null() {
            // SAFETY: `get_or_add` leaked it, and nobody can look at it any more.
            drop(unsafe { Box::from_raw(slot) });
        }
    }
}

impl<T> Place<T> {
    #[inline]
    fn is_at(&self, position: u64) -> bool {
        // Relaxed: for the owner the word orders it. To others it is a hint, except under the tail's lock,
        // which orders it too.
        self.position.load(Ordering::Relaxed) == position
    }

    /// Tries for a moment to become the owner.
    fn take_soon(&self) -> bool {
        (0..LOOKS).any(|look| {
            let is_taken = self.word.take() == Take::Taken;
            if !is_taken {
                (0..1 << look).for_each(|_| spin_loop());
            }
            is_taken
        })
    }

    /// Puts a value in, or none, and returns what was there, unless nobody could tell from its being dropped.
    ///
    /// # Safety
    ///
    /// The caller owns the place.
    #[inline]
    unsafe fn replace(&self, new: Option<T>) -> Option<T> {
        self.value.with_mut(|value| {
            // SAFETY: nobody else touches it, by rule 1 of `word`.
            let value = unsafe { &mut *value };
            // Not moved out without need: a value may be large.
            let old = if needs_drop::<T>() {
                value.take()
            } else {
                None
            };
            *value = new;
            old
        })
    }
}

/// The ownership of a place, and whether the owner is one of those who had yet to read.
pub(super) struct Loan<'a, T> {
    sleepers: &'a Sleepers,
    place: &'a Place<T>,
    was_counted: bool,
}

impl<T: Clone> Loan<'_, T> {
    #[inline]
    pub(super) fn clone_value(&self) -> T {
        self.place.value.with(|value| {
            // SAFETY: the loan owns the place, so nobody else touches it, by rule 1 of `word`.
            let value = unsafe { &*value };
            let value = value.as_ref();
            value.expect("a value stays until all have read it").clone()
        })
    }
}

impl<T> Drop for Loan<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let done = self.place.word.done(self.was_counted);
        if let Done::Kept { wake } = done {
            if wake {
                self.sleepers.wake();
            }
            return;
        }
        // SAFETY: the word says that it is still ours.
        let _value = unsafe { self.place.replace(None) };
        if done == Done::Abandoned {
            // Relaxed: the word publishes it.
            self.place.position.store(VACANT, Ordering::Relaxed);
        }
        if self.place.word.leave(0) {
            self.sleepers.wake();
        }
    }
}

/// Readers that wait for another one's clone.
struct Sleepers {
    lock: Mutex<()>,
    awake: Condvar,
}

impl Sleepers {
    fn new() -> Self {
        Sleepers {
            lock: Mutex::new(()),
            awake: Condvar::new(),
        }
    }

    /// Sleeps until the owner is done, or for no reason.
    fn sleep(&self, word: &Word) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the wake that this asks for comes after the wait has begun.
        if word.wait() {
            let _lock = self.awake.wait(lock);
        }
    }

    #[cold]
    fn wake(&self) {
        drop(self.lock.lock());
        self.awake.notify_all();
    }
}
