//! What a runtime counts, for users.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::handle::Handle;

/// A view of what a runtime counts. As `tokio::runtime::RuntimeMetrics`, and more.
#[derive(Clone, Debug)]
pub struct RuntimeMetrics {
    handle: Handle,
}

impl RuntimeMetrics {
    pub(crate) fn new(handle: Handle) -> RuntimeMetrics {
        RuntimeMetrics { handle }
    }

    /// How many Ps the runtime has.
    pub fn num_workers(&self) -> usize {
        self.handle.procs()
    }

    /// How many spawned tasks are not done.
    pub fn num_alive_tasks(&self) -> usize {
        self.handle.alive_tasks()
    }

    /// How many Gs wait in the global queue.
    pub fn global_queue_depth(&self) -> usize {
        self.handle.scheduler().global.len()
    }

    /// How long the M of P `worker` has been at work.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        self.handle.scheduler().ps[worker].stats.busy()
    }

    /// How often the M of P `worker` waited for work.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        let stats = &self.handle.scheduler().ps[worker].stats;
        stats.parks.load(Ordering::Relaxed)
    }

    /// How often the M of P `worker` has begun or ended to wait: odd while it waits.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        let stats = &self.handle.scheduler().ps[worker].stats;
        stats.parks.load(Ordering::Relaxed) + stats.unparks.load(Ordering::Relaxed)
    }

    /// How many polls P `worker` has begun.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_poll_count(&self, worker: usize) -> u64 {
        let stats = &self.handle.scheduler().ps[worker].stats;
        stats.polls.load(Ordering::Relaxed)
    }

    /// How many Gs P `worker` has stolen from others.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_steal_count(&self, worker: usize) -> u64 {
        let stats = &self.handle.scheduler().ps[worker].stats;
        stats.steals.load(Ordering::Relaxed)
    }

    /// How often the queue of P `worker` was full and shed half of itself.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_overflow_count(&self, worker: usize) -> u64 {
        let stats = &self.handle.scheduler().ps[worker].stats;
        stats.overflows.load(Ordering::Relaxed)
    }

    /// How many Gs are queued on P `worker`.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[track_caller]
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        let p = &self.handle.scheduler().ps[worker];
        p.queue.len() + usize::from(!p.runnext.is_empty())
    }

    /// How many threads the runtime has, those of the blocking pool included, the monitor not.
    pub fn num_threads(&self) -> usize {
        self.handle.scheduler().pool.threads()
    }

    /// How many threads run a blocking job or are on their way to one.
    pub fn num_blocking_threads(&self) -> usize {
        self.handle.scheduler().pool.blocking_threads()
    }

    /// How many threads wait for something to do.
    pub fn num_idle_threads(&self) -> usize {
        self.handle.scheduler().pool.idle_threads()
    }

    /// How many blocking jobs no thread has taken yet.
    pub fn blocking_queue_depth(&self) -> usize {
        self.handle.scheduler().pool.queued_jobs()
    }

    /// How many Ps are idle.
    pub fn num_idle_workers(&self) -> usize {
        self.handle.scheduler().idle.count()
    }

    /// How often a P was taken away from a poll that lasted too long.
    pub fn retake_count(&self) -> u64 {
        let ps = self.handle.scheduler().ps.iter();
        ps.map(|p| p.stats.retakes.load(Ordering::Relaxed)).sum()
    }

    /// How often the monitor found queued work beside an idle P. Anything but zero is a bug of gmp's.
    pub fn rescue_count(&self) -> u64 {
        self.handle.scheduler().rescues.load(Ordering::Relaxed)
    }
}
