//! G: spawned futures.
//!
//! A task is one allocation: a header (state word, metadata), the future or its output, and a slot for
//! the waker of whoever joins it. A `G` is the right to run it.
//!
//! | state | the future belongs to | how it ends |
//! | --- | --- | --- |
//! | runnable | the `G`, in a queue | an M takes it out |
//! | polling | the M that polls it | the poll returns |
//! | waiting | nobody; wakers and the registry keep the allocation alive | a waker makes it runnable |
//! | done | – | the output waits for the `JoinHandle`, or was dropped with it |
//!
//! `state` argues the protocol between M, wakers and handle, `cell` does what it allows, `shard` holds the
//! tasks of a runtime. `docs/DESIGN.md` says why this is not `async-task`.

mod abort;
mod builder;
mod cell;
mod error;
mod id;
mod join;
mod join_set;
mod local_key;
mod meta;
mod shard;
mod spawn;
mod state;
mod yield_now;

pub use crate::local::{LocalEnterGuard, LocalSet, spawn_local};
pub use abort::AbortHandle;
pub use builder::Builder;
pub use error::JoinError;
pub use id::{Id, id, try_id};
pub use join::JoinHandle;
pub use join_set::JoinSet;
pub use local_key::{AccessError, LocalKey, TaskLocalFuture};
pub use spawn::{block_in_place, spawn, spawn_blocking};
pub use yield_now::yield_now;

pub(crate) use cell::{BOX_ABOVE, G, Spawn, SpawnKind, is_waker, new_g};
pub(crate) use meta::{Meta, State};
pub(crate) use shard::{Shard, Sweep};

/// Where the Gs of a shard go when they become runnable.
pub(crate) enum Target {
    Scheduler(std::sync::Arc<crate::scheduler::Scheduler>),
    Local(std::sync::Arc<crate::local::LocalShared>),
}
