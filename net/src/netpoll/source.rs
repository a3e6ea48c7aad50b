//! A source: what the netpoll knows of one descriptor.
//!
//! A source begins *nowhere*. The first operation that would block registers it with the poller of
//! the P it runs on (`At`), so that sockets that never wait cost no system call, and new connections
//! spread as their tasks do. A thief that takes its events several times running moves it to its own
//! poller, and it may follow its data to the P of the sender. Closing it (`Closed`) is final. The lock
//! `home` guards where it is:
//!
//! ```text
//!               register                 close
//!   Nowhere ──────────────▶ At{p, token} ─────▶ Closed
//!      │                      │      ▲            ▲
//!      │                      └──────┘            │
//!      │                        move              │
//!      └──────────────────────────────────────────┘
//! ```
//!
//! **Invariant 1.** While a source is not `Closed`, its descriptor is open: the owner closes the
//! source before it closes or gives away the descriptor. Every system call on the descriptor made
//! here happens under the lock, after having seen that the source is not closed.
//!
//! **Invariant 2.** A source that is `At{p, token}` is registered with the poller of P `p`, with that
//! token. Between the two, during a move, it is registered with both.
//!
//! A move, by a thief that holds no lock:
//!
//! 1. Take the lock of `home`. If the source is not where the event came from (it was closed or
//!    moved meanwhile), give up.
//! 2. Register with the thief's poller. The kernel reports what the descriptor is ready for as a
//!    new edge there, whatever was reported before. If this fails, give up: nothing has changed.
//! 3. Deregister from the old poller, and leave its table.
//! 4. Set `home`.
//!
//! *Nothing is lost.* An event after step 2 is reported by the new poller. One before it, fetched
//! from the old poller but dispatched after step 3, finds its place empty and is dropped; what it
//! told of is part of the report of step 2, unless an operation has used it up since. *Waiters* are
//! kept in the source and do not notice; an event reported twice clears nothing and wakes nobody
//! twice, since wakers are taken. *Closing* waits for the lock and deregisters from wherever the
//! source is. *Another move* finds the source elsewhere than its event came from. *Shutdown* closes
//! the tables one after another and tells each tenant; a source that moves meanwhile is told by at
//! least one of the two, because a closed table takes nobody in and then the source stays.
//!
//! Lock order: `home`, then a table, then the waiters.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use parking_lot::Mutex;

use super::sys::{self, Token};
use super::waiters::Watched;
use super::{Shared, gone};
use crate::interest::Interest;

#[derive(Debug)]
pub(super) struct Source {
    watched: Watched,
    fd: RawFd,
    interest: Interest,
    netpoll: Arc<Shared>,
    home: Mutex<Home>,
}

#[derive(Clone, Copy, Debug)]
enum Home {
    Nowhere,
    At { p: usize, token: Token },
    Closed,
}

impl Source {
    /// A source for a descriptor that stays open until [`close`](Source::close).
    pub(super) fn new(fd: RawFd, interest: Interest, netpoll: Arc<Shared>) -> Source {
        Source {
            watched: Watched::new(),
            fd,
            interest,
            netpoll,
            home: Mutex::new(Home::Nowhere),
        }
    }

    #[inline]
    pub(super) fn watched(&self) -> &Watched {
        &self.watched
    }

    pub(super) fn netpoll(&self) -> &Arc<Shared> {
        &self.netpoll
    }

    /// Registers the source with the poller of the P it is used on, unless it is registered.
    #[cold]
    pub(super) fn register(self: &Arc<Source>) -> io::Result<()> {
        let mut home = self.home.lock();
        match *home {
            Home::At { .. } => return Ok(()),
            Home::Closed => return Err(gone()),
            Home::Nowhere => {}
        }
        if self.netpoll.is_shut() {
            return Err(gone());
        }
        if self.fd < 0 {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        let p = self.netpoll.p_of_caller();
        let poller = self.netpoll.poller(p);
        let token = poller.add(self, self.fd(&home), self.interest)?;
        *home = Home::At { p, token };
        self.watched.readiness().set_registered();
        Ok(())
    }

    /// Moves the source from where an event with `token` came from to the poller of P `to`.
    #[cold]
    pub(super) fn move_to(self: &Arc<Source>, from: usize, token: Token, to: usize) {
        let mut home = self.home.lock();
        match *home {
            Home::At { p, token: at } if p == from && at == token => {}
            _ => return,
        }
        let fd = self.fd(&home);
        let Ok(new) = self.netpoll.poller(to).add(self, fd, self.interest) else {
            return;
        };
        // An error means that the descriptor is not registered there, which is what is wanted.
        let _ = self.netpoll.poller(from).remove(token, fd);
        *home = Home::At { p: to, token: new };
    }

    /// Moves the source, an event for which with `token` came from the poller of P `from`, to the P from which
    /// its data seems to come.
    #[cold]
    pub(super) fn follow(self: &Arc<Source>, from: usize, token: Token) {
        let cpu = {
            let home = self.home.lock();
            match *home {
                Home::At { p, token: at } if p == from && at == token => {
                    sys::cpu_of_sender(self.fd(&home))
                }
                _ => None,
            }
        };
        if let Some(to) = cpu.and_then(|cpu| self.netpoll.p_of_sender(from, cpu)) {
            self.move_to(from, token, to);
        }
    }

    /// Deregisters the source for good and forgets who polled it last.
    pub(super) fn close(&self) -> io::Result<()> {
        let closed = {
            let mut home = self.home.lock();
            let closed = match *home {
                Home::At { p, token } => self.netpoll.poller(p).remove(token, self.fd(&home)),
                Home::Nowhere | Home::Closed => Ok(()),
            };
            *home = Home::Closed;
            closed
        };
        self.watched.forget_slots();
        closed
    }

    /// The descriptor, for as long as the lock of `home` is held.
    fn fd<'a>(&self, home: &'a Home) -> BorrowedFd<'a> {
        debug_assert!(self.fd >= 0 && !matches!(home, Home::Closed));
        // SAFETY: invariant 1: the source is not closed, and cannot be before the lock whose
        // content `home` borrows is released. `register` has seen that the number is none below 0.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    #[cfg(all(test, not(gmp_loom)))]
    fn home(&self) -> Option<(usize, Token)> {
        match *self.home.lock() {
            Home::At { p, token } => Some((p, token)),
            Home::Nowhere | Home::Closed => None,
        }
    }

    #[cfg(all(test, not(gmp_loom)))]
    pub(super) fn p(&self) -> Option<usize> {
        self.home().map(|(p, _)| p)
    }

    #[cfg(all(test, not(gmp_loom)))]
    pub(super) fn token(&self) -> Option<Token> {
        self.home().map(|(_, token)| token)
    }
}
