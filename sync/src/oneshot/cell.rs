//! What the two halves share: one allocation, and the protocol by which they use and free it.
//!
//! # The state
//!
//! | bit | means | set by |
//! | --- | --- | --- |
//! | VALUE | the sender has sent: the value is the receiver's | the sender |
//! | DROPPED | the sender has gone without sending | the sender |
//! | CLOSED | the receiver wants no value | the receiver |
//! | RX_WAKER | the receiver's waker is in place | the receiver |
//! | TX_WAKER | the sender's waker, for `closed`, is in place | the sender |
//! | TX_GONE | the sender never touches the memory again | the sender |
//! | RX_GONE | the receiver never touches the memory again | the receiver |
//!
//! VALUE and DROPPED exclude one another, and neither is set once CLOSED is. Only the two WAKER bits
//! are ever cleared, by whoever sets them. RX_GONE comes after one of VALUE, DROPPED and CLOSED.
//!
//! # Invariants
//!
//! 1. *The value* is the sender's until VALUE, then the receiver's.
//! 2. *The receiver's waker* is the receiver's while RX_WAKER is clear. While it is set the sender
//!    takes it in the step that sets VALUE or DROPPED, or else the receiver in the step that sets CLOSED,
//!    whichever comes first; until then the receiver may take it back by clearing the bit.
//! 3. *The sender's waker* likewise: the receiver takes it in the step that sets CLOSED, or else the sender
//!    in the step that sets VALUE or DROPPED.
//! 4. Taking a waker leaves the bytes in place, so its owner of before may still compare it.
//! 5. Whoever comes second to set its GONE bit frees the memory. By then both wakers and the value were taken.
//!
//! In the usual case, where no waker has to be taken, the sender sets VALUE and TX_GONE in one step; and the
//! receiver that sees TX_GONE needs no step of its own to free the memory.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::task::Waker;

use gmp_executor::loom::{AtomicU8, Ordering, UnsafeCell};

const VALUE: u8 = 1 << 0;
const DROPPED: u8 = 1 << 1;
const CLOSED: u8 = 1 << 2;
const RX_WAKER: u8 = 1 << 3;
const TX_WAKER: u8 = 1 << 4;
const TX_GONE: u8 = 1 << 5;
const RX_GONE: u8 = 1 << 6;

/// The sender will do nothing more.
const COMPLETE: u8 = VALUE | DROPPED;

/// A picture of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u8);

impl State {
    pub(super) fn has_value(self) -> bool {
        self.0 & VALUE != 0
    }

    pub(super) fn is_complete(self) -> bool {
        self.0 & COMPLETE != 0
    }

    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }
}

/// A waker of one half.
struct WakerPlace(UnsafeCell<MaybeUninit<Waker>>);

