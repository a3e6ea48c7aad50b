//! The threads: Ms that hold a P, spare ones that wait for a P, and the blocking pool, all from one stock.
//!
//! A thread has a *duty*: to hold a P, or to run blocking jobs. When it has done its duty it is idle
//! for the keep-alive, and then ends.
//!
//! # Who wakes whom
//!
//! Blocking jobs are in a lock-free queue. At most one thread *searches* it at a time: it was woken
//! for a job and has not taken one yet. A submitter that sees a searcher wakes nobody; the searcher
//! that takes a job while more are queued passes the search on. So small jobs in a row are run by one
//! thread without a wake-up each, and a job that blocks never holds up the one behind it. The rules are
//! those of spinning Ms (`idle`): push, fence, look at `searching`; cease searching, fence, look at the queue.
//!
//! # Bounds
//!
//! `max_blocking_threads` bounds the threads that run jobs, `max_extra_threads` those that exist for
//! Ps that were taken away; so a full blocking pool never keeps a P from being retaken.
//!
//! A pool at its bound whose jobs all wait in `block_on` may wait for itself: for a file, which only
//! the pool can read. After [`PATIENCE`] one more thread runs what is queued.
//!
//! # Refused threads
//!
//! When the operating system refuses a thread and nobody else runs jobs, the job waits, and the monitor,
//! or the thread that drives a `current_thread` runtime, tries again: [`Pool::try_again`].

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use parking_lot::{Condvar, Mutex};

use crate::context;
use crate::handle::Handle;
use crate::m::{Left, M};
use crate::scheduler::Scheduler;
use crate::task::G;

/// How long all jobs may wait in `block_on` before the pool exceeds its bound.
const PATIENCE: Duration = Duration::from_millis(200);

thread_local! {
    /// The scheduler whose blocking jobs this thread runs.
    static RUNS_JOBS_OF: RefCell<Option<Arc<Scheduler>>> = const { RefCell::new(None) };
}

/// What a thread is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Run Gs with this P.
    Hold(usize),
    /// Run blocking jobs; it counts as the searcher.
    Search,
}

/// Where an idle thread waits.
struct Seat {
    duty: Mutex<Option<Duty>>,
    given: Condvar,
    /// Where the blocking job was spawned that its thread runs, or null.
    job: AtomicPtr<Location<'static>>,
}

pub(crate) struct Pool {
    jobs: SegQueue<G>,
    /// Whether a thread is on its way to the queue.
    searching: AtomicBool,
    /// Threads that run jobs, or search.
    blocking: AtomicUsize,
    /// Threads whose jobs wait in `block_on`.
    waiting: Mutex<Vec<Thread>>,
    /// The system has refused a thread that a job needs.
    refused: AtomicBool,
    state: Mutex<State>,
    /// Signalled when a thread ends.
    ended: Condvar,
}

struct State {
    idle: Vec<Arc<Seat>>,
    /// The seats of all threads.
    seats: Vec<Arc<Seat>>,
    threads: usize,
    /// Ps that could not be given to anybody, since no thread could be made.
    orphans: VecDeque<usize>,
    closing: bool,
    said_full: bool,
    said_stuck: bool,
    said_refused: bool,
}

