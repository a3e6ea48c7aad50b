//! What all Ms of a runtime share: the Ps, the global queue, who is idle, and the way work gets in.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::config::{Config, Flavor};
use crate::context;
use crate::handle::{Handle, HandleInner};
use crate::idle::Idle;
use crate::m::{M, Record};
use crate::monitor::Monitor;
use crate::p::P;
use crate::parkonly::ParkOnly;
use crate::pool::Pool;
use crate::queue::GlobalQueue;
use crate::seam::{Netpoll, Timers};
use crate::task::{G, Target};

/// By how much two readings of the same deadline may differ.
const CLOCK_SLACK: Duration = Duration::from_micros(50);

pub(crate) struct Scheduler {
    pub(crate) config: Config,
    pub(crate) ps: Box<[CachePadded<P>]>,
    pub(crate) global: GlobalQueue,
    pub(crate) idle: Idle,
    pub(crate) ms: Ms,
    pub(crate) pool: Pool,
    pub(crate) monitor: Monitor,
    /// The configured netpoll, or one that only parks.
    netpoll: Arc<dyn Netpoll>,
    /// The way back to the handle, for the threads that the pool starts.
    handle: OnceLock<Weak<HandleInner>>,
    /// No new tasks; Ms end when they find nothing more to run.
    closing: AtomicBool,
    /// How many Ps have not been put down for good by a closing M.
    live_ps: AtomicUsize,
    /// How often the monitor found queued work beside an idle P.
    pub(crate) rescues: AtomicU64,
    pub(crate) started: Instant,
}

impl Scheduler {
    pub(crate) fn new(config: Config) -> Scheduler {
        crate::ownership::prepare();
        let netpoll = config
            .netpoll
            .clone()
            .unwrap_or_else(|| Arc::new(ParkOnly::new(config.procs)));
        Scheduler {
            ps: (0..config.procs)
                .map(|_| CachePadded::new(P::new()))
                .collect(),
            global: GlobalQueue::new(),
            idle: Idle::new(config.procs),
            ms: Ms::default(),
            pool: Pool::new(),
            monitor: Monitor::new(&config.debug),
            netpoll,
            handle: OnceLock::new(),
            closing: AtomicBool::new(false),
            live_ps: AtomicUsize::new(config.procs),
            rescues: AtomicU64::new(0),
            started: Instant::now(),
            config,
        }
    }

    pub(crate) fn set_handle(&self, handle: Weak<HandleInner>) {
        let set = self.handle.set(handle);
        debug_assert!(set.is_ok(), "a scheduler belongs to one handle");
    }

