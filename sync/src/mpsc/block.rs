//! A block of the queue: a fixed number of slots, and the word that says what each of them holds.
//!
//! # The word
//!
//! * READY, a bit a slot: the slot holds a value, or held one that the receiver took. Set once, by
//!   the sender that claimed the slot; the last thing this sender does to the block.
//! * PASSED: the tail of the queue has moved beyond the block, and `passed_at` is written. Set once,
//!   by the sender that moved the tail. Only a block whose slots are all READY is passed.
//! * ENDED: no sender is left. Stands in the block of the first slot that nobody will ever fill, and
//!   is set after every other slot in front of that one is READY.
//! * WAITS and the slot beside it: the receiver's waker lies ready, and belongs to whoever makes that
//!   slot READY, or sets ENDED while the receiver waits for just that slot. Set and withdrawn by the
//!   receiver alone, while the slot is not READY. When its waker has been taken, the receiver
//!   leaves the bit behind: nobody makes the same slot READY again.
//!
//! Publishing a value and asking whether the receiver waits for it are thus one operation on one
//! word, and a sender whose slot is not the next one never wakes anybody.
//!
//! # Who touches what
//!
//! A slot's cell belongs to the sender that claimed the slot until READY, then to the receiver.
//! `start` and `next` of a block that is not in the queue belong to whoever took it out or made it;
//! in the queue `start` does not change, and `next` is written once. `passed_at` is written before
//! PASSED and read after it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull, addr_of_mut};

use gmp_executor::loom::{AtomicPtr, AtomicU64};

use crate::primitives::{Ordering, UnsafeCell};

/// Slots in a block.
#[cfg(not(gmp_loom))]
pub(super) const SLOTS: u64 = 32;
/// Small, so that the models cross the boundary between blocks.
#[cfg(gmp_loom)]
pub(super) const SLOTS: u64 = 2;

/// Position of the first slot in the block that holds `position`.
#[inline(always)]
pub(super) fn start_of(position: u64) -> u64 {
    position & !(SLOTS - 1)
}

/// Which slot of its block `position` is.
#[inline(always)]
pub(super) fn slot_of(position: u64) -> u32 {
    (position & (SLOTS - 1)) as u32
}

const ALL_READY: u64 = (1 << SLOTS) - 1;
const PASSED: u64 = 1 << 32;
const ENDED: u64 = 1 << 33;
const WAITS: u64 = 1 << 34;
const WAITS_SLOT_SHIFT: u32 = 35;
/// WAITS and the number of the slot.
const WAITS_FIELD: u64 = WAITS | (SLOTS - 1) << WAITS_SLOT_SHIFT;

/// A picture of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

impl State {
    /// What is known of a block that was not looked at yet.
    pub(super) const NOTHING: State = State(0);

    #[inline(always)]
    pub(super) fn is_ready(self, slot: u32) -> bool {
        self.0 & (1 << slot) != 0
    }

    pub(super) fn is_ended(self) -> bool {
        self.0 & ENDED != 0
    }

    #[inline(always)]
    fn waits_for(self, slot: u32) -> bool {
        self.0 & WAITS_FIELD == waits(slot)
    }
}

fn waits(slot: u32) -> u64 {
    WAITS | u64::from(slot) << WAITS_SLOT_SHIFT
}

/// What became of the receiver's wish to wait for a slot, or to withdraw that wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Wait {
    /// The word says what the receiver wanted it to say.
    Done,
    /// The slot is READY, or the queue ENDED, meanwhile.
    TooLate,
}

pub(super) struct Block<T> {
    start: u64,
    next: AtomicPtr<Block<T>>,
    word: AtomicU64,
    passed_at: UnsafeCell<u64>,
    slots: [UnsafeCell<MaybeUninit<T>>; SLOTS as usize],
}

