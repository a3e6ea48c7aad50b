//! Who holds a P: the handshake by which the monitor takes a P away from an M that is in user code.
//!
//! # Words
//!
//! * An M *holds* a P from [`Tenure::begin`] to [`Tenure::end`], or until it was *taken*.
//! * A holder is *inside* while it is in scheduler code, and *outside* while user code runs (a poll).
//!   Only an M that is outside can lose its P.
//!
//! # States
//!
//! Each M has one `Tenure`: a word and a flag. The word names the P, so that a request meant for
//! one tenure can never hit the next:
//!
//! | word | who may touch the P | left by |
//! | --- | --- | --- |
//! | `0` (no P) | not this M | `begin` |
//! | `(p, NONE)` | this M while inside | `end`, `request` |
//! | `(p, REQUESTED)` | this M while inside; the monitor is looking | `cancel` by the M, `withdraw` or `take` by the monitor |
//! | `(p, TAKEN)` | the monitor, and whom it hands the P to | the M, which notices at its next `enter` and clears the word |
//!
//! # The protocol
//!
//! The M enters the scheduler (a poll returned, or the poll wakes or spawns):
//!
//! 1. store `inside = true`;
//! 2. light fence;
//! 3. load the word: NONE means kept; REQUESTED is cancelled by compare-and-swap, and if that fails
//!    the P is gone; TAKEN means gone.
//!
//! The M leaves the scheduler: it stores `inside = false` with Release, so that whoever takes the P
//! sees everything the M did to it.
//!
//! The monitor takes:
//!
//! 1. compare-and-swap `NONE → REQUESTED`;
//! 2. heavy fence;
//! 3. load `inside` with Acquire; if set, withdraw the request and give up;
//! 4. compare-and-swap `REQUESTED → TAKEN`; whoever loses the race for that word yields.
//!
//! Steps 1–3 on both sides are the pattern "write mine, then read the other's": at least one of the
//! two sees the other. On Linux the light fence is a compiler fence and the heavy one an expedited
//! `membarrier`, which makes every running thread of the process pass a full barrier; so the M pays
//! about a nanosecond, and the monitor some microseconds at most a hundred times a second. Where
//! `membarrier` is missing both are full fences.
//!
//! # Designs not taken
//!
//! * Compare-and-swap on entering and a release store on leaving: correct, and 5 ns more a poll.
//! * One word a P instead of one an M: the old M could not tell a P that was taken, handed over and
//!   given back idle from one that it still holds.

#[cfg(not(gmp_loom))]
use std::sync::OnceLock;

use crate::loom::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};

const NONE: u32 = 0;
const REQUESTED: u32 = 1;
const TAKEN: u32 = 2;
const STATE: u32 = 0b11;

fn word(p: usize, state: u32) -> u32 {
    ((p as u32 + 1) << 2) | state
}

/// What [`Tenure::enter`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Entry {
    /// The M holds its P and is inside.
    Kept,
    /// The M holds no P (any more).
    Lost,
}

/// An M's hold on its P.
#[derive(Debug)]
pub(crate) struct Tenure {
    word: AtomicU32,
    inside: AtomicBool,
}

impl Tenure {
    pub(crate) fn new() -> Tenure {
        Tenure {
            word: AtomicU32::new(0),
            inside: AtomicBool::new(false),
        }
    }

    /// The M takes up P `p`, which was given to it through a lock or a claim. It is inside.
    pub(crate) fn begin(&self, p: usize) {
        debug_assert_eq!(
            self.word.load(Ordering::Relaxed),
            0,
            "an M takes up P {p} while it holds another"
        );
        self.inside.store(true, Ordering::Relaxed);
        // Release: pairs with the Acquire of the compare-and-swap in `request`, so that the monitor
        // that names this tenure sees `inside` set by it.
        self.word.store(word(p, NONE), Ordering::Release);
    }

    /// User code begins: the P may be taken from here on.
    #[inline]
    pub(crate) fn leave(&self) {
        // Release: pairs with the Acquire load of `inside` in `take`.
        self.inside.store(false, Ordering::Release);
    }

    /// User code called into the scheduler or returned to it.
    #[inline]
    pub(crate) fn enter(&self) -> Entry {
        self.inside.store(true, Ordering::Relaxed);
        light_fence();
        // Relaxed: ordered after the store above by the fence pair; what matters is which value, and
        // in the kept case the P's data was last written by this very thread.
        let seen = self.word.load(Ordering::Relaxed);
        if seen & STATE == NONE && seen != 0 {
            Entry::Kept
        } else {
            self.enter_contended(seen)
        }
    }

    #[cold]
    fn enter_contended(&self, seen: u32) -> Entry {
        if seen == 0 {
            return Entry::Lost;
        }
        let none = seen & !STATE;
        // Relaxed: on success nobody else has touched the P.
        if seen & STATE == REQUESTED
            && self
                .word
                .compare_exchange(seen, none, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            return Entry::Kept;
        }
        if self.word.load(Ordering::Relaxed) & STATE != TAKEN {
            // The monitor withdrew its request between our two looks.
            return Entry::Kept;
        }
        self.word.store(0, Ordering::Relaxed);
        Entry::Lost
    }

