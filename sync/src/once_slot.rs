//! The place of a value that is written once, under `OnceCell` and `SetOnce`.
//!
//! # Invariants
//!
//! 1. While `is_set` is false nobody but the one caller of `fill` touches the value; whoever uses
//!    the slot sees to it that there is one at a time.
//! 2. Once `is_set` is true the value is there, and is only read until the slot is borrowed mutably.

use std::mem::MaybeUninit;

use crate::primitives::{AtomicBool, Ordering, UnsafeCell};

pub(crate) struct OnceSlot<T> {
    is_set: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the slot owns its value; nothing in it belongs to a thread.
unsafe impl<T: Send> Send for OnceSlot<T> {}
// SAFETY: a shared slot gives out `&T` (hence `T: Sync`), and takes a value from whichever thread
// fills it to whichever drops it (hence `T: Send`).
unsafe impl<T: Send + Sync> Sync for OnceSlot<T> {}

impl<T> OnceSlot<T> {
    pub(crate) fn new(value: Option<T>) -> Self {
        OnceSlot {
            is_set: AtomicBool::new(value.is_some()),
            value: UnsafeCell::new(value.map_or_else(MaybeUninit::uninit, MaybeUninit::new)),
        }
    }

    #[cfg(not(gmp_loom))]
    pub(crate) const fn const_empty() -> Self {
        OnceSlot {
            is_set: AtomicBool::new(false),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[cfg(not(gmp_loom))]
    pub(crate) const fn const_filled(value: T) -> Self {
        OnceSlot {
            is_set: AtomicBool::new(true),
            value: UnsafeCell::new(MaybeUninit::new(value)),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        // Acquire: pairs with the Release in `fill`.
        self.is_set.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self) -> Option<&T> {
        if !self.is_set() {
            return None;
        }
        self.value.with(|value| {
            // SAFETY: nobody writes any more, by invariant 2.
            let value = unsafe { &*value };
            // SAFETY: it is initialised, by invariant 2.
            Some(unsafe { value.assume_init_ref() })
        })
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if !self.is_set() {
            return None;
        }
        self.value.with_mut(|value| {
            // SAFETY: the slot is borrowed mutably, for as long as the reference lives.
            let value = unsafe { &mut *value };
            // SAFETY: it is initialised, by invariant 2.
            Some(unsafe { value.assume_init_mut() })
        })
    }

    /// Writes the value.
    ///
    /// # Safety
    ///
    /// The slot is empty, and the caller is the only one to fill it (invariant 1).
    pub(crate) unsafe fn fill(&self, value: T) -> &T {
        debug_assert!(!self.is_set(), "a slot is filled once");
        self.value.with_mut(|slot| {
            // SAFETY: nobody reads before `is_set` is true, and the caller is the only writer.
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // Release: pairs with the Acquire in `is_set`.
        self.is_set.store(true, Ordering::Release);
        self.get().expect("the slot was filled just now")
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        if !self.is_set() {
            return None;
        }
        // Relaxed: the slot is borrowed mutably.
        self.is_set.store(false, Ordering::Relaxed);
        self.value.with_mut(|value| {
            // SAFETY: the slot is borrowed mutably.
            let value = unsafe { &*value };
            // SAFETY: it was initialised, by invariant 2; with the flag cleared it is not read again.
            Some(unsafe { value.assume_init_read() })
        })
    }
}

impl<T> Drop for OnceSlot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn fills_once_and_drops_once() {
        let counted = Rc::new(());
        let mut slot = OnceSlot::new(None);
        assert!(!slot.is_set() && slot.get().is_none() && slot.get_mut().is_none());
        // SAFETY: this is the only thread and the slot is empty.
        let value = unsafe { slot.fill(counted.clone()) };
        assert!(Rc::ptr_eq(value, &counted));
        assert!(slot.is_set() && slot.get_mut().is_some());
        assert_eq!(Rc::strong_count(&counted), 2);
        drop(slot);
        assert_eq!(Rc::strong_count(&counted), 1);
    }

    #[test]
    fn what_was_taken_is_not_dropped() {
        let counted = Rc::new(());
        let mut slot = OnceSlot::new(Some(counted.clone()));
        let taken = slot.take();
        assert!(taken.is_some() && slot.take().is_none() && !slot.is_set());
        drop(slot);
        assert_eq!(Rc::strong_count(&counted), 2);
    }

    #[test]
    fn an_empty_slot_drops_nothing() {
        drop(OnceSlot::<Rc<()>>::new(None));
    }
}
