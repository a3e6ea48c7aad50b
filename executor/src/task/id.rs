//! Task ids.

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context;

/// How many ids a thread takes from the process's counter at once, as Go's Ps do.
const BATCH: u64 = 64;

/// Identifies a task among all tasks of the process that run at the same time; never reused here.
///
/// As `tokio::task::Id`. Ids are not consecutive: each thread takes them in batches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn next() -> Id {
        static COUNTER: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static RANGE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
        }
        let next = RANGE.with(|range| {
            let (mut next, mut end) = range.get();
            if next == end {
                next = COUNTER.fetch_add(BATCH, Ordering::Relaxed);
                end = next + BATCH;
            }
            range.set((next + 1, end));
            next
        });
        Id(NonZeroU64::new(next).expect("the counter starts at one and does not wrap"))
    }

    pub(crate) fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Id").field(&self.0).finish()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of the task being polled, or whose future is being dropped, on this thread.
///
/// As `tokio::task::id`.
///
/// # Panics
///
/// Outside a task: the future of `block_on` has no id. Use [`try_id`] to ask.
#[track_caller]
pub fn id() -> Id {
    try_id().expect("Can't get a task id when not inside a task")
}

/// The id of the task being polled on this thread, if there is one.
///
/// As `tokio::task::try_id`.
pub fn try_id() -> Option<Id> {
    context::with_task(|meta| meta.id())
}
