//! The counting semaphore under `Semaphore`, `Mutex`, `RwLock`, `OnceCell` and the bounded channel.
//!
//! Fair: permits go to whoever asked first, also when somebody who asked later wants fewer. Without
//! waiters an acquisition and a release cost one compare-and-swap each.
//!
//! # The word
//!
//! `Word` holds the number of free permits and two bits:
//!
//! * CLOSED: no permit is given out any more. Set under the lock, never cleared.
//! * WAITING: the queue is not empty. Set and cleared under the lock.
//!
//! # Invariants
//!
//! 1. Whenever nobody holds the lock, WAITING is set if and only if the queue is not empty.
//! 2. While WAITING is set there is no free permit: the first waiter took those there were when it
//!    joined, and a release that sees WAITING assigns its permits to the waiters.
//! 3. A waiter's `needed` is written under the lock, and only while the waiter is linked. Zero
//!    means: served, unlinked, and out of anybody else's reach.
//!
//! # Protocol
//!
//! Acquire: (1) take *n* permits if there are as many; done. (2) Otherwise clone the waker, take
//! the lock, and try again: either there are enough now, or take what there is and set WAITING in
//! the same step, and join the queue still in need of the rest. The lock comes before that step,
//! else permits released in between would miss the waiter.
//!
//! Release: (1) unless WAITING is set, add the permits; done. (2) Otherwise take the lock and serve
//! the waiters from the oldest on. A waiter that has all it needs is unlinked, its waker taken, and
//! its `needed` set to zero **last**, for from then on its future may be gone. (3) With the queue
//! empty, clear WAITING and add what is left in one step. (4) Give up the lock and wake. After
//! a full batch of wakers the lock is given up in between; the permits not yet assigned are then in
//! nobody's hands, and nobody can overtake: WAITING is still set, so newcomers join the queue.
//!
//! Cancel: a future dropped while it waits unlinks itself, and releases what it was assigned.
//!
//! # Orderings
//!
//! What `Semaphore` promises: acquiring, releasing, forgetting and closing are AcqRel operations in
//! one total order, each of which sees what was done before those that precede it. So every step on
//! the word is an AcqRel read-modify-write, and the looks at it that decide nothing but a refusal are
//! Acquire loads. A permit that changes hands through the queue is carried by the lock from one
//! releaser to the next, and by `needed` to the waiter (Release in `Semaphore::serve_oldest`,
//! Acquire in `Waiter::is_served`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use gmp_executor::wait::WaitReason;

use crate::primitives::{AtomicUsize, Mutex, MutexGuard, Ordering, poll_proceed, record};
use crate::wait_list::{List, Node, WakeBatch, WakerSlot};

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod random;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// Error returned by the `try_acquire` family of [`Semaphore`](crate::Semaphore).
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore has been closed and gives out no permits any more.
    Closed,

    /// The semaphore has fewer free permits than asked for.
    NoPermits,
}

/// Error returned by the `acquire` family of [`Semaphore`](crate::Semaphore): the semaphore has
/// been closed, which is the only way for an acquisition to fail.
#[derive(Debug)]
pub struct AcquireError(());

/// An asynchronous counting semaphore that gives out several permits at once.
pub(crate) struct Semaphore {
    word: Word,
    queue: Mutex<List<Waiter>>,
}

impl Semaphore {
    /// The most permits a semaphore can have.
    pub(crate) const MAX_PERMITS: usize = Word::MAX_PERMITS;

