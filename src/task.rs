//! Tasks: spawning, joining, aborting, blocking, yielding.
//!
//! As `tokio::task`. A task is Go's G: it goes into the runnext slot of the P that spawns or wakes it.

mod local_set;

pub use coop::{consume_budget, unconstrained};
pub use gmp_executor::task::{
    AbortHandle, Builder, Id, JoinError, JoinHandle, JoinSet, LocalEnterGuard, LocalKey,
    block_in_place, id, spawn, spawn_blocking, spawn_local, try_id, yield_now,
};
pub use local_set::LocalSet;

/// The budget: how a task that never waits lets others run.
pub mod coop {
    pub use gmp_executor::coop::{
        Coop, RestoreOnPending, Unconstrained, consume_budget, cooperative, has_budget_remaining,
        poll_proceed, unconstrained,
    };
}

/// Futures that this module's methods return.
pub mod futures {
    pub use gmp_executor::task::TaskLocalFuture;
}

/// [`JoinSet`] under tokio's other path.
pub mod join_set {
    pub use gmp_executor::task::JoinSet;
}
