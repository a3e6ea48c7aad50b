//! The monitor: Go's sysmon. A thread without a P that sees to it that nothing stalls.
//!
//! It looks at the Ps every few milliseconds while any of them is busy, and sleeps without a timeout
//! when nothing happens. What it judges by:
//!
//! * **A poll tick that has not changed**: one poll lasts. Its P's runnext may be stolen, a thief is
//!   woken, the preempt flag is raised, and in the end the P is taken away, if there is something for
//!   it to do that nobody else does: queued Gs, due timers, sources in its poller.
//! * **A slice tick that has not changed while polls go by**: a chain of runnext hand-overs. The slice ends.
//! * **A queue that does not move beside an idle P**: a scheduler bug. It is rescued and counted.
//!
//! An M that blocks (its CPU clock stands still) loses its P at the threshold. One that computes loses
//! it too, but of those there is a bound a core.

mod stalls;

use std::io::Write;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub(crate) use self::stalls::Stall;
use self::stalls::{GoingOn, Stalls, computes};
use crate::config::Debug;
use crate::p::{P, bump};
use crate::scheduler::Scheduler;
use crate::trace;

/// After how many looks at which nothing had moved the monitor sleeps until something does.
const QUIET_LOOKS: u32 = 3;

/// How often to look while a P is busy, when nobody asked for retaking. Half as often when none is: a look
/// costs as much CPU as a small task with its wake-up, and Go's sysmon backs off to 10 ms, too.
const PERIOD: Duration = Duration::from_millis(5);

/// How many Ms a core may compute without a P. With one, and eight tasks that compute for 100 ms each on
/// two cores, a ticker among them comes 160 ms late (its P's next task computes, too, and nobody may take
/// the P from that one); with four, 40 ms. More would compute in turns what is better done one after another.
const COMPUTING_PER_CORE: usize = 4;

pub(crate) struct Monitor {
    /// The monitor sleeps without a timeout, and wants to be woken when an M wakes up.
    asleep: AtomicBool,
    ended: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    /// Ms that compute without a P.
    computing: AtomicUsize,
    /// If somebody asked for reports.
    stalls: Option<Stalls>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

/// What the monitor remembers of a P.
struct Look {
    polltick: u32,
    schedtick: u32,
    /// Since when the poll tick has stood still.
    since: Instant,
    /// Since when the slice tick has stood still.
    slice_since: Instant,
    /// What is known of a poll that was seen to last.
    slow: Option<Slow>,
    /// The queue was not empty, and some P idle, already at the last look: when that was, and the CPU time
    /// of the M then.
    stranded: Option<(Instant, Option<Duration>)>,
}

/// A poll that was seen to last.
#[derive(Clone, Copy)]
struct Slow {
    /// Where its task was spawned.
    location: Option<&'static Location<'static>>,
    /// The first look that saw it last, and the CPU time of its M then.
    first: (Instant, Option<Duration>),
    /// The same of the last look.
    last: (Instant, Option<Duration>),
}

impl Slow {
    /// The poll as it is reported; the monitor first saw it at `since`.
    fn stall(&self, since: Instant, taken: bool) -> Stall {
        Stall {
            location: self.location,
            since,
            computes: computes(self.first, self.last).unwrap_or(false),
            cpu_before: self.first,
            taken,
            over: AtomicBool::new(!taken),
        }
    }
}

impl Monitor {
    pub(crate) fn new(debug: &Debug) -> Monitor {
        Monitor {
            asleep: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            computing: AtomicUsize::new(0),
            stalls: Stalls::new(debug),
        }
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the operating system refuses it.
    pub(crate) fn start(scheduler: Arc<Scheduler>) -> std::io::Result<()> {
        thread::Builder::new()
            .name("gmp-monitor".into())
            .stack_size(128 * 1024)
            .spawn(move || Watch::new(scheduler).run())
            .map(drop)
    }

    /// An M wakes up. To be called after a full fence behind what the monitor is to see.
    #[inline]
    pub(crate) fn activity(&self) {
        // SeqCst: pairs with the store in `sleep`; see there.
        if self.asleep.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            drop(self.lock.lock());
            self.wake.notify_one();
        }
    }

    pub(crate) fn end(&self) {
        // Release: pairs with the Acquire in `has_ended`.
        self.ended.store(true, Ordering::Release);
        drop(self.lock.lock());
        self.wake.notify_one();
    }

    fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.ended.load(Ordering::Acquire)
    }

    /// Sleeps for `period`, or until [`end`](Monitor::end).
    fn nap(&self, period: Duration) {
        let mut lock = self.lock.lock();
        if !self.has_ended() {
            self.wake.wait_for(&mut lock, period);
        }
    }

