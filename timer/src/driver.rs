//! The timers of a runtime: a wheel a P, the runtime's clock, and the way back to the executor.
//!
//! # Who owns what
//!
//! - [`TimerDriver`] belongs to the runtime, which calls it through [`Timers`].
//! - [`Shard`] is what one P has: its wheel behind a lock, and the earliest deadline beside it. A
//!   [`Sleep`](crate::Sleep) keeps the shard alive that it is registered with, so it may outlive the
//!   runtime.
//! - An entry of a wheel belongs to the `Sleep` that registered it until the `Sleep` removes it. The driver
//!   only marks it fired and takes its waker out.
//!
//! # The lock
//!
//! A `Sleep` takes it to register, to be polled again, to be reset and to be dropped; as it registers
//! with the P it is polled on, that is nearly always the lock of the caller's own P. Whoever
//! fires takes it once for every [`BATCH`] wakers. No waker is cloned, woken or dropped under it.
//!
//! # Deadlines and ticks
//!
//! A deadline is rounded up to the next millisecond since the driver was made, the present time down:
//! so a timer is never early, and up to a millisecond late. A runtime that parks does so for
//! the exact time that is left until the tick.
//!
//! # Shutting down
//!
//! Each shard is closed under its lock: whatever was registered before is fired, whatever comes
//! later is refused. To poll a timer of a closed shard is a panic, as in tokio.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use gmp_executor::seam::{Timers, wake_all};
use gmp_executor::{Handle, context};
use parking_lot::Mutex;

use crate::clock::{self, Clock, Refusal};
use crate::coarse::{Coarse, LAG_MAX};
use crate::instant::Instant;
use crate::next::{Lowered, NEVER, Next};
use crate::wheel::{Key, Wheel};

#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// How many wakers are taken out under the lock at once.
const BATCH: usize = 32;
/// How many entries are looked at to know the earliest deadline exactly.
const SCAN_MAX: usize = 16;
/// Deadlines later than this many milliseconds (584 million years) count as this.
const TICK_MAX: u64 = NEVER - 1;

pub(crate) const TIMERS_DISABLED: Refusal = "A Tokio 1.x context was found, but timers are \
    disabled. Call `enable_time` on the runtime builder to enable timers.";

/// The timers of a runtime: what the executor calls through [`Timers`], and what a
/// [`Sleep`](crate::Sleep) finds behind the handle of the current runtime.
pub struct TimerDriver {
    shards: Box<[Arc<Shard>]>,
    shared: Arc<Shared>,
}

impl TimerDriver {
    /// Makes the timers of a runtime with `procs` Ps.
    ///
    /// Only a `pausable` clock, that of a `current_thread` runtime, can be paused; with `start_paused` it
    /// is from the beginning.
    ///
    /// # Panics
    ///
    /// With `start_paused` but without `pausable`, and when there is no P.
    #[track_caller]
    pub fn new(procs: usize, pausable: bool, start_paused: bool) -> Arc<TimerDriver> {
        assert!(procs > 0, "a runtime has a P");
        let clock = Clock::new(pausable);
        if start_paused && let Err(refusal) = clock.pause() {
            panic!("{refusal}");
        }
        let start = Instant::from_std(clock.start());
        let shared = Arc::new(Shared {
            clock,
            attached: AtomicBool::new(false),
            handle: Mutex::new(None),
        });
        let shards = (0..procs)
            .map(|p| Arc::new(Shard::new(p, start, shared.clone())))
            .collect();
        Arc::new(TimerDriver { shards, shared })
    }

    /// The timers of the runtime, if it has any.
    #[inline]
    pub(crate) fn of(handle: &Handle) -> Option<&TimerDriver> {
        handle.timers()?.as_any().downcast_ref()
    }

    /// The time by the runtime's clock.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_std(self.shared.clock.now())
    }

    #[cfg(any(feature = "test-util", all(test, not(gmp_loom))))]
    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The shard of the P that the calling thread holds, or some shard.
    #[inline]
    fn shard_here(&self, handle: &Handle) -> &Arc<Shard> {
        self.shards.get(handle.p_hint()).unwrap_or(&self.shards[0])
    }

    /// The shard of the P that the calling thread holds, if the thread is in the runtime of `shard`.
    #[inline]
    fn home<'a>(handle: &'a Handle, shard: &Shard) -> Option<&'a Arc<Shard>> {
        TimerDriver::of(handle)
            .filter(|driver| Arc::ptr_eq(&driver.shared, &shard.shared))
            .map(|driver| driver.shard_here(handle))
    }

    #[cfg(all(test, not(gmp_loom)))]
    pub(crate) fn shard(&self, p: usize) -> &Arc<Shard> {
        &self.shards[p]
    }
}

