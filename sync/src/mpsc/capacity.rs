//! The capacity of a bounded channel: who may send now, and the queue of those who wait.
//!
//! # What is counted
//!
//! Messages and permits *in flight* are what the tail word says (see `word`) less the receiver's
//! position, which the receiver publishes as `head`. There are never more than `bound`.
//!
//! The receiver gives capacity back by publishing its position, on a cache line of its own; senders
//! look at a copy of it beside the word, `head_seen`, and fetch the true one only when the channel
//! looks full by the copy. The copy may be behind, never ahead.
//!
//! # Invariants
//!
//! 1. Whenever nobody holds the lock, `waiting` is set if and only if the queue is not empty.
//! 2. Capacity that is free while somebody waits is on its way to those who wait: whoever freed it
//!    has seen `waiting`, or they have seen the capacity.
//! 3. A waiter's `missing` is written under the lock, and only while the waiter is linked. Zero means:
//!    served, unlinked, and out of anybody else's reach.
//!
//! # Protocol
//!
//! Take: (1) unless `waiting` is set, take capacity by one compare-and-swap of the word. (2) If there
//! is too little: take the lock, set `waiting`, full fence, look again; take what there is, and join
//! the queue for the rest.
//!
//! Free: (1) publish the position, or return permits to the word. (2) Full fence. (3) If `waiting` is
//! set, take the lock and give what is free to those who wait, the oldest first.
//!
//! One of the two fences comes first, so at least one of the two sides sees the other: that is
//! invariant 2. A newcomer that saw `waiting` unset may take capacity that was freed for somebody who
//! joins at the same time; they came at the same time.
//!
//! Close: set CLOSED in the word, then take the lock and unlink everybody. Who was assigned capacity
//! returns it when its future notices or is dropped.
//!
//! The receiver of a closed channel waits until nothing is in flight: it leaves `idle_waker` under
//! the lock and looks again. Whoever returns a permit to a closed channel looks, under the lock,
//! whether that was the last.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use gmp_executor::loom::{AtomicBool, AtomicU64, fence};
use gmp_executor::wait::WaitReason;

use super::Padded;
use super::word::{Bounded, IN_FLIGHT_MAX, Tail, Take, Word};
use crate::primitives::{AtomicUsize, Mutex, Ordering, poll_proceed, record};
use crate::wait_list::{List, Node, WakeBatch, WakerSlot};

pub(super) struct Capacity {
    /// The senders' line.
    tail: Padded<SendersLine>,
    /// Where the receiver stands: on a line that only the receiver writes.
    head: Padded<AtomicU64>,
    bound: u64,
    /// What the user asked for, which may be more than `bound`.
    max_capacity: usize,
    /// Whether the queue is not empty.
    waiting: AtomicBool,
    queue: Mutex<Queue>,
}

struct SendersLine {
    word: Word<Bounded>,
    head_seen: AtomicU64,
}

struct Queue {
    waiters: List<Waiter>,
    /// The receiver's, when it waits for a closed channel to become idle.
    idle_waker: Option<Waker>,
}

/// Why there is no capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Full,
    Closed,
}

/// The channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

impl Capacity {
    /// A channel of that capacity, whose first position is `position`.
    pub(super) fn new(max_capacity: usize, position: u64) -> Self {
        Capacity {
            tail: Padded(SendersLine {
                word: Word::new(position),
                head_seen: AtomicU64::new(position),
            }),
            head: Padded(AtomicU64::new(position)),
            bound: (max_capacity as u64).min(IN_FLIGHT_MAX),
            max_capacity,
            waiting: AtomicBool::new(false),
            queue: Mutex::new(Queue {
                waiters: List::new(),
                idle_waker: None,
            }),
        }
    }

    #[inline(always)]
    pub(super) fn word(&self) -> &Word<Bounded> {
        &self.tail.0.word
    }

    pub(super) fn max_capacity(&self) -> usize {
        self.max_capacity
    }

    /// Capacity that is free right now. While somebody waits there is none, but for a moment.
    pub(super) fn available(&self) -> usize {
        loop {
            let tail = self.word().load();
            // Acquire: pairs with the Release in `received`. After the word, so that what is in
            // flight is not made out to be more than it was when the word was loaded.
            let head = self.head.0.load(Ordering::Acquire);
            if let Some(in_flight) = tail.in_flight(head) {
                return self.max_capacity - in_flight as usize;
            }
        }
    }

