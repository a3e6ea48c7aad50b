//! The poller of one P: its selector and the table of the sources registered there.
//!
//! Events carry a [`Token`]: a place in the table and the generation of its tenant. An event may be
//! fetched by one thread while another deregisters the source; when it is dispatched, the place is
//! empty or has a tenant of another generation, and the event is dropped. The table owns a reference
//! to each source, so a source lives at least as long as an event can name it.
//!
//! The table's lock is taken once for a batch of [`BATCH`] events. Below it only the waiters' lock
//! of a source is taken; nobody is woken under either.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use slab::Slab;

use super::source::Source;
pub(super) use super::sys::EVENTS_MAX;
use super::sys::{Events, Selector, Token};
use super::waiters::WakerBatch;
use super::wakeup::Wakeup;
use super::{gone, sys};
use crate::interest::Interest;
use crate::ready::Ready;

/// How many events are dispatched under one turn of the table's lock.
const BATCH: usize = 64;

/// The most events that a poll that does not wait takes: half of what a P's queue holds, so that a
/// busy P is not flooded. The rest stays in the kernel for the next poll, or for a thief.
pub(super) const EVENTS_MAX_BUSY: usize = 128;

/// After how many events taken in a row by the same thief a source moves to the thief's poller.
const STEALS_TO_MOVE: u32 = 4;

/// After how many events a source is first asked where its data comes from; then after twice as many each time.
const EVENTS_TO_FOLLOW: u32 = 16;

const NO_CPU: usize = usize::MAX;

// Keeps the pollers of different Ps on different cache lines.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Poller {
    selector: Selector,
    wakeup: Wakeup,
    table: Mutex<Table>,
    /// The number of sources in the table, for those who don't want its lock.
    sources: AtomicUsize,
    /// Where the M of this poller's P ran when it polled last.
    cpu: AtomicUsize,
    /// The most events that a poll takes, when it waits and when it does not.
    max_waiting: usize,
    max_busy: usize,
}

#[derive(Debug, Default)]
struct Table {
    tenants: Slab<Tenant>,
    /// The generation of the next tenant.
    generation: u32,
    /// The runtime is gone: nobody moves in any more.
    closed: bool,
}

#[derive(Debug)]
struct Tenant {
    generation: u32,
    source: Arc<Source>,
    /// The P whose M took the last event that woke somebody, unless that was this poller's own P.
    thief: usize,
    /// How many such events it took in a row.
    steals: u32,
    /// How many events that woke somebody the poller's own P took.
    events: u32,
}

/// What is to become of a source to whom an event was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It moves to the thief.
    Moves,
    /// It follows its data, if that comes from another P.
    Follows,
}

/// A thread's memory for one poll.
pub(super) struct Buffers {
    events: Events,
    wakers: WakerBatch,
    /// Sources to be moved to the thief.
    moving: Vec<(Token, Arc<Source>)>,
    /// Sources to be asked where their data comes from.
    following: Vec<(Token, Arc<Source>)>,
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers {
            events: Events::new(),
            wakers: WakerBatch::default(),
            moving: Vec::new(),
            following: Vec::new(),
        }
    }

    /// The sources that the last poll found to belong to the thief.
    pub(super) fn moving(&mut self) -> impl Iterator<Item = (Token, Arc<Source>)> + '_ {
        self.moving.drain(..)
    }

    /// The sources that may follow their data to another P.
    pub(super) fn following(&mut self) -> impl Iterator<Item = (Token, Arc<Source>)> + '_ {
        self.following.drain(..)
    }
}

impl Poller {
    pub(super) fn new(waiting: usize, busy: usize) -> io::Result<Poller> {
        Ok(Poller {
            selector: Selector::new()?,
            wakeup: Wakeup::new(),
            table: Mutex::new(Table::default()),
            sources: AtomicUsize::new(0),
            cpu: AtomicUsize::new(NO_CPU),
            max_waiting: waiting.min(EVENTS_MAX),
            max_busy: busy.min(EVENTS_MAX),
        })
    }

    pub(super) fn has_sources(&self) -> bool {
        // Relaxed: a hint.
        self.sources.load(Ordering::Relaxed) > 0
    }

    /// Whether the M of this poller's P ran on `cpu` when it polled last.
    pub(super) fn ran_on(&self, cpu: usize) -> bool {
        // Relaxed: a hint.
        self.cpu.load(Ordering::Relaxed) == cpu
    }

    /// Makes a wait return, now or the next time.
    pub(super) fn notify(&self) {
        if self.wakeup.notify() {
            self.break_wait();
        }
    }

    fn break_wait(&self) {
        self.selector
            .wake()
            .expect("the descriptor that breaks a wait is open as long as its poller");
    }

    /// Fetches events and dispatches them; returns how many wakers were woken. `thief` is the P of
    /// a caller to whom this poller does not belong.
    pub(super) fn poll(
        &self,
        thief: Option<usize>,
        timeout: Option<Duration>,
        buffers: &mut Buffers,
    ) -> io::Result<usize> {
        self.fetch(timeout, buffers)?;
        if thief.is_none() {
            let cpu = sys::current_cpu().unwrap_or(NO_CPU);
            self.cpu.store(cpu, Ordering::Relaxed);
        }
        Ok(self.dispatch(thief, buffers))
    }