    /// A semaphore with that many permits.
    ///
    /// # Panics
    ///
    /// With more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub(crate) fn new(permits: usize) -> Self {
        assert_permits(permits);
        Semaphore {
            word: Word::new(permits),
            queue: Mutex::new(List::new()),
        }
    }

    /// As [`new`](Self::new), for statics.
    #[cfg(not(gmp_loom))]
    #[track_caller]
    pub(crate) const fn const_new(permits: usize) -> Self {
        assert!(
            permits <= Self::MAX_PERMITS,
            "a semaphore may not have more than MAX_PERMITS permits"
        );
        Semaphore {
            word: Word::const_new(permits),
            queue: Mutex::new(List::new()),
        }
    }

    /// A semaphore without permits, closed from the start.
    pub(crate) fn new_closed() -> Self {
        let semaphore = Semaphore::new(0);
        semaphore.word.close();
        semaphore
    }

    /// As [`new_closed`](Self::new_closed), for statics.
    #[cfg(not(gmp_loom))]
    pub(crate) const fn const_new_closed() -> Self {
        Semaphore {
            word: Word::const_new_closed(),
            queue: Mutex::new(List::new()),
        }
    }

    /// The permits that are free right now. While somebody waits there are none.
    pub(crate) fn available_permits(&self) -> usize {
        self.word.permits()
    }

    /// Whether [`close`](Self::close) has been called.
    pub(crate) fn is_closed(&self) -> bool {
        self.word.is_closed()
    }

    /// Takes `permits` permits if there are as many; never overtakes a waiter.
    ///
    /// # Panics
    ///
    /// With more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub(crate) fn try_acquire(&self, permits: usize) -> Result<(), TryAcquireError> {
        assert_permits(permits);
        match self.word.take(permits) {
            Take::Taken => Ok(()),
            Take::Short => Err(TryAcquireError::NoPermits),
            Take::Closed => Err(TryAcquireError::Closed),
        }
    }

    /// Takes `permits` permits, waiting in the queue for them; `reason` is what a dump shows.
    ///
    /// The place in the queue is taken on the first poll. Dropping the future gives it up, and
    /// releases the permits that were already assigned. The output means that the caller holds the
    /// permits, to be given back with [`release`](Self::release).
    ///
    /// # Panics
    ///
    /// With more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub(crate) fn acquire(&self, permits: usize, reason: WaitReason) -> Acquire<'_> {
        assert_permits(permits);
        Acquire {
            node: Node::new(Waiter {
                needed: AtomicUsize::new(permits),
                waker: WakerSlot::empty(),
            }),
            semaphore: self,
            permits,
            stage: Stage::Start,
            reason,
        }
    }

    /// Adds permits: to the waiters first, oldest first, and what is left to the free ones.
    ///
    /// Allowed on a closed semaphore.
    ///
    /// # Panics
    ///
    /// When there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub(crate) fn release(&self, permits: usize) {
        let mut left = permits;
        while left > 0 && !self.word.add(left) {
            left = self.serve(left, self.queue.lock());
        }
    }

    /// Takes up to `permits` free permits away for good, and says how many it took.
    pub(crate) fn forget_permits(&self, permits: usize) -> usize {
        self.word.forget(permits)
    }

    /// Gives out no permit from now on, and wakes everybody who waits to see it.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        self.word.close();
        loop {
            let mut batch = WakeBatch::new();
            while !batch.is_full()
                && let Some(node) = queue.pop_oldest()
            {
                // SAFETY: under the lock. The node's owner takes the lock before it lets the node
                // go, since `needed` is not zero.
                batch.push(unsafe { node.value().waker.replace(None) });
            }
            let is_empty = queue.is_empty();
            if is_empty {
                self.word.stop_waiting(0);
            }
            drop(queue);
            batch.wake();
            if is_empty {
                return;
            }
            queue = self.queue.lock();
        }
    }

    /// Assigns permits to the waiters, one batch of wakers at most, and returns what is left for
    /// another round: a full batch's rest, or everything when nobody waits any more.
    fn serve(&self, permits: usize, mut queue: MutexGuard<'_, List<Waiter>>) -> usize {
        let mut left = permits;
        let first = self.serve_oldest(&mut left, &mut queue);
        if left == 0 || queue.is_empty() {
            // The usual case, a lock handed to one waiter, needs no batch.
            drop(queue);
            if let Some(waker) = first {
                waker.wake();
            }
            return left;
        }
        self.serve_batch(left, first, queue)
    }

    #[cold]
    fn serve_batch(
        &self,
        permits: usize,
        first: Option<Waker>,
        mut queue: MutexGuard<'_, List<Waiter>>,
    ) -> usize {
        let mut left = permits;
        let mut batch = WakeBatch::new();
        batch.push(first);
        while left > 0 && !queue.is_empty() && !batch.is_full() {
            batch.push(self.serve_oldest(&mut left, &mut queue));
        }
        drop(queue);
        batch.wake();
        left
    }

    /// Assigns permits to the oldest waiter, and takes it out of the queue if it has all it needs.
    /// When that empties the queue the permits left become free ones.
    fn serve_oldest(&self, left: &mut usize, queue: &mut List<Waiter>) -> Option<Waker> {
        let needed = queue.oldest()?.value().needed.load(Ordering::Relaxed);
        if needed > *left {
            let waiter = queue.oldest()?.value();
            // Relaxed: under the lock. Nobody trusts the value without the lock unless it is zero;
            // the permits assigned so far are carried by the lock to whoever assigns the last.
            waiter
                .needed
                .store(needed - std::mem::take(left), Ordering::Relaxed);
            return None;
        }
        *left -= needed;
        let waiter = queue.pop_oldest()?.value();
        // SAFETY: under the lock, and the owner lets go of the node only after the next line.
        let waker = unsafe { waiter.waker.replace(None) };
        // Release: pairs with the Acquire in `Waiter::is_served`.
        waiter.needed.store(0, Ordering::Release);
        if queue.is_empty() {
            self.word.stop_waiting(std::mem::take(left));
        }
        waker
    }

    /// Joins the queue, unless the permits are there after all.
    fn join(&self, permits: usize, node: &Node<Waiter>, waker: &Waker) -> Take {
        // Cloned before the lock is taken: a waker is anybody's code.
        let waker = waker.clone();
        let mut queue = self.queue.lock();
        let (take, had) = self.word.take_or_wait(permits);
        if let Take::Short = take {
            // Relaxed: under the lock, as in `serve_oldest`.
            node.value().needed.store(permits - had, Ordering::Relaxed);
            // SAFETY: the node is not linked yet, and only its owner reaches it.
            let _none = unsafe { node.value().waker.replace(Some(waker)) };
            // SAFETY: the node is part of a pinned `Acquire`, which unlinks it in `leave` before
            // it dies; the list is this semaphore's, used under its lock.
            unsafe { queue.push(node) };
        }
        take
    }

    /// Makes sure that the waiter wakes `waker`; says `false` when it has been served instead or
    /// the semaphore has been closed.
    fn wait_again(&self, node: &Node<Waiter>, waker: &Waker) -> bool {
        let mut clone = None;
        loop {
            let queue = self.queue.lock();
            // SAFETY: under the lock.
            if !unsafe { node.is_linked() } {
                return false;
            }
            // SAFETY: under the lock.
            if unsafe { node.value().waker.will_wake(waker) } {
                return true;
            }
            if clone.is_some() {
                // SAFETY: under the lock.
                let old = unsafe { node.value().waker.replace(clone) };
                drop(queue);
                drop(old);
                return true;
            }
            drop(queue);
            clone = Some(waker.clone());
        }
    }

    /// Takes a waiter out of the queue and releases what it was assigned of its `permits`.
    fn leave(&self, permits: usize, node: &Node<Waiter>) {
        if node.value().is_served() {
            return self.release(permits);
        }
        let mut queue = self.queue.lock();
        // SAFETY: the node was never in another semaphore's list.
        let was_linked = unsafe { queue.remove(node) };
        if was_linked && queue.is_empty() {
            self.word.stop_waiting(0);
        }
        // Relaxed: under the lock, where it is written.
        let assigned = permits - node.value().needed.load(Ordering::Relaxed);
        if assigned == 0 {
            return;
        }
        let left = self.serve(assigned, queue);
        self.release(left);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.available_permits())
            .finish()
    }
}