    /// Takes capacity if there is enough and nobody waits for some.
    #[inline]
    pub(super) fn try_take(&self, take: Take) -> Result<Tail<Bounded>, Refused> {
        // Relaxed: see the protocol.
        if self.waiting.load(Ordering::Relaxed) {
            return self.try_take_locked(take);
        }
        self.take(take)
    }

    /// Somebody waits, or has just stopped waiting.
    #[cold]
    fn try_take_locked(&self, take: Take) -> Result<Tail<Bounded>, Refused> {
        self.serve();
        let queue = self.queue.lock();
        if queue.waiters.is_empty() || take.count() == 0 {
            return self.take(take);
        }
        drop(queue);
        match self.word().load().is_closed() {
            true => Err(Refused::Closed),
            false => Err(Refused::Full),
        }
    }

    /// Takes capacity if there is enough.
    #[inline]
    fn take(&self, take: Take) -> Result<Tail<Bounded>, Refused> {
        let mut tail = self.word().peek();
        loop {
            if tail.is_closed() {
                return Err(Refused::Closed);
            }
            match self.free_by(tail, take.count()) {
                Some(free) if free >= take.count() => match self.word().take(tail, take) {
                    Ok(before) => return Ok(before),
                    Err(actual) => tail = actual,
                },
                Some(_) if take.count() > 0 => return Err(Refused::Full),
                Some(_) => return Ok(tail),
                None => tail = self.word().load(),
            }
        }
    }

    /// How much is free according to a picture of the word, looking for `wanted`; `None` if the
    /// picture is an old one.
    #[inline]
    fn free_by(&self, tail: Tail<Bounded>, wanted: u64) -> Option<u64> {
        let line = &self.tail.0;
        // Relaxed: any value the receiver ever published says at most too little.
        let seen = line.head_seen.load(Ordering::Relaxed);
        if let Some(in_flight) = tail.in_flight(seen)
            && in_flight + wanted <= self.bound
        {
            return Some(self.bound - in_flight);
        }
        // Acquire: pairs with the Release in `received`; a message was received before its capacity
        // is used again.
        let head = self.head.0.load(Ordering::Acquire);
        // Relaxed: a copy. Not a store, which after a very long sleep would put a position back that
        // is so old that it looks new.
        let _newer =
            line.head_seen
                .compare_exchange(seen, head, Ordering::Relaxed, Ordering::Relaxed);
        // More than the bound is in flight for a moment by a head that is older than the word.
        Some(self.bound.saturating_sub(tail.in_flight(head)?))
    }

    /// Takes permits, `wanted` or what there is.
    fn take_up_to(&self, wanted: u64) -> Result<u64, Closed> {
        let mut tail = self.word().load();
        loop {
            if tail.is_closed() {
                return Err(Closed);
            }
            let Some(free) = self.free_by(tail, wanted) else {
                tail = self.word().load();
                continue;
            };
            let count = free.min(wanted);
            if count == 0 {
                return Ok(0);
            }
            match self.word().take(tail, Take::Permits(count)) {
                Ok(_) => return Ok(count),
                Err(actual) => tail = actual,
            }
        }
    }

    /// The receiver stands at `position` now: what was received before is no longer in flight.
    #[inline]
    pub(super) fn received(&self, position: u64) {
        // Release: pairs with the Acquire in `free_by`.
        self.head.0.store(position, Ordering::Release);
        self.freed();
    }

    /// Uses a permit: claims a position for a message.
    #[inline]
    pub(super) fn redeem(&self) -> u64 {
        self.word().redeem()
    }

    /// Returns permits that were not used.
    pub(super) fn give_back(&self, permits: u64) {
        if permits == 0 {
            return;
        }
        let before = self.word().give_back(permits);
        if before.is_closed() {
            return self.wake_if_idle();
        }
        self.freed();
    }

