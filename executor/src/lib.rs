//! The scheduler of gmp: Go's G, M and P, for futures. It knows neither sockets nor clocks.
//!
//! Users see this crate through `gmp::task` and `gmp::runtime`. This page has the scheduler's argument;
//! each module's opening has the details.
//!
//! # G, M, P
//!
//! A *task* ([`task`]) is a future with a state, an output and metadata. A *G* is the right to poll it: there is
//! one when the task is runnable or being polled, and none while it waits. An *M* is a thread. A *P* is the
//! right to run Gs, and all that running them quickly takes: a queue, a slot for the G that was readied
//! last, timers, a poller, counters. There are as many Ps as `worker_threads`, and any number of Ms.
//!
//! Most runtimes have *workers*, which are M and P in one. A worker whose task blocks is lost, with
//! everything that lies in its queue. Here the thread is lost and the P goes to another one. That is what
//! the third letter is for.
//!
//! # Where work lies
//!
//! 1. In *runnext*. Whoever wakes or spawns a task as the last thing before it waits has put it there, and
//!    its data is still in the cache. A chain of such hand-overs shares one time slice, so that two tasks
//!    that talk to each other do not keep out the rest of the queue.
//! 2. In the P's *queue* of 256, first in, first out; other Ps steal half of it at a time.
//! 3. In the *global queue*: what comes from threads without a P, what overflows, and what was polled by an
//!    M whose P was taken away meanwhile.
//! 4. *Behind netpoll and timers*: tasks that nobody has woken yet.
//!
//! `find_runnable` in `m` looks in this order, but first into 3 and 4 when it has not done so for 61 polls
//! or a millisecond: whoever is always busy would never get to them.
//!
//! # Nothing waits beside an idle P
//!
//! An M that finds nothing anywhere makes its P *idle* and waits in that P's poller. So whoever makes work
//! has to know when to wake one, and there are two ways to be wrong. Too seldom: work lies, a core sleeps,
//! and nobody notices, for there is no error. Too often: a wake-up costs as much as ten small tasks, and
//! the thread that was woken finds that the waker has done the work itself.
//!
//! Go's rule, in `idle`: a submitter wakes an M only if a P is idle *and nobody is searching already*. The
//! one that was woken searches (*spins*), and when it has found work it wakes the next, if a P is still
//! idle. So wake-ups come one after another, as fast as work is found, and stop when it is not. The price is
//! that the last one to cease searching must look at everything once more; `idle` proves that somebody
//! always does.
//!
//! # Nothing stalls
//!
//! A poll cannot be interrupted. What can be taken from an M that blocks is its P, with all Gs but the one it
//! is polling. The `monitor`, a thread without a P, looks at each P every few milliseconds while there is
//! work, and for a poll that lasts 10 ms while something waits for this P it does two things: it takes the
//! P away and gives it to another M (*retake*), and it sets a flag that makes the budget ([`coop`]) of the task
//! end at its next leaf. `ownership` argues how a P changes hands without a lock on the M's side, which
//! enters the scheduler at every wake.
//!
//! The M that has lost its P goes on with its poll; what it wakes goes to the global queue. When the poll is
//! over it queues its G there as well, and becomes a spare thread of the `pool`, from which the next retake,
//! hand-off ([`task::block_in_place`]) or blocking job takes its thread.
//!
//! # The two other ways to run
//!
//! A thread in `block_on` polls a future that is not a G. It has no P for it, and *borrows* an idle one for the
//! length of a poll, so that what the future wakes can run on this very thread (`block_on`). On
//! `current_thread` that thread is the M, there is one P, and no monitor takes it (`current_thread`).
//!
//! # What a task costs
//!
//! One allocation, one word of state with the references in it, no lock between spawn and output. A task
//! that never waits never meets the registry of tasks; one that does enters a shard of it at its first
//! `Pending` (`task::shard`), for shutdown and dumps to find it.
//!
//! # What others have to provide
//!
//! [`seam`] names it in two traits: a poller a P, in which an M can wait and which others can wake, and timers
//! a P, with the next deadline. Beside these two, a leaf in another crate uses the budget ([`coop`]) and the
//! wait reason ([`wait`]) of the current task.

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
mod oversleep;
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