#[track_caller]
fn assert_permits(permits: usize) {
    assert!(
        permits <= Semaphore::MAX_PERMITS,
        "a semaphore may not have more than MAX_PERMITS permits ({})",
        Semaphore::MAX_PERMITS
    );
}

/// What a waiter shares with those who release.
struct Waiter {
    /// The permits it still has to be assigned (invariant 3).
    needed: AtomicUsize,
    waker: WakerSlot,
}

impl Waiter {
    /// Whether all permits were assigned, so that nobody else touches the waiter any more.
    fn is_served(&self) -> bool {
        // Acquire: pairs with the Release in `Semaphore::serve_oldest`.
        self.needed.load(Ordering::Acquire) == 0
    }
}

/// Future of [`Semaphore::acquire`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct Acquire<'a> {
    node: Node<Waiter>,
    semaphore: &'a Semaphore,
    permits: usize,
    stage: Stage,
    reason: WaitReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Never polled: nothing was taken, the node is not linked.
    Start,
    /// In the queue, or served and not yet told so, or out of the queue because of a close.
    Waiting,
    /// The permits are the caller's, or the semaphore was closed.
    Done,
}

impl Acquire<'_> {
    /// Takes the permits or joins the queue.
    fn start(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AcquireError>> {
        let mut take = self.semaphore.word.take(self.permits);
        if let Take::Short = take {
            take = self.semaphore.join(self.permits, &self.node, cx.waker());
        }
        match take {
            Take::Taken => {
                // Served without having waited; said so for `leave`, should the budget be spent.
                self.node.value().needed.store(0, Ordering::Relaxed);
                self.stage = Stage::Waiting;
                self.finish(cx)
            }
            Take::Closed => {
                self.stage = Stage::Done;
                Poll::Ready(Err(AcquireError::closed()))
            }
            Take::Short => {
                self.stage = Stage::Waiting;
                record(self.reason);
                Poll::Pending
            }
        }
    }

    /// Polled again.
    fn resume(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AcquireError>> {
        if self.semaphore.is_closed() {
            self.stage = Stage::Done;
            self.semaphore.leave(self.permits, &self.node);
            return Poll::Ready(Err(AcquireError::closed()));
        }
        if self.node.value().is_served() {
            return self.finish(cx);
        }
        if self.semaphore.wait_again(&self.node, cx.waker()) {
            record(self.reason);
            return Poll::Pending;
        }
        // Served or closed since the first look; either is final.
        self.resume(cx)
    }

    /// Hands the permits to the caller if the budget allows. If it does not, the future keeps them:
    /// it has had its turn in the queue.
    fn finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AcquireError>> {
        match poll_proceed(cx) {
            Poll::Ready(coop) => {
                coop.made_progress();
                self.stage = Stage::Done;
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<(), AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of it; the node stays where it is.
        let this = unsafe { self.get_unchecked_mut() };
        match this.stage {
            Stage::Start => this.start(cx),
            Stage::Waiting => this.resume(cx),
            Stage::Done => panic!("`Acquire` polled after completion"),
        }
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if let Stage::Waiting = self.stage {
            self.semaphore.leave(self.permits, &self.node);
        }
    }
}

impl AcquireError {
    pub(crate) fn closed() -> Self {
        AcquireError(())
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed")
    }
}

impl std::error::Error for AcquireError {}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::Closed => "semaphore closed",
            TryAcquireError::NoPermits => "no permits available",
        })
    }
}