    /// Capacity was freed: those who wait come first.
    #[inline]
    fn freed(&self) {
        // Pairs with the fence in `join`: either `waiting` is seen here, or what was freed is there.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) {
            self.serve();
        }
    }

    /// Gives what is free to those who wait.
    #[cold]
    fn serve(&self) {
        let mut queue = self.queue.lock();
        let first = self.serve_oldest(&mut queue);
        if first.is_none() || queue.waiters.is_empty() {
            drop(queue);
            // The usual case, capacity for one, needs no batch.
            gmp_executor::seam::wake_all(first.flatten());
            return;
        }
        let mut batch = WakeBatch::new();
        batch.push(first.flatten());
        loop {
            while !batch.is_full() {
                match self.serve_oldest(&mut queue) {
                    Some(waker) => batch.push(waker),
                    None => {
                        drop(queue);
                        return batch.wake();
                    }
                }
            }
            drop(queue);
            batch.wake();
            queue = self.queue.lock();
        }
    }

    /// Gives the oldest waiter what is free. If that is all it misses, takes it out of the queue and
    /// returns its waker; `None` if nobody was served in full.
    fn serve_oldest(&self, queue: &mut Queue) -> Option<Option<Waker>> {
        let waiter = queue.waiters.oldest()?.value();
        // Relaxed, here and below: `missing` is written under the lock.
        let missing = waiter.missing.load(Ordering::Relaxed);
        let count = self.take_up_to(missing as u64).ok()? as usize;
        if count < missing {
            waiter.missing.store(missing - count, Ordering::Relaxed);
            return None;
        }
        let waiter = queue.waiters.pop_oldest()?.value();
        // SAFETY: under the lock, and the owner lets go of the node only after `missing` is zero.
        let waker = unsafe { waiter.waker.replace(None) };
        // Release: pairs with the Acquire in `Waiter::is_served`. It comes last, by invariant 3.
        waiter.missing.store(0, Ordering::Release);
        self.note_if_empty(queue);
        Some(waker)
    }

    /// Keeps invariant 1 after somebody has left the queue.
    fn note_if_empty(&self, queue: &Queue) {
        if queue.waiters.is_empty() {
            // Relaxed: whoever still sees it set takes the lock and finds nobody.
            self.waiting.store(false, Ordering::Relaxed);
        }
    }

    /// Takes capacity, or joins the queue with what there is of it. The outcome is `true` if it took
    /// all.
    fn join(&self, wanted: usize, node: &Node<Waiter>, waker: &Waker) -> Result<bool, Closed> {
        // Cloned before the lock is taken: a waker is anybody's code.
        let waker = waker.clone();
        let mut queue = self.queue.lock();
        let is_first = queue.waiters.is_empty();
        if is_first {
            // Relaxed: the fence orders it.
            self.waiting.store(true, Ordering::Relaxed);
        }
        // Pairs with the fence in `freed`.
        fence(Ordering::SeqCst);
        let taken = match is_first {
            true => self.take_up_to(wanted as u64),
            false if self.word().load().is_closed() => Err(Closed),
            false => Ok(0),
        };
        match taken {
            Ok(taken) if (taken as usize) < wanted => {
                let missing = wanted - taken as usize;
                // Relaxed: under the lock, see `serve_oldest`.
                node.value().missing.store(missing, Ordering::Relaxed);
                // SAFETY: the node is not linked yet, and only its owner reaches it.
                let _none = unsafe { node.value().waker.replace(Some(waker)) };
                // SAFETY: the node is part of a pinned `Reserve`, which unlinks it in `leave` before
                // it dies; the list is this channel's, used under its lock.
                unsafe { queue.waiters.push(node) };
                Ok(false)
            }
            taken => {
                self.note_if_empty(&queue);
                taken.map(|_| true)
            }
        }
    }

    /// Makes sure that the waiter wakes `waker`; says `false` when it has been served instead or the
    /// channel has been closed.
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

    /// Takes a waiter that wanted that many permits out of the queue, and returns what it was
    /// assigned.
    fn leave(&self, wanted: usize, node: &Node<Waiter>) {
        if node.value().is_served() {
            return self.give_back(wanted as u64);
        }
        let mut queue = self.queue.lock();
        // SAFETY: the node was never in another list.
        unsafe { queue.waiters.remove(node) };
        self.note_if_empty(&queue);
        // SAFETY: under the lock.
        let waker = unsafe { node.value().waker.replace(None) };
        // Relaxed: under the lock.
        let assigned = wanted - node.value().missing.load(Ordering::Relaxed);
        drop(queue);
        drop(waker);
        self.give_back(assigned as u64);
    }

    /// Unlinks and wakes everybody: CLOSED is set.
    pub(super) fn wake_all(&self) {
        loop {
            let mut batch = WakeBatch::new();
            let mut queue = self.queue.lock();
            while !batch.is_full()
                && let Some(node) = queue.waiters.pop_oldest()
            {
                // SAFETY: under the lock. The node's owner takes the lock before it lets the node
                // go, since `missing` is not zero.
                batch.push(unsafe { node.value().waker.replace(None) });
            }
            self.note_if_empty(&queue);
            let is_empty = queue.waiters.is_empty();
            drop(queue);
            batch.wake();
            if is_empty {
                return;
            }
        }
    }

    /// Whether nothing is in flight when the receiver stands at `position`.
    pub(super) fn is_idle(&self, position: u64) -> bool {
        self.word().load().in_flight(position) == Some(0)
    }

    /// Leaves the receiver's waker, or none, to be woken when the closed channel becomes idle.
    pub(super) fn set_idle_waker(&self, waker: Option<Waker>) {
        let mut queue = self.queue.lock();
        let old = std::mem::replace(&mut queue.idle_waker, waker);
        drop(queue);
        drop(old);
    }

    #[cold]
    fn wake_if_idle(&self) {
        let mut queue = self.queue.lock();
        // Acquire: pairs with the Release in `received`. Under the lock: if the receiver has left its
        // waker, it has published the position it left it at.
        let head = self.head.0.load(Ordering::Acquire);
        if !self.is_idle(head) {
            return;
        }
        let waker = queue.idle_waker.take();
        drop(queue);
        gmp_executor::seam::wake_all(waker);
    }

    /// Takes permits, waiting in the queue for them.
    ///
    /// The place in the queue is taken on the first poll. Dropping the future gives it up, and
    /// returns what was already assigned.
    pub(super) fn reserve(&self, permits: usize) -> Reserve<'_> {
        Reserve {
            node: Node::new(Waiter {
                missing: AtomicUsize::new(permits),
                waker: WakerSlot::empty(),
            }),
            capacity: self,
            permits,
            stage: Stage::Start,
        }
    }

    /// The first poll of a future that takes capacity: `None` if it has to wait.
    #[inline]
    pub(super) fn poll_take(
        &self,
        cx: &mut Context<'_>,
        take: Take,
    ) -> Poll<Option<Result<Tail<Bounded>, Closed>>> {
        let coop = std::task::ready!(poll_proceed(cx));
        Poll::Ready(match self.try_take(take) {
            Ok(tail) => {
                coop.made_progress();
                Some(Ok(tail))
            }
            Err(Refused::Closed) => {
                coop.made_progress();
                Some(Err(Closed))
            }
            Err(Refused::Full) => None,
        })
    }
}

