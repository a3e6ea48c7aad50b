//! The tail word of a channel: where senders stand, and whether the channel is closed.
//!
//! From the lowest bit on:
//!
//! * CLOSED: no value is accepted any more. Set by the receiver, never cleared. In a bounded channel
//!   capacity that was reserved before may still be used.
//! * ENDED: the last sender is gone. Set once, in the step that claims the last position, which
//!   stays empty.
//! * RESERVED, 31 bits, in a bounded channel only: the permits that were given out and neither used
//!   nor returned.
//! * the position that the next sender claims, counted from the first message. It wraps.
//!
//! An unbounded channel counts the position in 62 bits. A bounded one has 31, which is more than its
//! messages in flight by a factor of two: positions that matter at the same time are told apart.
//!
//! Everything in one word, so that a message that needs no permit takes its capacity and its position
//! in one step, and so that no value slips in after the receiver has closed the channel and found it
//! idle.
//!
//! # Orderings
//!
//! Every change of the word is a read-modify-write, so whoever changes it later than `stamp` did
//! sees what was done before the `stamp` (Release there, Acquire in each step that claims a
//! position). Closing and returning permits are AcqRel, for the receiver that looks whether the
//! channel is idle: what was done before a permit was returned happens before it sees so.

use std::fmt;
use std::marker::PhantomData;

use gmp_executor::loom::AtomicU64;

use crate::primitives::Ordering;

const CLOSED: u64 = 0b01;
const ENDED: u64 = 0b10;
const ONE_RESERVED: u64 = 0b100;
const RESERVED_BITS: u32 = 31;

/// The most messages and permits a bounded channel can have in flight: a quarter of what would make
/// two positions look the same, and as many as RESERVED can hold.
pub(super) const IN_FLIGHT_MAX: u64 = 1 << (RESERVED_BITS - 1);

/// How a flavour of channel divides the word.
pub(super) trait Layout {
    /// Bits below the position.
    const SHIFT: u32;
}

/// The word has a RESERVED field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounded {}

/// The word has no RESERVED field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unbounded {}

impl Layout for Bounded {
    const SHIFT: u32 = 2 + RESERVED_BITS;
}

impl Layout for Unbounded {
    const SHIFT: u32 = 2;
}

/// `position` moved on by `by`.
#[inline(always)]
pub(super) fn advance<L: Layout>(position: u64, by: u64) -> u64 {
    position.wrapping_add(by) & (u64::MAX >> L::SHIFT)
}

/// How far it is from one position to another that is not before it.
#[inline(always)]
pub(super) fn distance<L: Layout>(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from) & (u64::MAX >> L::SHIFT)
}

/// Whether `position` is `goal` or beyond it.
pub(super) fn has_reached<L: Layout>(position: u64, goal: u64) -> bool {
    distance::<L>(goal, position) <= u64::MAX >> (L::SHIFT + 1)
}

/// A picture of the word.
pub(super) struct Tail<L>(u64, PhantomData<L>);

impl<L> Clone for Tail<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Tail<L> {}

impl<L: Layout> Tail<L> {
    #[inline(always)]
    fn new(word: u64) -> Self {
        Tail(word, PhantomData)
    }

    #[inline(always)]
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(super) fn is_ended(self) -> bool {
        self.0 & ENDED != 0
    }

    /// The position that the next sender claims.
    #[inline(always)]
    pub(super) fn position(self) -> u64 {
        self.0 >> L::SHIFT
    }

    /// The position behind the last message: in front of the one that the last sender left empty.
    pub(super) fn end(self) -> u64 {
        distance::<L>(u64::from(self.is_ended()), self.position())
    }
}

impl Tail<Bounded> {
    /// Permits given out and neither used nor returned.
    #[inline(always)]
    pub(super) fn reserved(self) -> u64 {
        (self.0 / ONE_RESERVED) & ((1 << RESERVED_BITS) - 1)
    }

    /// Messages and permits in flight when the receiver stands at `head`; `None` if the receiver is
    /// ahead, so that this picture of the word is an old one.
    #[inline(always)]
    pub(super) fn in_flight(self, head: u64) -> Option<u64> {
        let messages = distance::<Bounded>(head, self.end());
        (messages <= IN_FLIGHT_MAX).then(|| messages + self.reserved())
    }
}

impl<L: Layout> fmt::Debug for Tail<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail")
            .field("position", &self.position())
            .field("closed", &self.is_closed())
            .field("ended", &self.is_ended())
            .finish()
    }
}

pub(super) struct Word<L>(AtomicU64, PhantomData<fn() -> L>);

impl<L: Layout> Word<L> {
    const ONE_POSITION: u64 = 1 << L::SHIFT;

    /// A word whose first position is `position`.
    pub(super) fn new(position: u64) -> Self {
        Word(AtomicU64::new(position << L::SHIFT), PhantomData)
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Tail<L> {
        // Acquire: pairs with the AcqRel of those who change it, see the top.
        Tail::new(self.0.load(Ordering::Acquire))
    }

    /// For a look that a compare-and-swap confirms.
    #[inline(always)]
    pub(super) fn peek(&self) -> Tail<L> {
        Tail::new(self.0.load(Ordering::Relaxed))
    }

    /// Sets CLOSED. Returns the word as it was before.
    pub(super) fn close(&self) -> Tail<L> {
        // AcqRel: see the top.
        Tail::new(self.0.fetch_or(CLOSED, Ordering::AcqRel))
    }

    /// Sets ENDED and claims the last position. Returns the word as it was before.
    pub(super) fn end(&self) -> Tail<L> {
        // AcqRel: see the top; Acquire as in `claim`.
        Tail::new(
            self.0
                .fetch_add(Self::ONE_POSITION + ENDED, Ordering::AcqRel),
        )
    }

    /// Where senders stand now: whoever claims that position or a later one sees what the caller did
    /// before.
    pub(super) fn stamp(&self) -> u64 {
        // Release: pairs with the Acquire of those who claim a position.
        Tail::<L>::new(self.0.fetch_add(0, Ordering::Release)).position()
    }
}

impl Word<Unbounded> {
    /// Claims a position, of no use if the word was CLOSED.
    #[inline(always)]
    pub(super) fn claim(&self) -> Tail<Unbounded> {
        // Acquire: pairs with the Release in `stamp`.
        Tail::new(self.0.fetch_add(Self::ONE_POSITION, Ordering::Acquire))
    }
}

/// What a bounded channel gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// One message's capacity, and its position.
    Position,
    /// Permits.
    Permits(u64),
}

