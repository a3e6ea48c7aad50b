//! The queue of a channel: a linked list of blocks that grows at one end and is freed at the other.
//!
//! # Words
//!
//! A sender *claims* a position (see `word`), which is a slot in the block that begins at the
//! multiple of [`SLOTS`] below, puts its value there and *publishes* it. The *tail block* is where
//! senders begin to look for theirs. The receiver stands at the *head*.
//!
//! # Invariants
//!
//! 1. The blocks of the list begin at consecutive multiples of `SLOTS`. A block is never taken out of
//!    the middle.
//! 2. The tail block is never beyond a block with a slot that was claimed and not published.
//! 3. A sender uses no block before it has claimed a position, nor after it has published it.
//! 4. A block that is freed or used again is not in the list, and no sender knows it.
//!
//! # Protocol
//!
//! Push: (1) claim. (2) Load the tail block; if it is the right one, done. (3) Otherwise walk on from
//! there, block by block, making the missing ones. A walker that leaves a full block moves the tail
//! block on if it can, then asks the word where senders stand, and notes that in the block: the
//! block is *passed*. (4) Write the value, publish it, and wake the receiver if it waits for that very slot.
//!
//! Pop: the receiver reads its slot once it is published. It frees the blocks behind it, the
//! oldest first, once they are passed and it stands at the position noted in them.
//!
//! Why invariant 4 holds: the tail moves beyond a block before the word is asked, and the word is
//! asked by a Release operation. A sender that claims the noted position or a later one acquires
//! that, so it finds the tail block beyond, and cannot go back. One that claimed an earlier
//! position may know the block, but the receiver only stands at the noted position when that sender
//! has published, after which it uses no block (invariant 3). Invariant 2 holds because the tail
//! moves on from full blocks only.
//!
//! A freed block goes to a place for one spare block, where the next one that is missing is taken
//! from: a channel in its stride allocates nothing.
//!
//! # Not taken
//!
//! A ring for small capacities saves the walk at the boundary, and costs a second queue to get right.
//! Counting senders in each block makes freeing simpler, for one more shared operation a message.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use gmp_executor::loom::AtomicPtr;

use super::block::{Block, SLOTS, State, Wait, slot_of, start_of};
use super::word::{Layout, Word, advance, has_reached};
use crate::primitives::Ordering;

/// The senders' end, and the blocks that both ends share.
pub(super) struct Blocks<T> {
    tail: AtomicPtr<Block<T>>,
    /// An empty block that nobody knows, or null.
    spare: AtomicPtr<Block<T>>,
}

/// The receiver's end.
pub(super) struct Head<T, L> {
    /// Where the next value is.
    block: NonNull<Block<T>>,
    /// The position of the next value. The block is its block, or the one before.
    position: u64,
    /// What was last seen of the block's word.
    seen: State,
    /// The first block of the list.
    oldest: NonNull<Block<T>>,
    _layout: PhantomData<fn() -> L>,
}

/// What the receiver found.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Pop<T> {
    Value(T),
    /// The next position is not published.
    Empty,
    /// Nobody is left who could publish it.
    Ended,
}

/// Makes a queue whose first position is `position`.
pub(super) fn list<T, L: Layout>(position: u64) -> (Blocks<T>, Head<T, L>) {
    let block = Block::allocate(start_of(position));
    let blocks = Blocks {
        tail: AtomicPtr::new(block.as_ptr()),
        spare: AtomicPtr::new(ptr::null_mut()),
    };
    let head = Head {
        block,
        position,
        seen: State::NOTHING,
        oldest: block,
        _layout: PhantomData,
    };
    (blocks, head)
}

impl<T> Blocks<T> {
    /// Puts a value at a position and publishes it. Says whether the receiver waits for it, in which
    /// case its waker is the caller's.
    ///
    /// # Safety
    ///
    /// The caller has claimed the position from the word, and uses it once.
    #[inline]
    #[must_use]
    pub(super) unsafe fn push<L: Layout>(&self, word: &Word<L>, position: u64, value: T) -> bool {
        // SAFETY: as the caller promises.
        let block = unsafe { self.find(word, position) };
        // SAFETY: the block is in the list: the position was claimed and is not published.
        let block = unsafe { block.as_ref() };
        // SAFETY: the slot is the one that the caller claimed.
        unsafe { block.write(slot_of(position), value) };
        block.publish(slot_of(position))
    }

