//! The paused clock, for tests: it stands still until it is advanced, or until there is nothing
//! left to do.

use std::time::Duration;

use gmp_executor::{Handle, context};

use crate::clock::{Clock, Refusal};
use crate::driver::{TIMERS_DISABLED, TimerDriver};

const OUTSIDE: Refusal = "time cannot be frozen from outside the Tokio runtime";

/// Stops the clock of the current runtime, as in tokio.
///
/// From then on [`Instant::now`](crate::Instant::now) returns the same time until the clock is moved
/// with [`advance`], or moves by itself: when the runtime has nothing left to do but to wait for
/// timers, the clock steps to the next deadline. While a job of `spawn_blocking` runs it does not step.
/// The clock of the standard library is not affected.
///
/// A runtime can begin with a paused clock: `start_paused` of its builder, or of the `main` and `test`
/// attributes.
///
/// # Panics
///
/// If the clock is paused already; outside a `current_thread` runtime; in one without timers.
///
/// # Examples
///
/// ```
/// use gmp::time::{self, Duration, Instant};
///
/// #[gmp::main(flavor = "current_thread")]
/// async fn main() {
///     time::pause();
///     let start = Instant::now();
///     time::sleep(Duration::from_secs(3600)).await; // at once
///     assert!(start.elapsed() >= Duration::from_secs(3600));
/// }
/// ```
#[track_caller]
pub fn pause() {
    with_clock(|clock, _| clock.pause());
}

/// Lets the clock of the current runtime run on, from the time at which it stands. As in tokio.
///
/// # Panics
///
/// If the clock is not paused; outside a runtime; in one without timers.
#[track_caller]
pub fn resume() {
    with_clock(|clock, handle| {
        clock.resume()?;
        look_again(handle);
        Ok(())
    });
}

/// Moves the paused clock of the current runtime by `duration`, in one step. As in tokio.
///
/// Then it yields once, so that timers whose deadline was passed over are fired, in the order of
/// their deadlines; it does not wait for the tasks that they wake. To go through the deadlines one
/// by one, rather wait with [`sleep`](crate::sleep()) and let the clock step by itself.
///
/// # Panics
///
/// If the clock is not paused; outside a runtime; in one without timers; if the sum cannot be
/// represented.
///
/// # Examples
///
/// ```
/// use gmp::time::{self, Duration, Instant};
///
/// #[gmp::main(flavor = "current_thread", start_paused = true)]
/// async fn main() {
///     let start = Instant::now();
///     time::advance(Duration::from_secs(1)).await;
///     assert_eq!(start.elapsed(), Duration::from_secs(1));
/// }
/// ```
pub async fn advance(duration: Duration) {
    with_clock(|clock, handle| {
        clock.advance(duration)?;
        look_again(handle);
        Ok(())
    });
    gmp_executor::task::yield_now().await;
}

/// The M of the only P may be waiting by the old time, if the clock was moved from another thread.
fn look_again(handle: &Handle) {
    if handle.p_held().is_none() {
        handle.unpark(0);
    }
}

#[track_caller]
fn with_clock(f: impl FnOnce(&Clock, &Handle) -> Result<(), Refusal>) {
    let done = context::with_current(|handle| match TimerDriver::of(handle) {
        Some(driver) => f(driver.clock(), handle),
        None => Err(TIMERS_DISABLED),
    });
    match done {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => panic!("{refusal}"),
        Err(error) if error.is_missing_context() => panic!("{OUTSIDE}"),
        Err(error) => panic!("{error}"),
    }
}
