//! The state word of a task: who may touch what, and how many references there are.
//!
//! # Bits
//!
//! | bit | means | set by | never beside |
//! | --- | --- | --- | --- |
//! | RUNNING | an M polls the future, or drops it | the M that has the G | – |
//! | NOTIFIED | a [`G`](super::G) exists, or will when the poll in progress ends | a waker, an abort, a spawn, the end of a poll that wants another | – |
//! | COMPLETE | the future is gone, the output (or the error) is stored or consumed | the M, with RUNNING | RUNNING |
//! | JOIN_INTEREST | there is a `JoinHandle` | the spawn | – |
//! | JOIN_WAKER | the handle's waker is in its slot, published | the handle | – |
//! | ABORTED | the future is to be dropped instead of polled | anybody with a reference | – |
//!
//! The rest counts references: of the G, the handle, abort handles, wakers, and the registry.
//!
//! # Who owns what
//!
//! 1. *The future* belongs to whoever set RUNNING. Only the owner of the G may set it, and there is one
//!    G at most: it is made by whoever turns NOTIFIED on while neither RUNNING nor NOTIFIED is set.
//! 2. *The output* belongs to the M until COMPLETE. After that it is the handle's while JOIN_INTEREST
//!    is set; if JOIN_INTEREST was clear when COMPLETE was set, it is the M's to drop.
//! 3. *The join waker's slot* belongs to the handle while JOIN_WAKER is clear. If it is set when COMPLETE is
//!    set, the slot is the M's; the handle may take it back by clearing JOIN_WAKER before COMPLETE.
//! 4. *The allocation* belongs to whoever drops the last reference.
//!
//! Every transition is one read-modify-write of the word. Those that hand something over are AcqRel: the
//! Release side publishes what the thread did to what it owned, the Acquire side of the next
//! transition receives it. A wake is a read-modify-write even when nothing changes, so that what was
//! written before the wake is seen by the poll that follows.

use crate::loom::{AtomicUsize, Ordering, fence};

const RUNNING: usize = 1 << 0;
const NOTIFIED: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const JOIN_INTEREST: usize = 1 << 3;
const JOIN_WAKER: usize = 1 << 4;
const ABORTED: usize = 1 << 5;
const REFERENCE: usize = 1 << 6;

#[derive(Debug)]
pub(super) struct State(AtomicUsize);

/// What [`State::idle`] decided after a poll that returned `Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Idle {
    /// The task waits. The G's reference is gone, or became the registry's.
    Waits,
    /// It waits, and this was the last reference.
    Dealloc,
    /// It was woken while it was polled, or wants another poll: the G lives on.
    Again,
    /// It was aborted while it was polled, and is still RUNNING: its future has to be dropped.
    Cancel,
}

/// What [`State::complete`] leaves to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Completed {
    /// Nobody wants the output.
    pub(super) drop_output: bool,
    /// The join waker is to be taken out of its slot and woken.
    pub(super) wake_join: bool,
    /// The G's reference is still to be dropped.
    pub(super) holds_reference: bool,
}

/// What [`State::drop_join_handle`] leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct HandleDropped {
    /// The output is the handle's to drop.
    pub(super) drop_output: bool,
    /// The waker in the slot is the handle's to drop.
    pub(super) drop_waker: bool,
}

/// What a wake leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Wake {
    Nothing,
    /// The caller made the G, with a reference of its own, and has to queue it.
    Submit,
}

impl State {
    /// A task with a G, to be queued, and a handle.
    pub(super) fn new() -> State {
        State(AtomicUsize::new(NOTIFIED | JOIN_INTEREST | (2 * REFERENCE)))
    }

    /// The owner of the G begins to poll; says whether the task was aborted.
    pub(super) fn start(&self) -> bool {
        // Acquire: pairs with the Release of the last `idle`, and of every wake. No Release: what the
        // thread did before is published by the transition that ends the poll.
        let before = self.0.fetch_xor(RUNNING | NOTIFIED, Ordering::Acquire);
        debug_assert_eq!(
            before & (RUNNING | NOTIFIED | COMPLETE),
            NOTIFIED,
            "a G is run whose task is in state {before:#b}"
        );
        before & ABORTED != 0
    }

