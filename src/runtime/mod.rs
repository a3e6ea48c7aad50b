//! The runtime: its builder, its handle, its metrics.
//!
//! A runtime is a scheduler (G, M, P; see `ARCHITECTURE.md`), a netpoll and timers a P, and a blocking
//! pool. `#[gmp::main]` and `#[gmp::test]` build one; [`Builder`] does it by hand:
//!
//! ```
//! use gmp::runtime::Builder;
//!
//! # fn main() -> std::io::Result<()> {
//! let runtime = Builder::new_multi_thread()
//!     .worker_threads(2)
//!     .enable_all()
//!     .build()?;
//! let answer = runtime.block_on(async { gmp::spawn(async { 6 * 7 }).await.unwrap() });
//! assert_eq!(answer, 42);
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised, and how it works today
//!
//! Promised, as by tokio: a task that is woken is polled again; no task starves another for ever, as
//! long as polls end; a dropped runtime drops its tasks.
//!
//! How it works today: a P runs the task that was readied last (its *runnext*), then its queue in order,
//! then a share of the global queue; then it looks at its poller and timers, and then it takes half of
//! another P's queue. A poll that lasts longer than 10 ms loses its P to another thread, if there is
//! anything for that P to do ([`Builder::retake_after`]).

mod builder;
#[expect(clippy::module_inception, reason = "the type is the module")]
mod runtime;

mod local;

pub use builder::Builder;
pub use gmp_executor::{
    EnterGuard, Handle, RuntimeFlavor, RuntimeId as Id, RuntimeMetrics, TryCurrentError,
    is_rt_shutdown_err, worker_index,
};
pub use local::{LocalOptions, LocalRuntime};
pub use runtime::Runtime;
