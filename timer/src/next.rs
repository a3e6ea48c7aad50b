//! The earliest deadline of a P, readable without the P's lock.
//!
//! The word is written under the lock of the P's wheel only, and is never later than the earliest
//! timer in it; it may be too early, when the earliest timer was dropped or reset. Whoever acts on it
//! takes the lock and looks again.
//!
//! # Who may miss what
//!
//! A thread that lowers the deadline of a P which it holds misses nothing: the P's next look at
//! its timers is its own, or comes after a hand-over of the P.
//!
//! Any other thread may find the P's M about to wait with a timeout that is too long:
//!
//! 1. the registering thread stores the deadline, **fence**, looks whether the M waits, and breaks its
//!    wait if so (`Handle::unpark`, called after [`Lowered::publish`]);
//! 2. the M says that it waits, **fence**, loads the deadline ([`Next::before_park`]), and waits.
//!
//! It is a store-load pair on both sides, so acquire and release would not do: each side could read
//! the old value of the other's word. With a full fence between the two accesses on each side one of
//! them sees what the other wrote.
//!
//! [`is_due`](Next::is_due) misses a deadline lowered at the same moment; a P looks again soon.

use gmp_executor::loom::{AtomicU64, Ordering, fence};

/// No timer at all. Ticks are clamped below it.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Next(AtomicU64);

/// The deadline of a P became earlier: if another M may be waiting for the later one, it has to know.
#[must_use]
#[derive(Debug)]
pub(crate) struct Lowered(());

impl Lowered {
    /// Has to be called between the registration and the look at whether the P's M waits.
    pub(crate) fn publish(self) {
        // Pairs with the fence in `before_park`: see the module.
        fence(Ordering::SeqCst);
    }
}

impl Next {
    pub(crate) fn new() -> Self {
        Next(AtomicU64::new(NEVER))
    }

    /// Takes a deadline into account. The caller holds the lock of the wheel.
    #[inline]
    pub(crate) fn lower(&self, tick: u64) -> Option<Lowered> {
        (tick < self.0.load(Ordering::Relaxed)).then(|| {
            self.0.store(tick, Ordering::Relaxed);
            Lowered(())
        })
    }

    /// Sets the deadline to what the wheel says. The caller holds its lock.
    #[inline]
    pub(crate) fn set(&self, tick: Option<u64>) {
        self.0.store(tick.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Whether there may be something to fire, `now` being read only if there are timers at all.
    ///
    /// Relaxed: whoever fires takes the lock and sees what is there.
    #[inline]
    pub(crate) fn is_due(&self, now: impl FnOnce() -> u64) -> Option<u64> {
        let next = self.0.load(Ordering::Relaxed);
        if next == NEVER {
            return None;
        }
        let now = now();
        (next <= now).then_some(now)
    }

    /// The deadline to wait for, or an earlier one. The caller has already said that it waits.
    pub(crate) fn before_park(&self) -> Option<u64> {
        // Pairs with the fence in `Lowered::publish`: see the module.
        fence(Ordering::SeqCst);
        let next = self.0.load(Ordering::Relaxed);
        (next != NEVER).then_some(next)
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_empty_word_reads_no_clock() {
        let next = Next::new();
        assert_eq!(next.is_due(|| unreachable!("no timer, no clock")), None);
        assert_eq!(next.before_park(), None);
    }

    #[test]
    fn only_an_earlier_deadline_is_lowered() {
        let next = Next::new();
        assert!(next.lower(100).is_some());
        assert!(next.lower(100).is_none());
        assert!(next.lower(200).is_none());
        assert!(next.lower(50).is_some());
        assert_eq!(next.before_park(), Some(50));
        assert_eq!(next.is_due(|| 49), None);
        assert_eq!(next.is_due(|| 50), Some(50));
        next.set(None);
        assert_eq!(next.before_park(), None);
    }
}

/// Without either fence both sides read old values, and the M waits for a deadline that is too late:
/// the model finds that within a few executions.
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use gmp_executor::loom::{Arc, AtomicBool, thread};

    #[test]
    fn a_lowered_deadline_is_seen_or_breaks_the_wait() {
        loom::model(|| {
            let next = Arc::new(Next::new());
            let waits = Arc::new(AtomicBool::new(false));
            let m = {
                let (next, waits) = (next.clone(), waits.clone());
                thread::spawn(move || {
                    waits.store(true, Ordering::Relaxed);
                    next.before_park()
                })
            };
            let lowered = next.lower(7).expect("nothing is earlier");
            lowered.publish();
            let broken = waits.load(Ordering::Relaxed);
            let waits_for = m.join().unwrap();
            assert!(broken || waits_for == Some(7));
        });
    }

    #[test]
    fn two_registrations_leave_the_earlier_one() {
        loom::model(|| {
            let shard = Arc::new((gmp_executor::loom::Mutex::new(()), Next::new()));
            let other = {
                let shard = shard.clone();
                thread::spawn(move || {
                    let _lock = shard.0.lock().unwrap();
                    shard.1.lower(3).is_some()
                })
            };
            let lowered = {
                let _lock = shard.0.lock().unwrap();
                shard.1.lower(5).is_some()
            };
            assert!(other.join().unwrap() || lowered);
            assert_eq!(shard.1.before_park(), Some(3));
        });
    }
}
