//! What the tests of the crate share: wakers that count, and a runtime's timers driven by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use gmp_executor::seam::Timers;

use crate::driver::TimerDriver;
use crate::instant::Instant;
use crate::sleep::Sleep;

pub(crate) const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Timers with a paused clock.
pub(crate) fn paused(procs: usize) -> Arc<TimerDriver> {
    TimerDriver::new(procs, true, true)
}

impl TimerDriver {
    pub(crate) fn sleep(&self, duration: Duration) -> Pin<Box<Sleep>> {
        self.sleep_until(self.now().after(duration))
    }

    pub(crate) fn sleep_until(&self, deadline: Instant) -> Pin<Box<Sleep>> {
        self.sleep_on(0, deadline)
    }

    pub(crate) fn sleep_on(&self, p: usize, deadline: Instant) -> Pin<Box<Sleep>> {
        Box::pin(Sleep::with_shard(deadline, self.shard(p).clone()))
    }

    /// Moves the paused clock without looking at the timers.
    pub(crate) fn pass(&self, duration: Duration) {
        self.clock().advance(duration).expect("the clock is paused");
    }

    /// Moves the paused clock, then fires what is due on P 0.
    pub(crate) fn run(&self, duration: Duration) -> usize {
        self.pass(duration);
        self.fire(0)
    }
}

pub(crate) fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}
