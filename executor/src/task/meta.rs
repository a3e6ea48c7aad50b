//! What a G carries beside its future: one record, in the same allocation.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::{Id, Shard};
use crate::wait::WaitReason;

/// The task was aborted: its next poll drops the future instead.
const ABORTED: u8 = 1 << 0;
/// The task stands in its shard's registry. Set at spawn, cleared by whoever takes the entry out.
const REGISTERED: u8 = 1 << 1;
/// The task runs on the blocking pool.
const BLOCKING: u8 = 1 << 2;
/// A blocking task that runs even when the runtime shuts down before it started.
const MANDATORY: u8 = 1 << 3;
/// The task has been polled at least once.
const POLLED: u8 = 1 << 4;

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
    owner: Arc<Shard>,
    id: Id,
    location: &'static Location<'static>,
    name: Option<Box<str>>,
    /// The key of the registry entry, while REGISTERED.
    slot: AtomicU32,
    flags: AtomicU8,
    state: AtomicU8,
    /// A [`WaitReason`], meaningful while waiting.
    wait: AtomicU8,
}

impl Meta {
    pub(crate) fn new(
        owner: Arc<Shard>,
        id: Id,
        location: &'static Location<'static>,
        name: Option<Box<str>>,
    ) -> Meta {
        Meta {
            owner,
            id,
            location,
            name,
            slot: AtomicU32::new(0),
            flags: AtomicU8::new(0),
            state: AtomicU8::new(State::Runnable as u8),
            wait: AtomicU8::new(WaitReason::Unknown as u8),
        }
    }

    /// A task of the blocking pool.
    pub(crate) fn blocking(mut self, mandatory: bool) -> Meta {
        *self.flags.get_mut() |= BLOCKING | if mandatory { MANDATORY } else { 0 };
        self
    }

    pub(crate) fn owner(&self) -> &Arc<Shard> {
        &self.owner
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
        self.flags.fetch_or(REGISTERED, Ordering::Relaxed);
    }

    /// Clears REGISTERED; says whether it was set, that is whether the caller has to take the entry out.
    pub(crate) fn clear_registered(&self) -> bool {
        self.has(REGISTERED)
            && self.flags.fetch_and(!REGISTERED, Ordering::Relaxed) & REGISTERED != 0
    }

    /// The next poll drops the future. Whoever aborts wakes the task afterwards.
    pub(crate) fn abort(&self) {
        // Relaxed: the wake that follows orders it before the poll that it causes.
        self.flags.fetch_or(ABORTED, Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.has(ABORTED)
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.has(BLOCKING)
    }

    pub(crate) fn is_mandatory(&self) -> bool {
        self.has(MANDATORY)
    }

    pub(crate) fn was_polled(&self) -> bool {
        self.has(POLLED)
    }

    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    #[inline]
    pub(crate) fn poll_begins(&self) {
        if !self.has(POLLED) {
            self.flags.fetch_or(POLLED, Ordering::Relaxed);
        }
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
