//! The readiness of a source: one atomic word.
//!
//! ```text
//! | tick: 56 bits | shutdown: 1 | registered: 1 | ready: 6 bits |
//! ```
//!
//! * `ready` says what the descriptor is ready for, as far as anybody knows. Events set bits; whoever
//!   found that an operation would block clears them.
//! * `registered` is set once, by the registration with a poller. Until then there are no events.
//! * `shutdown` is set once, when the runtime goes.
//! * `tick` counts the events.
//!
//! **Why a tick.** The kernel reports an edge once. A task that reads, gets `WouldBlock` and then
//! clears `READABLE` may be overtaken by an event between the two:
//!
//! ```text
//! task:   snapshot ── read: would block ───────────────────── clear ── wait for ever
//! kernel:                                  data arrives
//! poller:                                    set READABLE
//! ```
//!
//! So a clear carries the tick of the snapshot its operation started from and does nothing when an
//! event has come since: that event may tell of data the operation did not see. The tick must not
//! wrap while anybody holds a snapshot. With 56 bits and an event each nanosecond that takes two
//! years; tokio once cut it to 8 bits, and 256 events sufficed for a rare hang.
//!
//! One tick serves both directions: an event for the writer makes the reader's clear fail, the
//! reader reads once more, finds again that it would block, and clears then.
//!
//! Orderings: the word publishes no memory of ours, what it speaks of lives in the kernel. That
//! nobody who starts to wait misses an event is ensured by the lock of the waiters (`waiters.rs`).
//! The Acquire and Release pairs only make sure that whoever acts on a readiness sees what its
//! poller did before.

use std::fmt;

use gmp_executor::loom::{AtomicU64, Ordering};

use crate::ready::Ready;

const READY: u64 = 0b11_1111;
const REGISTERED: u64 = 1 << 6;
const SHUTDOWN: u64 = 1 << 7;
const TICK_SHIFT: u32 = 8;

/// What a source was ready for at some moment, and when that was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyEvent {
    /// What it was ready for, of what was asked.
    pub(crate) ready: Ready,
    tick: u64,
    registered: bool,
    shutdown: bool,
}

impl ReadyEvent {
    /// The event reduced to some of its readiness, so that a clear touches no more.
    pub(crate) fn with_ready(self, ready: Ready) -> ReadyEvent {
        ReadyEvent { ready, ..self }
    }

    /// Whether the source was registered with a poller.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered
    }

    /// Whether the runtime is gone.
    pub(crate) fn is_shutdown(&self) -> bool {
        self.shutdown
    }
}

/// The word. `TICK_BITS` is smaller than 56 only in tests that show what happens then.
pub(super) struct Readiness<const TICK_BITS: u32 = 56>(AtomicU64);

impl<const TICK_BITS: u32> Readiness<TICK_BITS> {
    const TICK_MASK: u64 = u64::MAX >> (64 - TICK_BITS);

    /// Not registered, ready for nothing.
    pub(super) fn new() -> Self {
        Readiness(AtomicU64::new(0))
    }

    /// What the source is ready for right now, of what `mask` names.
    #[inline]
    pub(super) fn snapshot(&self, mask: Ready) -> ReadyEvent {
        // Acquire: pairs with the Release of `update`.
        let word = self.0.load(Ordering::Acquire);
        ReadyEvent {
            ready: Ready::from_bits(word & READY) & mask,
            tick: word >> TICK_SHIFT,
            registered: word & REGISTERED != 0,
            shutdown: word & SHUTDOWN != 0,
        }
    }

    /// An event: the source is ready for this too.
    #[inline]
    pub(super) fn set(&self, ready: Ready) {
        self.update(|word| {
            let tick = ((word >> TICK_SHIFT) + 1) & Self::TICK_MASK;
            let flags = word & (READY | REGISTERED | SHUTDOWN);
            Some(tick << TICK_SHIFT | flags | ready.bits())
        });
    }

