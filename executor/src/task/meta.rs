//! What a G carries beside its future: one record, in the same allocation.

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::{Id, Shard};
use crate::wait::WaitReason;

/// What a G is doing, for dumps and the schedtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Runnable,
    Polling,
    Waiting,
}

/// The record of a G. All of it may be read by anybody who keeps the allocation alive.
pub(crate) struct Meta {
    /// Not counted, since the count would travel between cores with every task. Valid until DONE: a
    /// shard outlives its registered tasks (see `shard`).
    pub(super) owner: NonNull<Shard>,
    id: Id,
    location: &'static Location<'static>,
    name: Option<Box<str>>,
    /// The task runs on the blocking pool.
    blocking: bool,
    /// A blocking task that runs even when the runtime shuts down before it started.
    mandatory: bool,
    /// The key of the registry entry, once `registered`.
    slot: AtomicU32,
    /// The task was entered in its shard's registry. Written at spawn, before the G is anybody else's.
    registered: AtomicBool,
    /// The next poll drops the future. Written by anybody.
    aborted: AtomicBool,
    /// Written by whoever polls the future, or drops it.
    polled: AtomicBool,
    /// The future is gone; the registry entry may still be there, until the M that did it sweeps.
    /// Written as `polled`.
    done: AtomicBool,
    state: AtomicU8,
    /// A [`WaitReason`], meaningful while waiting.
    wait: AtomicU8,
}

// SAFETY: beside the pointer to the owner, which is `Sync`, everything is atomic or never changes.
unsafe impl Send for Meta {}
// SAFETY: as above.
unsafe impl Sync for Meta {}

impl Meta {
    pub(crate) fn new(
        owner: &Arc<Shard>,
        id: Id,
        location: &'static Location<'static>,
        name: Option<Box<str>>,
    ) -> Meta {
        Meta {
            owner: NonNull::from(&**owner),
            id,
            location,
            name,
            blocking: false,
            mandatory: false,
            slot: AtomicU32::new(0),
            registered: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            polled: AtomicBool::new(false),
            done: AtomicBool::new(false),
            state: AtomicU8::new(State::Runnable as u8),
            wait: AtomicU8::new(WaitReason::Unknown as u8),
        }
    }

    /// A task of the blocking pool.
    pub(crate) fn blocking(mut self, mandatory: bool) -> Meta {
        self.blocking = true;
        self.mandatory = mandatory;
        self
    }

    /// The shard that the task is registered with.
    ///
    /// # Safety
    ///
    /// The task is not DONE, and cannot become so while the reference lives: the caller is polling it,
    /// dropping its future, or has its `Runnable` in hand; or the shard is known to be alive.
    pub(crate) unsafe fn owner(&self) -> &Shard {
        // SAFETY: a shard outlives its tasks that are not DONE, and the caller says this is one.
        unsafe { self.owner.as_ref() }
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn slot(&self) -> u32 {
        self.slot.load(Ordering::Relaxed)
    }

    pub(crate) fn set_registered(&self, slot: u32) {
        self.slot.store(slot, Ordering::Relaxed);
        self.registered.store(true, Ordering::Relaxed);
    }

    /// The future is gone. Says whether the caller has to see to the registry entry.
    pub(crate) fn done(&self) -> bool {
        let first = !self.is_done();
        self.done.store(true, Ordering::Relaxed);
        first && self.registered.load(Ordering::Relaxed)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// The next poll drops the future. Whoever aborts wakes the task afterwards.
    pub(crate) fn abort(&self) {
        // Relaxed: the wake that follows orders it before the poll that it causes.
        self.aborted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.blocking
    }

    pub(crate) fn is_mandatory(&self) -> bool {
        self.mandatory
    }

    #[expect(dead_code, reason = "for dumps")]
    pub(crate) fn was_polled(&self) -> bool {
        self.polled.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn poll_begins(&self) {
        self.polled.store(true, Ordering::Relaxed);
        self.wait
            .store(WaitReason::Unknown as u8, Ordering::Relaxed);
        self.state.store(State::Polling as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            0 => State::Runnable,
            1 => State::Polling,
            _ => State::Waiting,
        }
    }

    #[inline]
    pub(crate) fn set_wait_reason(&self, reason: WaitReason) {
        self.wait.store(reason as u8, Ordering::Relaxed);
    }

    pub(crate) fn wait_reason(&self) -> WaitReason {
        WaitReason::from_u8(self.wait.load(Ordering::Relaxed))
    }
}