impl std::error::Error for TryAcquireError {}

/// The free permits and the two bits, as described at the top.
struct Word(AtomicUsize);

/// What became of an attempt to take permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum Take {
    Taken,
    /// There are not enough.
    Short,
    Closed,
}

impl Word {
    const CLOSED: usize = 0b01;
    const WAITING: usize = 0b10;
    const SHIFT: u32 = 3;
    /// tokio's limit.
    const MAX_PERMITS: usize = usize::MAX >> Self::SHIFT;

    fn new(permits: usize) -> Self {
        Word(AtomicUsize::new(permits << Self::SHIFT))
    }

    #[cfg(not(gmp_loom))]
    const fn const_new(permits: usize) -> Self {
        Word(AtomicUsize::new(permits << Self::SHIFT))
    }

    #[cfg(not(gmp_loom))]
    const fn const_new_closed() -> Self {
        Word(AtomicUsize::new(Self::CLOSED))
    }

    fn permits(&self) -> usize {
        // Acquire: pairs with the steps that added or took permits.
        self.0.load(Ordering::Acquire) >> Self::SHIFT
    }

    fn is_closed(&self) -> bool {
        // Acquire: pairs with the AcqRel of `close`.
        self.0.load(Ordering::Acquire) & Self::CLOSED != 0
    }

