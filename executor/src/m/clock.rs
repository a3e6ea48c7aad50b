//! When a busy M has to look around: at netpoll, timers, the global queue and a neighbour.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// After this time a busy M looks at netpoll, timers and the global queue, however few its polls were.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How many polls may go by between two readings of the clock: so many slow ones may come before it is
/// noticed that they are slow.
const READ_AFTER_MAX: u32 = 16;

/// What a busy M has to look at before its next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The P that it watches.
    Neighbour,
    /// That and its own P's poller and timers, and the global queue.
    All,
}

/// Reads the clock as seldom as the polls allow, and tells when a busy P has to look around.
pub(super) struct Clock {
    polls: Cell<u32>,
    until_read: Cell<u32>,
    read_every: Cell<u32>,
    last_read: Cell<Instant>,
    last_look: Cell<Instant>,
}

impl Clock {
    pub(super) fn new() -> Clock {
        let now = Instant::now();
        Clock {
            polls: Cell::new(0),
            until_read: Cell::new(1),
            read_every: Cell::new(1),
            last_read: Cell::new(now),
            last_look: Cell::new(now),
        }
    }

    /// Counts a poll; says what is due. Everything is when `interval` polls or [`LOOK_EVERY`] have passed.
    #[inline]
    pub(super) fn tick(&self, interval: u32) -> Due {
        let polls = self.polls.get() + 1;
        self.polls.set(polls);
        if polls >= interval {
            self.polls.set(0);
            return Due::All;
        }
        let until = self.until_read.get() - 1;
        self.until_read.set(until);
        match until {
            0 => self.read(interval),
            _ => Due::Nothing,
        }
    }

    /// When the clock was read last.
    pub(super) fn last_read(&self) -> Instant {
        self.last_read.get()
    }

    /// The next poll is to be preceded by a look.
    pub(super) fn look_next(&self) {
        self.polls.set(u32::MAX - 1);
    }

    #[cold]
    fn read(&self, interval: u32) -> Due {
        let now = Instant::now();
        let passed = now - self.last_read.replace(now);
        let a_poll = passed / self.read_every.get();
        // Two reads in LOOK_EVERY: with fast polls seldom, with slow ones each time. A fast poll among slow
        // ones says little, so the distance grows step by step.
        let every = (LOOK_EVERY / 2).as_nanos() / a_poll.as_nanos().max(1);
        let most = (2 * self.read_every.get()).min(READ_AFTER_MAX);
        let every = every.clamp(1, u128::from(most.min(interval.max(1)))) as u32;
        self.read_every.set(every);
        self.until_read.set(every);
        if now - self.last_look.get() < LOOK_EVERY {
            return Due::Neighbour;
        }
        self.last_look.set(now);
        self.polls.set(0);
        Due::All
    }
}
