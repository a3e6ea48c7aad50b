//! The word of a place: how many receivers have yet to read its value, and whose the value is.
//!
//! * TAKEN: somebody owns the place. A reader, for as long as it clones the value; a sender or a receiver
//!   that is dropped, for a moment.
//! * WAITED: other readers sleep until TAKEN is clear. Set beside TAKEN only; who clears it wakes them.
//! * ABANDONED: a sender wanted the place and went elsewhere; the owner is to empty it. Set beside TAKEN
//!   only, and cleared with it.
//! * The rest counts the receivers that have yet to read. An owner that reads counts until it is done, so
//!   nobody else can make it zero meanwhile.
//!
//! # Who may do what
//!
//! 1. The value and the position are written by the owner only. The owner is who set TAKEN.
//! 2. Counting up, and setting ABANDONED, is for those who hold the tail's lock.
//! 3. Counting down is for whoever was counted, once, and needs no ownership: a receiver that is dropped
//!    does not wait for a clone. If it finds no owner and itself the last, it becomes the owner; if there
//!    is an owner, that one finds the zero when it is done.
//!
//! Every step but the last of an owner leaves the value alone, and every step is a read-modify-write. So
//! whoever sets TAKEN with Acquire sees what all earlier owners did, who cleared it with Release.

use gmp_executor::loom::{AtomicUsize, Ordering};

const TAKEN: usize = 1 << 0;
const WAITED: usize = 1 << 1;
const ABANDONED: usize = 1 << 2;
/// One receiver.
const ONE: usize = 1 << 3;

/// The highest count.
pub(super) const COUNT_MAX: usize = usize::MAX / ONE;

pub(super) struct Word(AtomicUsize);

/// Whether the caller is the owner now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Take {
    Taken,
    /// Somebody else is, who will give it back.
    Busy,
    /// Somebody else is, who will empty it.
    Abandoned,
}

/// What becomes of the value when its owner is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Done {
    /// Others have yet to read it. The place is not the caller's any more.
    Kept { wake: bool },
    /// Nobody has. The caller is still the owner: it takes the value out and calls [`Word::leave`].
    Spent,
    /// As [`Spent`](Done::Spent), and the place is abandoned: its position goes too.
    Abandoned,
}

/// What a receiver that is dropped has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Release {
    Nothing,
    /// It was the last, and is the owner now: it takes the value out and calls [`Word::leave`].
    Spent,
}

/// What a sender finds that wanted the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Abandon {
    /// The owner had gone, the caller is the owner now.
    Taken,
    /// The owner will empty it; those who wait are to be woken.
    Abandoned { wake: bool },
}

impl Word {
    /// The word of an empty place.
    pub(super) fn new() -> Self {
        Word(AtomicUsize::new(0))
    }

    /// Whether nobody has yet to read the value.
    pub(super) fn is_spent(&self) -> bool {
        // Relaxed: a picture of the moment, or of what the caller knows anyway.
        self.0.load(Ordering::Relaxed) < ONE
    }

    /// Tries to become the owner.
    #[inline]
    pub(super) fn take(&self) -> Take {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & TAKEN == 0 {
            match self.try_take(word) {
                Ok(()) => return Take::Taken,
                Err(actual) => word = actual,
            }
        }
        match word & ABANDONED {
            0 => Take::Busy,
            _ => Take::Abandoned,
        }
    }

    #[inline]
    fn try_take(&self, word: usize) -> Result<(), usize> {
        // Acquire: pairs with the Release of every owner before.
        self.0
            .compare_exchange_weak(word, word | TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
    }

    /// The owner is done, and was or was not one of those who had yet to read.
    #[inline]
    pub(super) fn done(&self, was_counted: bool) -> Done {
        let counted = if was_counted { ONE } else { 0 };
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert!(word & TAKEN != 0 && word >= counted, "{word:#x} not owned");
            let left = word - counted;
            if left & ABANDONED != 0 {
                return Done::Abandoned;
            }
            if left < ONE {
                return Done::Spent;
            }
            let next = left & !(TAKEN | WAITED);
            // Release: pairs with the Acquire of the next owner.
            match self
                .0
                .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Done::Kept {
                        wake: word & WAITED != 0,
                    };
                }
                Err(actual) => word = actual,
            }
        }
    }

    /// The owner goes; so many are to read what it leaves. Says whether there is somebody to wake.
    #[inline]
    #[must_use]
    pub(super) fn leave(&self, count: usize) -> bool {
        debug_assert!(count <= COUNT_MAX);
        // Release: pairs with the Acquire of the next owner.
        let word = self.0.swap(count * ONE, Ordering::Release);
        debug_assert!(word & TAKEN != 0, "{word:#x} not owned");
        word & WAITED != 0
    }

    /// Counts a receiver out that is dropped. Under the tail's lock.
    pub(super) fn release(&self) -> Release {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert!(word >= ONE, "{word:#x} counted out too often");
            let is_last = word < 2 * ONE && word & TAKEN == 0;
            if is_last {
                match self.try_take(word) {
                    Ok(()) => return Release::Spent,
                    Err(actual) => word = actual,
                }
                continue;
            }
            // Relaxed: it has not touched the value.
            match self.0.compare_exchange_weak(
                word,
                word - ONE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Release::Nothing,
                Err(actual) => word = actual,
            }
        }
    }

    /// Tells the owner to empty the place. Under the tail's lock.
    pub(super) fn abandon(&self) -> Abandon {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & TAKEN == 0 {
                match self.try_take(word) {
                    Ok(()) => return Abandon::Taken,
                    Err(actual) => word = actual,
                }
                continue;
            }
            let next = (word | ABANDONED) & !WAITED;
            // Relaxed: it hands nothing over; the owner finds it when it is done.
            match self
                .0
                .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Abandon::Abandoned {
                        wake: word & WAITED != 0,
                    };
                }
                Err(actual) => word = actual,
            }
        }
    }

    /// Says that somebody sleeps until the owner is done; `false` if there is nothing to wait for.
    #[must_use]
    pub(super) fn wait(&self) -> bool {
        let wait = |word: usize| (word & (TAKEN | ABANDONED) == TAKEN).then_some(word | WAITED);
        // Relaxed: the lock that sleepers and those who wake them take orders them.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, wait)
            .is_ok()
    }
}