impl Timers for TimerDriver {
    fn park_timeout(&self, p: usize) -> Option<Duration> {
        let shard = self.shards.get(p)?;
        shard.next.before_park()?;
        // Exactly: who waits for a timer that is gone wakes up for nothing.
        let next = shard.refresh()?;
        if self.shared.clock.steps_by_itself() {
            return Some(Duration::ZERO);
        }
        let deadline = shard.start.checked_add(Duration::from_millis(next))?;
        Some(deadline.saturating_duration_since(self.now()))
    }

    fn is_due(&self, p: usize) -> bool {
        let due = self.shards.get(p).and_then(|shard| {
            let now = shard.next.is_due(|| shard.tick_now())?;
            // It seems so, but the timer may be gone.
            Some(shard.refresh()? <= now)
        });
        due.unwrap_or(false)
    }

    fn fire(&self, p: usize) -> usize {
        let due = self.shards.get(p).and_then(|shard| {
            let now = shard.next.is_due(|| shard.tick_now())?;
            Some(shard.fire(now))
        });
        due.unwrap_or(0)
    }

    fn auto_advance(&self) -> bool {
        if !self.shared.clock.steps_by_itself() {
            return false;
        }
        let ticks = (self.shards.iter()).filter_map(|s| s.wheel.lock().next_tick(usize::MAX));
        let Some(next) = ticks.min() else {
            return false;
        };
        // By whole milliseconds, as tokio's clock: one that was advanced by less stays as far from the next.
        let now = self.shards[0].tick_now();
        next > now && self.shared.clock.step(Duration::from_millis(next - now))
    }

    fn inhibit_auto_advance(&self, inhibit: bool) {
        if self.shared.clock.inhibit(inhibit) {
            // The only P of the runtime may be waiting for a deadline that nothing but a step can reach.
            self.shared.unpark(0);
        }
    }

    fn shutdown(&self) {
        self.shared.attached.store(true, Ordering::Relaxed);
        let handle = self.shared.handle.lock().take();
        drop(handle);
        for shard in &self.shards {
            shard.shutdown();
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for TimerDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the handle: it leads back here.
        f.debug_struct("TimerDriver")
            .field("procs", &self.shards.len())
            .finish_non_exhaustive()
    }
}

/// What the Ps of a runtime have in common; seldom written.
struct Shared {
    clock: Clock,
    /// Whether `handle` needs no more looking at: it is there, or was taken by the shutdown. Relaxed:
    /// only the lock around `handle` orders anything.
    attached: AtomicBool,
    /// The runtime's own handle, for timers that are registered from outside any runtime. The cycle
    /// (the handle holds the driver) is broken by the shutdown.
    handle: Mutex<Option<Handle>>,
}

impl Shared {
    #[cold]
    fn attach(&self, handle: &Handle) {
        let mut slot = self.handle.lock();
        if !self.attached.swap(true, Ordering::Relaxed) {
            *slot = Some(handle.clone());
        }
    }

    #[cold]
    fn unpark(&self, p: usize) {
        let handle = self.handle.lock().clone();
        if let Some(handle) = handle {
            handle.unpark(p);
        }
    }
}

/// The timers of a P. Aligned so that two Ps' are never on one cache line, or on neighbouring ones.
#[repr(align(128))]
pub(crate) struct Shard {
    p: usize,
    /// When the ticks began.
    start: Instant,
    /// The same, for a clock that is cheaper to read.
    coarse: Coarse,
    /// Set under the lock, once. Relaxed: whoever has to be sure looks under the lock.
    closed: AtomicBool,
    next: Next,
    wheel: Mutex<Wheel<Waker>>,
    shared: Arc<Shared>,
}

/// Where a timer that is reset goes.
enum Reset {
    /// It stayed with the P it was registered with, which the calling thread holds.
    Done,
    /// To the P that the calling thread holds.
    Moves,
    /// Nowhere: the calling thread is not in the timer's runtime.
    Foreign,
}

/// What [`Shard::poll`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The timer had fired. Its entry is gone.
    Fired,
    /// The timer waits, and will wake the waker.
    Waits,
    /// The timer waits, but would wake another waker.
    WakesAnother,
}

