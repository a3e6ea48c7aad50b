//! Where the receiver's waker lies while the receiver waits.
//!
//! The receiver puts it there, and says in the word of a block for which slot it waits. The sender that
//! publishes that slot takes the waker, or the last sender does as it leaves; the block's word
//! chooses one of them (see `block`). Between that choice and the moment the waker is out the place is the
//! sender's: it sets `taken` when it is done, and the receiver leaves the place alone until then.

use std::mem::MaybeUninit;
use std::task::Waker;

use gmp_executor::loom::AtomicBool;

use crate::primitives::{Ordering, UnsafeCell};

pub(super) struct WakerPlace {
    waker: UnsafeCell<MaybeUninit<Waker>>,
    taken: AtomicBool,
}

impl WakerPlace {
    pub(super) fn new() -> Self {
        WakerPlace {
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            taken: AtomicBool::new(false),
        }
    }

    /// Takes the waker, for a sender.
    ///
    /// # Safety
    ///
    /// There is one, and the block's word chose the caller to take it.
    pub(super) unsafe fn take(&self) -> Waker {
        // SAFETY: the receiver leaves the place alone until `taken` is set, but for a look.
        let waker = unsafe { self.read() };
        // Release: pairs with the Acquire in `was_taken`; the receiver may write here again.
        self.taken.store(true, Ordering::Release);
        waker
    }

    /// # Safety
    ///
    /// There is a waker, it becomes the caller's, and nobody writes to the place meanwhile.
    pub(super) unsafe fn read(&self) -> Waker {
        let waker = self.waker.with(|waker| {
            // SAFETY: as the caller promises.
            unsafe { waker.read() }
        });
        // SAFETY: there is one, as the caller promises.
        unsafe { waker.assume_init() }
    }

    /// # Safety
    ///
    /// The caller is the receiver, and the place is its own and empty.
    pub(super) unsafe fn put(&self, waker: Waker) {
        self.waker.with_mut(|place| {
            // SAFETY: as the caller promises.
            unsafe { place.write(MaybeUninit::new(waker)) }
        });
    }

    /// # Safety
    ///
    /// The caller is the receiver, which put a waker here. Whether it was taken does not matter: it
    /// is compared and not used, and nobody but the receiver writes here.
    pub(super) unsafe fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.with(|place| {
            // SAFETY: nobody writes meanwhile.
            let place = unsafe { &*place };
            // SAFETY: it was written, and taking it out leaves the bytes in place.
            let own = unsafe { place.assume_init_ref() };
            own.will_wake(waker)
        })
    }

    /// Whether the sender that took the waker is done; says so once.
    pub(super) fn was_taken(&self) -> bool {
        // Acquire: pairs with the Release in `take`.
        let taken = self.taken.load(Ordering::Acquire);
        if taken {
            // Relaxed: the next to set it is chosen by the block's word, after this.
            self.taken.store(false, Ordering::Relaxed);
        }
        taken
    }
}