impl<T> Block<T> {
    /// Makes an empty block. It is built where it stays: a block of large values fits no stack.
    pub(super) fn allocate(start: u64) -> NonNull<Block<T>> {
        let layout = Layout::new::<Block<T>>();
        // SAFETY: the layout is not empty, there is a header.
        let block = unsafe { alloc(layout) }.cast::<Block<T>>();
        let Some(made) = NonNull::new(block) else {
            handle_alloc_error(layout);
        };
        // SAFETY: new memory for a block, which nobody else knows.
        unsafe { Block::reset(made, start) };
        // SAFETY: as above; `passed_at` is a field of it.
        let passed_at = unsafe { addr_of_mut!((*block).passed_at) };
        // SAFETY: as above.
        unsafe { passed_at.write(UnsafeCell::new(0)) };
        // loom's cells know who touches them, and have to be made one by one; std's are as good
        // uninitialised as what they hold.
        #[cfg(gmp_loom)]
        for slot in 0..SLOTS as usize {
            // SAFETY: as above; a slot is a field of it.
            let cell = unsafe { addr_of_mut!((*block).slots[slot]) };
            // SAFETY: as above.
            unsafe { cell.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        made
    }

    /// Makes the block empty again, to begin at `start`.
    ///
    /// # Safety
    ///
    /// The block is not in a queue, and the caller's alone. Its values were taken.
    pub(super) unsafe fn reset(block: NonNull<Block<T>>, start: u64) {
        let block = block.as_ptr();
        // SAFETY: the block is the caller's; a field of it.
        let field = unsafe { addr_of_mut!((*block).start) };
        // SAFETY: as above.
        unsafe { field.write(start) };
        // SAFETY: as above.
        let field = unsafe { addr_of_mut!((*block).next) };
        // SAFETY: as above. The old one has no destructor to run.
        unsafe { field.write(AtomicPtr::new(ptr::null_mut())) };
        // SAFETY: as above.
        let field = unsafe { addr_of_mut!((*block).word) };
        // SAFETY: as above.
        unsafe { field.write(AtomicU64::new(0)) };
    }

    /// Gives the block's memory back.
    ///
    /// # Safety
    ///
    /// As [`reset`](Block::reset); nobody uses it any more.
    pub(super) unsafe fn free(block: NonNull<Block<T>>) {
        #[cfg(gmp_loom)]
        {
            // SAFETY: the block is the caller's. loom's parts want to be dropped.
            unsafe { ptr::drop_in_place(block.as_ptr()) };
        }
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(block.as_ptr().cast(), Layout::new::<Block<T>>()) };
    }

    #[inline(always)]
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Puts a value into a slot.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot and not published it.
    #[inline(always)]
    pub(super) unsafe fn write(&self, slot: u32, value: T) {
        self.slots[slot as usize].with_mut(|cell| {
            // SAFETY: the slot is the caller's until it is READY.
            unsafe { cell.write(MaybeUninit::new(value)) }
        });
    }

    /// Takes the value out of a slot.
    ///
    /// # Safety
    ///
    /// The caller is the receiver, saw the slot READY, and takes the value only once.
    #[inline(always)]
    pub(super) unsafe fn read(&self, slot: u32) -> T {
        let value = self.slots[slot as usize].with(|cell| {
            // SAFETY: the slot is the receiver's since it is READY.
            unsafe { cell.read() }
        });
        // SAFETY: it was written before it became READY.
        unsafe { value.assume_init() }
    }

    /// Makes a slot READY; says whether the receiver waits for it, so that its waker is the caller's.
    #[inline(always)]
    #[must_use]
    pub(super) fn publish(&self, slot: u32) -> bool {
        // Release: pairs with the Acquire in `state`; the value is visible to who sees it READY.
        // Acquire: pairs with the Release in `wait`; the waker is visible to who sees WAITS.
        let before = State(self.word.fetch_or(1 << slot, Ordering::AcqRel));
        debug_assert!(!before.is_ready(slot), "a slot is filled once: {before:?}");
        before.waits_for(slot)
    }

    /// Sets ENDED; says whether the receiver waits for `slot`, as [`publish`](Block::publish) does.
    #[must_use]
    pub(super) fn end(&self, slot: u32) -> bool {
        // AcqRel: as in `publish`.
        State(self.word.fetch_or(ENDED, Ordering::AcqRel)).waits_for(slot)
    }

    /// What the slots hold.
    #[inline(always)]
    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the Release in `publish` and `end`.
        State(self.word.load(Ordering::Acquire))
    }

    /// Whether the receiver, whose the call is, still waits for `slot` and nobody took its waker.
    pub(super) fn is_waiting_for(&self, slot: u32) -> bool {
        let state = self.state();
        state.waits_for(slot) && !state.is_ready(slot) && !state.is_ended()
    }

    /// Says that the receiver waits for `slot`. Its waker is in place.
    pub(super) fn wait(&self, slot: u32) -> Wait {
        self.set_wait(slot, waits(slot))
    }

    /// Withdraws [`wait`](Block::wait): the waker is the receiver's again.
    pub(super) fn stop_waiting(&self, slot: u32) -> Wait {
        self.set_wait(slot, 0)
    }

    fn set_wait(&self, slot: u32, field: u64) -> Wait {
        let mut state = self.state();
        while !state.is_ready(slot) && !state.is_ended() {
            let next = state.0 & !WAITS_FIELD | field;
            // Release: pairs with the Acquire in `publish`, for the waker. Acquire: as in `state`.
            match self.word.compare_exchange_weak(
                state.0,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Wait::Done,
                Err(actual) => state = State(actual),
            }
        }
        Wait::TooLate
    }

    /// The block after this one, if there is one yet.
    #[inline]
    pub(super) fn next(&self) -> Option<NonNull<Block<T>>> {
        // Acquire: pairs with the Release in `link`; the block's header is visible.
        NonNull::new(self.next.load(Ordering::Acquire))
    }

    /// Puts a block behind this one, or says which is there already.
    pub(super) fn link(&self, next: NonNull<Block<T>>) -> Result<(), NonNull<Block<T>>> {
        // Release, Acquire: as in `next`.
        let there = self.next.compare_exchange(
            ptr::null_mut(),
            next.as_ptr(),
            Ordering::Release,
            Ordering::Acquire,
        );
        match there {
            Ok(_) => Ok(()),
            Err(there) => Err(NonNull::new(there).expect("a link that failed found a block")),
        }
    }