    /// Sleeps until an M wakes up. `quiet` is asked once more after the flag is up.
    fn sleep(&self, quiet: impl Fn() -> bool) {
        let mut lock = self.lock.lock();
        // SeqCst store and fence: an M that wakes up changes the idle word and then looks at the
        // flag, both SeqCst; we raise the flag and then look at the idle word.
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !quiet() || self.has_ended() {
            self.asleep.store(false, Ordering::SeqCst);
            return;
        }
        while self.asleep.load(Ordering::SeqCst) && !self.has_ended() {
            self.wake.wait(&mut lock);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// An M came back from the poll during which it lost its P; `cpu` is the CPU time of its thread.
    pub(crate) fn poll_without_p_ended(&self, stall: &Stall, cpu: Option<Duration>) {
        stall.over.store(true, Ordering::Relaxed);
        if stall.computes {
            // May come before the monitor's own addition: the count wraps and comes right.
            self.computing.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(stalls) = &self.stalls {
            stalls.ended(stall, (Instant::now(), cpu));
        }
    }
}

/// The monitor thread.
struct Watch {
    scheduler: Arc<Scheduler>,
    looks: Vec<Look>,
    cores: usize,
    next_trace: Option<Instant>,
    going_on: GoingOn,
}

impl Watch {
    fn new(scheduler: Arc<Scheduler>) -> Watch {
        let now = Instant::now();
        let looks = scheduler.ps.iter().map(|_| Look {
            polltick: 0,
            schedtick: 0,
            since: now,
            slice_since: now,
            slow: None,
            stranded: None,
        });
        Watch {
            looks: looks.collect(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            next_trace: scheduler.config.debug.schedtrace.map(|every| now + every),
            going_on: GoingOn::default(),
            scheduler,
        }
    }

    fn run(mut self) {
        let mut quiet = 0;
        let scheduler = self.scheduler.clone();
        let monitor = &scheduler.monitor;
        let period = scheduler
            .config
            .retake_after
            .map_or(PERIOD, |after| (after / 2).max(Duration::from_millis(1)));
        while !monitor.has_ended() {
            if quiet >= QUIET_LOOKS && self.next_trace.is_none() {
                monitor.sleep(|| {
                    scheduler.idle.count() == scheduler.procs() && !scheduler.pool.is_refused()
                });
                quiet = 0;
            }
            let at_rest = scheduler.idle.count() == scheduler.procs();
            monitor.nap(if at_rest { period * 2 } else { period });
            quiet = if self.look() { 0 } else { quiet + 1 };
            if scheduler.pool.is_refused() {
                scheduler.pool.try_again(&scheduler);
            }
            self.trace();
        }
        if let Some(stalls) = &monitor.stalls {
            self.going_on.end(stalls);
        }
    }

    fn trace(&mut self) {
        let now = Instant::now();
        if let (Some(at), Some(every)) = (self.next_trace, self.scheduler.config.debug.schedtrace)
            && now >= at
        {
            self.next_trace = Some(now + every);
            let text = trace::schedtrace(&self.scheduler);
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }

    /// Looks at every P; says whether anything has moved, or is under way.
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let mut moved = false;
        for p in 0..self.looks.len() {
            moved |= self.look_at(p, now);
        }
        if let Some(stalls) = &self.scheduler.monitor.stalls {
            moved |= self.going_on.look(stalls);
        }
        moved
    }

    fn look_at(&mut self, p: usize, now: Instant) -> bool {
        let scheduler = self.scheduler.clone();
        let state: &P = &scheduler.ps[p];
        let idle = scheduler.idle.is_idle(p);
        let polltick = state.polltick.load(Ordering::Relaxed);
        let moved = polltick != self.looks[p].polltick;
        if moved || idle {
            self.poll_ended(p, now);
            let look = &mut self.looks[p];
            look.polltick = polltick;
            look.since = now;
            look.slow = None;
        }
        if idle {
            self.looks[p].slice_since = now;
            self.looks[p].stranded = None;
            return moved;
        }
        // Before the ticks are noted down.
        self.look_for_stranded(p, state, now, moved);
        self.look_at_slice(p, state, now);
        if !moved {
            self.look_at_slow_poll(p, state, now);
        }
        true
    }

    /// A chain of hand-overs that goes on too long.
    fn look_at_slice(&mut self, p: usize, state: &P, now: Instant) {
        let look = &mut self.looks[p];
        let schedtick = state.schedtick.load(Ordering::Relaxed);
        if schedtick != look.schedtick {
            look.schedtick = schedtick;
            look.slice_since = now;
        } else if now - look.slice_since >= self.threshold() {
            state.end_slice(schedtick);
        }
    }

    /// Queued work beside an idle P, twice in a row, with nobody on the way.
    fn look_for_stranded(&mut self, p: usize, state: &P, now: Instant, moved: bool) {
        let scheduler = &self.scheduler;
        let look = &mut self.looks[p];
        if state.queue.is_empty() || scheduler.idle.count() == 0 || scheduler.idle.spinning() > 0 {
            look.stranded = None;
            return;
        }
        if !state.told.load(Ordering::Relaxed) {
            // Not a rescue: the M tells of these itself, when the poll that keeps it from that is over.
            look.stranded = None;
            if !moved || state.queue.len() > 1 {
                scheduler.submit();
            }
            return;
        }
        let cpu = state.holder().and_then(|record| record.cpu_clock.now());
        let Some((since, before)) = look.stranded.replace((now, cpu)) else {
            return;
        };
        // A task that yields alone is in the queue for a moment, again and again; and if the system does not
        // run its M just then, for longer.
        let stands = state.schedtick.load(Ordering::Relaxed) == look.schedtick;
        let ran = match (before, cpu) {
            (Some(before), Some(after)) => after.saturating_sub(before) * 2 > now - since,
            _ => true,
        };
        if (stands && ran) || state.queue.len() > 1 {
            scheduler.rescues.fetch_add(1, Ordering::Relaxed);
            if scheduler.config.debug.rescue_fatal {
                // Not `eprintln`, which the test harness would swallow.
                let _ = writeln!(
                    std::io::stderr(),
                    "gmp: rescue: {} Gs queued on P{p} beside an idle P",
                    state.queue.len()
                );
                std::process::abort();
            }
            scheduler.submit();
        }
    }

    fn threshold(&self) -> Duration {
        let after = self.scheduler.config.retake_after;
        after.unwrap_or(Duration::from_millis(10))
    }

    /// The same poll as at the last look.
    fn look_at_slow_poll(&mut self, p: usize, state: &P, now: Instant) {
        let scheduler = self.scheduler.clone();
        let look = &mut self.looks[p];
        let holder = state.holder();
        let cpu = holder.as_ref().and_then(|record| record.cpu_clock.now());
        let polltick = look.polltick;
        let lasted = now - look.since;
        let slow = look.slow.get_or_insert_with(|| Slow {
            // That of the next poll, if this one has just ended, would blame another task.
            location: state
                .location()
                .filter(|_| state.polltick.load(Ordering::Relaxed) == polltick),
            first: (now, cpu),
            last: (now, cpu),
        });
        slow.last = (now, cpu);
        let slow = *slow;
        state.slow_poll.store(polltick, Ordering::Relaxed);
        if !self.waits(p, state) {
            return;
        }
        if scheduler.idle.count() > 0 && scheduler.idle.spinning() == 0 {
            // Not a rescue: a runnext is left to its P until now, and timers and sources are its own.
            scheduler.submit();
        }
        if lasted < self.threshold() {
            return;
        }
        let Some(record) = holder else { return };
        record.preempt();
        if scheduler.config.retake_after.is_none() || !scheduler.is_multi_thread() {
            return;
        }
        if computes(slow.first, slow.last).unwrap_or(false)
            && scheduler.monitor.computing.load(Ordering::Relaxed) as isize
                >= (self.cores * COMPUTING_PER_CORE) as isize
        {
            return;
        }
        self.retake(p, state, &record, slow);
    }

    /// Whether there is something for P `p` to do while its M polls on.
    fn waits(&self, p: usize, state: &P) -> bool {
        let scheduler = &self.scheduler;
        !state.queue.is_empty()
            || !state.runnext.is_empty()
            || scheduler.netpoll().has_sources(p)
            || scheduler.timers().is_some_and(|timers| timers.is_due(p))
            || (!scheduler.global.is_empty() && scheduler.idle.count() == 0)
    }

    /// Takes P `p` from its M and gives it to another.
    fn retake(&mut self, p: usize, state: &P, record: &Arc<crate::m::Record>, slow: Slow) {
        let scheduler = &self.scheduler;
        // First the thread, then the P: a P without a thread would be worse than what we have. A
        // borrowed P has a watcher.
        let reserved = match record.borrows() {
            true => None,
            false => match scheduler.pool.reserve(scheduler) {
                Some(reserved) => Some(reserved),
                None => return,
            },
        };
        // Before the P: the M may come back the moment it is gone, and wants to know.
        let polltick = self.looks[p].polltick;
        let stall = Arc::new(slow.stall(self.looks[p].since, true));
        record.note_retaken(stall.clone());
        let same_poll = || state.polltick.load(Ordering::Relaxed) == polltick;
        if !record.tenure.take(p, same_poll) {
            if record.take_note().is_none() && stall.computes {
                // The M has come back and believed it, and is counted as having ceased to compute.
                scheduler.monitor.computing.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(reserved) = reserved {
                scheduler.pool.release(reserved);
            }
            return;
        }
        // The next M has its time, too.
        self.looks[p].slow = None;
        self.looks[p].since = Instant::now();
        if stall.computes {
            scheduler.monitor.computing.fetch_add(1, Ordering::Relaxed);
        }
        bump(&state.stats.retakes, 1);
        match reserved {
            Some(reserved) => {
                state.set_holder(None);
                reserved.hold(p);
            }
            None => scheduler.return_borrowed(p),
        }
        if scheduler.monitor.stalls.is_some() {
            self.going_on.add(stall);
        }
    }

    /// A poll that was seen to last is over, and its P was not taken away.
    fn poll_ended(&self, p: usize, now: Instant) {
        let look = &self.looks[p];
        let (Some(slow), Some(stalls)) = (look.slow, &self.scheduler.monitor.stalls) else {
            return;
        };
        if now - look.since >= self.threshold() {
            let stall = slow.stall(look.since, false);
            stalls.ended(&stall, slow.last);
        }
    }
}