    /// Says that no position from this one on will ever be filled. Returns what
    /// [`push`](Blocks::push) does.
    ///
    /// # Safety
    ///
    /// As `push`, and nobody claims a position any more.
    #[must_use]
    pub(super) unsafe fn end<L: Layout>(&self, word: &Word<L>, position: u64) -> bool {
        // SAFETY: as the caller promises.
        let block = unsafe { self.find(word, position) };
        // SAFETY: as in `push`.
        let block = unsafe { block.as_ref() };
        block.end(slot_of(position))
    }

    /// The block of a position.
    ///
    /// # Safety
    ///
    /// The caller has claimed the position, and not published it.
    #[inline]
    unsafe fn find<L: Layout>(&self, word: &Word<L>, position: u64) -> NonNull<Block<T>> {
        let start = start_of(position);
        // Acquire: pairs with the Release in `walk`; the header of the block is visible.
        let tail = self.tail.load(Ordering::Acquire);
        let tail = NonNull::new(tail).expect("a list is never without blocks");
        // SAFETY: it is in the list, by invariant 4, since the caller has claimed a position.
        let block = unsafe { tail.as_ref() };
        if block.start() == start {
            return tail;
        }
        self.walk(word, block, start)
    }

    /// Walks from a block to the one that begins at `start`, and takes the tail block along.
    #[cold]
    fn walk<L: Layout>(
        &self,
        word: &Word<L>,
        mut block: &Block<T>,
        start: u64,
    ) -> NonNull<Block<T>> {
        let mut moves_tail = true;
        loop {
            let next = block.next().unwrap_or_else(|| self.grow::<L>(block));
            moves_tail = moves_tail && block.is_full() && self.move_tail(block, next);
            if moves_tail {
                // SAFETY: the compare-and-swap of the tail chose this sender.
                unsafe { block.pass(word.stamp()) };
            }
            // SAFETY: it is in the list, by invariant 4: the caller has claimed a position in it or
            // behind it, and a block leaves the list after those before it.
            block = unsafe { next.as_ref() };
            if block.start() == start {
                return next;
            }
        }
    }