    /// The M, inside, gives its P up of its own accord.
    pub(crate) fn end(&self) {
        // Relaxed: the P goes on through a lock or through the idle word, which order its data. A
        // request that is under way fails its compare-and-swap.
        let before = self.word.swap(0, Ordering::Relaxed);
        debug_assert_ne!(before & STATE, TAKEN, "an M gives up a P that was taken");
    }

    /// The monitor takes P `p` from this M unless it is inside or holds something else.
    ///
    /// `still` is asked between the request and the decision, whether the P is still worth taking.
    #[must_use]
    pub(crate) fn take(&self, p: usize, still: impl FnOnce() -> bool) -> bool {
        let (none, requested) = (word(p, NONE), word(p, REQUESTED));
        // Acquire: pairs with the Release in `begin`.
        if self
            .word
            .compare_exchange(none, requested, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        heavy_fence();
        // Acquire: pairs with the Release in `leave`.
        if self.inside.load(Ordering::Acquire) || !still() {
            // May fail: the M cancelled the request itself, or ended its tenure.
            let _ =
                self.word
                    .compare_exchange(requested, none, Ordering::Relaxed, Ordering::Relaxed);
            return false;
        }
        self.word
            .compare_exchange(
                requested,
                word(p, TAKEN),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

#[cfg(gmp_loom)]
fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

#[cfg(gmp_loom)]
fn heavy_fence() {
    fence(Ordering::SeqCst);
}

#[cfg(not(gmp_loom))]
static ASYMMETRIC: OnceLock<bool> = OnceLock::new();

/// The M's side of the fence pair.
#[cfg(not(gmp_loom))]
#[inline]
fn light_fence() {
    if ASYMMETRIC.get() == Some(&true) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The monitor's side of the fence pair.
#[cfg(not(gmp_loom))]
fn heavy_fence() {
    fence(Ordering::SeqCst);
    if ASYMMETRIC.get() == Some(&true) {
        membarrier::barrier();
    }
}

/// Finds out whether the asymmetric fence works here. To be called before the first P is held.
#[cfg(not(gmp_loom))]
pub(crate) fn prepare() {
    ASYMMETRIC.get_or_init(membarrier::register);
}

/// The models have nothing to find out.
#[cfg(gmp_loom)]
pub(crate) fn prepare() {}

#[cfg(all(not(gmp_loom), target_os = "linux"))]
mod membarrier {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier(2) takes no pointers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        // ThreadSanitizer does not know membarrier: it gets the full fences.
        !cfg!(gmp_full_fences) && membarrier(REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn barrier() {
        let done = membarrier(PRIVATE_EXPEDITED);
        assert!(done, "membarrier failed after it had been registered");
    }
}

#[cfg(all(not(gmp_loom), not(target_os = "linux")))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn barrier() {}
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_holder_inside_keeps_its_p() {
        let tenure = Tenure::new();
        tenure.begin(3);
        assert!(!tenure.take(3, || true));
        assert_eq!(tenure.enter(), Entry::Kept);
    }

    #[test]
    fn a_holder_outside_loses_its_p_once() {
        let tenure = Tenure::new();
        tenure.begin(3);
        tenure.leave();
        assert!(!tenure.take(2, || true), "it holds another P");
        assert!(!tenure.take(3, || false), "no longer worth it");
        assert!(tenure.take(3, || true));
        assert!(!tenure.take(3, || true));
        assert_eq!(tenure.enter(), Entry::Lost);
        assert_eq!(tenure.enter(), Entry::Lost);
        tenure.begin(0);
        assert_eq!(tenure.enter(), Entry::Kept);
        tenure.end();
        assert_eq!(tenure.enter(), Entry::Lost);
    }
}

/// Finds: a fence missing on either side (both go on to use the P), a cancel that is not a
/// compare-and-swap, a missing Release in `leave` (the taker reads a stale queue).
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use crate::loom::{Arc, UnsafeCell, thread};

    /// The P's data: whoever holds the P changes it without any synchronisation of its own.
    struct Shared {
        tenure: Tenure,
        data: UnsafeCell<u32>,
    }

    impl Shared {
        fn touch(&self) {
            self.data.with_mut(|data| {
                // SAFETY: the model checks that the protocol makes this exclusive.
                unsafe { *data += 1 }
            });
        }
    }

    #[test]
    fn model_one_holder_at_a_time() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                tenure: Tenure::new(),
                data: UnsafeCell::new(0),
            });
            let m = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.tenure.begin(0);
                    shared.touch();
                    for _ in 0..2 {
                        shared.tenure.leave();
                        if shared.tenure.enter() == Entry::Lost {
                            return false;
                        }
                        shared.touch();
                    }
                    shared.tenure.end();
                    true
                })
            };
            let taken = shared.tenure.take(0, || true);
            if taken {
                shared.touch();
            }
            let kept = m.join().expect("the M");
            assert!(!(taken && kept), "two hold the P");
        });
    }

    #[test]
    fn model_a_request_never_hits_the_next_tenure() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                tenure: Tenure::new(),
                data: UnsafeCell::new(0),
            });
            shared.tenure.begin(0);
            let m = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.touch();
                    shared.tenure.end();
                    shared.tenure.begin(1);
                    shared.tenure.leave();
                    assert_eq!(shared.tenure.enter(), Entry::Kept);
                    shared.touch();
                })
            };
            assert!(!shared.tenure.take(0, || true));
            m.join().expect("the M");
        });
    }
}