impl Shard {
    fn new(p: usize, start: Instant, shared: Arc<Shared>) -> Shard {
        Shard {
            p,
            start,
            coarse: Coarse::since(start),
            closed: AtomicBool::new(false),
            next: Next::new(),
            wheel: Mutex::new(Wheel::new()),
            shared,
        }
    }

    /// A shard of the current runtime, that of the P the thread holds if it holds one.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in one without timers.
    #[track_caller]
    pub(crate) fn current() -> Arc<Shard> {
        let found = context::with_current(|handle| {
            let driver = TimerDriver::of(handle)?;
            if !driver.shared.attached.load(Ordering::Relaxed) {
                driver.shared.attach(handle);
            }
            Some(driver.shard_here(handle).clone())
        });
        match found {
            Ok(Some(shard)) => shard,
            Ok(None) => panic!("{TIMERS_DISABLED}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// The time by the runtime's clock.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if clock::is_any_simulated() {
            return Instant::from_std(self.shared.clock.now());
        }
        Instant::from_std(std::time::Instant::now())
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The ticks of a deadline and of the present, or a time not long ago; `None` when the deadline has
    /// passed.
    #[inline]
    pub(crate) fn until(&self, deadline: Instant) -> Option<(u64, u64)> {
        let due = deadline.saturating_duration_since(self.start);
        if !clock::is_any_simulated()
            && let Some(lagging) = self.coarse.elapsed()
            && due.saturating_sub(lagging) > LAG_MAX
        {
            return Some((tick_after(due), tick_before(lagging)));
        }
        let now = self.now();
        (now < deadline).then(|| {
            let now = now.saturating_duration_since(self.start);
            (tick_after(due), tick_before(now))
        })
    }

    fn tick_now(&self) -> u64 {
        tick_before(self.now().saturating_duration_since(self.start))
    }

    /// Registers a timer with the P of the calling thread, or if the thread is not in the timer's runtime,
    /// with the P of `shard`; `shard` becomes the one it was registered with.
    ///
    /// After the shutdown there is no key, and the waker stays where it is.
    #[inline]
    pub(crate) fn register(
        shard: &mut Arc<Shard>,
        tick: u64,
        now: u64,
        waker: &mut Option<Waker>,
    ) -> Option<Key> {
        let registered = context::with_current(|handle| {
            let here = TimerDriver::home(handle, shard)?;
            if !Arc::ptr_eq(here, shard) {
                *shard = here.clone();
            }
            Some(here.insert(tick, now, waker, Some(handle)))
        });
        match registered {
            Ok(Some(key)) => key,
            _ => shard.insert(tick, now, waker, None),
        }
    }

    /// Gives the timer another deadline and registers it with the P of the calling thread; `shard`
    /// becomes the one it is registered with.
    ///
    /// # Errors
    ///
    /// After the shutdown, if it had to change the shard: the waker comes back, and the entry is gone.
    pub(crate) fn reset(shard: &mut Arc<Shard>, key: Key, tick: u64) -> Result<Key, Option<Waker>> {
        let outcome = context::with_current(|handle| match TimerDriver::home(handle, shard) {
            Some(here) if Arc::ptr_eq(here, shard) => {
                shard.reset_here(key, tick, Some(handle));
                Reset::Done
            }
            Some(_) => Reset::Moves,
            None => Reset::Foreign,
        });
        match outcome.unwrap_or(Reset::Foreign) {
            Reset::Done => Ok(key),
            Reset::Moves => {
                let mut waker = shard.remove(key);
                Shard::register(shard, tick, 0, &mut waker).ok_or(waker)
            }
            Reset::Foreign => {
                shard.reset_here(key, tick, None);
                Ok(key)
            }
        }
    }

    #[inline]
    fn insert(
        &self,
        tick: u64,
        now: u64,
        waker: &mut Option<Waker>,
        handle: Option<&Handle>,
    ) -> Option<Key> {
        let mut wheel = self.wheel.lock();
        if self.is_closed() {
            return None;
        }
        wheel.catch_up(now);
        let key = wheel.insert(tick, waker.take());
        let lowered = self.next.lower(tick);
        drop(wheel);
        self.announce(lowered, handle);
        Some(key)
    }

    fn reset_here(&self, key: Key, tick: u64, handle: Option<&Handle>) {
        let mut wheel = self.wheel.lock();
        if self.is_closed() {
            return;
        }
        wheel.reset(key, tick);
        let lowered = self.next.lower(tick);
        drop(wheel);
        self.announce(lowered, handle);
    }

    /// Tells the P's M, unless it is the caller, that it must not wait as long as it meant to.
    #[inline]
    fn announce(&self, lowered: Option<Lowered>, handle: Option<&Handle>) {
        let Some(lowered) = lowered else {
            return;
        };
        match handle {
            Some(handle) if handle.holds_p(self.p) => {}
            Some(handle) => {
                lowered.publish();
                handle.unpark(self.p);
            }
            None => {
                lowered.publish();
                self.shared.unpark(self.p);
            }
        }
    }

    /// Whether the timer has fired; removes its entry if so.
    pub(crate) fn poll(&self, key: Key, waker: &Waker) -> Polled {
        let mut wheel = self.wheel.lock();
        if wheel.is_fired(key) {
            let taken = wheel.remove(key);
            debug_assert!(taken.is_none(), "a fired entry has no waker");
            return Polled::Fired;
        }
        match wheel.value_mut(key) {
            Some(known) if known.will_wake(waker) => Polled::Waits,
            _ => Polled::WakesAnother,
        }
    }

    /// Makes the timer wake the waker; removes its entry if it has fired meanwhile.
    pub(crate) fn set_waker(&self, key: Key, waker: Waker) -> Polled {
        let mut wheel = self.wheel.lock();
        if wheel.is_fired(key) {
            let taken = wheel.remove(key);
            drop(wheel);
            drop(taken);
            return Polled::Fired;
        }
        let other = wheel.value_mut(key).replace(waker);
        drop(wheel);
        drop(other);
        Polled::Waits
    }

    pub(crate) fn is_fired(&self, key: Key) -> bool {
        self.wheel.lock().is_fired(key)
    }

    /// Removes the timer and returns its waker, for the caller to drop.
    pub(crate) fn remove(&self, key: Key) -> Option<Waker> {
        // The earliest deadline stays, if it was this one's: seldom is it looked at before another
        // timer is registered.
        self.wheel.lock().remove(key)
    }

    /// Finds out what the earliest deadline is, now that timers may be gone.
    fn refresh(&self) -> Option<u64> {
        let wheel = self.wheel.lock();
        let next = wheel.next_tick(SCAN_MAX);
        self.next.set(next);
        next
    }

    /// Fires what is due at `now`, in the order of the deadlines.
    fn fire(&self, now: u64) -> usize {
        let mut woken = 0;
        loop {
            let mut due = [const { None }; BATCH];
            let was_last = self.take_due(now, &mut due);
            woken += wake_all(due.into_iter().flatten());
            if was_last {
                return woken;
            }
        }
    }

    /// Takes the wakers of the earliest timers that are due. Says whether these were all.
    fn take_due(&self, now: u64, due: &mut [Option<Waker>]) -> bool {
        let mut wheel = self.wheel.lock();
        for room in due {
            match wheel.pop_due(now) {
                Some((_, waker)) => *room = waker,
                None => {
                    self.next.set(wheel.next_tick(SCAN_MAX));
                    return true;
                }
            }
        }
        // The earliest deadline stays what it was, in the past: others may help.
        false
    }

    fn shutdown(&self) {
        let wheel = self.wheel.lock();
        self.closed.store(true, Ordering::Relaxed);
        drop(wheel);
        self.fire(u64::MAX);
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("p", &self.p)
            .finish_non_exhaustive()
    }
}

#[inline]
fn tick_after(since: Duration) -> u64 {
    ticks(since.as_secs(), since.subsec_nanos().div_ceil(1_000_000))
}

#[inline]
fn tick_before(since: Duration) -> u64 {
    ticks(since.as_secs(), since.subsec_millis())
}

#[inline]
fn ticks(secs: u64, millis: u32) -> u64 {
    (secs.saturating_mul(1000))
        .saturating_add(millis.into())
        .min(TICK_MAX)
}
