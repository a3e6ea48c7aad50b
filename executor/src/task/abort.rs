//! Aborting a task from afar.

use std::fmt;
use std::ptr::NonNull;

use super::Id;
use super::cell::{self, Header};

/// Aborts a task without being able to await it.
///
/// As `tokio::task::AbortHandle`: cheap to clone, and dropping it does nothing to the task.
pub struct AbortHandle {
    /// A reference to the task.
    header: NonNull<Header>,
}

// SAFETY: a task is reached from an abort handle through its atomic state and its metadata only.
unsafe impl Send for AbortHandle {}
// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

impl AbortHandle {
    /// `header` is a live task's; the handle gets a reference of its own.
    pub(super) fn new(header: NonNull<Header>) -> AbortHandle {
        // SAFETY: the caller keeps the task alive.
        unsafe { header.as_ref() }.state.add_reference();
        AbortHandle { header }
    }

    fn task(&self) -> &Header {
        // SAFETY: the handle's reference keeps the task alive.
        unsafe { self.header.as_ref() }
    }

    /// Asks the task to end: its future is dropped the next time it would be polled.
    ///
    /// As in tokio, a task that is in a poll goes on until that poll returns, one that has completed
    /// stays completed, and a task of `spawn_blocking` that has started cannot be aborted.
    pub fn abort(&self) {
        // SAFETY: the handle has a reference.
        unsafe { cell::abort(self.header) }
    }

    /// Whether the task is done, be it by completing, panicking or being aborted.
    pub fn is_finished(&self) -> bool {
        self.task().state.is_complete()
    }

    /// The id of the task.
    pub fn id(&self) -> Id {
        self.task().meta().id()
    }
}

impl Clone for AbortHandle {
    fn clone(&self) -> AbortHandle {
        AbortHandle::new(self.header)
    }
}

impl Drop for AbortHandle {
    fn drop(&mut self) {
        // SAFETY: the handle's reference, which is not used any more.
        unsafe { cell::drop_reference(self.header) }
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("id", &self.id())
            .finish()
    }
}

impl std::panic::UnwindSafe for AbortHandle {}
impl std::panic::RefUnwindSafe for AbortHandle {}
