//! The queue of waiting futures: an intrusive ring, so that waiting allocates nothing.
//!
//! A [`Node`] lives inside a pinned future, a [`List`] inside the lock of a primitive. The list is
//! a ring of which it knows the oldest node: the newest is the oldest one's predecessor, and a node
//! leaves the ring without knowing where the ring's owner is. That is what [`Drain`] needs, which
//! walks away with a whole ring while its nodes may still leave it one by one.
//!
//! # Invariants
//!
//! 1. Links and the cells of a value are touched under the lock of the primitive that the node
//!    waits for, or by whoever owns a node that is not linked.
//! 2. A linked node neither moves nor dies: its future is pinned, and unlinks it when it is dropped.
//! 3. The neighbours of a linked node are linked, and in the same ring.
//! 4. The primitive outlives the futures that wait for it; they borrow it or count a reference.

use std::fmt;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Waker;

use crate::primitives::UnsafeCell;

/// A member of a [`List`], with what its primitive keeps for each waiter.
pub(crate) struct Node<T> {
    links: UnsafeCell<Links<T>>,
    value: T,
    _pin: PhantomPinned,
}

/// Both neighbours, or none.
type Links<T> = Option<(NonNull<Node<T>>, NonNull<Node<T>>)>;

// SAFETY: a node of a `T` that may be sent is sent only while it is not linked, by invariant 2.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: the links are touched under the primitive's lock, by invariant 1.
unsafe impl<T: Sync> Sync for Node<T> {}