    /// Takes `permits` if there are as many.
    fn take(&self, permits: usize) -> Take {
        // Acquire: a refusal sees what was done before the steps that led to it.
        let mut current = self.0.load(Ordering::Acquire);
        loop {
            if current & Self::CLOSED != 0 {
                return Take::Closed;
            }
            if current >> Self::SHIFT < permits {
                return Take::Short;
            }
            let next = current - (permits << Self::SHIFT);
            // AcqRel: one of the steps in the total order. Acquire: as the load above.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Take::Taken,
                Err(actual) => current = actual,
            }
        }
    }

    /// Takes `permits` if there are as many, else what there is, and sets WAITING. The number is
    /// what it took. Under the lock.
    fn take_or_wait(&self, permits: usize) -> (Take, usize) {
        // Relaxed: CLOSED is set under the lock, which the caller holds.
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            if current & Self::CLOSED != 0 {
                return (Take::Closed, 0);
            }
            let free = current >> Self::SHIFT;
            let (next, take) = match free >= permits {
                true => (current - (permits << Self::SHIFT), Take::Taken),
                false => (Self::WAITING, Take::Short),
            };
            // AcqRel: one of the steps in the total order.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return (take, free.min(permits)),
                Err(actual) => current = actual,
            }
        }
    }

    /// Adds permits unless WAITING is set, in which case it says `false`.
    #[track_caller]
    fn add(&self, permits: usize) -> bool {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            let fits = permits <= Self::MAX_PERMITS - (current >> Self::SHIFT);
            assert!(
                fits,
                "number of added permits ({permits}) would overflow MAX_PERMITS ({})",
                Self::MAX_PERMITS
            );
            if current & Self::WAITING != 0 {
                return false;
            }
            let next = current + (permits << Self::SHIFT);
            // AcqRel: one of the steps in the total order.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(actual) => current = actual,
            }
        }
    }

    /// Clears WAITING, if it is set, and adds permits in the same step. Under the lock, with the
    /// queue empty. While WAITING is set nobody else changes the number.
    fn stop_waiting(&self, permits: usize) {
        // Relaxed: WAITING is set and cleared under the lock, which the caller holds.
        if self.0.load(Ordering::Relaxed) & Self::WAITING != 0 {
            let difference = (permits << Self::SHIFT).wrapping_sub(Self::WAITING);
            // AcqRel: as in `add`.
            self.0.fetch_add(difference, Ordering::AcqRel);
        } else {
            debug_assert_eq!(permits, 0, "permits left without anybody having waited");
        }
    }

    fn forget(&self, permits: usize) -> usize {
        let mut current = self.0.load(Ordering::Relaxed);
        loop {
            let taken = permits.min(current >> Self::SHIFT);
            let next = current - (taken << Self::SHIFT);
            // AcqRel: one of the steps in the total order.
            match self
                .0
                .compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return taken,
                Err(actual) => current = actual,
            }
        }
    }

    /// Sets CLOSED. Under the lock.
    fn close(&self) {
        // AcqRel: one of the steps in the total order; `take` and `is_closed` see it with Acquire.
        self.0.fetch_or(Self::CLOSED, Ordering::AcqRel);
    }
}
