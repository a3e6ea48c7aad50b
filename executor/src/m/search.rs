//! Searching: what an M does that has run dry, before it waits; and the look at a neighbour of one that has not.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{M, NO_P};
use crate::p::bump;
use crate::queue::LOCAL_CAPACITY;
use crate::task::G;

/// Passes over the other Ps before an M gives up, as in Go.
const STEAL_PASSES: usize = 4;

/// For how long a P may stand at the same poll, or asleep, before a busy M looks behind it. Twice as long each time
/// that nothing is there: an idle P has a watcher, who mostly is awake sooner.
const STANDS_AFTER: Duration = Duration::from_micros(100);
const STANDS_AFTER_MAX: Duration = Duration::from_millis(1);

/// So many Gs an M may have queued to take over those of a neighbour.
const HELPS_BELOW: usize = LOCAL_CAPACITY / 4;

/// Another P that a busy M keeps an eye on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    p: usize,
    /// Where its poll tick stands,
    tick: u32,
    /// and since when, or since when nobody has looked behind it.
    since: Instant,
    /// After how long to look behind it.
    after: Duration,
}

impl Neighbour {
    /// The first one to look at is P `p`.
    pub(super) fn new(p: usize) -> Neighbour {
        Neighbour {
            p,
            tick: 0,
            since: Instant::now(),
            after: STANDS_AFTER,
        }
    }
}

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

    /// Takes what another P has to do whose M does not get to it: that is in a long poll, or the system runs
    /// something else on its core, which may be this very M. Whoever runs dry searches all the others; an M that is
    /// always busy would never notice. It watches one P at a time, and the next when that one moves, can have
    /// nothing, or has nothing for us time after time.
    pub(super) fn look_after_neighbour(&self) {
        let now = self.clock.last_read();
        let mut neighbour = self.neighbour.get();
        let stands = now.saturating_duration_since(neighbour.since);
        if stands < neighbour.after {
            return;
        }
        let p = neighbour.p;
        let mut next = p == self.p.get() || self.tick_of(p) != neighbour.tick || !self.may_have(p);
        if !next {
            if self.take_over(p) {
                neighbour.after = STANDS_AFTER;
            } else if neighbour.after < STANDS_AFTER_MAX {
                neighbour.after = (neighbour.after * 2).min(STANDS_AFTER_MAX);
            } else {
                next = true;
            }
        }
        if next {
            neighbour.p = self.next_neighbour(p);
            neighbour.tick = self.tick_of(neighbour.p);
            neighbour.after = STANDS_AFTER;
        }
        neighbour.since = now;
        self.neighbour.set(neighbour);
    }

    /// The P behind `p` that may have something for us some day.
    fn next_neighbour(&self, p: usize) -> usize {
        let scheduler = &*self.scheduler;
        let procs = scheduler.procs();
        let may = |&q: &usize| {
            q != self.p.get() && (!scheduler.idle.is_idle(q) || scheduler.netpoll().has_sources(q))
        };
        (1..procs)
            .map(|i| (p + i) % procs)
            .find(may)
            .unwrap_or((self.p.get() + 1) % procs)
    }

    /// Whether P `p` may have something to do now.
    fn may_have(&self, p: usize) -> bool {
        let scheduler = &*self.scheduler;
        scheduler.ps[p].has_stealable()
            || scheduler.netpoll().has_sources(p)
            || scheduler.timers().is_some_and(|timers| timers.is_due(p))
    }

    /// Takes from P `victim` what events have readied, then of what is queued; says whether there was any. The
    /// timers of an idle P are its watcher's, who wakes up for them; that is so of its sources, too, but nobody
    /// knows whether they are ready.
    fn take_over(&self, victim: usize) -> bool {
        let scheduler = &*self.scheduler;
        let mut readied = 0;
        if !scheduler.idle.is_idle(victim) {
            readied += self.take_timers(victim);
        }
        if scheduler.netpoll().has_sources(victim) {
            readied += self.take_readiness(victim);
        }
        self.flush_batch();
        self.take_queued(victim) || readied > 0
    }

    /// Moves half of what is queued on P `victim` behind our own, and its runnext if its poll lasts; says whether
    /// there was any. Who has a long queue of its own is no help, unless that poll lasts.
    fn take_queued(&self, victim: usize) -> bool {
        let other = &*self.scheduler.ps[victim];
        let own = self.queue();
        let before = own.len();
        let slow = other.is_slow();
        let mut taken = slow || before <= HELPS_BELOW;
        taken = taken && other.queue.move_half(own);
        if slow && let Some(g) = other.runnext.take() {
            own.push(g);
            taken = true;
        }
        if taken {
            // Others may have stolen from us meanwhile.
            self.count_stolen(own.len().saturating_sub(before));
            self.p().told.store(true, Ordering::Relaxed);
            self.scheduler.submit();
        }
        taken
    }

    fn count_stolen(&self, gs: usize) {
        let stats = &self.p().stats;
        bump(&stats.steal_operations, 1);
        bump(&stats.steals, gs as u64);
    }

    fn tick_of(&self, p: usize) -> u32 {
        self.scheduler.ps[p].polltick.load(Ordering::Relaxed)
    }

    fn steal_from(&self, victim: usize, last_pass: bool) -> Option<G> {
        let scheduler = &*self.scheduler;
        let other = &*scheduler.ps[victim];
        // A lone G is left to its P, which is about to take it, until the last pass.
        if (other.queue.len() > 1 || (last_pass && !other.queue.is_empty()))
            && let Some(g) = other.queue.steal_half(self.queue())
        {
            // By `execute`, which comes next.
            self.p().told.store(true, Ordering::Relaxed);
            self.count_stolen(self.queue().len() + 1);
            return Some(g);
        }
        if !last_pass || scheduler.idle.is_idle(victim) {
            return None;
        }
        if other.is_slow()
            && let Some(g) = other.runnext.take()
        {
            self.count_stolen(1);
            return Some(g);
        }
        self.look_behind(victim, other.is_slow())
    }

    /// Netpoll of another P, without waiting, and if asked its timers.
    fn look_behind(&self, victim: usize, timers: bool) -> Option<G> {
        let scheduler = &*self.scheduler;
        if scheduler.netpoll().has_sources(victim) {
            self.take_readiness(victim);
        }
        if timers {
            self.take_timers(victim);
        }
        self.flush_batch();
        self.local_g()
    }

    /// Collects what the timers of P `victim` have readied; says how much that is.
    fn take_timers(&self, victim: usize) -> usize {
        let Some(timers) = self.scheduler.timers() else {
            return 0;
        };
        self.batching.set(true);
        let woken = timers.fire(victim);
        self.batching.set(false);
        woken
    }

    /// Collects what is ready behind P `victim`; says how much that is.
    fn take_readiness(&self, victim: usize) -> usize {
        self.batching.set(true);
        bump(&self.p().stats.netpolls, 1);
        // An error here is one of the poller itself; whoever waits in it meets it, too.
        let woken = self
            .scheduler
            .netpoll()
            .poll(victim, self.p.get(), Some(Duration::ZERO));
        self.batching.set(false);
        woken.unwrap_or(0)
    }
}