impl fmt::Debug for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capacity")
            .field("tail", &self.word().load())
            .field("available", &self.available())
            .field("max_capacity", &self.max_capacity)
            .finish()
    }
}

/// What a waiter shares with those who free capacity.
struct Waiter {
    /// The permits it still has to be assigned (invariant 3).
    missing: AtomicUsize,
    waker: WakerSlot,
}

impl Waiter {
    /// Whether all permits were assigned, so that nobody else touches the waiter any more.
    fn is_served(&self) -> bool {
        // Acquire: pairs with the Release in `Capacity::serve_oldest`.
        self.missing.load(Ordering::Acquire) == 0
    }
}

/// Future of [`Capacity::reserve`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(super) struct Reserve<'a> {
    node: Node<Waiter>,
    capacity: &'a Capacity,
    permits: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Never polled: nothing was taken, the node is not linked.
    Start,
    /// In the queue, or served and not yet told so, or out of the queue because of a close.
    Waiting,
    /// The permits are the caller's, or the channel was closed.
    Done,
}

impl Reserve<'_> {
    fn advance(&mut self, waker: &Waker) -> Poll<Result<(), Closed>> {
        if let Stage::Start = self.stage {
            return match self.capacity.join(self.permits, &self.node, waker) {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => {
                    self.stage = Stage::Waiting;
                    Poll::Pending
                }
                Err(Closed) => Poll::Ready(Err(Closed)),
            };
        }
        loop {
            if self.capacity.word().load().is_closed() {
                // Whoever was served and not told so has lost the race against the close.
                self.stage = Stage::Done;
                self.capacity.leave(self.permits, &self.node);
                return Poll::Ready(Err(Closed));
            }
            if self.node.value().is_served() {
                return Poll::Ready(Ok(()));
            }
            if self.capacity.wait_again(&self.node, waker) {
                return Poll::Pending;
            }
            // Served or closed since the first look; either is final.
        }
    }
}

impl Future for Reserve<'_> {
    type Output = Result<(), Closed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let coop = std::task::ready!(poll_proceed(cx));
        let polled = this.advance(cx.waker());
        match polled {
            Poll::Ready(_) => {
                this.stage = Stage::Done;
                coop.made_progress();
            }
            Poll::Pending => record(WaitReason::MpscSend),
        }
        polled
    }
}

impl Drop for Reserve<'_> {
    fn drop(&mut self) {
        if let Stage::Waiting = self.stage {
            self.capacity.leave(self.permits, &self.node);
        }
    }
}