/// What became of the attempt to make a thread search.
enum Started {
    Yes,
    /// As many threads run jobs as may.
    NoRoom,
    /// The system has refused the thread.
    Refused,
    /// The runtime has closed, and its last thread has ended.
    Deserted,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool {
            jobs: SegQueue::new(),
            searching: AtomicBool::new(false),
            blocking: AtomicUsize::new(0),
            waiting: Mutex::new(Vec::new()),
            refused: AtomicBool::new(false),
            state: Mutex::new(State {
                idle: Vec::new(),
                seats: Vec::new(),
                threads: 0,
                orphans: VecDeque::new(),
                closing: false,
                said_full: false,
                said_stuck: false,
                said_refused: false,
            }),
            ended: Condvar::new(),
        }
    }

    /// All threads that exist.
    pub(crate) fn threads(&self) -> usize {
        self.state.lock().threads
    }

    /// Threads that wait for something to do.
    pub(crate) fn idle_threads(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Threads that run a blocking job or look for one.
    pub(crate) fn blocking_threads(&self) -> usize {
        self.blocking.load(Ordering::Relaxed)
    }

    /// Blocking jobs that no thread has taken yet.
    pub(crate) fn queued_jobs(&self) -> usize {
        self.jobs.len()
    }

    // ----- Blocking jobs -----

    /// Queues a blocking job and sees to it that a thread gets to it.
    pub(crate) fn submit(&self, scheduler: &Arc<Scheduler>, job: G) {
        let mandatory = job.metadata().is_mandatory();
        self.jobs.push(job);
        // SeqCst fence: between the push and the look at `searching`; pairs with the one in `cease`.
        fence(Ordering::SeqCst);
        if self.searching.load(Ordering::SeqCst) {
            return;
        }
        self.search(scheduler, mandatory);
    }

    /// Makes one thread search, unless one does, or the pool is at its bound.
    fn search(&self, scheduler: &Arc<Scheduler>, mandatory: bool) {
        let max = scheduler.config.max_blocking_threads;
        if self.send_searcher(scheduler, max, mandatory) {
            return;
        }
        // All that could run it may be waiting for it.
        let waiting = self.waiting.lock();
        if waiting.len() >= max
            && let Some(thread) = waiting.last()
        {
            thread.unpark();
        }
    }

    /// Makes one thread search, if fewer than `max` run jobs; `false` if there are as many.
    fn send_searcher(&self, scheduler: &Arc<Scheduler>, max: usize, mandatory: bool) -> bool {
        loop {
            if self.searching.swap(true, Ordering::SeqCst) {
                return true;
            }
            let started = self.start_searcher(scheduler, max, mandatory);
            if !matches!(started, Started::Yes) {
                self.searching.store(false, Ordering::SeqCst);
            }
            match started {
                Started::Yes => return true,
                Started::Deserted => {
                    self.drop_jobs();
                    return true;
                }
                Started::Refused => {
                    self.refused.store(true, Ordering::SeqCst);
                    scheduler.thread_was_refused();
                    return true;
                }
                Started::NoRoom => {}
            }
            // SeqCst: a thread that has run its last job makes room, looks at the queue and sees
            // `searching`, in this order; here `searching` comes first.
            if self.jobs.is_empty() || self.blocking.load(Ordering::SeqCst) >= max {
                return false;
            }
        }
    }

    /// Gives an idle or new thread the search.
    fn start_searcher(&self, scheduler: &Arc<Scheduler>, max: usize, mandatory: bool) -> Started {
        let mut state = self.state.lock();
        if state.closing && state.threads == 0 && !mandatory {
            return Started::Deserted;
        }
        if self.blocking.load(Ordering::SeqCst) >= max {
            return Started::NoRoom;
        }
        self.blocking.fetch_add(1, Ordering::SeqCst);
        if let Some(seat) = state.idle.pop() {
            drop(state);
            seat.give(Duty::Search);
            return Started::Yes;
        }
        let Err(error) = self.start_thread(&mut state, scheduler, Duty::Search) else {
            return Started::Yes;
        };
        self.blocking.fetch_sub(1, Ordering::SeqCst);
        if !std::mem::replace(&mut state.said_refused, true) {
            eprintln!("gmp: cannot start a thread: {error}; blocking jobs wait for one");
        }
        Started::Refused
    }

    /// Whether jobs wait for a thread that the system has refused.
    pub(crate) fn is_refused(&self) -> bool {
        // SeqCst: raised before whoever submits breaks a wait, and read after a P was marked idle.
        self.refused.load(Ordering::SeqCst)
    }

    /// Once more after a refusal.
    #[cold]
    pub(crate) fn try_again(&self, scheduler: &Arc<Scheduler>) {
        self.refused.store(false, Ordering::SeqCst);
        if !self.jobs.is_empty() {
            self.search(scheduler, false);
        }
    }

    // ----- Jobs that wait in `block_on` -----

    /// Whether every thread that may run jobs waits in `block_on` while some are queued.
    fn is_stuck(&self, scheduler: &Scheduler) -> bool {
        let waiting = self.waiting.lock().len();
        waiting >= scheduler.config.max_blocking_threads
            && waiting >= self.blocking.load(Ordering::SeqCst)
            && !self.jobs.is_empty()
    }

    /// Parks the thread, which runs a job, until `is_woken`.
    fn wait_in_job(&self, scheduler: &Arc<Scheduler>, is_woken: impl Fn() -> bool) {
        // Under the lock, as in `search`: either the job that is queued is seen here, or this thread there.
        self.waiting.lock().push(thread::current());
        while !is_woken() {
            if !self.is_stuck(scheduler) {
                thread::park();
                continue;
            }
            thread::park_timeout(PATIENCE);
            if self.is_stuck(scheduler) {
                self.exceed(scheduler);
            }
        }
        let this = thread::current().id();
        let mut waiting = self.waiting.lock();
        if let Some(position) = waiting.iter().position(|thread| thread.id() == this) {
            waiting.swap_remove(position);
        }
    }

    /// Lets one more thread run jobs than is allowed.
    #[cold]
    fn exceed(&self, scheduler: &Arc<Scheduler>) {
        let config = &scheduler.config;
        let blocking = self.blocking.load(Ordering::SeqCst);
        let said = std::mem::replace(&mut self.state.lock().said_stuck, true);
        if !said {
            eprintln!(
                "gmp: all {blocking} threads of the blocking pool wait in block_on, and {} jobs are \
                 queued; one more thread runs them (see Builder::max_blocking_threads)",
                self.jobs.len()
            );
        }
        let most = config
            .max_blocking_threads
            .saturating_add(config.max_extra_threads);
        self.send_searcher(scheduler, (blocking + 1).min(most), false);
    }

    /// Runs jobs until there are none. The caller counts as searching.
    fn run_jobs(&self, scheduler: &Arc<Scheduler>, seat: &Seat) {
        let _runs = RunsJobs::of(scheduler);
        let mut searching = true;
        loop {
            let Some(job) = self.jobs.pop() else {
                if searching {
                    self.searching.store(false, Ordering::SeqCst);
                    searching = false;
                }
                // SeqCst fence: between ceasing to search and the last look; pairs with `submit`.
                fence(Ordering::SeqCst);
                if self.jobs.is_empty() {
                    break;
                }
                continue;
            };
            if std::mem::take(&mut searching) {
                self.searching.store(false, Ordering::SeqCst);
                fence(Ordering::SeqCst);
            }
            if !self.jobs.is_empty() && !self.searching.load(Ordering::SeqCst) {
                self.search(scheduler, false);
            }
            let location = ptr::from_ref(job.metadata().location());
            seat.job.store(location.cast_mut(), Ordering::Relaxed);
            run_job(job);
            seat.job.store(ptr::null_mut(), Ordering::Relaxed);
        }
        // SeqCst: room is made before the last look at the queue; pairs with `send_searcher`, where a job
        // is queued before it is looked for room.
        self.blocking.fetch_sub(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !self.jobs.is_empty() {
            self.search(scheduler, false);
        }
    }

    /// Drops every queued job: its handle says cancelled.
    fn drop_jobs(&self) {
        while let Some(job) = self.jobs.pop() {
            drop_job(job);
        }
    }

    // ----- Ps -----

    /// Starts the M of P `p`.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a thread.
    pub(crate) fn start_m(&self, scheduler: &Arc<Scheduler>, p: usize) -> io::Result<()> {
        let mut state = self.state.lock();
        self.start_thread(&mut state, scheduler, Duty::Hold(p))
    }

    /// Takes an idle thread out, or makes one, for a P that is about to be taken from its M.
    pub(crate) fn reserve(&self, scheduler: &Arc<Scheduler>) -> Option<Reserved> {
        let mut state = self.state.lock();
        if let Some(seat) = state.idle.pop() {
            return Some(Reserved(seat));
        }
        let extra =
            state.threads - (scheduler.procs() + self.blocking_threads()).min(state.threads);
        if extra >= scheduler.config.max_extra_threads {
            if !std::mem::replace(&mut state.said_full, true) {
                eprintln!(
                    "gmp: {extra} threads beyond one a worker are blocked in tasks; their Ps are \
                     not taken away any more (see Builder::max_extra_threads)"
                );
            }
            return None;
        }
        let seat = Arc::new(Seat::new());
        let started = self.start_seated(&mut state, scheduler, None, seat.clone());
        started.ok().map(|()| Reserved(seat))
    }

    /// Hands P `p` to an idle or new thread.
    pub(crate) fn hold(&self, scheduler: &Arc<Scheduler>, p: usize) {
        match self.reserve(scheduler) {
            Some(reserved) => reserved.hold(p),
            // The next thread that becomes idle takes it.
            None => self.state.lock().orphans.push_back(p),
        }
    }

    /// Puts a reserved thread back.
    pub(crate) fn release(&self, reserved: Reserved) {
        let mut state = self.state.lock();
        if !state.closing {
            return state.idle.push(reserved.0);
        }
        drop(state);
        // `close` has emptied the list: this one has to be sent home too.
        self.blocking.fetch_add(1, Ordering::SeqCst);
        reserved.0.give(Duty::Search);
    }

    // ----- Threads -----

    fn start_thread(
        &self,
        state: &mut State,
        scheduler: &Arc<Scheduler>,
        duty: Duty,
    ) -> io::Result<()> {
        self.start_seated(state, scheduler, Some(duty), Arc::new(Seat::new()))
    }

    fn start_seated(
        &self,
        state: &mut State,
        scheduler: &Arc<Scheduler>,
        duty: Option<Duty>,
        seat: Arc<Seat>,
    ) -> io::Result<()> {
        let Some(handle) = scheduler.handle() else {
            return Err(io::Error::other("the runtime is gone"));
        };
        let config = &scheduler.config;
        let mut builder = thread::Builder::new().name((config.thread_name)());
        if let Some(size) = config.stack_size {
            builder = builder.stack_size(size);
        }
        let scheduler = scheduler.clone();
        let its_own = seat.clone();
        builder.spawn(move || thread_main(scheduler, handle, its_own, duty))?;
        state.seats.push(seat);
        state.threads += 1;
        Ok(())
    }

    /// Waits for a duty; `None` after the keep-alive, or when the runtime closes.
    fn idle(&self, seat: &Arc<Seat>, keep_alive: Duration, seated: bool) -> Option<Duty> {
        if !seated {
            let mut state = self.state.lock();
            if let Some(p) = state.orphans.pop_front() {
                return Some(Duty::Hold(p));
            }
            if state.closing {
                return None;
            }
            state.idle.push(seat.clone());
        }
        let deadline = Instant::now().checked_add(keep_alive);
        loop {
            if let Some(duty) = seat.wait(deadline) {
                return Some(duty);
            }
            let mut state = self.state.lock();
            let position = state.idle.iter().position(|other| Arc::ptr_eq(other, seat));
            if let Some(position) = position {
                state.idle.remove(position);
                return None;
            }
            // Somebody took the seat out and is about to give a duty.
            drop(state);
            if let Some(duty) = seat.wait(None) {
                return Some(duty);
            }
        }
    }

    fn thread_ends(&self, seat: &Arc<Seat>) {
        let mut state = self.state.lock();
        if let Some(position) = state
            .seats
            .iter()
            .position(|other| Arc::ptr_eq(other, seat))
        {
            state.seats.swap_remove(position);
        }
        state.threads -= 1;
        let last = state.threads == 0 && state.closing;
        drop(state);
        if last {
            self.drop_jobs();
        }
        self.ended.notify_all();
    }

    // ----- Shutdown -----

    /// Idle threads end, and every other one when it has done its duty, and the queue is empty: as in
    /// tokio, jobs that were queued before are run as long as there is a thread.
    pub(crate) fn close(&self) {
        let idle = {
            let mut state = self.state.lock();
            state.closing = true;
            std::mem::take(&mut state.idle)
        };
        if self.threads() == 0 {
            self.drop_jobs();
        }
        for seat in idle {
            // A searcher finds what is queued, or nothing, and ends.
            self.blocking.fetch_add(1, Ordering::SeqCst);
            seat.give(Duty::Search);
        }
    }

    /// Names the blocking jobs that are not done.
    #[cold]
    pub(crate) fn report_jobs(&self) {
        let locations: BTreeSet<_> = {
            let state = self.state.lock();
            let jobs = state.seats.iter().filter_map(|seat| seat.job());
            jobs.map(ToString::to_string).collect()
        };
        for location in locations {
            eprintln!("gmp: the shutdown is held up by a blocking job spawned at {location}");
        }
    }

    /// Waits until every thread has ended; `false` if `timeout` passed first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.state.lock();
        while state.threads > 0 {
            match deadline {
                None => self.ended.wait(&mut state),
                Some(deadline) => {
                    if self.ended.wait_until(&mut state, deadline).timed_out() {
                        return state.threads == 0;
                    }
                }
            }
        }
        true
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// An idle thread, set aside for a P.
#[must_use]
pub(crate) struct Reserved(Arc<Seat>);

impl Reserved {
    pub(crate) fn hold(self, p: usize) {
        self.0.give(Duty::Hold(p));
    }
}

impl Seat {
    fn new() -> Seat {
        Seat {
            duty: Mutex::new(None),
            given: Condvar::new(),
            job: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Where the job was spawned that the thread runs.
    fn job(&self) -> Option<&'static Location<'static>> {
        // SAFETY: only `&'static Location`s are ever stored, or null.
        unsafe { self.job.load(Ordering::Relaxed).as_ref() }
    }

    fn give(&self, duty: Duty) {
        let before = self.duty.lock().replace(duty);
        debug_assert_eq!(before, None, "a thread is given two duties");
        self.given.notify_one();
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<Duty> {
        let mut duty = self.duty.lock();
        while duty.is_none() {
            match deadline {
                None => self.given.wait(&mut duty),
                Some(deadline) => {
                    if self.given.wait_until(&mut duty, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        duty.take()
    }
}

fn run_job(job: G) {
    let _free = context::exit_runtime();
    // The body catches its panics; what is left is a waker of somebody else's.
    let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
}

fn drop_job(job: G) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
}

/// Marks the thread as one that runs the jobs of a scheduler.
struct RunsJobs;

impl RunsJobs {
    fn of(scheduler: &Arc<Scheduler>) -> RunsJobs {
        let scheduler = scheduler.clone();
        let _ = RUNS_JOBS_OF.try_with(|of| of.replace(Some(scheduler)));
        RunsJobs
    }
}

impl Drop for RunsJobs {
    fn drop(&mut self) {
        let _ = RUNS_JOBS_OF.try_with(RefCell::take);
    }
}

/// Parks the thread until `is_woken`; whoever makes it so unparks the thread. For `block_on`, which
/// may be part of a blocking job.
pub(crate) fn park_until(is_woken: impl Fn() -> bool) {
    let runs_jobs_of = RUNS_JOBS_OF.try_with(|of| of.borrow().clone());
    if let Ok(Some(scheduler)) = runs_jobs_of {
        return scheduler.pool.wait_in_job(&scheduler, is_woken);
    }
    while !is_woken() {
        thread::park();
    }
}

/// The life of a thread.
fn thread_main(
    scheduler: Arc<Scheduler>,
    handle: Handle,
    seat: Arc<Seat>,
    first_duty: Option<Duty>,
) {
    let entered = handle.enter();
    if let Some(hook) = &scheduler.config.on_thread_start {
        hook();
    }
    let m = M::new(scheduler.clone());
    let keep_alive = scheduler.config.keep_alive;
    let mut next = first_duty.or_else(|| scheduler.pool.idle(&seat, keep_alive, true));
    while let Some(duty) = next {
        match duty {
            Duty::Hold(p) => {
                let _entered = context::enter_runtime(true);
                if m.run(p) == Left::Closed {
                    break;
                }
            }
            Duty::Search => scheduler.pool.run_jobs(&scheduler, &seat),
        }
        next = scheduler.pool.idle(&seat, keep_alive, false);
    }
    drop(m);
    if let Some(hook) = &scheduler.config.on_thread_stop {
        hook();
    }
    drop(entered);
    scheduler.pool.thread_ends(&seat);
}
