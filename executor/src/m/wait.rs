//! Waiting: an M without work marks its P idle and waits in the P's poller.

use std::time::{Duration, Instant};

use super::M;
use super::clock::LOOK_EVERY;
use crate::config::Callback;
use crate::context;
use crate::idle::{Parking, Woken};
use crate::p::bump;
use crate::task::G;

/// How soon to ask for a thread again that the system has refused.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

impl M {
    /// Gives the P to the idle ones and waits in its poller until there is something to look at.
    pub(super) fn park(&self) {
        let scheduler = &*self.scheduler;
        let p = self.p.get();
        if self.call_hook(&scheduler.config.on_thread_park) {
            return;
        }
        match scheduler.idle.park(p, self.spinning.take()) {
            Parking::Wait => {}
            Parking::Recheck if !scheduler.has_work() => {}
            Parking::Recheck | Parking::Spin => {
                if scheduler.idle.cancel_park(p) {
                    self.spinning.set(true);
                    return;
                }
                // Borrowed meanwhile: somebody else has to go for what there is.
                if scheduler.has_work() {
                    scheduler.submit();
                }
            }
        }
        self.count_park();
        self.batching.set(true);
        let claimed = loop {
            self.wait_once(p);
            match scheduler.idle.wake(p) {
                Woken::Claimed => break true,
                Woken::Alone => break false,
                Woken::Borrowed => self.watch_for_borrower(p),
            }
        };
        self.spinning.set(claimed);
        if let Some(timers) = scheduler.timers() {
            timers.fire(p);
        }
        self.batching.set(false);
        self.end_rest();
        scheduler.monitor.activity();
        self.flush_batch();
        self.call_hook(&scheduler.config.on_thread_unpark);
    }

    /// Calls the user's hook; says whether that made something to run.
    fn call_hook(&self, hook: &Option<Callback>) -> bool {
        let Some(hook) = hook else { return false };
        self.batching.set(true);
        hook();
        context::wake_deferred();
        self.batching.set(false);
        self.flush_batch();
        self.has_queued()
    }

    fn count_park(&self) {
        self.sweep.now();
        let stats = &self.p().stats;
        bump(&stats.parks, 1);
        stats.add_busy(self.busy_since.get().elapsed());
    }

    /// The P is at work again. Its slice begins here: the rest was no part of one.
    fn end_rest(&self) {
        let p = self.p();
        p.slice_begins();
        bump(&p.stats.unparks, 1);
        self.busy_since.set(Instant::now());
    }

    fn wait_once(&self, p: usize) {
        let scheduler = &*self.scheduler;
        // After the idle bit was set, with a fence between: whoever adds an earlier timer now sees
        // the bit and breaks the wait (`Scheduler::unpark`). The same for `close`.
        if scheduler.is_closing() {
            return;
        }
        let mut timeout = None;
        scheduler.ps[p].sleeps_until.watcher_looks(|| {
            timeout = scheduler.timers()?.park_timeout(p);
            Some(scheduler.ns_after(timeout?))
        });
        if scheduler.pool.is_refused() && !scheduler.is_multi_thread() {
            timeout = Some(timeout.map_or(TRY_AGAIN_AFTER, |timeout| timeout.min(TRY_AGAIN_AFTER)));
        }
        let _ = scheduler.netpoll().poll(p, p, timeout);
    }

    /// The wait ended while a thread in `block_on` uses the P: its timers and sockets are looked after.
    fn watch_for_borrower(&self, p: usize) {
        if let Some(timers) = self.scheduler.timers() {
            timers.fire(p);
        }
        self.flush_to_global();
        if self.scheduler.is_closing() {
            // Waits do not block any more, and the borrower is in user code.
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// What was readied while somebody else has the P goes where anybody finds it.
    pub(super) fn flush_to_global(&self) {
        let batch: Vec<G> = self.batch.borrow_mut().drain(..).collect();
        if !batch.is_empty() {
            self.scheduler.global.push_batch(batch);
            self.scheduler.submit();
        }
    }

    // ----- current_thread -----

    /// Whether every G that is queued has yielded since the last one that did not.
    pub(crate) fn all_yielded(&self) -> bool {
        let yields = self.yields.get();
        yields > 0 && yields >= self.queue().len() && self.p().runnext.is_empty()
    }

    /// Waits for something to do on behalf of a `block_on` that drives a `current_thread` runtime.
    pub(crate) fn park_current_thread(&self, until: impl Fn() -> bool) {
        let scheduler = &*self.scheduler;
        let p = self.p.get();
        if self.call_hook(&scheduler.config.on_thread_park) {
            return;
        }
        let parking = scheduler.idle.park(p, false);
        let stay = parking == Parking::Spin || !scheduler.global.is_empty() || until();
        if stay {
            self.come_back(p);
            return;
        }
        self.count_park();
        self.batching.set(true);
        self.wait_once(p);
        self.come_back(p);
        if scheduler.pool.is_refused() {
            scheduler.pool.try_again(&self.scheduler);
        }
        let fired = scheduler.timers().map_or(0, |timers| timers.fire(p));
        self.batching.set(false);
        if fired == 0
            && self.batch.borrow().is_empty()
            && scheduler.global.is_empty()
            && !until()
            && let Some(timers) = scheduler.timers()
            && timers.auto_advance()
        {
            self.look_around();
        }
        self.end_rest();
        self.flush_batch();
        self.call_hook(&scheduler.config.on_thread_unpark);
    }

    /// The only P is not idle any more. Its M never counts as spinning: there is nobody to search.
    fn come_back(&self, p: usize) {
        if self.scheduler.idle.wake(p) == Woken::Claimed {
            self.scheduler.idle.stop_spinning();
        }
    }
}
