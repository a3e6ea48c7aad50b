//! Which Ps are idle, which Ms spin, and whom a submitter of work has to wake.
//!
//! # Words
//!
//! * A P is *idle* when its M has found nothing and waits in the P's poller, as its *watcher*.
//! * A P is *borrowed* when a thread in `block_on` uses it while the watcher stays where it is.
//! * An M *spins* while it looks for work of other Ps. It was woken, or it ran dry.
//!
//! # What must hold
//!
//! Runnable work never waits while a P is idle and nobody is on the way to it. The state is spread
//! over the Ps' queues, so nobody can look at all of it at once. Go's way (the top of `proc.go`):
//!
//! * **Submitting**: publish the work; full fence; if nobody spins and a P is idle, claim that P,
//!   count its M as spinning, and wake it. One wake-up, however much work there is: the spinner
//!   that finds work and leaves more behind wakes the next.
//! * **Ceasing to spin**: decrement the count; full fence; look at every queue again. Whoever parks
//!   looks and stays up if there is something; whoever found work looks and wakes another.
//!
//! Both sides write their own and then read the other's, with a full fence between: at least one of
//! them sees the other. Acquire and release are not enough, since they let both reads pass the writes.
//!
//! # Needspinning
//!
//! An M that does not spin parks without looking at every queue again; a program with a single stream
//! of small tasks would otherwise search in vain all day. That opens a gap (Go 1.17 to 1.19): a
//! submitter finds no idle P a moment before that M goes idle, and nobody wakes up. So a submitter
//! that found no idle P raises `needspinning` and looks once more; an M that parks sets its idle bit
//! and looks at `needspinning`. Again at least one sees the other. Whoever gives a borrowed P back makes
//! a P idle too, and looks as well.
//!
//! # The idle word
//!
//! One bit idle and one bit borrowed a P, 32 Ps a word; never both at once.
//!
//! ```text
//!                 claim / wake_self
//!        (idle) ────────────────────▶ (neither: the M runs)
//!         │  ▲ ◀────────────────────
//!  borrow │  │ give_back   park
//!         ▼  │
//!       (borrowed)
//! ```

use crossbeam_utils::CachePadded;

use crate::loom::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

const PER_WORD: usize = 32;

fn idle_bit(p: usize) -> u64 {
    1 << (p % PER_WORD)
}

fn borrowed_bit(p: usize) -> u64 {
    1 << (p % PER_WORD + PER_WORD)
}

/// How an M that waited in its poller comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Woken {
    /// Somebody claimed the P for this M, and counted the M as spinning.
    Claimed,
    /// Nobody did: readiness, a timer, or a broken wait. The P is this M's again.
    Alone,
    /// A thread in `block_on` uses the P; the M stays its watcher.
    Borrowed,
}

/// What an M that is about to park has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Parking {
    /// Wait in the poller.
    Wait,
    /// Look at every queue once more, then wait: it was spinning.
    Recheck,
    /// Go on, spinning: a submitter asked for it.
    Spin,
}

#[derive(Debug)]
pub(crate) struct Idle {
    words: Box<[CachePadded<AtomicU64>]>,
    spinning: CachePadded<AtomicUsize>,
    need_spinning: AtomicBool,
    procs: usize,
}

impl Idle {
    pub(crate) fn new(procs: usize) -> Idle {
        Idle {
            words: (0..procs.div_ceil(PER_WORD))
                .map(|_| CachePadded::new(AtomicU64::new(0)))
                .collect(),
            spinning: CachePadded::new(AtomicUsize::new(0)),
            need_spinning: AtomicBool::new(false),
            procs,
        }
    }

    fn word(&self, p: usize) -> &AtomicU64 {
        &self.words[p / PER_WORD]
    }

    /// How many Ps are idle now.
    pub(crate) fn count(&self) -> usize {
        let idle = |word: &CachePadded<AtomicU64>| {
            (word.load(Ordering::Relaxed) as u32).count_ones() as usize
        };
        self.words.iter().map(idle).sum()
    }

    /// How many Ms spin now.
    pub(crate) fn spinning(&self) -> usize {
        self.spinning.load(Ordering::Relaxed)
    }