impl WakerPlace {
    fn empty() -> Self {
        WakerPlace(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    ///
    /// The place is the caller's and there is no waker in it.
    unsafe fn put(&self, waker: Waker) {
        self.0.with_mut(|place| {
            // SAFETY: as the caller promises.
            unsafe { place.write(MaybeUninit::new(waker)) }
        });
    }

    /// # Safety
    ///
    /// There is a waker, which becomes the caller's.
    unsafe fn take(&self) -> Waker {
        let waker = self.0.with(|place| {
            // SAFETY: nobody writes: the place belongs to the caller.
            unsafe { place.read() }
        });
        // SAFETY: there is a waker, as the caller promises.
        unsafe { waker.assume_init() }
    }

    /// # Safety
    ///
    /// The caller has put a waker here, which may have been taken since.
    unsafe fn will_wake(&self, waker: &Waker) -> bool {
        self.0.with(|place| {
            // SAFETY: only the caller writes here.
            let place = unsafe { &*place };
            // SAFETY: it was written; it is compared and not used, see invariant 4.
            let own = unsafe { place.assume_init_ref() };
            own.will_wake(waker)
        })
    }
}

pub(super) struct Cell<T> {
    state: AtomicU8,
    rx_waker: WakerPlace,
    tx_waker: WakerPlace,
    value: UnsafeCell<MaybeUninit<T>>,
    #[cfg(gmp_loom)]
    _leaks: loom::alloc::Track<()>,
}

impl<T> Cell<T> {
    /// A cell for two halves.
    pub(super) fn allocate() -> NonNull<Cell<T>> {
        NonNull::from(Box::leak(Box::new(Cell {
            state: AtomicU8::new(0),
            rx_waker: WakerPlace::empty(),
            tx_waker: WakerPlace::empty(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            #[cfg(gmp_loom)]
            _leaks: loom::alloc::Track::new(()),
        })))
    }

    /// # Safety
    ///
    /// Nobody uses the cell any more.
    #[cfg_attr(not(gmp_loom), inline)]
    unsafe fn free(cell: NonNull<Cell<T>>) {
        // SAFETY: it was allocated as a box, and both halves are gone.
        let cell = unsafe { Box::from_raw(cell.as_ptr()) };
        #[cfg(gmp_loom)]
        {
            let mut cell = cell;
            // loom checks that every use came before.
            cell.state.with_mut(|_| ());
            cell.value.with_mut(|_| ());
        }
        #[cfg(not(gmp_loom))]
        drop(cell);
    }

    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the Release of whoever set the bits that are acted on: VALUE carries the
        // value, and TX_GONE all that the sender did.
        State(self.state.load(Ordering::Acquire))
    }

    /// Leaves `waker` to be woken when `done` is set, in the half's place that `bit` guards.
    ///
    /// Says what the state is if `done` is set already. If not, the waker will be woken.
    fn register(&self, bit: u8, done: u8, waker: &Waker) -> Result<(), State> {
        let place = match bit {
            RX_WAKER => &self.rx_waker,
            _ => &self.tx_waker,
        };
        let mut state = self.state();
        if state.0 & (bit | done) == bit {
            // SAFETY: the bit is set, and only this half sets it.
            if unsafe { place.will_wake(waker) } {
                return Ok(());
            }
            // AcqRel: as below.
            state = State(self.state.fetch_and(!bit, Ordering::AcqRel));
            if state.0 & done == 0 {
                // SAFETY: the bit was cleared in time: invariants 2 and 3.
                drop(unsafe { place.take() });
            }
        }
        if state.0 & done != 0 {
            return Err(state);
        }
        let waker = waker.clone();
        // SAFETY: the bit is clear, and the place empty.
        unsafe { place.put(waker) };
        // Release: pairs with the Acquire in the step that sets `done`, for the waker. Acquire: as in
        // `state`.
        state = State(self.state.fetch_or(bit, Ordering::AcqRel));
        if state.0 & done == 0 {
            return Ok(());
        }
        // SAFETY: `done` was set before the bit was: nobody else takes the waker.
        drop(unsafe { place.take() });
        Err(state)
    }

    /// For the receiver.
    pub(super) fn register_receiver(&self, waker: &Waker) -> Result<(), State> {
        self.register(RX_WAKER, COMPLETE, waker)
    }

    /// For the sender.
    pub(super) fn register_sender(&self, waker: &Waker) -> Result<(), State> {
        self.register(TX_WAKER, CLOSED, waker)
    }

    /// # Safety
    ///
    /// The caller owns the value's place: invariant 1.
    unsafe fn put_value(&self, value: T) {
        self.value.with_mut(|place| {
            // SAFETY: as the caller promises.
            unsafe { place.write(MaybeUninit::new(value)) }
        });
    }

    /// # Safety
    ///
    /// There is a value, and it becomes the caller's: invariant 1.
    unsafe fn take_value(&self) -> T {
        let value = self.value.with(|place| {
            // SAFETY: as the caller promises.
            unsafe { place.read() }
        });
        // SAFETY: as the caller promises.
        unsafe { value.assume_init() }
    }

    /// The sender sends. Its last use of the cell.
    ///
    /// # Safety
    ///
    /// The caller is the sender, and the cell is alive.
    #[inline]
    pub(super) unsafe fn send(cell: NonNull<Cell<T>>, value: T) -> Result<(), T> {
        // SAFETY: alive, as the caller promises.
        let this = unsafe { cell.as_ref() };
        // SAFETY: before VALUE the place is the sender's.
        unsafe { this.put_value(value) };
        // SAFETY: as the caller promises.
        match unsafe { Cell::complete(cell, VALUE) } {
            true => Ok(()),
            false => {
                // SAFETY: VALUE was not set, so the value is still the sender's.
                let value = unsafe { this.take_value() };
                // SAFETY: the sender uses the cell no more.
                unsafe { Cell::sender_gone(cell) };
                Err(value)
            }
        }
    }

    /// The sender goes without sending. Its last use of the cell.
    ///
    /// # Safety
    ///
    /// As [`send`](Cell::send).
    pub(super) unsafe fn drop_sender(cell: NonNull<Cell<T>>) {
        // SAFETY: as the caller promises.
        if unsafe { !Cell::complete(cell, DROPPED) } {
            // SAFETY: the sender uses the cell no more.
            unsafe { Cell::sender_gone(cell) };
        }
    }

    /// Sets VALUE or DROPPED and says goodbye, unless CLOSED is set: then it says `false`, and the cell
    /// is still the sender's to use.
    ///
    /// # Safety
    ///
    /// As [`send`](Cell::send).
    #[inline]
    unsafe fn complete(cell: NonNull<Cell<T>>, bit: u8) -> bool {
        // SAFETY: alive, as the caller promises.
        let this = unsafe { cell.as_ref() };
        let mut state = this.state.load(Ordering::Relaxed);
        loop {
            if state & CLOSED != 0 {
                // Nothing of the receiver's is read on this path: `sender_gone` acquires before it frees.
                return false;
            }
            let wakers = state & (RX_WAKER | TX_WAKER);
            let goodbye = if wakers == 0 { TX_GONE } else { 0 };
            // Release: pairs with the Acquire in `state`. Acquire: pairs with the Release in `register`.
            match this.state.compare_exchange_weak(
                state,
                state | bit | goodbye,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                // The receiver frees the cell: it has not gone, or CLOSED would be set.
                Ok(_) if wakers == 0 => return true,
                Ok(_) => break,
                Err(actual) => state = actual,
            }
        }
        // SAFETY: both wakers are the sender's if they are there: invariants 2 and 3.
        let receiver = (state & RX_WAKER != 0).then(|| unsafe { this.rx_waker.take() });
        // SAFETY: as above.
        let own = (state & TX_WAKER != 0).then(|| unsafe { this.tx_waker.take() });
        // SAFETY: the sender uses the cell no more.
        unsafe { Cell::sender_gone(cell) };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        drop(own);
        true
    }

    /// # Safety
    ///
    /// The caller is the sender, and does not use the cell again.
    unsafe fn sender_gone(cell: NonNull<Cell<T>>) {
        // SAFETY: alive until the last GONE bit is set.
        let this = unsafe { cell.as_ref() };
        // AcqRel: pairs with itself in `receiver_gone`; the second sees all that the first did.
        if this.state.fetch_or(TX_GONE, Ordering::AcqRel) & RX_GONE != 0 {
            // SAFETY: both are gone.
            unsafe { Cell::free(cell) };
        }
    }

    /// The receiver takes the value, if there is one, and goes. `state` is what it saw last.
    ///
    /// # Safety
    ///
    /// The caller is the receiver, the cell is alive, and `state` is complete or closed. The cell is not
    /// used again.
    #[inline]
    pub(super) unsafe fn finish(cell: NonNull<Cell<T>>, state: State) -> Option<T> {
        // SAFETY: alive, as the caller promises.
        let this = unsafe { cell.as_ref() };
        // SAFETY: with VALUE set the value is the receiver's, which takes it once and goes.
        let value = state.has_value().then(|| unsafe { this.take_value() });
        if state.0 & TX_GONE != 0
            // AcqRel: as in `sender_gone`.
            || this.state.fetch_or(RX_GONE, Ordering::AcqRel) & TX_GONE != 0
        {
            // SAFETY: both are gone; the Acquire that saw TX_GONE pairs with whoever set it.
            unsafe { Cell::free(cell) };
        }
        value
    }

    /// The receiver wants no value. Returns the state as it is now, and the wakers that it has to drop or
    /// wake: its own, and the sender's.
    pub(super) fn close(&self) -> (State, Option<Waker>, Option<Waker>) {
        // Release: pairs with the Acquire in `state`. Acquire: pairs with the Release in `register` and
        // `complete`.
        let before = self.state.fetch_or(CLOSED, Ordering::AcqRel);
        let now = State(before | CLOSED);
        if before & (CLOSED | COMPLETE) != 0 {
            return (now, None, None);
        }
        // SAFETY: CLOSED came first, so both are the receiver's if they are there: invariants 2 and 3.
        let own = (before & RX_WAKER != 0).then(|| unsafe { self.rx_waker.take() });
        // SAFETY: as above.
        let sender = (before & TX_WAKER != 0).then(|| unsafe { self.tx_waker.take() });
        (now, own, sender)
    }
}