    /// Whether every slot is READY.
    pub(super) fn is_full(&self) -> bool {
        self.state().0 & ALL_READY == ALL_READY
    }

    /// Says that the tail has moved beyond the block, and where senders stood by then: whoever
    /// claims that position or a later one never looks at the block.
    ///
    /// # Safety
    ///
    /// The caller is the sender that moved the tail.
    pub(super) unsafe fn pass(&self, position: u64) {
        self.passed_at.with_mut(|passed_at| {
            // SAFETY: one sender moves the tail beyond the block, and the receiver reads it later.
            unsafe { *passed_at = position }
        });
        // Release: pairs with the Acquire in `passed_at`.
        self.word.fetch_or(PASSED, Ordering::Release);
    }

    /// What [`pass`](Block::pass) was told, if the block was passed.
    pub(super) fn passed_at(&self) -> Option<u64> {
        // Acquire (in `state`): pairs with the Release in `pass`.
        if self.state().0 & PASSED == 0 {
            return None;
        }
        Some(self.passed_at.with(|passed_at| {
            // SAFETY: written before PASSED was set, and never again.
            unsafe { *passed_at }
        }))
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    /// A block that is in no list, which is freed in the end. Its values have no destructors.
    struct Made<T>(NonNull<Block<T>>);

    fn made<T>(start: u64) -> Made<T> {
        Made(Block::allocate(start))
    }

    impl<T> Made<T> {
        fn put(&self, slot: u32, value: T) {
            // SAFETY: the tests write to each slot once, before they publish it.
            unsafe { self.write(slot, value) };
        }

        fn take(&self, slot: u32) -> T {
            // SAFETY: the tests read what they have published, once.
            unsafe { self.read(slot) }
        }

        fn reset(&mut self, start: u64) {
            // SAFETY: the block is in no list, and nobody else's.
            unsafe { Block::reset(self.0, start) };
        }
    }

    impl<T> std::ops::Deref for Made<T> {
        type Target = Block<T>;

        fn deref(&self) -> &Block<T> {
            // SAFETY: it is freed by the drop.
            unsafe { self.0.as_ref() }
        }
    }

    impl<T> Drop for Made<T> {
        fn drop(&mut self) {
            // SAFETY: nobody else knows it.
            unsafe { Block::free(self.0) };
        }
    }

    #[test]
    fn publish_says_whether_the_receiver_waits_for_that_slot() {
        let block = made::<u32>(64);
        assert_eq!(block.start(), 64);
        assert_eq!(block.wait(0), Wait::Done);
        assert!(block.is_waiting_for(0));
        assert!(!block.is_waiting_for(1));
        block.put(1, 11);
        assert!(!block.publish(1), "the receiver waits for the first slot");
        block.put(0, 10);
        assert!(block.publish(0));
        assert!(!block.is_waiting_for(0), "its waker is somebody else's now");
        assert_eq!(block.stop_waiting(0), Wait::TooLate);
        assert_eq!(block.take(0), 10);
        assert_eq!(block.take(1), 11);
    }

    #[test]
    fn a_wait_is_withdrawn_or_moved_on() {
        let block = made::<()>(0);
        assert_eq!(block.wait(0), Wait::Done);
        assert_eq!(block.stop_waiting(0), Wait::Done);
        assert!(!block.publish(0));
        assert_eq!(block.wait(0), Wait::TooLate);
        assert_eq!(block.wait(31), Wait::Done);
        assert!(!block.publish(30));
        assert!(block.publish(31));
    }

    #[test]
    fn the_end_wakes_whoever_waits_for_the_slot_behind_the_last() {
        let block = made::<()>(0);
        assert!(!block.publish(0));
        assert_eq!(block.wait(1), Wait::Done);
        assert!(block.end(1));
        assert!(block.state().is_ended());
        assert!(block.state().is_ready(0));
        assert_eq!(block.wait(1), Wait::TooLate);

        let block = made::<()>(0);
        assert!(!block.end(0), "nobody waits");
    }

    #[test]
    fn full_and_passed() {
        let mut block = made::<()>(0);
        for slot in 0..SLOTS as u32 {
            assert!(!block.is_full());
            assert!(!block.publish(slot));
        }
        assert!(block.is_full());
        assert_eq!(block.passed_at(), None);
        // SAFETY: nobody else passes it.
        unsafe { block.pass(33) };
        assert_eq!(block.passed_at(), Some(33));
        block.reset(96);
        assert_eq!(block.start(), 96);
        assert_eq!(block.state(), State::NOTHING);
    }

    #[test]
    fn one_block_follows_another() {
        let (first, second, third) = (made::<u8>(0), made::<u8>(32), made::<u8>(32));
        assert_eq!(first.next(), None);
        assert_eq!(first.link(second.0), Ok(()));
        assert_eq!(first.link(third.0), Err(second.0));
        assert_eq!(first.next(), Some(second.0));
    }

    #[test]
    fn a_block_of_large_values_needs_no_stack() {
        let _block = made::<[u8; 2_000_000]>(0);
    }
}
