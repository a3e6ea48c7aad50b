//! What both flavours of channel have in common: the queue, the receiver's waker, the counts.
//!
//! # Who touches what
//!
//! * `flavour` holds the tail word, `blocks` the senders' end of the queue; see `word` and `list`.
//! * `receiver` belongs to the only [`Rx`], whose methods that use it take `&mut self` (or only look),
//!   and after it to whoever drops the channel. It is written about in `rx`.
//! * `waker` is the receiver's waker while the receiver waits, see `waker`.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

use gmp_executor::loom::Arc;

use super::Padded;
use super::capacity::Capacity;
use super::list::{Blocks, Head, Pop, list};
use super::rx::{Receiving, Rx};
use super::waker::WakerPlace;
use super::word::{self, Layout, Tail, Word};
use crate::notify::Notify;
use crate::primitives::{AtomicUsize, Ordering, UnsafeCell};

/// How a channel counts its messages.
pub(super) trait Flavour {
    type Layout: Layout;

    fn word(&self) -> &Word<Self::Layout>;

    /// The receiver stands at `position` now.
    fn received(&self, position: u64);

    /// CLOSED was set.
    fn closed(&self);

    /// Whether nothing can come any more to the receiver of a closed channel, which stands at
    /// `position`. The channel was closed when senders stood at `end`.
    fn is_idle(&self, position: u64, end: u64) -> bool;

    /// The position behind the last message.
    fn end(&self, tail: Tail<Self::Layout>, closed_at: Option<u64>) -> u64;

    /// Leaves the receiver's waker, or none, to be woken when a closed channel has become idle by
    /// something else than a message.
    fn set_idle_waker(&self, waker: Option<Waker>);
}

impl Flavour for Capacity {
    type Layout = word::Bounded;

    #[inline(always)]
    fn word(&self) -> &Word<word::Bounded> {
        self.word()
    }

    #[inline]
    fn received(&self, position: u64) {
        self.received(position);
    }

    fn closed(&self) {
        self.wake_all();
    }

    fn is_idle(&self, position: u64, _end: u64) -> bool {
        self.is_idle(position)
    }

    fn end(&self, tail: Tail<word::Bounded>, _closed_at: Option<u64>) -> u64 {
        tail.end()
    }

    fn set_idle_waker(&self, waker: Option<Waker>) {
        self.set_idle_waker(waker);
    }
}

/// The flavour of an unbounded channel: the word and nothing else.
pub(super) struct Unlimited(Padded<Word<word::Unbounded>>);

impl Unlimited {
    pub(super) fn new(position: u64) -> Self {
        Unlimited(Padded(Word::new(position)))
    }

    /// Claims a position, of no use if the word was CLOSED.
    #[inline(always)]
    pub(super) fn claim(&self) -> Tail<word::Unbounded> {
        self.0.0.claim()
    }
}

impl Flavour for Unlimited {
    type Layout = word::Unbounded;

    #[inline(always)]
    fn word(&self) -> &Word<word::Unbounded> {
        &self.0.0
    }

    #[inline]
    fn received(&self, _position: u64) {}

    fn closed(&self) {}

    fn is_idle(&self, position: u64, end: u64) -> bool {
        position == end
    }

    /// Senders that came after the close claimed positions that mean nothing.
    fn end(&self, tail: Tail<word::Unbounded>, closed_at: Option<u64>) -> u64 {
        closed_at.unwrap_or_else(|| tail.end())
    }

    fn set_idle_waker(&self, _waker: Option<Waker>) {}
}

impl fmt::Debug for Unlimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.word().load().fmt(f)
    }
}

/// A channel.
pub(super) struct Chan<T, F: Flavour> {
    pub(super) flavour: F,
    pub(super) blocks: Blocks<T>,
    /// Wakes those who wait for the receiver to close the channel.
    pub(super) closing: Notify,
    senders: AtomicUsize,
    weak_senders: AtomicUsize,
    pub(super) waker: WakerPlace,
    pub(super) receiver: Padded<UnsafeCell<Receiving<T, F::Layout>>>,
}

// SAFETY: values go from thread to thread, and that is all: nobody gets a reference to one. What the
// raw pointers point to is guarded as `list` says.
unsafe impl<T: Send, F: Flavour + Send> Send for Chan<T, F> {}
// SAFETY: as above; the cells are guarded as the top of this file says.
unsafe impl<T: Send, F: Flavour + Sync> Sync for Chan<T, F> {}

// No code of a user runs while the state is in the middle of a change.
impl<T, F: Flavour> UnwindSafe for Chan<T, F> {}
impl<T, F: Flavour> RefUnwindSafe for Chan<T, F> {}

/// Makes a channel whose first message has that position.
pub(super) fn chan<T, F: Flavour>(flavour: F, position: u64) -> (Tx<T, F>, Rx<T, F>) {
    let (blocks, head) = list(position);
    let chan = Arc::new(Chan {
        flavour,
        blocks,
        closing: Notify::new(),
        senders: AtomicUsize::new(1),
        weak_senders: AtomicUsize::new(0),
        waker: WakerPlace::new(),
        receiver: Padded(UnsafeCell::new(Receiving::new(head))),
    });
    (Tx { chan: chan.clone() }, Rx::new(chan))
}

impl<T, F: Flavour> Chan<T, F> {
    #[inline(always)]
    pub(super) fn word(&self) -> &Word<F::Layout> {
        self.flavour.word()
    }

