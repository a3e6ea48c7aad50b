//! Until when the watcher of a P sleeps, for those who start an earlier timer while it does.
//!
//! Whoever starts a timer on an idle P breaks the watcher's wait. While the P is *borrowed* nobody does: the
//! borrower looks once, when it gives the P back, whether the watcher now sleeps beyond the P's next timer.
//! What the watcher slept until when the P was borrowed tells nothing, since it may have woken up, looked at
//! the timers and gone to sleep again meanwhile.
//!
//! * **The watcher**: store *unknown*; full fence; look at the timers; store until when it sleeps.
//! * **The borrower**: start the timer; make the P idle; look at the timers; full fence; load until when
//!   the watcher sleeps. *Unknown* counts as for ever.
//!
//! Both write their own and then read the other's: either the watcher sees the timer, or the borrower sees
//! that the watcher does not know of it. What is loaded may also be of an earlier sleep; then the watcher's
//! fence came after the borrower's, and it sees the timer.

use crate::loom::{AtomicU64, Ordering, fence};

/// Not known, or without an end.
const UNKNOWN: u64 = u64::MAX;

/// Times are nanoseconds since the scheduler started.
#[derive(Debug)]
pub(crate) struct SleepsUntil(AtomicU64);

impl SleepsUntil {
    pub(crate) fn new() -> SleepsUntil {
        SleepsUntil(AtomicU64::new(UNKNOWN))
    }

    /// The watcher is about to look at the timers, and returns from `look` until when it may sleep.
    pub(crate) fn watcher_looks(&self, look: impl FnOnce() -> Option<u64>) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `is_beyond`.
        fence(Ordering::SeqCst);
        if let Some(time) = look() {
            self.0.store(time, Ordering::Relaxed);
        }
    }

    /// Whether the watcher sleeps beyond the next timer, which `look` returns. To be called after the timer
    /// was started and the P made idle.
    #[must_use]
    pub(crate) fn is_beyond(&self, look: impl FnOnce() -> Option<u64>) -> bool {
        let next = look();
        // SeqCst: pairs with the fence in `watcher_looks`.
        fence(Ordering::SeqCst);
        next.is_some_and(|next| next < self.0.load(Ordering::Relaxed))
    }
}

/// Finds: either fence missing, and a look that is compared with what the watcher slept until before.
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use crate::loom::{Arc, AtomicBool, thread};

    struct World {
        sleeps_until: SleepsUntil,
        /// The P's next timer. Relaxed on purpose: the fences have to order it.
        timer: AtomicU64,
        watcher_saw: AtomicBool,
    }

    impl World {
        fn next_timer(&self) -> Option<u64> {
            Some(self.timer.load(Ordering::Relaxed))
        }

        fn watch(&self) {
            self.sleeps_until.watcher_looks(|| {
                let next = self.next_timer();
                self.watcher_saw.store(next == Some(5), Ordering::Relaxed);
                next
            });
        }
    }

    #[test]
    fn model_no_timer_is_slept_through() {
        loom::model(|| {
            let world = Arc::new(World {
                sleeps_until: SleepsUntil::new(),
                timer: AtomicU64::new(3),
                watcher_saw: AtomicBool::new(false),
            });
            // It sleeps until 3, when there was a timer; then that has fired, and there is one at 9.
            world.watch();
            world.timer.store(9, Ordering::Relaxed);
            let watcher = {
                let world = world.clone();
                thread::spawn(move || world.watch())
            };
            world.timer.store(5, Ordering::Relaxed);
            let woken = world.sleeps_until.is_beyond(|| world.next_timer());
            watcher.join().expect("the watcher");
            assert!(
                woken || world.watcher_saw.load(Ordering::Relaxed),
                "the watcher sleeps beyond the timer, and nobody wakes it"
            );
        });
    }
}
