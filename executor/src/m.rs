//! M: a thread that runs Gs while it holds a P.
//!
//! The loop is Go's `schedule`: find a runnable G, poll it, look whether the P is still ours.
//!
//! # Where an M is
//!
//! * *Inside* the scheduler it may touch its P. It is inside in `find_runnable`, and for the few
//!   instructions in which a poll wakes or spawns ([`M::ready`]).
//! * *Outside*, in user code, it may not; the monitor may take the P away. `ownership` argues why
//!   that is safe. An M that comes back and finds its P gone is *spare*: its pool thread waits for
//!   another P or a blocking job.
//! * *Batching*, it polls netpoll or timers or wakes what was deferred: Gs that become runnable are
//!   collected and go to the tail of the queue in order.

mod clock;
mod search;
mod wait;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_deque::Worker;
use parking_lot::Mutex;

use self::clock::{Clock, Due};
use self::search::Neighbour;
use crate::context;
use crate::coop::{self, Budget};
use crate::cpuclock::CpuClock;
use crate::monitor::Stall;
use crate::ownership::{Entry, Tenure};
use crate::p::{GlobalTurn, P, bump};
use crate::queue::LOCAL_CAPACITY;
use crate::scheduler::Scheduler;
use crate::task::{G, Sweep};

/// How many times in a row the runnext is preferred to the queue.
const HANDOVERS_MAX: u32 = 16;

/// So few Gs that netpoll or timers have readied are mostly done sooner than another thread is awake.
const FEW: usize = 16;

/// How long they may take before an idle P is to help.
const DONE_WITHIN: Duration = Duration::from_micros(50);

const NO_P: usize = usize::MAX;

/// What others may know of an M.
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) tenure: Tenure,
    /// It is a thread in `block_on`, which borrows its Ps.
    borrows: bool,
    /// The slice is over: the next budget check fails.
    preempt: AtomicBool,
    pub(crate) cpu_clock: CpuClock,
    /// What the monitor left for an M whose P it took.
    retaken: Mutex<Option<Arc<Stall>>>,
    /// Async tasks that this M has spawned, minus those that it has completed. Written by the M alone.
    pub(crate) alive: AtomicIsize,
}

impl Record {
    pub(crate) fn borrows(&self) -> bool {
        self.borrows
    }

    /// The slice of this M's task is over.
    pub(crate) fn preempt(&self) {
        self.preempt.store(true, Ordering::Relaxed);
    }

    /// Leaves a note for an M whose P is about to be taken.
    pub(crate) fn note_retaken(&self, note: Arc<Stall>) {
        *self.retaken.lock() = Some(note);
    }

    pub(crate) fn take_note(&self) -> Option<Arc<Stall>> {
        self.retaken.lock().take()
    }
}

/// An M, on its own thread.
pub(crate) struct M {
    scheduler: Arc<Scheduler>,
    record: Arc<Record>,
    /// The P it believes to hold; the tenure says whether it does.
    p: Cell<usize>,
    spinning: Cell<bool>,
    batching: Cell<bool>,
    batch: RefCell<Vec<G>>,
    /// How many Gs in a row came out of runnext.
    handovers: Cell<u32>,
    /// When Gs were queued of which nobody was told.
    untold_since: Cell<Instant>,
    /// The idle P from whose poller this M took something to do when it ran dry the last time.
    talks_to: Cell<usize>,
    /// How many Gs in a row yielded.
    yields: Cell<usize>,
    /// Registry entries of tasks that this M has completed.
    pub(crate) sweep: Sweep,
    clock: Clock,
    neighbour: Cell<Neighbour>,
    /// Since when the P has not been idle.
    busy_since: Cell<Instant>,
    rng: Cell<u32>,
}

/// Why an M stopped running Gs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Its P was taken away, or handed off.
    Lost,
    /// The runtime is closing and nothing is left to run.
    Closed,
}

impl M {
    pub(crate) fn new(scheduler: Arc<Scheduler>) -> M {
        M::make(scheduler, false)
    }