impl<T> Node<T> {
    pub(crate) fn new(value: T) -> Self {
        Node {
            links: UnsafeCell::new(None),
            value,
            _pin: PhantomPinned,
        }
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Whether the node stands in a ring.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the list.
    pub(crate) unsafe fn is_linked(&self) -> bool {
        // SAFETY: the caller holds the lock, which is what invariant 1 asks for.
        let links = unsafe { self.links() };
        links.is_some()
    }

    /// # Safety
    ///
    /// As [`is_linked`](Node::is_linked).
    unsafe fn links(&self) -> Links<T> {
        self.links.with(|links| {
            // SAFETY: nobody writes meanwhile, by invariant 1.
            unsafe { *links }
        })
    }

    /// # Safety
    ///
    /// As [`is_linked`](Node::is_linked).
    unsafe fn set_links(&self, new: Links<T>) {
        self.links.with_mut(|links| {
            // SAFETY: nobody else reads or writes meanwhile, by invariant 1.
            unsafe { *links = new }
        });
    }

    /// # Safety
    ///
    /// As [`is_linked`](Node::is_linked); the node is linked.
    unsafe fn neighbours(&self) -> (NonNull<Node<T>>, NonNull<Node<T>>) {
        // SAFETY: the caller holds the lock.
        let links = unsafe { self.links() };
        links.expect("a linked node has neighbours")
    }
}

impl<T: fmt::Debug> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// A queue of nodes, the oldest first.
pub(crate) struct List<T> {
    oldest: Option<NonNull<Node<T>>>,
}

// SAFETY: a list reaches the values of nodes that other threads own, and hands them out.
unsafe impl<T: Send + Sync> Send for List<T> {}

impl<T> List<T> {
    pub(crate) const fn new() -> Self {
        List { oldest: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    /// The node that has waited longest.
    pub(crate) fn oldest(&self) -> Option<&Node<T>> {
        self.oldest.map(|node| {
            // SAFETY: a linked node is alive, by invariant 2; it stays linked for as long as `self`
            // is borrowed.
            unsafe { node.as_ref() }
        })
    }

    /// Appends a node.
    ///
    /// # Safety
    ///
    /// The node is not linked; it stays where it is until it has been unlinked, and its owner
    /// unlinks it before it dies. Every use of this list is under one lock.
    pub(crate) unsafe fn push(&mut self, node: &Node<T>) {
        let new = NonNull::from(node);
        let oldest = match self.oldest {
            // SAFETY: the oldest is linked, hence alive by invariant 2.
            Some(oldest) => unsafe { oldest.as_ref() },
            None => {
                self.oldest = Some(new);
                // SAFETY: the caller holds the lock.
                return unsafe { node.set_links(Some((new, new))) };
            }
        };
        // SAFETY: both are valid as said above, and the caller holds the lock.
        unsafe { insert_before(oldest, node) };
    }

    /// Takes the node that has waited longest out of the queue.
    ///
    /// The reference is good for as long as the owner of the node cannot know that the node has
    /// left the queue: tell it last.
    pub(crate) fn pop_oldest<'a>(&mut self) -> Option<&'a Node<T>> {
        let oldest = self.oldest?;
        // SAFETY: a linked node is alive, by invariant 2.
        let node: &'a Node<T> = unsafe { oldest.as_ref() };
        // SAFETY: it stands in this ring, whose lock the caller holds to have `&mut self`.
        unsafe { self.remove(node) };
        Some(node)
    }

    /// Takes the node that was appended last out of the queue; see [`pop_oldest`](List::pop_oldest).
    pub(crate) fn pop_newest<'a>(&mut self) -> Option<&'a Node<T>> {
        let oldest = self.oldest()?;
        // SAFETY: it is linked, and the caller holds the lock to have `&mut self`.
        let (newest, _) = unsafe { oldest.neighbours() };
        // SAFETY: the neighbour of a linked node is linked, hence alive.
        let node: &'a Node<T> = unsafe { newest.as_ref() };
        // SAFETY: as in `pop_oldest`.
        unsafe { self.remove(node) };
        Some(node)
    }

    /// Takes a node out of the ring it stands in, if it does: this one or one drained from it.
    ///
    /// # Safety
    ///
    /// The node was never in a list of another lock.
    pub(crate) unsafe fn remove(&mut self, node: &Node<T>) -> bool {
        // SAFETY: the caller holds the lock to have `&mut self`.
        let Some((previous, next)) = (unsafe { node.links() }) else {
            return false;
        };
        let here = NonNull::from(node);
        if self.oldest == Some(here) {
            self.oldest = (next != here).then_some(next);
        }
        // SAFETY: the node is linked, so are its neighbours, and the lock is held.
        unsafe { unlink(node, previous, next) };
        true
    }

    /// Moves every node into a ring of its own, with `guard` in it.
    ///
    /// # Safety
    ///
    /// The guard is not linked, and the ring is drained to its end (see [`Drain::pop`]) before the
    /// guard dies.
    pub(crate) unsafe fn drain<'g>(&mut self, guard: Pin<&'g Node<T>>) -> Drain<'g, T> {
        // SAFETY: the guard is pinned, and the caller promises that it leaves the ring last.
        unsafe { self.push(guard.get_ref()) };
        self.oldest = None;
        Drain { guard }
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

/// A ring that has left its list. Its nodes may still remove themselves, through the list.
pub(crate) struct Drain<'g, T> {
    guard: Pin<&'g Node<T>>,
}

impl<T> Drain<'_, T> {
    /// Takes the oldest node out; `None` when only the guard is left, which leaves too.
    ///
    /// `list` is the list that the ring was drained from: having it means holding the lock.
    pub(crate) fn pop<'a>(&mut self, list: &mut List<T>) -> Option<&'a Node<T>> {
        let guard = self.guard.get_ref();
        // SAFETY: the caller holds the lock to have the list.
        let (_, next) = unsafe { guard.links() }?;
        // SAFETY: the neighbour of the guard is linked, hence alive; it may be the guard itself.
        let node: &'a Node<T> = unsafe { next.as_ref() };
        // SAFETY: the ring belongs to the lock of this list.
        unsafe { list.remove(node) };
        (next != NonNull::from(guard)).then_some(node)
    }
}

/// # Safety
///
/// The caller holds the lock; `at` is linked, `node` is not, and both keep the list's invariants.
unsafe fn insert_before<T>(at: &Node<T>, node: &Node<T>) {
    let (next, new) = (NonNull::from(at), NonNull::from(node));
    // SAFETY: linked, under the lock.
    let (previous, after) = unsafe { at.neighbours() };
    // SAFETY: under the lock.
    unsafe { node.set_links(Some((previous, next))) };
    if previous == next {
        // SAFETY: under the lock. `at` was alone, and gets the new node on both sides.
        return unsafe { at.set_links(Some((new, new))) };
    }
    // SAFETY: under the lock.
    unsafe { at.set_links(Some((new, after))) };
    // SAFETY: the neighbour of a linked node is linked, hence alive.
    let previous = unsafe { previous.as_ref() };
    // SAFETY: linked, under the lock.
    let (before, _) = unsafe { previous.neighbours() };
    // SAFETY: under the lock.
    unsafe { previous.set_links(Some((before, new))) };
}

/// # Safety
///
/// The caller holds the lock; the node is linked between the two.
unsafe fn unlink<T>(node: &Node<T>, previous: NonNull<Node<T>>, next: NonNull<Node<T>>) {
    // SAFETY: under the lock.
    unsafe { node.set_links(None) };
    if previous == NonNull::from(node) {
        return; // It was alone.
    }
    // SAFETY: the neighbour of a linked node is linked, hence alive.
    let before = unsafe { previous.as_ref() };
    // SAFETY: linked, under the lock.
    let (before_previous, _) = unsafe { before.neighbours() };
    // SAFETY: under the lock. Between two nodes both neighbours are the same one.
    unsafe { before.set_links(Some((before_previous, next))) };
    // SAFETY: as for the other neighbour.
    let after = unsafe { next.as_ref() };
    // SAFETY: linked, under the lock. Read after the write above: it may be the same node.
    let (_, after_next) = unsafe { after.neighbours() };
    // SAFETY: under the lock.
    unsafe { after.set_links(Some((previous, after_next))) };
}

/// The waker of a waiter.
pub(crate) struct WakerSlot(UnsafeCell<Option<Waker>>);

// SAFETY: the slot is touched under the primitive's lock or by its only owner, by invariant 1, and
// a waker may be sent.
unsafe impl Sync for WakerSlot {}

impl WakerSlot {
    pub(crate) fn empty() -> Self {
        WakerSlot(UnsafeCell::new(None))
    }

