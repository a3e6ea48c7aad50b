//! Aborting a task from afar.

use std::fmt;
use std::sync::Arc;

use super::{Id, Shard};

/// Aborts a task without being able to await it.
///
/// As `tokio::task::AbortHandle`: cheap to clone, and dropping it does nothing to the task.
#[derive(Clone)]
pub struct AbortHandle {
    pub(super) owner: Arc<Shard>,
    pub(super) slot: u32,
    pub(super) id: Id,
}

impl AbortHandle {
    /// Asks the task to end: its future is dropped the next time it would be polled.
    ///
    /// As in tokio, a task that is in a poll goes on until that poll returns, one that has completed
    /// stays completed, and a task of `spawn_blocking` that has started cannot be aborted.
    pub fn abort(&self) {
        self.owner.abort(self.slot, self.id);
    }

    /// Whether the task is done, be it by completing, panicking or being aborted.
    pub fn is_finished(&self) -> bool {
        !self.owner.contains(self.slot, self.id)
    }

    /// The id of the task.
    pub fn id(&self) -> Id {
        self.id
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").field("id", &self.id).finish()
    }
}

impl std::panic::UnwindSafe for AbortHandle {}
impl std::panic::RefUnwindSafe for AbortHandle {}