    /// The runtime's handle, unless nobody holds one any more.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.handle.get()?.upgrade().map(Handle::from_inner)
    }

    pub(crate) fn procs(&self) -> usize {
        self.ps.len()
    }

    pub(crate) fn is_multi_thread(&self) -> bool {
        self.config.flavor == Flavor::MultiThread
    }

    pub(crate) fn netpoll(&self) -> &dyn Netpoll {
        &*self.netpoll
    }

    pub(crate) fn timers(&self) -> Option<&dyn Timers> {
        self.config.timers.as_deref()
    }

    /// The timers of a runtime whose clock can be paused: a blocking job keeps that from stepping by itself.
    pub(crate) fn pausable_timers(&self) -> Option<&Arc<dyn Timers>> {
        let timers = self.config.timers.as_ref();
        timers.filter(|_| !self.is_multi_thread())
    }

    /// Work was published: gets an M going for it if a P is idle and nobody is on the way.
    #[inline]
    pub(crate) fn submit(&self) {
        if let Some(p) = self.idle.submit() {
            self.wake_m(p);
        }
    }

    /// Wakes the M of a P that was claimed for it.
    #[cold]
    pub(crate) fn wake_m(&self, p: usize) {
        self.netpoll.notify(p);
        self.monitor.activity();
    }

    /// Gives a borrowed P back to its watcher, and wakes that if there is something for it.
    pub(crate) fn return_borrowed(&self, p: usize) {
        let state = &*self.ps[p];
        state.take_back();
        let asked = self.idle.give_back(p);
        if asked || !state.runnext.is_empty() || !state.queue.is_empty() {
            if self.idle.claim_this(p) {
                self.wake_m(p);
            } else if asked {
                // Claimed or borrowed again meanwhile: another P, or whoever gives this one back.
                self.submit();
            }
        } else if self.oversleeps(p) {
            self.netpoll.notify(p);
        }
    }

    /// Whether the watcher of P `p` sleeps beyond the P's next timer: the borrower may have started that, or
    /// anybody who saw that the P was not idle. After the idle bit was set.
    fn oversleeps(&self, p: usize) -> bool {
        self.ps[p].sleeps_until.is_beyond(|| {
            let timeout = self.timers()?.park_timeout(p)?;
            Some(self.ns_after(timeout.saturating_add(CLOCK_SLACK)))
        })
    }

    /// The time `timeout` from now, in nanoseconds since the scheduler started.
    pub(crate) fn ns_after(&self, timeout: Duration) -> u64 {
        let time = self.started.elapsed().saturating_add(timeout);
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Queues a G that was readied by a thread that holds no P of this runtime.
    #[cold]
    pub(crate) fn inject(&self, g: G) {
        self.global.push(g);
        self.submit();
        // SeqCst: pairs with the decrement in `retire_p`. Either this sees that nobody is left to
        // run the G, or the last M sees the G.
        if self.live_ps.load(Ordering::SeqCst) == 0 {
            self.drop_queued();
        }
    }

    /// Cancels what is in the global queue.
    fn drop_queued(&self) {
        while let Some(g) = self.global.pop() {
            drop(g);
        }
    }

    /// Whether there is something that a searching M could run.
    pub(crate) fn has_work(&self) -> bool {
        self.has_work_but_of(None)
    }

    /// Whether there is work, beside that of one P.
    pub(crate) fn has_work_but_of(&self, own: Option<usize>) -> bool {
        let has = |(p, state): (usize, &CachePadded<P>)| Some(p) != own && state.has_stealable();
        !self.global.is_empty() || self.ps.iter().enumerate().any(has)
    }

    /// Breaks the wait of P `p`'s watcher, if it waits, so that it looks at its timers again.
    pub(crate) fn unpark(&self, p: usize) {
        // The fence orders the timer that was just added before the look at the idle word; an M that
        // goes idle looks at its timers after it set the bit.
        fence(Ordering::SeqCst);
        if self.idle.is_idle(p) {
            self.netpoll.notify(p);
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closing.load(Ordering::Acquire)
    }

    /// The system has refused a thread that a blocking job needs: somebody has to try again later.
    pub(crate) fn thread_was_refused(&self) {
        if self.is_multi_thread() {
            self.monitor.activity();
        } else {
            self.unpark(0);
        }
    }

    /// No new tasks from here on, and every M ends once it finds nothing to run.
    pub(crate) fn close(&self) {
        // Release: pairs with the Acquire in `is_closing`.
        self.closing.store(true, Ordering::Release);
        self.pool.close();
        fence(Ordering::SeqCst);
        for p in 0..self.procs() {
            self.netpoll.notify(p);
        }
    }

    /// An M puts its P down for good. The last one ends the drivers.
    pub(crate) fn retire_p(&self) {
        // SeqCst: see `inject`.
        if self.live_ps.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        self.drop_queued();
        // A waker on another thread may have a task in its hands that it is about to queue.
        while self.handle().is_some_and(|handle| handle.has_runnable()) {
            std::thread::yield_now();
            self.drop_queued();
        }
        self.netpoll.shutdown();
        if let Some(timers) = self.timers() {
            timers.shutdown();
        }
        self.monitor.end();
    }
}

/// Every M there is.
#[derive(Default)]
pub(crate) struct Ms {
    list: Mutex<MsList>,
}

#[derive(Default)]
struct MsList {
    records: Vec<Arc<Record>>,
    /// What the Ms that have ended counted.
    alive: isize,
}

impl Ms {
    pub(crate) fn enter(&self, record: &Arc<Record>) {
        self.list.lock().records.push(record.clone());
    }

    pub(crate) fn leave(&self, record: &Arc<Record>) {
        let mut list = self.list.lock();
        list.alive += record.alive.load(Ordering::Relaxed);
        list.records.retain(|other| !Arc::ptr_eq(other, record));
    }

    /// The Ms' part of the number of tasks alive.
    pub(crate) fn alive(&self) -> isize {
        let list = self.list.lock();
        let records = list.records.iter();
        let counted = records.map(|record| record.alive.load(Ordering::Relaxed));
        list.alive + counted.sum::<isize>()
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("config", &self.config)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// A G became runnable: it goes to the P that this thread holds, or to the global queue.
///
/// `scheduler` is the one that the G belongs to. It is a pointer because the G's own reference may be
/// the last one, and go with the G the moment it is queued.
#[inline]
pub(crate) fn ready(scheduler: *const Scheduler, g: G, yielded: bool) {
    let mut g = Some(g);
    context::hot(|hot| {
        let m: Option<&M> = hot.m();
        if let Some(m) = m.filter(|m| std::ptr::eq(m.scheduler(), scheduler)) {
            m.ready(g.take().expect("not yet queued"), yielded);
        }
    });
    if let Some(g) = g {
        ready_from_outside(g);
    }
}

#[cold]
fn ready_from_outside(g: G) {
    // SAFETY: the `Runnable` is in hand, so the task cannot become DONE.
    let Target::Scheduler(scheduler) = unsafe { g.metadata().owner() }.target() else {
        unreachable!("a G of a LocalSet is readied there");
    };
    let scheduler = scheduler.clone();
    if g.metadata().is_blocking() {
        scheduler.pool_submit(g);
    } else {
        scheduler.inject(g);
    }
}

impl Scheduler {
    fn pool_submit(self: &Arc<Self>, g: G) {
        self.pool.submit(self, g);
    }
}