    /// The poll returned `Pending`. With `keep`, the G's reference becomes the registry's. With `again` the poll
    /// wants another one: as a wake in the poll, without a transition of its own.
    pub(super) fn idle(&self, keep: bool, again: bool) -> Idle {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert_ne!(current & RUNNING, 0, "only a running task goes idle");
            let (next, idle) = if current & ABORTED != 0 {
                return self.stays_running();
            } else if again || current & NOTIFIED != 0 {
                let references = if keep { REFERENCE } else { 0 };
                (((current | NOTIFIED) & !RUNNING) + references, Idle::Again)
            } else if keep {
                (current & !RUNNING, Idle::Waits)
            } else {
                let next = (current & !RUNNING) - REFERENCE;
                let last = next < REFERENCE;
                (next, if last { Idle::Dealloc } else { Idle::Waits })
            };
            // AcqRel: publishes what the poll did to the next `start`; acquires for the dealloc.
            match self
                .0
                .compare_exchange(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return idle,
                Err(now) => current = now,
            }
        }
    }

    #[cold]
    fn stays_running(&self) -> Idle {
        // The abort's NOTIFIED is spent by this cancellation. No ordering: nothing is handed over.
        self.0.fetch_and(!NOTIFIED, Ordering::Relaxed);
        Idle::Cancel
    }

    /// The future is gone and the output stored.
    pub(super) fn complete(&self) -> Completed {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert_eq!(current & (RUNNING | COMPLETE), RUNNING, "completed twice");
            let wants = current & JOIN_INTEREST != 0;
            let wake_join = wants && current & JOIN_WAKER != 0;
            // With nothing left to do the G's reference goes in the same step; the handle has one,
            // so that it is not the last.
            let holds_reference = !wants || wake_join;
            let mut next = (current & !RUNNING) | COMPLETE;
            if !holds_reference {
                next -= REFERENCE;
            }
            // AcqRel: publishes the output to the handle; acquires the waker that it published.
            match self
                .0
                .compare_exchange(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Completed {
                        drop_output: !wants,
                        wake_join,
                        holds_reference,
                    };
                }
                Err(now) => current = now,
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        // Acquire: pairs with the Release of `complete`; the output may be read after this.
        self.0.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Whether somebody has the task's G in hand, or in a queue.
    pub(super) fn is_runnable(&self) -> bool {
        // Acquire: for shutdown, which looks at what follows.
        self.0.load(Ordering::Acquire) & (RUNNING | NOTIFIED | COMPLETE) == NOTIFIED
    }

    // ----- Wakers -----

    /// Wakes through a reference that stays the caller's.
    pub(super) fn wake_by_ref(&self) -> Wake {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            let idle = current & (RUNNING | NOTIFIED | COMPLETE) == 0;
            let next = (current | NOTIFIED) + if idle { REFERENCE } else { 0 };
            // Release: pairs with the Acquire of `start`, or of `idle` and the `start` after it.
            match self
                .0
                .compare_exchange(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if idle => return Wake::Submit,
                Ok(_) => return Wake::Nothing,
                Err(now) => current = now,
            }
        }
    }

    /// Wakes, and gives up the caller's reference: to the G if it makes one. `None` when it was the last.
    pub(super) fn wake_by_value(&self) -> Option<Wake> {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            let idle = current & (RUNNING | NOTIFIED | COMPLETE) == 0;
            let next = (current | NOTIFIED) - if idle { 0 } else { REFERENCE };
            // As in `wake_by_ref`; the Release also covers the dropped reference.
            match self
                .0
                .compare_exchange(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if idle => return Some(Wake::Submit),
                Ok(_) if next < REFERENCE => return None,
                Ok(_) => return Some(Wake::Nothing),
                Err(now) => current = now,
            }
        }
    }

    /// Asks for the future to be dropped, through a reference that stays the caller's.
    pub(super) fn abort(&self) -> Wake {
        let before = self.0.fetch_or(ABORTED | NOTIFIED, Ordering::AcqRel);
        if before & (RUNNING | NOTIFIED | COMPLETE) == 0 {
            self.add_reference();
            Wake::Submit
        } else {
            Wake::Nothing
        }
    }

    // ----- The handle -----

    /// The handle has written its waker into the slot; `false` when the task completed meanwhile, and the
    /// slot is still the handle's.
    #[must_use]
    pub(super) fn set_join_waker(&self) -> bool {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert_eq!(
                current & (JOIN_INTEREST | JOIN_WAKER),
                JOIN_INTEREST,
                "the slot is not the handle's"
            );
            if current & COMPLETE != 0 {
                // Acquire: pairs with the Release of `complete`.
                fence(Ordering::Acquire);
                return false;
            }
            // Release: publishes the waker to `complete`.
            match self.0.compare_exchange(
                current,
                current | JOIN_WAKER,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => current = now,
            }
        }
    }

    /// The handle wants its slot back; `false` when the task completed, and the slot is the M's.
    #[must_use]
    pub(super) fn unset_join_waker(&self) -> bool {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            if current & COMPLETE != 0 {
                // Acquire: pairs with the Release of `complete`.
                fence(Ordering::Acquire);
                return false;
            }
            match self.0.compare_exchange(
                current,
                current & !JOIN_WAKER,
                // AcqRel: one after the other, the slot's owners.
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => current = now,
            }
        }
    }

    /// Whether the handle's waker is in its slot.
    pub(super) fn has_join_waker(&self) -> bool {
        // Relaxed: only the handle sets and clears the bit.
        self.0.load(Ordering::Relaxed) & JOIN_WAKER != 0
    }

    /// The handle goes; its reference is dropped after what this leaves to do.
    pub(super) fn drop_join_handle(&self) -> HandleDropped {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            if current & COMPLETE != 0 {
                // Acquire: pairs with the Release of `complete`.
                fence(Ordering::Acquire);
                return HandleDropped {
                    drop_output: true,
                    drop_waker: false,
                };
            }
            let next = current & !(JOIN_INTEREST | JOIN_WAKER);
            // AcqRel: hands the output over to `complete`, one after the other.
            match self
                .0
                .compare_exchange(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => {
                    return HandleDropped {
                        drop_output: false,
                        drop_waker: current & JOIN_WAKER != 0,
                    };
                }
                Err(now) => current = now,
            }
        }
    }

    // ----- References -----

    pub(super) fn add_reference(&self) {
        // Relaxed: the caller has a reference, and hands the new one on in an ordered way if at all.
        let before = self.0.fetch_add(REFERENCE, Ordering::Relaxed);
        if before > usize::MAX / 2 {
            // A loop that forgets clones: as `Arc`, rather abort than wrap.
            std::process::abort();
        }
    }

    /// Says whether it was the last.
    #[must_use]
    pub(super) fn drop_reference(&self) -> bool {
        // AcqRel: everything that was done through the references happens before the dealloc.
        let before = self.0.fetch_sub(REFERENCE, Ordering::AcqRel);
        debug_assert!(before >= REFERENCE, "more references dropped than made");
        before < 2 * REFERENCE
    }

    /// How many references there are. A hint, for leak detection.
    #[expect(dead_code, reason = "for dumps")]
    pub(super) fn references(&self) -> usize {
        self.0.load(Ordering::Relaxed) / REFERENCE
    }
}