    /// The source is not ready for what `event` says, unless an event has come since.
    #[inline]
    pub(super) fn clear(&self, event: ReadyEvent) {
        self.update(|word| {
            (word >> TICK_SHIFT == event.tick).then_some(word & !event.ready.bits())
        });
    }

    /// The source is taken to be ready for this, without an event that says so. A wrong guess costs
    /// an operation that would block.
    pub(super) fn assume(&self, ready: Ready) {
        self.update(|word| Some(word | ready.bits()));
    }

    /// The source is registered now.
    pub(super) fn set_registered(&self) {
        self.update(|word| Some(word | REGISTERED));
    }

    /// The runtime goes.
    pub(super) fn set_shutdown(&self) {
        self.update(|word| Some(word | SHUTDOWN));
    }

    #[inline]
    fn update(&self, f: impl Fn(u64) -> Option<u64>) {
        // Release: pairs with the Acquire of `snapshot`. Acquire: so that a chain of updates by
        // several threads carries what each of them did before.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, f);
    }
}

impl<const TICK_BITS: u32> fmt::Debug for Readiness<TICK_BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.snapshot(Ready::ALL), f)
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    fn word() -> Readiness {
        Readiness::new()
    }

    #[test]
    fn events_add_up_and_masks_filter() {
        let word = word();
        assert!(word.snapshot(Ready::ALL).ready.is_empty());
        word.set(Ready::READABLE);
        word.set(Ready::WRITABLE);
        assert_eq!(
            word.snapshot(Ready::ALL).ready,
            Ready::READABLE | Ready::WRITABLE
        );
        assert_eq!(word.snapshot(Ready::WRITE).ready, Ready::WRITABLE);
    }

    #[test]
    fn clear_touches_only_its_bits() {
        let word = word();
        word.set(Ready::READABLE | Ready::WRITABLE);
        word.clear(word.snapshot(Ready::READ));
        assert_eq!(word.snapshot(Ready::ALL).ready, Ready::WRITABLE);
        word.set(Ready::ALL);
        word.clear(word.snapshot(Ready::ALL).with_ready(Ready::ERROR));
        assert_eq!(word.snapshot(Ready::ALL).ready, Ready::ALL - Ready::ERROR);
    }

    #[test]
    fn an_event_in_between_defeats_the_clear() {
        let word = word();
        word.set(Ready::READABLE);
        let event = word.snapshot(Ready::READ);
        word.set(Ready::READABLE);
        word.clear(event);
        assert!(word.snapshot(Ready::READ).ready.is_readable());
        word.clear(word.snapshot(Ready::READ));
        assert!(word.snapshot(Ready::READ).ready.is_empty());
    }

    #[test]
    fn two_clears_of_one_event_are_as_one() {
        let word = word();
        word.set(Ready::READABLE | Ready::WRITABLE);
        let reader = word.snapshot(Ready::READ);
        let writer = word.snapshot(Ready::WRITE);
        word.clear(reader);
        word.clear(writer);
        assert!(word.snapshot(Ready::ALL).ready.is_empty());
    }

    #[test]
    fn a_stale_clear_survives_any_short_tick() {
        let word = word();
        word.set(Ready::READABLE);
        let event = word.snapshot(Ready::READ);
        for wrap in [1u64 << 8, 1 << 15, 1 << 16] {
            for _ in 0..wrap {
                word.set(Ready::READABLE);
            }
            word.clear(event);
            assert!(word.snapshot(Ready::READ).ready.is_readable());
        }
    }

    /// The test above finds what it is there for: with a tick of 8 bits the clear matches again.
    #[test]
    fn a_short_tick_would_lose_readiness() {
        let word = Readiness::<8>::new();
        word.set(Ready::READABLE);
        let event = word.snapshot(Ready::READ);
        for _ in 0..256 {
            word.set(Ready::READABLE);
        }
        word.clear(event);
        assert!(word.snapshot(Ready::READ).ready.is_empty());
    }

    #[test]
    fn the_tick_wraps_without_touching_the_flags() {
        let word = Readiness::<2>::new();
        word.set_registered();
        word.set_shutdown();
        for _ in 0..9 {
            word.set(Ready::READABLE);
            let event = word.snapshot(Ready::ALL);
            assert!(event.is_registered() && event.is_shutdown());
            assert_eq!(event.ready, Ready::READABLE);
            assert!(event.tick < 4);
        }
    }

    #[test]
    fn flags_stay_and_events_keep_coming() {
        let word = word();
        assert!(!word.snapshot(Ready::ALL).is_registered());
        word.set_registered();
        word.assume(Ready::WRITABLE);
        let event = word.snapshot(Ready::ALL);
        assert!(event.is_registered() && !event.is_shutdown());
        assert_eq!(event.ready, Ready::WRITABLE);
        word.set_shutdown();
        word.clear(event);
        let event = word.snapshot(Ready::ALL);
        assert!(event.is_shutdown() && event.is_registered() && event.ready.is_empty());
    }
}

