//! The ground of gmp.
mod block_on;
mod config;
pub mod context;
pub mod coop;
mod cpuclock;
mod current_thread;
mod error;
mod handle;
mod idle;
mod local;
#[doc(hidden)]
pub mod loom;
mod m;
mod metrics;
mod monitor;
mod ownership;
mod p;
mod park;
mod parkonly;
mod pool;
mod queue;
mod runnext;
mod runtime;
mod scheduler;
pub mod seam;
pub mod task;
mod trace;
pub mod wait;

pub use config::{Callback, Config, Debug, Flavor};
pub use context::worker_index;
pub use error::is_rt_shutdown_err;
#[doc(hidden)]
pub use error::shutdown_error;
pub use handle::{EnterGuard, Handle, RuntimeFlavor, RuntimeId, TryCurrentError};
pub use metrics::RuntimeMetrics;
pub use runtime::Runtime;