/// Finds: a wake that is lost between a poll's end and the idle transition, a G made twice, an output
/// that both or neither of M and handle own, a waker read while it is written, a lost last reference.
#[cfg(all(test, gmp_loom))]
mod model {
    use super::*;
    use crate::loom::{Arc, UnsafeCell, thread};

    /// A task whose "future" completes at the poll that sees the flag that a waker raises.
    struct Task {
        state: State,
        flag: AtomicUsize,
        /// The next poll wants another one.
        yields: AtomicUsize,
        future: UnsafeCell<u32>,
        output: UnsafeCell<Option<u32>>,
        waker: UnsafeCell<Option<u32>>,
        woken: AtomicUsize,
        freed: AtomicUsize,
    }

    impl Task {
        fn new() -> Arc<Task> {
            Arc::new(Task {
                state: State::new(),
                flag: AtomicUsize::new(0),
                yields: AtomicUsize::new(0),
                future: UnsafeCell::new(0),
                output: UnsafeCell::new(None),
                waker: UnsafeCell::new(None),
                woken: AtomicUsize::new(0),
                freed: AtomicUsize::new(0),
            })
        }

        fn run(&self) {
            if self.state.start() {
                return self.finish();
            }
            loop {
                self.future.with_mut(|future| {
                    // SAFETY: the model checks that RUNNING makes this exclusive.
                    unsafe { *future += 1 }
                });
                if self.flag.load(Ordering::Relaxed) == 1 {
                    return self.finish();
                }
                match self
                    .state
                    .idle(false, self.yields.load(Ordering::Relaxed) == 1)
                {
                    Idle::Waits => return,
                    Idle::Dealloc => return self.free(),
                    Idle::Again => {
                        self.yields.store(0, Ordering::Relaxed);
                        if self.state.start() {
                            return self.finish();
                        }
                    }
                    Idle::Cancel => return self.finish(),
                }
            }
        }