    /// Puts a value at a position and wakes the receiver if it waits for it.
    ///
    /// # Safety
    ///
    /// The caller has claimed the position, and uses it once.
    #[inline]
    unsafe fn put(&self, position: u64, value: T) {
        // SAFETY: as the caller promises.
        let wake = unsafe { self.blocks.push(self.word(), position, value) };
        if wake {
            // SAFETY: the block's word chose this sender.
            unsafe { self.waker.take() }.wake();
        }
    }

    /// The last sender is gone.
    #[cold]
    fn end(&self) {
        let before = self.word().end();
        if before.is_closed() {
            return; // The receiver finds the end by itself.
        }
        // SAFETY: `Word::end` claimed the position, and the last sender has gone.
        let wake = unsafe { self.blocks.end(self.word(), before.position()) };
        if wake {
            // SAFETY: the block's word chose this sender.
            unsafe { self.waker.take() }.wake();
        }
    }
}

impl<T, F: Flavour> Drop for Chan<T, F> {
    fn drop(&mut self) {
        /// Frees the blocks also when the destructor of a value panics.
        struct Free<'a, T, L: Layout> {
            blocks: &'a mut Blocks<T>,
            head: &'a mut Head<T, L>,
        }
        impl<T, L: Layout> Drop for Free<'_, T, L> {
            fn drop(&mut self) {
                // SAFETY: the channel is being dropped, and these are the ends of its queue.
                unsafe { self.blocks.free(self.head) };
            }
        }
        let blocks = &mut self.blocks;
        self.receiver.0.with_mut(|receiver| {
            // SAFETY: nobody else has the channel any more.
            let receiver = unsafe { &mut *receiver };
            let head = &mut receiver.head;
            let free = Free { blocks, head };
            // What was sent after the receiver had gone.
            while let Pop::Value(_) = free.head.pop(free.blocks) {}
        });
    }
}

impl<T, F: Flavour + fmt::Debug> fmt::Debug for Chan<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chan")
            .field("state", &self.flavour)
            .field("senders", &self.senders.load(Ordering::Relaxed))
            .finish()
    }
}

/// The senders' half of a channel.
pub(super) struct Tx<T, F: Flavour> {
    chan: Arc<Chan<T, F>>,
}

impl<T, F: Flavour> Tx<T, F> {
    #[inline(always)]
    pub(super) fn flavour(&self) -> &F {
        &self.chan.flavour
    }

    /// Sends a value at a position.
    ///
    /// # Safety
    ///
    /// The caller has claimed the position from the channel's word, and uses it once.
    #[inline]
    pub(super) unsafe fn put(&self, position: u64, value: T) {
        // SAFETY: as the caller promises.
        unsafe { self.chan.put(position, value) };
    }

    pub(super) fn is_closed(&self) -> bool {
        self.chan.word().load().is_closed()
    }

    pub(super) async fn closed(&self) {
        // Made before the look: it receives every notification from then on.
        let closing = self.chan.closing.notified();
        if !self.is_closed() {
            closing.await;
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    pub(super) fn downgrade(&self) -> WeakTx<T, F> {
        WeakTx::new(&self.chan)
    }

    pub(super) fn counts(&self) -> Counts {
        self.chan.counts()
    }
}

impl<T, F: Flavour> Clone for Tx<T, F> {
    fn clone(&self) -> Self {
        // Relaxed: there is one already, so it cannot become zero meanwhile.
        self.chan.senders.fetch_add(1, Ordering::Relaxed);
        Tx {
            chan: self.chan.clone(),
        }
    }
}

impl<T, F: Flavour> Drop for Tx<T, F> {
    fn drop(&mut self) {
        // AcqRel: pairs with itself; what other senders sent is published before the end is.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.end();
        }
    }
}

impl<T, F: Flavour + fmt::Debug> fmt::Debug for Tx<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chan.fmt(f)
    }
}

/// A sender that does not keep the channel open.
pub(super) struct WeakTx<T, F: Flavour> {
    chan: Arc<Chan<T, F>>,
}

impl<T, F: Flavour> WeakTx<T, F> {
    fn new(chan: &Arc<Chan<T, F>>) -> Self {
        // Relaxed: a count for those who want to know.
        chan.weak_senders.fetch_add(1, Ordering::Relaxed);
        WeakTx { chan: chan.clone() }
    }

    pub(super) fn upgrade(&self) -> Option<Tx<T, F>> {
        let senders = &self.chan.senders;
        let mut count = senders.load(Ordering::Relaxed);
        while count != 0 {
            // Relaxed: as in `Tx::clone`, there is one.
            match senders.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let chan = self.chan.clone();
                    return Some(Tx { chan });
                }
                Err(actual) => count = actual,
            }
        }
        None
    }

    pub(super) fn counts(&self) -> Counts {
        self.chan.counts()
    }
}

impl<T, F: Flavour> Clone for WeakTx<T, F> {
    fn clone(&self) -> Self {
        WeakTx::new(&self.chan)
    }
}

impl<T, F: Flavour> Drop for WeakTx<T, F> {
    fn drop(&mut self) {
        self.chan.weak_senders.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many senders there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) strong: usize,
    pub(super) weak: usize,
}

impl<T, F: Flavour> Chan<T, F> {
    pub(super) fn counts(&self) -> Counts {
        Counts {
            // Acquire: pairs with the AcqRel in `Tx::drop`; who sees that a sender is gone sees what
            // it sent.
            strong: self.senders.load(Ordering::Acquire),
            weak: self.weak_senders.load(Ordering::Relaxed),
        }
    }
}