impl Take {
    /// Capacity needed.
    #[inline(always)]
    pub(super) fn count(self) -> u64 {
        match self {
            Take::Position => 1,
            Take::Permits(count) => count,
        }
    }
}

impl Word<Bounded> {
    /// Takes what `take` says if the word still is what it was; says what it is if not.
    #[inline(always)]
    pub(super) fn take(
        &self,
        seen: Tail<Bounded>,
        take: Take,
    ) -> Result<Tail<Bounded>, Tail<Bounded>> {
        let step = match take {
            Take::Position => Self::ONE_POSITION,
            Take::Permits(count) => count * ONE_RESERVED,
        };
        // AcqRel: see the top; Acquire also as in `claim`.
        match self.0.compare_exchange_weak(
            seen.0,
            seen.0.wrapping_add(step),
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(before) => Ok(Tail::new(before)),
            Err(actual) => Err(Tail::new(actual)),
        }
    }

    /// Uses a permit: claims a position for it.
    #[inline(always)]
    pub(super) fn redeem(&self) -> u64 {
        let step = Self::ONE_POSITION - ONE_RESERVED;
        // AcqRel: see the top; Acquire also as in `claim`.
        let before = Tail::<Bounded>::new(self.0.fetch_add(step, Ordering::AcqRel));
        debug_assert!(before.reserved() > 0, "a permit was given out: {before:?}");
        before.position()
    }

    /// Returns permits. Returns the word as it was before.
    pub(super) fn give_back(&self, permits: u64) -> Tail<Bounded> {
        // AcqRel: see the top.
        let before = self.0.fetch_sub(permits * ONE_RESERVED, Ordering::AcqRel);
        let before = Tail::<Bounded>::new(before);
        debug_assert!(
            before.reserved() >= permits,
            "{permits} permits were given out: {before:?}"
        );
        before
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn bounded_word_counts_permits_and_positions_apart() {
        let word = Word::<Bounded>::new(5);
        let tail = word.take(word.load(), Take::Permits(7)).unwrap();
        assert_eq!((tail.position(), tail.reserved()), (5, 0));
        let tail = word.take(word.load(), Take::Position).unwrap();
        assert_eq!((tail.position(), tail.reserved()), (5, 7));
        assert_eq!(word.redeem(), 6);
        assert_eq!(word.give_back(2).reserved(), 6);
        let tail = word.load();
        assert_eq!((tail.position(), tail.reserved()), (7, 4));
        assert_eq!(tail.in_flight(5), Some(6));
        assert_eq!(tail.in_flight(7), Some(4));
        assert_eq!(tail.in_flight(8), None, "the receiver was ahead");
        assert!(word.take(tail, Take::Permits(IN_FLIGHT_MAX - 4)).is_ok());
        assert_eq!(word.load().reserved(), IN_FLIGHT_MAX);
        assert_eq!(word.load().position(), 7);
    }

    #[test]
    fn a_picture_that_is_old_takes_nothing() {
        let word = Word::<Bounded>::new(0);
        let old = word.load();
        word.close();
        assert!(word.take(old, Take::Position).unwrap_err().is_closed());
        assert_eq!(word.load().position(), 0);
    }

    #[test]
    fn the_last_position_stays_empty() {
        let word = Word::<Bounded>::new(3);
        assert!(!word.end().is_ended());
        let tail = word.load();
        assert!(tail.is_ended() && !tail.is_closed());
        assert_eq!((tail.position(), tail.end()), (4, 3));

        let word = Word::<Unbounded>::new(0);
        assert_eq!(word.claim().position(), 0);
        word.end();
        assert_eq!(word.load().end(), 1);
        assert!(!word.close().is_closed());
        assert!(word.claim().is_closed());
    }

    fn wraps<L: Layout>() {
        let last = u64::MAX >> L::SHIFT;
        let word = Word::<L>::new(last);
        assert_eq!(word.end().position(), last);
        assert_eq!(word.load().position(), 0);
        assert_eq!(word.load().end(), last);
        assert_eq!(word.stamp(), 0);
        assert_eq!(advance::<L>(last, 2), 1);
        assert_eq!(distance::<L>(last, 1), 2);
        assert!(has_reached::<L>(1, last));
        assert!(has_reached::<L>(last, last));
        assert!(!has_reached::<L>(last, 0));
    }

    #[test]
    fn positions_wrap() {
        wraps::<Bounded>();
        wraps::<Unbounded>();
        let word = Word::<Bounded>::new(u64::MAX >> Bounded::SHIFT);
        word.take(word.load(), Take::Permits(3)).unwrap();
        word.take(word.load(), Take::Position).unwrap();
        let tail = word.load();
        assert_eq!((tail.position(), tail.reserved()), (0, 3));
        assert_eq!(tail.in_flight(u64::MAX >> Bounded::SHIFT), Some(4));
        assert!(!tail.is_closed() && !tail.is_ended());
    }
}
