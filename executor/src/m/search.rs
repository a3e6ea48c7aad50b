//! Searching: what an M does that has run dry, before it waits.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{M, NO_P};
use crate::p::bump;
use crate::task::G;

/// Passes over the other Ps before an M gives up, as in Go.
const STEAL_PASSES: usize = 4;

impl M {
    pub(super) fn may_spin(&self) -> bool {
        self.scheduler.procs() > 1
            && (self.spinning.get() || {
                let starts = self.scheduler.idle.start_spinning();
                self.spinning.set(starts);
                starts
            })
    }

    fn random(&self) -> u32 {
        // Marsaglia's xorshift; never zero.
        let mut x = self.rng.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.rng.set(x);
        x
    }

    /// Four passes over the other Ps; the last may take a stuck P's runnext, and looks at the pollers
    /// and timers of Ps that are busy.
    pub(super) fn steal(&self) -> Option<G> {
        let procs = self.scheduler.procs();
        for pass in 0..STEAL_PASSES {
            let last = pass == STEAL_PASSES - 1;
            let start = self.random() as usize % procs;
            for victim in (0..procs).map(|i| (start + i) % procs) {
                if victim == self.p.get() {
                    continue;
                }
                if let Some(g) = self.steal_from(victim, last) {
                    return Some(g);
                }
            }
            if let Some(g) = self.scheduler.global.pop() {
                return Some(g);
            }
        }
        self.steal_readiness()
    }

    /// Looks at the poller of one idle P. Its watcher is woken by what is ready there, but a thread takes its
    /// time to wake up, and this one is awake. Two tasks that talk to each other through a socket, and woke up
    /// on two Ps, would wake each other's thread at every word; like this one M runs both, and netpoll moves
    /// their sources to its P.
    fn steal_readiness(&self) -> Option<G> {
        let scheduler = &*self.scheduler;
        let (procs, p) = (scheduler.procs(), self.p.get());
        let start = match self.talks_to.get() {
            NO_P => self.random() as usize % procs,
            talks_to => talks_to,
        };
        let victim = (0..procs).map(|i| (start + i) % procs).find(|&victim| {
            victim != p && scheduler.netpoll().has_sources(victim) && scheduler.idle.is_idle(victim)
        })?;
        let g = self.look_behind(victim, false);
        self.talks_to.set(if g.is_some() { victim } else { NO_P });
        g
    }

    fn steal_from(&self, victim: usize, last_pass: bool) -> Option<G> {
        let scheduler = &*self.scheduler;
        let other = &*scheduler.ps[victim];
        let stats = &self.p().stats;
        // A lone G is left to its P, which is about to take it, until the last pass.
        if (other.queue.len() > 1 || (last_pass && !other.queue.is_empty()))
            && let Some(g) = other.queue.steal_half(self.queue())
        {
            // By `execute`, which comes next.
            self.p().told.store(true, Ordering::Relaxed);
            bump(&stats.steal_operations, 1);
            bump(&stats.steals, self.queue().len() as u64 + 1);
            return Some(g);
        }
        if !last_pass || scheduler.idle.is_idle(victim) {
            return None;
        }
        if other.is_slow()
            && let Some(g) = other.runnext.take()
        {
            bump(&stats.steal_operations, 1);
            bump(&stats.steals, 1);
            return Some(g);
        }
        self.look_behind(victim, other.is_slow())
    }

    /// Netpoll of another P, without waiting, and if asked its timers.
    fn look_behind(&self, victim: usize, timers: bool) -> Option<G> {
        let scheduler = &*self.scheduler;
        self.batching.set(true);
        if scheduler.netpoll().has_sources(victim) {
            bump(&self.p().stats.netpolls, 1);
            // An error here is one of the poller itself; whoever waits in it meets it, too.
            let _ = scheduler
                .netpoll()
                .poll(victim, self.p.get(), Some(Duration::ZERO));
        }
        if timers && let Some(timers) = scheduler.timers() {
            timers.fire(victim);
        }
        self.batching.set(false);
        self.flush_batch();
        self.local_g()
    }
}
