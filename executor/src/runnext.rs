//! The runnext slot of a P: the G that was readied last and runs next.
//!
//! The holder of the P puts and takes; a thief may take on its last pass, once the P has been busy
//! with one poll for a while (the monitor says when). Every access is one swap of a pointer, and the
//! pointer is the ownership of the G: whoever swapped it out has it, and nobody else ever sees it
//! again. So there is no ABA problem and nothing to retry.

use std::ptr::{self, NonNull};

use crate::loom::{AtomicPtr, Ordering};

/// What can live in the slot: something that converts into a pointer that stands for it.
pub(crate) trait Slotted: Sized {
    fn into_raw(self) -> NonNull<()>;

    /// # Safety
    ///
    /// `raw` came from `into_raw` and is converted back once.
    unsafe fn from_raw(raw: NonNull<()>) -> Self;
}

#[derive(Debug)]
pub(crate) struct RunNext<G: Slotted> {
    slot: AtomicPtr<()>,
    marker: std::marker::PhantomData<fn(G) -> G>,
}

impl<G: Slotted> RunNext<G> {
    pub(crate) fn new() -> Self {
        RunNext {
            slot: AtomicPtr::new(ptr::null_mut()),
            marker: std::marker::PhantomData,
        }
    }

    /// Puts `g` into the slot and returns the G that it displaces. Holder only.
    #[inline]
    pub(crate) fn put(&self, g: G) -> Option<G> {
        self.swap(g.into_raw().as_ptr())
    }

    /// Takes the G out of the slot.
    #[inline]
    pub(crate) fn take(&self) -> Option<G> {
        // Relaxed: a look that saves the swap when the slot is empty, as it mostly is.
        if self.is_empty() {
            return None;
        }
        self.swap(ptr::null_mut())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slot.load(Ordering::Relaxed).is_null()
    }

    #[inline]
    fn swap(&self, new: *mut ()) -> Option<G> {
        // AcqRel: the Release publishes what the G's readier wrote to the Acquire of whoever swaps
        // the G out.
        let old = self.slot.swap(new, Ordering::AcqRel);
        NonNull::new(old).map(|raw| {
            // SAFETY: a pointer in the slot came from `into_raw`, and the swap made us its only owner.
            unsafe { G::from_raw(raw) }
        })
    }
}

impl<G: Slotted> Drop for RunNext<G> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Finds: a G that two take, a G that is lost between holder and thief, an unpublished G.
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use crate::loom::{Arc, AtomicUsize, UnsafeCell, thread};

    struct Probe {
        data: UnsafeCell<u32>,
        runs: AtomicUsize,
    }

    struct Token(Arc<Probe>);

    impl Token {
        fn run(self) {
            self.0.data.with(|data| {
                // SAFETY: the model checks that the write before `put` happened before this read.
                assert_eq!(unsafe { *data }, 7);
            });
            self.0.runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Slotted for Token {
        fn into_raw(self) -> NonNull<()> {
            NonNull::new(Box::into_raw(Box::new(self)).cast()).expect("a box is not null")
        }

        unsafe fn from_raw(raw: NonNull<()>) -> Self {
            // SAFETY: the caller passes on a pointer of `into_raw`, once.
            *unsafe { Box::from_raw(raw.as_ptr().cast::<Token>()) }
        }
    }

    fn probe() -> Arc<Probe> {
        Arc::new(Probe {
            data: UnsafeCell::new(0),
            runs: AtomicUsize::new(0),
        })
    }

    #[test]
    fn model_each_g_runs_once() {
        loom::model(|| {
            let slot = Arc::new(RunNext::new());
            let probes = [probe(), probe()];
            let thief = {
                let slot = slot.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        if let Some(g) = slot.take() {
                            Token::run(g);
                        }
                    }
                })
            };
            for probe in &probes {
                probe.data.with_mut(|data| {
                    // SAFETY: not yet published.
                    unsafe { *data = 7 }
                });
                if let Some(displaced) = slot.put(Token(probe.clone())) {
                    displaced.run();
                }
            }
            if let Some(g) = slot.take() {
                g.run();
            }
            thief.join().expect("the thief");
            for probe in &probes {
                assert_eq!(probe.runs.load(Ordering::Relaxed), 1);
            }
        });
    }
}
