//! Timers: `sleep`, `interval` and `timeout` of gmp, with the names and the behaviour of `tokio::time`.
//!
//! # The life of a timer
//!
//! [`sleep`] reads the clock and makes a [`Sleep`], which knows its deadline and its runtime
//! and nothing else. Most timers end here: a timeout whose future is ready at once was never
//! registered. A first poll before the deadline registers it: an entry with the task's waker goes to the
//! *wheel* of the P on which it is polled. When the deadline has passed, the P (or a thief) *fires* it: the waker
//! comes out of the wheel and is woken. The next poll finds the entry fired, removes it, and is
//! ready.
//!
//! # The parts
//!
//! - `wheel`: the data structure. Pure: no clock, no lock.
//! - `next`: the earliest deadline of a P, as a word that everybody may read.
//! - `clock`: the runtime's clock, which tests can pause. `coarse`: one that is cheaper and less exact.
//! - `driver`: a wheel a P behind a lock, and what the executor calls ([`TimerDriver`]).
//! - [`Sleep`], on it [`Interval`] and [`Timeout`]; [`Instant`].
//!
//! The crate needs from the executor the current runtime's handle, the budget and the wait reason; it
//! knows nothing of tasks and sockets.
//!
//! # What is promised
//!
//! A timer is never early. A deadline that has passed makes the next poll ready. Timers of one P are fired in
//! the order of their deadlines, rounded up to milliseconds, and those of the same millisecond in
//! the order in which they were registered. No duration and no instant is too long or too far.

mod clock;
mod coarse;
mod driver;
pub mod error;
mod instant;
mod interval;
mod next;
mod sleep;
#[cfg(all(test, not(gmp_loom)))]
mod test_support;
#[cfg(feature = "test-util")]
mod test_util;
mod timeout;
mod wheel;

pub use driver::TimerDriver;
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use std::time::Duration;
#[cfg(feature = "test-util")]
pub use test_util::{advance, pause, resume};
pub use timeout::{Timeout, timeout, timeout_at};