    /// The M of a thread in `block_on` of a multi-thread runtime.
    pub(crate) fn borrower(scheduler: Arc<Scheduler>) -> M {
        M::make(scheduler, true)
    }

    fn make(scheduler: Arc<Scheduler>, borrows: bool) -> M {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let record = Arc::new(Record {
            id,
            tenure: Tenure::new(),
            borrows,
            preempt: AtomicBool::new(false),
            cpu_clock: CpuClock::of_this_thread(),
            retaken: Mutex::new(None),
            alive: AtomicIsize::new(0),
        });
        scheduler.ms.enter(&record);
        M {
            scheduler,
            record,
            p: Cell::new(NO_P),
            spinning: Cell::new(false),
            batching: Cell::new(false),
            batch: RefCell::new(Vec::new()),
            handovers: Cell::new(0),
            untold_since: Cell::new(Instant::now()),
            talks_to: Cell::new(NO_P),
            yields: Cell::new(0),
            sweep: Sweep::new(),
            clock: Clock::new(),
            neighbour: Cell::new(Neighbour::new(0)),
            busy_since: Cell::new(Instant::now()),
            rng: Cell::new((id as u32).wrapping_mul(0x9e37_79b9) | 1),
        }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub(crate) fn shared_scheduler(&self) -> Arc<Scheduler> {
        self.scheduler.clone()
    }

    /// The P that this M holds or believes to hold; for hints.
    pub(crate) fn p_index(&self) -> Option<usize> {
        Some(self.p.get()).filter(|&p| p != NO_P)
    }

    /// The P, if it is still this M's: it may have been taken away from a poll that lasts.
    pub(crate) fn holds(&self) -> Option<usize> {
        // Inside while it batches.
        if !self.batching.get() && self.p_index().is_some() {
            let _kept_or_lost = self.enter();
            self.record.tenure.leave();
        }
        self.p_index()
    }

    /// Counts an async task that is spawned or done.
    #[inline]
    pub(crate) fn count_alive(&self, by: isize) {
        let alive = &self.record.alive;
        alive.store(alive.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_preempted(&self) -> bool {
        self.record.preempt.load(Ordering::Relaxed)
    }

    fn p(&self) -> &P {
        &self.scheduler.ps[self.p.get()]
    }

    fn queue(&self) -> &Worker<G> {
        // SAFETY: called only while inside: in the loop, or between `enter` and `leave` in `ready`.
        unsafe { self.p().queue.holder() }
    }

    // ----- The P -----

    /// Takes up P `p`, which was given to this thread.
    pub(crate) fn take_up(&self, p: usize) {
        self.record.tenure.begin(p);
        self.p.set(p);
        self.record.preempt.store(false, Ordering::Relaxed);
        self.scheduler.ps[p].set_holder(Some(self.record.clone()));
        self.handovers.set(0);
        // Not all Ms at the same.
        let neighbour = (p + 1) % self.scheduler.procs();
        self.neighbour.set(Neighbour::new(neighbour));
        self.busy_since.set(Instant::now());
    }

    pub(crate) fn borrows(&self) -> bool {
        self.record.borrows
    }

    /// Borrows an idle P, if there is one, whose watcher stays where it is.
    pub(crate) fn borrow(&self) -> bool {
        let Some(p) = self.scheduler.idle.borrow() else {
            return false;
        };
        self.record.tenure.begin(p);
        self.p.set(p);
        self.record.preempt.store(false, Ordering::Relaxed);
        self.scheduler.ps[p].lend(self.record.clone());
        self.busy_since.set(Instant::now());
        self.scheduler.monitor.activity();
        true
    }

    /// Takes the G out of runnext that the last poll left there, if `trusted` says so of where it was
    /// spawned and nothing else is queued. Inside.
    pub(crate) fn take_runnext_if(
        &self,
        trusted: impl FnOnce(&'static Location<'static>) -> bool,
    ) -> Option<G> {
        let g = self.p().runnext.take()?;
        if self.queue().is_empty() && trusted(g.metadata().location()) {
            return Some(g);
        }
        let none = self.p().runnext.put(g);
        debug_assert!(none.is_none(), "only the holder fills runnext");
        None
    }

    /// Where the G in runnext was spawned. Inside.
    pub(crate) fn runnext_location(&self) -> Option<&'static Location<'static>> {
        let g = self.p().runnext.take()?;
        let location = g.metadata().location();
        let none = self.p().runnext.put(g);
        debug_assert!(none.is_none(), "only the holder fills runnext");
        Some(location)
    }

    /// Wakes what the last poll deferred. Inside.
    pub(crate) fn wake_deferred(&self) {
        self.batching.set(true);
        context::wake_deferred();
        self.batching.set(false);
        match self.p_index() {
            Some(_) => self.flush_batch(),
            None => self.flush_to_global(),
        }
    }

    /// User code that ran outside has unwound.
    pub(crate) fn comes_back(&self) -> Entry {
        self.enter()
    }

    /// Gives the P up, inside, and returns it.
    pub(crate) fn put_down(&self) -> usize {
        self.p().stats.add_busy(self.busy_since.get().elapsed());
        self.record.tenure.end();
        self.p.replace(NO_P)
    }

    /// User code calls into the scheduler, or has returned to it.
    #[inline]
    fn enter(&self) -> Entry {
        let entry = self.record.tenure.enter();
        if entry == Entry::Lost {
            self.p.set(NO_P);
        }
        entry
    }

    /// Hands the P off while the task that this M polls blocks. `None` if it holds none.
    pub(crate) fn hand_off(&self) -> Option<usize> {
        match self.enter() {
            Entry::Kept => Some(self.put_down()),
            Entry::Lost => None,
        }
    }

    // ----- The loop -----

    /// Runs Gs with P `p` until the P is lost or the runtime closed.
    pub(crate) fn run(&self, p: usize) -> Left {
        let _m = context::enter_m(self);
        self.take_up(p);
        // Its timers and sockets may have waited for it.
        self.clock.look_next();
        loop {
            let Some(g) = self.find_runnable() else {
                self.put_down();
                self.scheduler.retire_p();
                return Left::Closed;
            };
            if self.execute(g) == Entry::Lost {
                self.finish_without_p();
                return Left::Lost;
            }
        }
    }

    /// Polls a G. The M is outside for as long as that takes.
    pub(crate) fn execute(&self, g: G) -> Entry {
        if self.spinning.take() {
            self.scheduler.idle.found_work();
            // Others may have seen this M spin and woken nobody. Its own queue may hold what nobody is to be
            // told of yet.
            let own = (!self.p().told.load(Ordering::Relaxed)).then(|| self.p.get());
            if self.scheduler.has_work_but_of(own) {
                self.scheduler.submit();
            }
        }
        self.p()
            .poll_begins(g.metadata().location(), self.handovers.get() == 0);
        self.forget_preemption();
        let yields = self.yields.get();
        self.record.tenure.leave();
        context::hot(|hot| hot.budget.set(Budget::initial()));
        // The body of a G catches its own panics; what is left is a panic in the drop of an output
        // or a waker of somebody else's, which must not take the M with it.
        let _ = catch_unwind(AssertUnwindSafe(|| g.run()));
        context::hot(|hot| hot.budget.set(Budget::unconstrained()));
        let entry = self.enter();
        if self.yields.get() == yields {
            self.yields.set(0);
        }
        self.forget_preemption();
        entry
    }

    /// The monitor meant the poll that is over: also if it saw nothing but an unchanged tick, since the M, which has
    /// just taken up the P, had not begun to poll.
    #[inline]
    fn forget_preemption(&self) {
        if self.record.preempt.load(Ordering::Relaxed) {
            self.record.preempt.store(false, Ordering::Relaxed);
        }
    }

    /// Runs user code that is no G; says whether the P is still this M's.
    pub(crate) fn outside<R>(&self, f: impl FnOnce() -> R) -> (R, Entry) {
        self.record.tenure.leave();
        let result = f();
        (result, self.enter())
    }

    /// Polls the future of `block_on`, called at `location`; says whether the P is still this M's, if
    /// it had one.
    pub(crate) fn poll_outside<R>(
        &self,
        location: &'static Location<'static>,
        poll: impl FnOnce() -> R,
    ) -> (R, Entry) {
        if self.p_index().is_some() {
            self.p().poll_begins(location, true);
        }
        let (result, entry) = self.outside(poll);
        self.record.preempt.store(false, Ordering::Relaxed);
        (result, entry)
    }

    /// Whether anything is queued on the P. Inside.
    pub(crate) fn has_queued(&self) -> bool {
        !self.p().runnext.is_empty() || !self.queue().is_empty()
    }

    /// The M came back from a poll without its P: what the poll left to do goes to the global queue.
    pub(crate) fn finish_without_p(&self) {
        self.sweep.now();
        context::wake_deferred();
        self.settle_retake();
        if self.scheduler.is_closing() {
            while let Some(g) = self.scheduler.global.pop() {
                let _ = catch_unwind(AssertUnwindSafe(|| g.run()));
            }
        }
    }

    /// The poll is over in which the monitor took the P away, if it did.
    pub(crate) fn settle_retake(&self) {
        if let Some(stall) = self.record.take_note() {
            let cpu = self.record.cpu_clock.now();
            self.scheduler.monitor.poll_without_p_ended(&stall, cpu);
        }
    }

    /// The next G, in Go's order; parks while there is none. `None` when the runtime is closing.
    fn find_runnable(&self) -> Option<G> {
        loop {
            if let Some(g) = self.next_g() {
                return Some(g);
            }
            if self.scheduler.is_closing() {
                return self.last_g();
            }
            if self.may_spin()
                && let Some(g) = self.steal()
            {
                return Some(g);
            }
            self.park();
        }
    }

    /// The next G that needs no searching, with netpoll and timers looked at as often as is due.
    pub(crate) fn next_g(&self) -> Option<G> {
        let config = &self.scheduler.config;
        let due = self.clock.tick(config.event_interval);
        if due != Due::Nothing
            && let Some(g) = self.look(due)
        {
            return Some(g);
        }
        if let Some(g) = self.local_g() {
            return Some(g);
        }
        self.handovers.set(0);
        self.yields.set(0);
        if let Some(g) = self
            .scheduler
            .global
            .pop_batch(self.scheduler.procs(), self.queue())
        {
            if !self.queue().is_empty() {
                self.p().told.store(true, Ordering::Relaxed);
                self.scheduler.submit();
            }
            return Some(g);
        }
        self.look_around();
        self.local_g()
    }

    /// Looks at what is due between two polls. What it readies is queued, or in runnext; a G of the global queue
    /// that has its turn is returned.
    fn look(&self, due: Due) -> Option<G> {
        let was_empty = self.p().runnext.is_empty();
        if self.scheduler.procs() > 1 {
            self.look_after_neighbour();
        }
        if due == Due::All {
            self.look_around();
        }
        let readied = was_empty && !self.p().runnext.is_empty();
        if readied {
            self.begin_slice_with_event();
        }
        if due != Due::All {
            return None;
        }
        let g = self.global_g_in_turn(readied)?;
        self.handovers.set(0);
        Some(g)
    }

    /// A look has put a G into runnext. If the slice is over, after a long poll say, the G begins one of its own
    /// and goes before the queue, whose head may compute as long; but not each time, since where all polls are
    /// long there is always such a G.
    fn begin_slice_with_event(&self) {
        let p = self.p();
        if !p.is_slice_over() {
            return;
        }
        let queue_next = p.queue_next.load(Ordering::Relaxed);
        p.queue_next.store(!queue_next, Ordering::Relaxed);
        if !queue_next {
            self.slice_ends_if(true);
        }
    }

    /// A G of the global queue, ahead of the P's own; but not twice in a row, since a poll can outlast the
    /// time between two looks, and the P's own Gs would never have a turn. And behind the one that the look
    /// has `readied`: what waited for an event is mostly brief, and what is queued globally may compute.
    fn global_g_in_turn(&self, readied: bool) -> Option<G> {
        let turn = &self.p().global_turn;
        match turn.load(Ordering::Relaxed) {
            GlobalTurn::HAD => {
                turn.store(GlobalTurn::NEXT, Ordering::Relaxed);
                None
            }
            GlobalTurn::NEXT if readied && !self.scheduler.global.is_empty() => {
                turn.store(GlobalTurn::OWED, Ordering::Relaxed);
                self.clock.look_next();
                None
            }
            _ => {
                let g = self.scheduler.global.pop();
                let had = if g.is_some() {
                    GlobalTurn::HAD
                } else {
                    GlobalTurn::NEXT
                };
                turn.store(had, Ordering::Relaxed);
                g
            }
        }
    }

    fn local_g(&self) -> Option<G> {
        let p = self.p();
        if let Some(g) = p.runnext.take() {
            let handovers = self.handovers.get();
            let slice_over = handovers >= HANDOVERS_MAX || p.is_slice_over();
            if !slice_over || self.queue().is_empty() {
                self.handovers.set(handovers.saturating_add(1));
                self.slice_ends_if(slice_over);
                return Some(g);
            }
            // The slice is over: behind everything that waits.
            self.push_told(g);
        }
        self.slice_ends_if(true);
        let g = self.queue().pop();
        if !p.told.load(Ordering::Relaxed) {
            self.tell_if_late();
        }
        // Everything in the queue has yielded: netpoll and timers come before the next round.
        if g.is_some() && self.yields.get() > self.queue().len() {
            self.yields.set(0);
            self.look_around();
        }
        g
    }

    fn slice_ends_if(&self, over: bool) {
        if over {
            self.handovers.set(0);
            if self.p().is_slice_over() {
                self.p().slice_begins();
            }
        }
    }

    /// Netpoll and timers, without waiting, and what the last polls deferred.
    fn look_around(&self) {
        let scheduler = &*self.scheduler;
        let p = self.p.get();
        self.batching.set(true);
        if scheduler.netpoll().has_sources(p) {
            bump(&self.p().stats.netpolls, 1);
            // An error here is one of the poller itself; the next wait will meet it again.
            let _ = scheduler.netpoll().poll(p, p, Some(Duration::ZERO));
        }
        if let Some(timers) = scheduler.timers() {
            timers.fire(p);
        }
        context::wake_deferred();
        self.batching.set(false);
        self.flush_batch();
    }

    /// Puts the Gs that netpoll and timers readied behind what is queued. Of a few that have the P to
    /// themselves nobody is told for now: another thread would take a core from whoever uses it, the client of
    /// a server on the same machine for example, for work that is done before it has woken up.
    fn flush_batch(&self) {
        let mut batch = self.batch.borrow_mut();
        if batch.is_empty() {
            return;
        }
        if batch.len() == 1 && self.scheduler.config.runnext && self.p().runnext.is_empty() {
            let g = batch.pop().expect("one");
            let none = self.p().runnext.put(g);
            debug_assert!(none.is_none(), "only the holder fills runnext");
            return;
        }
        let len = self.queue().len();
        let untold = len == 0 && batch.len() <= FEW && self.scheduler.procs() > 1;
        let room = LOCAL_CAPACITY.saturating_sub(len);
        let mut batch = batch.drain(..);
        batch.by_ref().take(room).for_each(|g| self.queue().push(g));
        if batch.len() != 0 {
            bump(&self.p().stats.overflows, batch.len() as u64);
            self.scheduler.global.push_batch(batch);
        }
        self.p().told.store(!untold, Ordering::Relaxed);
        if untold {
            self.untold_since.set(Instant::now());
        } else {
            self.scheduler.submit();
        }
    }

    /// What netpoll and timers readied is not done yet: an idle P is to help.
    fn tell_if_late(&self) {
        if !self.queue().is_empty() && self.untold_since.get().elapsed() >= DONE_WITHIN {
            self.p().told.store(true, Ordering::Relaxed);
            self.scheduler.submit();
        }
    }

    /// The runtime is closing: what is left anywhere is run here, which drops it.
    fn last_g(&self) -> Option<G> {
        if self.spinning.take() {
            self.scheduler.idle.stop_spinning();
        }
        self.local_g().or_else(|| self.scheduler.global.pop())
    }

    // ----- Submitting -----

    /// A G became runnable on this thread. `yielded`: it woke itself while it was polled.
    pub(crate) fn ready(&self, g: G, yielded: bool) {
        if g.metadata().is_blocking() {
            return self.scheduler.pool.submit(&self.scheduler, g);
        }
        if self.batching.get() {
            return self.batch.borrow_mut().push(g);
        }
        if self.enter() == Entry::Lost {
            self.record.tenure.leave();
            return self.scheduler.inject(g);
        }
        if !yielded {
            self.push_next(g);
        } else if self.is_preempted() {
            self.scheduler.inject(g);
        } else {
            self.yields.set(self.yields.get() + 1);
            self.push_yielded(g);
        }
        self.record.tenure.leave();
    }

    /// Puts into runnext, and what was there behind the queue.
    #[inline]
    fn push_next(&self, g: G) {
        let behind = if self.scheduler.config.runnext {
            self.p().runnext.put(g)
        } else {
            Some(g)
        };
        if let Some(behind) = behind {
            self.push_told(behind);
        }
    }

    /// Appends a G that yielded. One that is alone on its P is about to go on here: nobody is told.
    #[inline]
    fn push_yielded(&self, g: G) {
        let len = self.queue().len();
        if len == 0 && self.p().runnext.is_empty() {
            self.p().told.store(false, Ordering::Relaxed);
            self.queue().push(g);
        } else {
            self.push_to(len, g);
        }
    }

    /// Appends to the P's queue, and sees to it that an idle P helps.
    fn push_told(&self, g: G) {
        self.push_to(self.queue().len(), g);
    }

    /// Appends to the P's queue of `len` Gs; a full queue sheds half of itself to the global one.
    #[inline]
    fn push_to(&self, len: usize, g: G) {
        if len < LOCAL_CAPACITY {
            self.queue().push(g);
        } else {
            self.overflow(g);
        }
        // Of what is in a queue one is told once: since then somebody has been woken for it and passes the
        // search on as long as there is work, or no P was idle; and a P goes idle only after it has
        // searched, or while somebody else does.
        let told = &self.p().told;
        if len == 0 || len >= LOCAL_CAPACITY || !told.load(Ordering::Relaxed) {
            told.store(true, Ordering::Relaxed);
            self.scheduler.submit();
        }
    }

    #[cold]
    fn overflow(&self, g: G) {
        let half = std::iter::from_fn(|| self.queue().pop()).take(LOCAL_CAPACITY / 2);
        bump(&self.p().stats.overflows, 1);
        self.scheduler
            .global
            .push_batch(half.chain(std::iter::once(g)));
    }
}

impl Drop for M {
    fn drop(&mut self) {
        debug_assert!(
            self.batch.get_mut().is_empty(),
            "an M ends with Gs that it readied"
        );
        self.sweep.now();
        self.scheduler.ms.leave(&self.record);
    }
}

/// Polls the future of `block_on` with a budget of its own.
pub(crate) fn poll_main<R>(waker_data: *const (), poll: impl FnOnce() -> R) -> R {
    let _main = context::enter_main(waker_data);
    coop::with_full_budget(poll)
}