    /// Puts a waker in, or none, and returns the one that was there, which is not to be dropped
    /// under the lock.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, or owns the node and the node is not linked.
    #[must_use]
    pub(crate) unsafe fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        self.0.with_mut(|slot| {
            // SAFETY: nobody else touches the slot, as the caller promises.
            let slot = unsafe { &mut *slot };
            std::mem::replace(slot, waker)
        })
    }

    /// Whether waking the waker in the slot wakes what `waker` wakes.
    ///
    /// # Safety
    ///
    /// As [`replace`](WakerSlot::replace).
    pub(crate) unsafe fn will_wake(&self, waker: &Waker) -> bool {
        self.0.with(|slot| {
            // SAFETY: nobody writes to the slot meanwhile, as the caller promises.
            let slot = unsafe { &*slot };
            slot.as_ref().is_some_and(|own| own.will_wake(waker))
        })
    }
}

impl fmt::Debug for WakerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakerSlot")
    }
}

/// Wakers taken under a lock, to be woken outside it.
pub(crate) struct WakeBatch {
    wakers: [Option<Waker>; WakeBatch::CAPACITY],
    len: usize,
}

impl WakeBatch {
    /// How many waiters are taken out of a queue before the lock is given up to wake them.
    #[cfg(not(gmp_loom))]
    pub(crate) const CAPACITY: usize = 32;
    /// Small, so that the models come to the second batch.
    #[cfg(gmp_loom)]
    pub(crate) const CAPACITY: usize = 2;

    pub(crate) fn new() -> Self {
        WakeBatch {
            wakers: [const { None }; WakeBatch::CAPACITY],
            len: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == Self::CAPACITY
    }

    /// Adds a waker; the batch must not be full.
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        if waker.is_some() {
            self.wakers[self.len] = waker;
            self.len += 1;
        }
    }

    /// Wakes them in the order they were added, the rest too when one of them panics.
    pub(crate) fn wake(&mut self) {
        let wakers = self.wakers[..self.len].iter_mut().filter_map(Option::take);
        gmp_executor::seam::wake_all(wakers);
        self.len = 0;
    }
}
