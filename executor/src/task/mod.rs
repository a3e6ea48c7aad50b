//! G: spawned futures.
//!
//! A G is an [`async_task::Runnable`] with [`Meta`]data in the same allocation. Its future is wrapped
//! in [`Body`], which turns a panic into a [`JoinError`] and an abort into the drop of the future.
//!
//! # Who owns what
//!
//! | state | the future belongs to | how it ends |
//! | --- | --- | --- |
//! | runnable | the `Runnable`, in a queue | an M takes it out |
//! | polling | the M that polls it | the poll returns |
//! | waiting | nobody; wakers and the registry keep the allocation alive | a waker makes it runnable |
//! | done | – | the output waits for the `JoinHandle`, or was dropped with it |
//!
//! The registry (a [`Shard`] a P) holds a waker of every G that is not done. It is what lets a
//! runtime drop every task at shutdown, an `AbortHandle` find its task, and a dump see them all. It
//! also keeps a task without wakers alive until the runtime ends, as tokio does.

mod abort;
mod body;
mod builder;
mod error;
mod id;
mod join;
mod join_set;
mod local_key;
mod meta;
mod shard;
mod spawn;
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

pub(crate) use body::{BOX_ABOVE, G, Spawn, SpawnKind, new_g};
pub(crate) use meta::{Meta, State};
pub(crate) use shard::{Shard, Sweep, Target};