    pub(crate) fn need_spinning(&self) -> bool {
        self.need_spinning.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self, p: usize) -> bool {
        // SeqCst: read after a full fence by whoever changed what the P's watcher waits for, against
        // the SeqCst read-modify-write of `park`.
        self.word(p).load(Ordering::SeqCst) & idle_bit(p) != 0
    }

    /// Work was published: says which P's M has to be woken for it, if any. That P is claimed, and
    /// its M counts as spinning already.
    #[must_use]
    pub(crate) fn submit(&self) -> Option<usize> {
        // SeqCst fence: between the publication before it and the two loads after it; pairs with the
        // fences in `park` and `found_work`.
        fence(Ordering::SeqCst);
        // SeqCst loads keep their place behind the fence under every reading of the memory model.
        if self.spinning.load(Ordering::SeqCst) != 0 {
            return None;
        }
        self.submit_unspun()
    }

    fn submit_unspun(&self) -> Option<usize> {
        loop {
            if !self.any_idle() {
                if self.need_spinning.load(Ordering::Relaxed) {
                    return None;
                }
                // SeqCst: pairs with the swap in `park`; and the look after it with the bit set there.
                self.need_spinning.store(true, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                if !self.any_idle() {
                    return None;
                }
            }
            // SeqCst: whoever loses sees somebody else spin, who is bound to look after our work.
            if self
                .spinning
                .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst)
                .is_err()
            {
                return None;
            }
            if let Some(p) = self.claim() {
                return Some(p);
            }
            // Others may have relied on us while we counted as spinning: look again, as if their
            // work were ours.
            self.spinning.fetch_sub(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }

    fn any_idle(&self) -> bool {
        // SeqCst: see `submit`.
        self.words
            .iter()
            .any(|word| word.load(Ordering::SeqCst) as u32 != 0)
    }

    /// Clears the idle bit of some idle P.
    fn claim(&self) -> Option<usize> {
        self.transition(|bits, p| (bits & idle_bit(p) != 0).then_some(bits & !idle_bit(p)))
    }

    /// Clears the idle bit of P `p` for a wake-up of its M, which counts as spinning; says whether it
    /// was set.
    #[must_use]
    pub(crate) fn claim_this(&self, p: usize) -> bool {
        // SeqCst: counted before it is claimed, as in `submit`.
        self.spinning.fetch_add(1, Ordering::SeqCst);
        let claimed = self.word(p).fetch_and(!idle_bit(p), Ordering::SeqCst) & idle_bit(p) != 0;
        if !claimed {
            self.found_work();
        }
        claimed
    }

    /// Takes an idle P for a thread in `block_on`; its watcher stays.
    pub(crate) fn borrow(&self) -> Option<usize> {
        self.transition(|bits, p| {
            (bits & idle_bit(p) != 0).then_some(bits & !idle_bit(p) | borrowed_bit(p))
        })
    }

    /// The borrower gives P `p` back: it is idle again. Says whether a submitter found no idle P
    /// meanwhile and asked for a spinning M. The caller has to look at the P's queues after this.
    #[must_use]
    pub(crate) fn give_back(&self, p: usize) -> bool {
        let bits = idle_bit(p) | borrowed_bit(p);
        // SeqCst: as the read-modify-write in `park`.
        let before = self.word(p).fetch_xor(bits, Ordering::SeqCst);
        debug_assert_eq!(before & bits, borrowed_bit(p), "P {p} was not borrowed");
        fence(Ordering::SeqCst);
        self.take_need_spinning()
    }

    /// Whether a submitter found no idle P since the last call. After an idle bit was set and a fence.
    fn take_need_spinning(&self) -> bool {
        // SeqCst: pairs with the store in `submit_unspun`.
        self.need_spinning.load(Ordering::SeqCst)
            && self.need_spinning.swap(false, Ordering::SeqCst)
    }

    /// Applies `next` to the first P for which it gives new bits.
    fn transition(&self, next: impl Fn(u64, usize) -> Option<u64>) -> Option<usize> {
        for (index, word) in self.words.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits as u32 != 0 {
                let p = index * PER_WORD + bits.trailing_zeros() as usize;
                let new = next(bits, p)?;
                // SeqCst: in the total order with the bits set in `park`.
                match word.compare_exchange(bits, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => return Some(p),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Whether an M that runs dry may search other Ps: at most half as many spin as are busy.
    #[must_use]
    pub(crate) fn start_spinning(&self) -> bool {
        let busy = self.procs - self.count().min(self.procs);
        if 2 * self.spinning() >= busy {
            return false;
        }
        // SeqCst: whoever reads this count skips a wake-up.
        self.spinning.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// The M of P `p` found nothing: the P is idle from here on.
    pub(crate) fn park(&self, p: usize, spinning: bool) -> Parking {
        // SeqCst read-modify-write: the M's side of both store-load pairs; see `submit`.
        let before = self.word(p).fetch_or(idle_bit(p), Ordering::SeqCst);
        debug_assert_eq!(
            before & (idle_bit(p) | borrowed_bit(p)),
            0,
            "P {p} goes idle twice"
        );
        if spinning {
            self.spinning.fetch_sub(1, Ordering::SeqCst);
            // SeqCst fence: between the decrement and the caller's look at every queue; pairs with
            // the fence in `submit`.
            fence(Ordering::SeqCst);
            return Parking::Recheck;
        }
        fence(Ordering::SeqCst);
        if self.take_need_spinning() {
            Parking::Spin
        } else {
            Parking::Wait
        }
    }

    /// The M of P `p` does not wait after all and goes on spinning; also if it was claimed meanwhile.
    /// `false` when the P was borrowed meanwhile: the M has to wait, and to submit what it has seen.
    #[must_use]
    pub(crate) fn cancel_park(&self, p: usize) -> bool {
        // SeqCst: the count rises before the bit falls, so that at no moment neither shows.
        self.spinning.fetch_add(1, Ordering::SeqCst);
        match self.wake(p) {
            Woken::Alone => true,
            // Counted by the claimer too.
            Woken::Claimed => {
                self.spinning.fetch_sub(1, Ordering::SeqCst);
                true
            }
            Woken::Borrowed => {
                self.found_work();
                false
            }
        }
    }

    /// The M of P `p` comes back from its poller.
    pub(crate) fn wake(&self, p: usize) -> Woken {
        let mut bits = self.word(p).load(Ordering::SeqCst);
        loop {
            if bits & borrowed_bit(p) != 0 {
                return Woken::Borrowed;
            }
            if bits & idle_bit(p) == 0 {
                return Woken::Claimed;
            }
            match self.word(p).compare_exchange(
                bits,
                bits & !idle_bit(p),
                // SeqCst: in the total order with `claim` and `borrow`.
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return Woken::Alone,
                Err(now) => bits = now,
            }
        }
    }

    /// A spinning M found work and stops spinning. The caller then looks at every queue and submits
    /// on behalf of what is left there.
    pub(crate) fn found_work(&self) {
        let before = self.spinning.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(before, 0, "an M stops spinning that did not spin");
        // SeqCst fence: between the decrement and the caller's look; pairs with `submit`.
        fence(Ordering::SeqCst);
    }

    /// A spinning M leaves the stage altogether (shutdown, or it lost its P).
    pub(crate) fn stop_spinning(&self) {
        self.found_work();
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_wake_up_at_a_time() {
        let idle = Idle::new(40);
        assert_eq!(idle.submit(), None);
        assert!(idle.need_spinning());
        assert_eq!(idle.park(35, false), Parking::Spin);
        assert!(idle.cancel_park(35));
        assert_eq!(idle.park(35, true), Parking::Recheck);
        assert_eq!(idle.count(), 1);
        assert_eq!(idle.submit(), Some(35));
        assert_eq!(idle.submit(), None, "one spins already");
        assert_eq!(idle.wake(35), Woken::Claimed);
        idle.found_work();
        assert_eq!(idle.spinning(), 0);
    }

    #[test]
    fn a_borrowed_p_is_not_claimed() {
        let idle = Idle::new(2);
        assert_eq!(idle.park(1, false), Parking::Wait);
        assert_eq!(idle.borrow(), Some(1));
        assert_eq!(idle.borrow(), None);
        assert_eq!(idle.submit(), None);
        assert_eq!(idle.wake(1), Woken::Borrowed);
        assert!(
            idle.give_back(1),
            "the submission is still to be looked after"
        );
        assert_eq!(idle.borrow(), Some(1));
        assert!(!idle.give_back(1));
        assert_eq!(idle.wake(1), Woken::Alone);
    }
}

/// Finds: a missing fence in `submit`, `park`, `found_work` or `cancel_park`, a missing recheck, a submitter that
/// gives up when its claim fails, the gap that needspinning closes. Each ends with work in the queue, a P idle, and
/// nobody on the way.
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use crate::loom::{Arc, thread};

    /// As many polls as there is work for.
    const ALL: usize = usize::MAX;

    struct World {
        idle: Idle,
        /// The only queue: how many pieces of work are in it. Relaxed on purpose: the fences of the
        /// protocol have to order it.
        queue: AtomicUsize,
    }

    impl World {
        fn new(procs: usize) -> Arc<World> {
            Arc::new(World {
                idle: Idle::new(procs),
                queue: AtomicUsize::new(0),
            })
        }

        fn has_work(&self) -> bool {
            self.queue.load(Ordering::Relaxed) != 0
        }

        /// Publishes a piece of work. An M that is woken for it is on its way for good: it counts as spinning.
        fn submit(&self) {
            self.queue.fetch_add(1, Ordering::Relaxed);
            let _on_its_way = self.idle.submit();
        }

        /// Looks, and submits what is left on its behalf.
        fn submit_the_rest(&self) {
            if self.has_work() {
                let _on_its_way = self.idle.submit();
            }
        }

        fn take(&self) -> bool {
            self.queue
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
        }

        /// The M of P `p` runs until it would wait, or is in the last of its `polls`, which lasts.
        fn m(&self, p: usize, mut spinning: bool, mut polls: usize) {
            loop {
                if self.take() {
                    if std::mem::take(&mut spinning) {
                        self.idle.found_work();
                        self.submit_the_rest();
                    }
                    polls -= 1;
                    if polls == 0 {
                        return;
                    }
                    continue;
                }
                match self.idle.park(p, std::mem::take(&mut spinning)) {
                    Parking::Wait => return,
                    Parking::Recheck if !self.has_work() => return,
                    Parking::Recheck | Parking::Spin => {
                        if !self.idle.cancel_park(p) {
                            self.submit_the_rest();
                            return;
                        }
                        spinning = true;
                    }
                }
            }
        }

        /// Called when every M waits, or is in a poll that lasts: those that spin are the ones on their way.
        fn check(&self) {
            let stranded = self.has_work() && self.idle.spinning() == 0 && self.idle.count() != 0;
            assert!(!stranded, "work is left, a P is idle, nobody is on the way");
        }
    }

    #[test]
    fn model_submit_against_a_spinner_that_parks() {
        loom::model(|| {
            let world = World::new(1);
            assert!(world.idle.start_spinning());
            let m = {
                let world = world.clone();
                thread::spawn(move || world.m(0, true, ALL))
            };
            world.submit();
            m.join().expect("the M");
            world.check();
        });
    }

    #[test]
    fn model_submit_against_a_non_spinner_that_parks() {
        loom::model(|| {
            let world = World::new(1);
            let m = {
                let world = world.clone();
                thread::spawn(move || world.m(0, false, ALL))
            };
            world.submit();
            m.join().expect("the M");
            world.check();
        });
    }

    /// The submitter relies on an M that spins, and that M has found other work, whose poll lasts: it sees what it
    /// leaves behind and wakes the next.
    #[test]
    fn model_submit_against_a_spinner_that_finds_work() {
        loom::model(|| {
            let world = World::new(2);
            assert_eq!(world.idle.park(1, false), Parking::Wait);
            assert!(world.idle.start_spinning());
            world.queue.store(1, Ordering::Relaxed);
            let m = {
                let world = world.clone();
                thread::spawn(move || world.m(0, true, 1))
            };
            world.submit();
            m.join().expect("the M");
            world.check();
        });
    }

    /// The P that a submitter is about to claim comes back alone. Another submitter relies on the first, which
    /// counts as spinning; and another P goes idle, which nobody asked to spin.
    #[test]
    fn model_submit_against_a_claim_that_fails() {
        loom::model(|| {
            let world = World::new(2);
            assert_eq!(world.idle.park(0, false), Parking::Wait);
            let woken = {
                let world = world.clone();
                // A socket was ready. Its task spawns another, and its poll lasts.
                thread::spawn(move || {
                    if world.idle.wake(0) == Woken::Claimed {
                        world.idle.found_work();
                        world.submit_the_rest();
                    }
                    world.submit();
                })
            };
            let parks = {
                let world = world.clone();
                thread::spawn(move || world.m(1, false, 1))
            };
            world.submit();
            woken.join().expect("the M that was woken");
            parks.join().expect("the M that parks");
            world.check();
        });
    }

    /// The P of a spinner that parks is borrowed before the spinner can come back for the work that it sees: it
    /// wakes the M of another P, also for what came while it counted as spinning once more.
    #[test]
    fn model_borrow_against_a_park_that_is_cancelled() {
        loom::model(|| {
            let world = World::new(2);
            assert_eq!(world.idle.park(1, false), Parking::Wait);
            assert!(world.idle.start_spinning());
            // Before it parks, and after its last look.
            world.submit();
            let m = {
                let world = world.clone();
                thread::spawn(move || {
                    assert_eq!(world.idle.park(0, true), Parking::Recheck);
                    if !world.has_work() {
                        return;
                    }
                    if world.idle.cancel_park(0) {
                        world.m(0, true, 1);
                    } else {
                        world.submit_the_rest();
                    }
                })
            };
            // The borrower's poll takes what there is, leaves more, and lasts.
            if world.idle.borrow().is_some() && world.take() {
                world.submit();
            }
            m.join().expect("the M");
            world.check();
        });
    }

    /// A thread in `block_on` borrows the P while its M parks: never two that think it is theirs.
    #[test]
    fn model_borrow_against_park() {
        loom::model(|| {
            let world = World::new(1);
            let held = Arc::new(AtomicUsize::new(1));
            assert!(world.idle.start_spinning());
            let borrower = {
                let (world, held) = (world.clone(), held.clone());
                thread::spawn(move || {
                    if world.idle.borrow() == Some(0) {
                        assert_eq!(held.fetch_add(1, Ordering::Relaxed), 0, "two holders");
                        held.fetch_sub(1, Ordering::Relaxed);
                        let asked = world.idle.give_back(0);
                        assert!(!asked, "nobody submits");
                    }
                })
            };
            held.fetch_sub(1, Ordering::Relaxed);
            let parking = world.idle.park(0, true);
            assert_eq!(parking, Parking::Recheck);
            if world.idle.cancel_park(0) {
                assert_eq!(held.fetch_add(1, Ordering::Relaxed), 0, "two holders");
            }
            borrower.join().expect("the borrower");
        });
    }

    /// Work is submitted to the global queue while a thread in `block_on` borrows the only P and gives
    /// it back: the submitter or the borrower wakes the watcher.
    #[test]
    fn model_submit_against_a_borrower() {
        loom::model(|| {
            let world = World::new(1);
            assert_eq!(world.idle.park(0, false), Parking::Wait);
            let borrower = {
                let world = world.clone();
                thread::spawn(move || {
                    if world.idle.borrow().is_some() && world.idle.give_back(0) {
                        let _on_its_way = world.idle.claim_this(0);
                    }
                })
            };
            world.submit();
            borrower.join().expect("the borrower");
            world.check();
        });
    }

    #[test]
    fn model_two_submitters() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let world = World::new(1);
            let m = {
                let world = world.clone();
                thread::spawn(move || world.m(0, false, ALL))
            };
            let other = {
                let world = world.clone();
                thread::spawn(move || world.submit())
            };
            world.submit();
            m.join().expect("the M");
            other.join().expect("the submitter");
            world.check();
        });
    }
}