    pub(super) fn fetch(&self, timeout: Option<Duration>, buffers: &mut Buffers) -> io::Result<()> {
        let events = &mut buffers.events;
        if timeout != Some(Duration::ZERO)
            && let Some(_waiting) = self.wakeup.begin_wait()
        {
            return self.selector_wait(events, self.max_waiting, timeout);
        }
        self.selector_wait(events, self.max_busy, Some(Duration::ZERO))?;
        if events.was_woken() && self.wakeup.took_edge() {
            self.break_wait();
        }
        Ok(())
    }

    /// Hands the fetched events to their sources and wakes who waited.
    pub(super) fn dispatch(&self, thief: Option<usize>, buffers: &mut Buffers) -> usize {
        let mut events = buffers.events.iter();
        let mut left = buffers.events.len();
        let mut woken = 0;
        while left > 0 {
            let batch = events.by_ref().take(BATCH);
            self.deliver(
                batch,
                thief,
                buffers.wakers.as_mut(),
                &mut buffers.moving,
                &mut buffers.following,
            );
            woken += buffers.wakers.wake();
            left = left.saturating_sub(BATCH);
        }
        woken
    }

    fn selector_wait(
        &self,
        events: &mut Events,
        max: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match self.selector.wait(events, max, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            done => done,
        }
    }

    fn deliver(
        &self,
        events: impl Iterator<Item = (Token, Ready)>,
        thief: Option<usize>,
        wakers: &mut Vec<Waker>,
        moving: &mut Vec<(Token, Arc<Source>)>,
        following: &mut Vec<(Token, Arc<Source>)>,
    ) {
        let mut table = self.table.lock();
        for (token, ready) in events {
            let Some(tenant) = table.tenant(token) else {
                continue;
            };
            let before = wakers.len();
            tenant.source.watched().deliver(ready, wakers);
            if wakers.len() == before {
                continue;
            }
            match tenant.taken_by(thief) {
                Fate::Stays => {}
                Fate::Moves => moving.push((token, tenant.source.clone())),
                Fate::Follows => following.push((token, tenant.source.clone())),
            }
        }
    }

    /// Gives the source a place in the table and registers its descriptor.
    pub(super) fn add(
        &self,
        source: &Arc<Source>,
        fd: BorrowedFd<'_>,
        interest: Interest,
    ) -> io::Result<Token> {
        let token = self.move_in(source)?;
        if let Err(error) = self.selector.add(fd, token, interest) {
            self.move_out(token);
            return Err(error);
        }
        Ok(token)
    }

    /// Deregisters a descriptor and takes its source out of the table.
    ///
    /// When the system fails (the descriptor was closed behind the runtime's back) the source
    /// leaves the table all the same: events of a duplicate that lives on find its place empty.
    pub(super) fn remove(&self, token: Token, fd: BorrowedFd<'_>) -> io::Result<()> {
        let deleted = self.selector.delete(fd);
        self.move_out(token);
        deleted
    }

    fn move_in(&self, source: &Arc<Source>) -> io::Result<Token> {
        let source = source.clone();
        let mut table = self.table.lock();
        if table.closed {
            return Err(gone());
        }
        let token = table.insert(source)?;
        self.sources.store(table.tenants.len(), Ordering::Relaxed);
        Ok(token)
    }

    fn move_out(&self, token: Token) {
        let tenant = {
            let mut table = self.table.lock();
            let tenant = table.remove(token);
            self.sources.store(table.tenants.len(), Ordering::Relaxed);
            tenant
        };
        drop(tenant);
    }

    /// Everybody moves out and is woken to see that the runtime is gone.
    pub(super) fn shutdown(&self, wakers: &mut WakerBatch) {
        let tenants = {
            let mut table = self.table.lock();
            table.closed = true;
            self.sources.store(0, Ordering::Relaxed);
            std::mem::take(&mut table.tenants)
        };
        for (_, tenant) in &tenants {
            tenant.source.watched().shutdown(wakers.as_mut());
        }
        wakers.wake();
        drop(tenants);
    }
}

impl Table {
    fn insert(&mut self, source: Arc<Source>) -> io::Result<Token> {
        let entry = self.tenants.vacant_entry();
        let index = u32::try_from(entry.key())
            .ok()
            .filter(|index| *index < sys::INDEX_MAX)
            .ok_or_else(|| io::Error::other("too many descriptors"))?;
        let generation = self.generation;
        self.generation = generation.wrapping_add(1);
        entry.insert(Tenant {
            generation,
            source,
            thief: usize::MAX,
            steals: 0,
            events: 0,
        });
        Ok(Token { index, generation })
    }

    fn tenant(&mut self, token: Token) -> Option<&mut Tenant> {
        self.tenants
            .get_mut(token.index as usize)
            .filter(|tenant| tenant.generation == token.generation)
    }

    fn remove(&mut self, token: Token) -> Option<Tenant> {
        self.tenant(token)?;
        self.tenants.try_remove(token.index as usize)
    }
}

impl Tenant {
    /// Takes note of who took an event.
    fn taken_by(&mut self, thief: Option<usize>) -> Fate {
        let Some(thief) = thief else {
            self.steals = 0;
            self.events = self.events.saturating_add(1);
            return match self.events >= EVENTS_TO_FOLLOW && self.events.is_power_of_two() {
                true => Fate::Follows,
                false => Fate::Stays,
            };
        };
        if self.thief != thief {
            self.thief = thief;
            self.steals = 0;
        }
        self.steals += 1;
        match self.steals == STEALS_TO_MOVE {
            true => Fate::Moves,
            false => Fate::Stays,
        }
    }
}