/// A poller and a reader over a kernel that reports edges. The bug the models look for: after the
/// reader has cleared the readiness there is data, and nobody will tell.
#[cfg(all(test, gmp_loom))]
mod model {
    use gmp_executor::loom::{Arc, AtomicUsize, thread};

    use super::*;

    /// The reader takes one snapshot, reads, and clears when it read nothing; meanwhile `events`
    /// pieces of data arrive, each with an event. Says whether data is left that no readiness tells of.
    fn overtaken_by<const TICK_BITS: u32>(events: usize) {
        loom::model(move || {
            let word = Arc::new(Readiness::<TICK_BITS>::new());
            let data = Arc::new(AtomicUsize::new(0));
            word.set(Ready::READABLE);

            let poller = {
                let (word, data) = (word.clone(), data.clone());
                thread::spawn(move || {
                    for _ in 0..events {
                        data.fetch_add(1, Ordering::SeqCst);
                        word.set(Ready::READABLE);
                    }
                })
            };

            let event = word.snapshot(Ready::READ);
            let read = data.swap(0, Ordering::SeqCst);
            if read == 0 {
                word.clear(event);
            }

            poller.join().unwrap();
            let lost =
                data.load(Ordering::SeqCst) > 0 && word.snapshot(Ready::READ).ready.is_empty();
            assert!(!lost, "data without readiness");
        });
    }

    #[test]
    #[should_panic(expected = "data without readiness")]
    fn model_finds_the_loss_with_a_one_bit_tick() {
        overtaken_by::<1>(2);
    }

    #[test]
    #[should_panic(expected = "data without readiness")]
    fn model_finds_the_loss_with_a_two_bit_tick() {
        overtaken_by::<2>(4);
    }

    #[test]
    fn model_full_width_tick_loses_nothing() {
        overtaken_by::<56>(2);
        overtaken_by::<56>(4);
    }

    /// A reader and a writer that clear each their own direction, beside an event for both.
    #[test]
    fn model_two_directions() {
        loom::model(|| {
            let word = Arc::new(Readiness::<56>::new());
            let space = Arc::new(AtomicUsize::new(0));
            word.set(Ready::READABLE | Ready::WRITABLE);

            let poller = {
                let (word, space) = (word.clone(), space.clone());
                thread::spawn(move || {
                    space.fetch_add(1, Ordering::SeqCst);
                    word.set(Ready::READABLE | Ready::WRITABLE);
                })
            };
            let writer = {
                let (word, space) = (word.clone(), space.clone());
                thread::spawn(move || {
                    let event = word.snapshot(Ready::WRITE);
                    if space.swap(0, Ordering::SeqCst) == 0 {
                        word.clear(event);
                    }
                })
            };
            word.clear(word.snapshot(Ready::READ));

            poller.join().unwrap();
            writer.join().unwrap();
            let ready = word.snapshot(Ready::WRITE).ready;
            assert!(space.load(Ordering::SeqCst) == 0 || ready.is_writable());
        });
    }
}
