//! `Barrier`: tasks that wait for one another, round after round.
//!
//! The last to arrive in a round begins the next round under the lock, then notifies everybody.
//! A task of the next round may already wait at that moment and be notified with them: so whoever is
//! notified looks whether its own round is over.

use std::fmt;

use gmp_executor::wait::WaitReason;

use crate::notify::{Notified, Notify};
use crate::primitives::{AtomicUsize, Mutex, Ordering, proceed};

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// Lets a number of tasks go on together, when all have arrived.
///
/// As `tokio::sync::Barrier`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use gmp::sync::Barrier;
///
/// #[gmp::main]
/// async fn main() {
///     let barrier = Arc::new(Barrier::new(10));
///     let tasks: Vec<_> = (0..10)
///         .map(|_| {
///             let barrier = barrier.clone();
///             gmp::spawn(async move { barrier.wait().await })
///         })
///         .collect();
///     let mut leaders = 0;
///     for task in tasks {
///         leaders += usize::from(task.await.unwrap().is_leader());
///     }
///     assert_eq!(leaders, 1);
/// }
/// ```
pub struct Barrier {
    /// How many have arrived in this round.
    arrived: Mutex<usize>,
    /// The number of the round. Changed under the lock of `arrived`.
    round: AtomicUsize,
    notify: Notify,
    size: usize,
}

impl Barrier {
    /// Makes a barrier for `n` tasks. Zero is taken as one, as in the standard library.
    pub fn new(n: usize) -> Barrier {
        Barrier {
            arrived: Mutex::new(0),
            round: AtomicUsize::new(0),
            notify: Notify::new(),
            size: n.max(1),
        }
    }

    /// Waits until as many tasks have arrived as the barrier was made for.
    ///
    /// Then all go on, one of them as the leader (see [`BarrierWaitResult::is_leader`]), and the
    /// barrier is ready for the next round.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: once polled the task has arrived, and counts even if the future is dropped.
    pub async fn wait(&self) -> BarrierWaitResult {
        // Before it arrives: whoever is the last must not have to wait with that.
        proceed().await;
        let Some((round, mut notified)) = self.arrive() else {
            self.notify.notify_waiters();
            return BarrierWaitResult(true);
        };
        loop {
            notified.await;
            match self.still_in(round) {
                Some(again) => notified = again,
                None => return BarrierWaitResult(false),
            }
        }
    }

    /// Arrives; returns `None` for the last of the round, which has begun the next one.
    fn arrive(&self) -> Option<(usize, Notified<'_>)> {
        let mut arrived = self.arrived.lock();
        *arrived += 1;
        // Relaxed: it is written under the lock.
        let round = self.round.load(Ordering::Relaxed);
        if *arrived < self.size {
            return Some((round, self.notified()));
        }
        *arrived = 0;
        // Release: pairs with the Acquire in `still_in`.
        self.round.store(round.wrapping_add(1), Ordering::Release);
        None
    }

    /// What to wait for if `round` is not over: the notification was the previous round's.
    fn still_in(&self, round: usize) -> Option<Notified<'_>> {
        // Acquire: pairs with the Release in `arrive`.
        if self.round.load(Ordering::Acquire) != round {
            return None;
        }
        let _arrived = self.arrived.lock();
        // Relaxed: it is written under the lock. Made under the lock, the future does not miss the
        // notification that comes after the round has changed.
        (self.round.load(Ordering::Relaxed) == round).then(|| self.notified())
    }

    fn notified(&self) -> Notified<'_> {
        self.notify.notified_for(WaitReason::BarrierWait)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("size", &self.size)
            .field("arrived", &*self.arrived.lock())
            .finish()
    }
}

/// What [`Barrier::wait`] returns.
#[derive(Clone, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether this task is the leader of the round; exactly one is.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}