        fn finish(&self) {
            self.output.with_mut(|output| {
                // SAFETY: the M's until COMPLETE.
                unsafe { *output = Some(7) }
            });
            let completed = self.state.complete();
            if completed.drop_output {
                self.output.with_mut(|output| {
                    // SAFETY: nobody else wants it.
                    unsafe { *output = None }
                });
            }
            if completed.wake_join {
                let waker = self.waker.with_mut(|waker| {
                    // SAFETY: the slot is the M's.
                    unsafe { (*waker).take() }
                });
                assert_eq!(waker, Some(1));
                self.woken.fetch_add(1, Ordering::Relaxed);
            }
            if completed.holds_reference && self.state.drop_reference() {
                self.free();
            }
        }

        fn take_output(&self) -> Option<u32> {
            self.output.with_mut(|output| {
                // SAFETY: the handle's, after COMPLETE.
                unsafe { (*output).take() }
            })
        }

        fn free(&self) {
            // SAFETY: the last reference.
            self.output
                .with(|output| unsafe { assert_eq!(*output, None) });
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A wake races with the first poll, which wants another one if it `yields`; the flag raised before the wake
    /// must be seen.
    fn wake_against_poll(yields: usize) {
        loom::model(move || {
            let task = Task::new();
            task.state.add_reference();
            task.yields.store(yields, Ordering::Relaxed);
            let waker = {
                let task = task.clone();
                thread::spawn(move || {
                    task.flag.store(1, Ordering::Relaxed);
                    match task.state.wake_by_value() {
                        Some(Wake::Submit) => task.run(),
                        Some(Wake::Nothing) => {}
                        None => task.free(),
                    }
                })
            };
            task.run();
            waker.join().expect("the waker");
            assert!(task.state.is_complete());
            assert_eq!(task.take_output(), Some(7));
            let _ = task.state.drop_join_handle();
            assert!(task.state.drop_reference());
        });
    }

    #[test]
    fn model_no_wake_is_lost() {
        wake_against_poll(0);
    }

    #[test]
    fn model_yield_against_wake() {
        wake_against_poll(1);
    }

    /// The handle registers a waker, polls and goes while the task completes.
    #[test]
    fn model_join_against_complete() {
        loom::model(|| {
            let task = Task::new();
            task.flag.store(1, Ordering::Relaxed);
            let m = {
                let task = task.clone();
                thread::spawn(move || task.run())
            };
            let write = || {
                task.waker.with_mut(|waker| {
                    // SAFETY: the slot is the handle's.
                    unsafe { *waker = Some(1) }
                });
            };
            write();
            let mut waits = task.state.set_join_waker();
            if waits && task.state.unset_join_waker() {
                write();
                waits = task.state.set_join_waker();
            }
            if !waits {
                assert_eq!(task.take_output(), Some(7));
            }
            let dropped = task.state.drop_join_handle();
            if dropped.drop_output {
                task.take_output();
            }
            if dropped.drop_waker {
                task.waker.with_mut(|waker| {
                    // SAFETY: the slot came back.
                    unsafe { *waker = None }
                });
            }
            if task.state.drop_reference() {
                task.free();
            }
            m.join().expect("the M");
            assert_eq!(task.freed.load(Ordering::Relaxed), 1);
        });
    }

    /// An abort races with a poll that wants another one.
    #[test]
    fn model_abort_against_yield() {
        loom::model(|| {
            let task = Task::new();
            task.yields.store(1, Ordering::Relaxed);
            let m = {
                let task = task.clone();
                thread::spawn(move || task.run())
            };
            if task.state.abort() == Wake::Submit {
                task.run();
            }
            m.join().expect("the M");
            assert!(task.state.is_complete(), "the abort was lost");
            assert_eq!(task.take_output(), Some(7));
            assert!(task.state.drop_reference());
        });
    }

    /// An abort races with a wake and with the poll.
    #[test]
    fn model_abort_against_wake() {
        loom::model(|| {
            let task = Task::new();
            task.state.add_reference();
            let waker = {
                let task = task.clone();
                thread::spawn(move || match task.state.wake_by_value() {
                    Some(Wake::Submit) => task.run(),
                    Some(Wake::Nothing) => {}
                    None => task.free(),
                })
            };
            let m = {
                let task = task.clone();
                thread::spawn(move || task.run())
            };
            if task.state.abort() == Wake::Submit {
                task.run();
            }
            m.join().expect("the M");
            waker.join().expect("the waker");
            assert!(task.state.is_complete(), "the abort was lost");
            assert_eq!(task.take_output(), Some(7));
            assert!(task.state.drop_reference());
        });
    }
}
