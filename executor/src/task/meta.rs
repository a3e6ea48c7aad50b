//! What a task carries beside its future: one record, in the same allocation.

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use super::{Id, Shard, SpawnKind};
use crate::wait::WaitReason;

/// What a task is doing, for dumps and the schedtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Runnable,
    Polling,
    Waiting,
}

/// The slot of a task that is not in the registry.
const UNREGISTERED: u32 = u32::MAX;

/// The record of a task. All of it may be read by anybody who keeps the allocation alive. In this order, with what
/// each poll touches at the end (see `Header`).
#[repr(C)]
pub(crate) struct Meta {
    name: Option<Box<str>>,
    id: Id,
    /// Not counted, since the count would travel between cores with every task. Valid until the task is
    /// done: a shard outlives its tasks (see `shard`).
    pub(super) owner: NonNull<Shard>,
    location: &'static Location<'static>,
    kind: SpawnKind,
    /// The key of the registry entry. Written by whoever polls the future.
    slot: AtomicU32,
    /// Written by whoever polls the future.
    polled: AtomicBool,
    state: AtomicU8,
    /// A [`WaitReason`], meaningful while waiting.
    wait: AtomicU8,
    /// The poll in progress wants another one. Written by whoever polls the future.
    again: AtomicBool,
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
        kind: SpawnKind,
    ) -> Meta {
        Meta {
            name,
            id,
            owner: NonNull::from(&**owner),
            location,
            kind,
            slot: AtomicU32::new(UNREGISTERED),
            polled: AtomicBool::new(false),
            state: AtomicU8::new(State::Runnable as u8),
            wait: AtomicU8::new(WaitReason::Unknown as u8),
            again: AtomicBool::new(false),
        }
    }

    /// The shard that the task belongs to.
    ///
    /// # Safety
    ///
    /// The task is not done, and cannot become so while the reference lives: the caller is polling it,
    /// dropping its future, or has its `G` in hand.
    pub(crate) unsafe fn owner(&self) -> &Shard {
        // SAFETY: a shard outlives its tasks that are not done, and the caller says this is one.
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
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.slot() != UNREGISTERED
    }

    /// Whether the task is to be dropped at its first poll, since its runtime shuts down. Later ones
    /// are found by their registry entries; a blocking job that a thread has taken runs, as in tokio.
    pub(crate) fn is_cancelled_unpolled(&self) -> bool {
        // SAFETY: the caller has set RUNNING, so the task is not done.
        !self.is_registered() && !self.is_blocking() && unsafe { self.owner() }.is_closed()
    }

    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.kind, SpawnKind::Blocking { .. })
    }

    pub(crate) fn is_mandatory(&self) -> bool {
        self.kind == SpawnKind::Blocking { mandatory: true }
    }

    #[inline]
    pub(crate) fn poll_begins(&self) {
        self.polled.store(true, Ordering::Relaxed);
        self.wait
            .store(WaitReason::Unknown as u8, Ordering::Relaxed);
        self.state.store(State::Polling as u8, Ordering::Relaxed);
    }

    /// The task is to be woken at the end of the poll in progress, as if its waker had been. For that poll only.
    #[inline]
    pub(crate) fn wake_after_poll(&self) {
        self.again.store(true, Ordering::Relaxed);
    }

    /// Whether the poll that has ended asked for another one.
    #[inline]
    pub(crate) fn poll_ended(&self) -> bool {
        let again = self.again.load(Ordering::Relaxed);
        if again {
            self.again.store(false, Ordering::Relaxed);
        }
        again
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