    fn move_tail(&self, from: &Block<T>, to: NonNull<Block<T>>) -> bool {
        let from = ptr::from_ref(from).cast_mut();
        // Release: pairs with the Acquire in `find`.
        self.tail
            .compare_exchange(from, to.as_ptr(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Makes the block behind `block`, unless somebody else has made it.
    fn grow<L: Layout>(&self, block: &Block<T>) -> NonNull<Block<T>> {
        let start = advance::<L>(block.start(), SLOTS);
        let new = match self.take_spare() {
            Some(spare) => {
                // SAFETY: a spare block is in no list, and nobody else's once it is taken.
                unsafe { Block::reset(spare, start) };
                spare
            }
            None => Block::allocate(start),
        };
        match block.link(new) {
            Ok(()) => new,
            Err(there) => {
                self.keep(new);
                there
            }
        }
    }

    fn take_spare(&self) -> Option<NonNull<Block<T>>> {
        if self.spare.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the Release in `keep`; the block's last users are done.
        NonNull::new(self.spare.swap(ptr::null_mut(), Ordering::Acquire))
    }

    /// Keeps a block that is in no list as the spare one.
    fn keep(&self, block: NonNull<Block<T>>) {
        // AcqRel: pairs with itself and with the Acquire in `take_spare`.
        let before = self.spare.swap(block.as_ptr(), Ordering::AcqRel);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: the spare block is in no list, and this swap took it.
            unsafe { Block::free(before) };
        }
    }

    /// Frees the blocks. Values that are still in them are forgotten.
    ///
    /// # Safety
    ///
    /// Nobody uses the queue any more, and `head` is its other end.
    pub(super) unsafe fn free<L>(&mut self, head: &mut Head<T, L>) {
        let mut block = Some(head.oldest);
        while let Some(here) = block {
            // SAFETY: it is in the list, hence alive.
            block = unsafe { here.as_ref() }.next();
            // SAFETY: nobody uses it any more.
            unsafe { Block::free(here) };
        }
        if let Some(spare) = self.take_spare() {
            // SAFETY: as above.
            unsafe { Block::free(spare) };
        }
    }
}

impl<T, L: Layout> Head<T, L> {
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Takes the next value.
    #[inline]
    pub(super) fn pop(&mut self, blocks: &Blocks<T>) -> Pop<T> {
        if !self.enter_block() {
            return Pop::Empty;
        }
        if self.oldest != self.block {
            self.reclaim(blocks);
        }
        // SAFETY: the head's block is in the list: only the receiver frees, and only older ones.
        let block = unsafe { self.block.as_ref() };
        let slot = slot_of(self.position);
        if !self.seen.is_ready(slot) {
            self.seen = block.state();
            if !self.seen.is_ready(slot) {
                return match self.seen.is_ended() {
                    true => Pop::Ended,
                    false => Pop::Empty,
                };
            }
        }
        self.position = advance::<L>(self.position, 1);
        // SAFETY: the slot was seen READY, and the position will not come back to it.
        Pop::Value(unsafe { block.read(slot) })
    }

    /// Makes the block the one of the position; says `false` if it does not exist.
    #[inline]
    fn enter_block(&mut self) -> bool {
        // SAFETY: as in `pop`.
        let block = unsafe { self.block.as_ref() };
        if block.start() == start_of(self.position) {
            return true;
        }
        let Some(next) = block.next() else {
            return false;
        };
        self.block = next;
        self.seen = State::NOTHING;
        true
    }

    /// The block of the position, made if it does not exist.
    fn block(&mut self, blocks: &Blocks<T>) -> &Block<T> {
        while !self.enter_block() {
            // SAFETY: as in `pop`.
            let _next = blocks.grow::<L>(unsafe { self.block.as_ref() });
        }
        // SAFETY: as in `pop`.
        unsafe { self.block.as_ref() }
    }

    /// Whether the receiver still waits for the next position, and its waker was not taken.
    pub(super) fn is_waiting(&mut self) -> bool {
        self.enter_block() && {
            // SAFETY: as in `pop`.
            let block = unsafe { self.block.as_ref() };
            block.is_waiting_for(slot_of(self.position))
        }
    }

    /// Says that the receiver waits for the next position. Its waker is in place.
    pub(super) fn wait(&mut self, blocks: &Blocks<T>) -> Wait {
        let slot = slot_of(self.position);
        self.block(blocks).wait(slot)
    }

    /// Withdraws [`wait`](Head::wait); if that is done the waker is the receiver's again.
    pub(super) fn stop_waiting(&mut self, blocks: &Blocks<T>) -> Wait {
        let slot = slot_of(self.position);
        self.block(blocks).stop_waiting(slot)
    }

    /// Takes the blocks that nobody uses any more out of the list.
    fn reclaim(&mut self, blocks: &Blocks<T>) {
        while self.oldest != self.block {
            // SAFETY: it is in the list, and only the receiver takes it out.
            let oldest = unsafe { self.oldest.as_ref() };
            let passed_at = oldest.passed_at();
            if !passed_at.is_some_and(|goal| has_reached::<L>(self.position, goal)) {
                return;
            }
            let next = oldest.next().expect("a passed block has a successor");
            blocks.keep(std::mem::replace(&mut self.oldest, next));
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::super::word::{Bounded, Unbounded};
    use super::*;

    struct List<T, L: Layout> {
        word: Word<L>,
        blocks: Blocks<T>,
        head: Head<T, L>,
    }

    impl<T, L: Layout> List<T, L> {
        fn new(position: u64) -> Self {
            let (blocks, head) = list(position);
            let word = Word::new(position);
            List { word, blocks, head }
        }

        fn pop(&mut self) -> Pop<T> {
            self.head.pop(&self.blocks)
        }

        /// Puts a value at a position that was claimed.
        fn put(&self, position: u64, value: T) -> bool {
            // SAFETY: the tests use the positions they claim once.
            unsafe { self.blocks.push(&self.word, position, value) }
        }

        fn length(&self) -> usize {
            let mut block = Some(self.head.oldest);
            std::iter::from_fn(|| {
                let here = block?;
                // SAFETY: it is in the list, and nobody else uses that.
                block = unsafe { here.as_ref() }.next();
                Some(here)
            })
            .count()
        }
    }

    impl<T> List<T, Unbounded> {
        fn push(&self, value: T) -> bool {
            self.put(self.word.claim().position(), value)
        }
    }

    impl<T, L: Layout> Drop for List<T, L> {
        fn drop(&mut self) {
            while let Pop::Value(_) = self.pop() {}
            // SAFETY: nobody else uses it.
            unsafe { self.blocks.free(&mut self.head) };
        }
    }

    #[test]
    fn first_in_first_out_over_many_blocks() {
        let mut list = List::<_, Unbounded>::new(0);
        for value in 0..1000 {
            assert!(!list.push(value));
        }
        for value in 0..1000 {
            assert_eq!(list.pop(), Pop::Value(value));
        }
        assert_eq!(list.pop(), Pop::Empty);
    }

    #[test]
    fn a_queue_in_its_stride_uses_the_same_blocks_again() {
        let mut list = List::<_, Unbounded>::new(0);
        for value in 0..10_000 {
            list.push(value);
            assert_eq!(list.pop(), Pop::Value(value));
            assert!(list.length() <= 3, "{} blocks", list.length());
        }
    }

    #[test]
    fn positions_wrap_in_the_middle_of_a_list() {
        let start = (u64::MAX >> Unbounded::SHIFT) - 40;
        let mut list = List::<_, Unbounded>::new(start);
        for round in 0..100 {
            list.push(round);
            list.push(round + 1);
            assert_eq!(list.pop(), Pop::Value(round));
            assert_eq!(list.pop(), Pop::Value(round + 1));
        }
        assert!(list.head.position() < 200);

        let start = (u64::MAX >> Bounded::SHIFT) - 40;
        let mut list = List::<_, Bounded>::new(start);
        for round in 0..100 {
            let tail = list
                .word
                .take(list.word.load(), super::super::word::Take::Position);
            let position = tail.unwrap().position();
            assert!(!list.put(position, round));
            assert_eq!(list.pop(), Pop::Value(round));
        }
        assert!(list.head.position() < 100);
    }

    #[test]
    fn a_message_waits_for_those_claimed_before_it() {
        let mut list = List::<_, Unbounded>::new(0);
        let first = list.word.claim().position();
        assert!(!list.push(1));
        assert_eq!(list.pop(), Pop::Empty);
        assert!(!list.put(first, 0));
        assert_eq!(list.pop(), Pop::Value(0));
        assert_eq!(list.pop(), Pop::Value(1));
    }

    #[test]
    fn a_slow_sender_keeps_every_block_it_may_look_at() {
        let mut list = List::<_, Unbounded>::new(0);
        for value in 0..SLOTS - 1 {
            list.push(value);
        }
        let slow = list.word.claim().position();
        for value in 0..5 * SLOTS {
            list.push(value);
        }
        for value in 0..SLOTS - 1 {
            assert_eq!(list.pop(), Pop::Value(value));
        }
        assert_eq!(list.pop(), Pop::Empty);
        assert_eq!(list.length(), 6);
        list.put(slow, 0);
        for _ in 0..5 * SLOTS + 1 {
            assert!(matches!(list.pop(), Pop::Value(_)));
        }
        list.push(0);
        for _ in 0..2 {
            list.push(0);
            assert_eq!(list.pop(), Pop::Value(0));
        }
        assert_eq!(list.length(), 1);
    }

    #[test]
    fn the_receiver_waits_at_a_boundary_where_no_block_is() {
        let mut list = List::<_, Unbounded>::new(0);
        for _ in 0..SLOTS {
            list.push(());
            assert_eq!(list.pop(), Pop::Value(()));
        }
        assert_eq!(list.pop(), Pop::Empty);
        assert!(!list.head.is_waiting());
        assert_eq!(list.head.wait(&list.blocks), Wait::Done);
        assert!(list.head.is_waiting());
        assert!(list.push(()), "it waits for this one");
        assert!(!list.head.is_waiting());
        assert_eq!(list.head.stop_waiting(&list.blocks), Wait::TooLate);
        assert_eq!(list.pop(), Pop::Value(()));
    }

    #[test]
    fn the_end_is_found_behind_the_last_message() {
        let mut list = List::<_, Unbounded>::new(0);
        for _ in 0..SLOTS {
            list.push(());
        }
        let position = list.word.end().position();
        // SAFETY: the position was claimed, and is the last.
        assert!(!unsafe { list.blocks.end(&list.word, position) });
        for _ in 0..SLOTS {
            assert_eq!(list.pop(), Pop::Value(()));
        }
        assert_eq!(list.pop(), Pop::Ended);
        assert_eq!(list.pop(), Pop::Ended);
        assert_eq!(list.head.wait(&list.blocks), Wait::TooLate);
    }
}
