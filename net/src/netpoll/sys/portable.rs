//! Every platform but Linux, through `polling`. Compiled and tried out on Linux, untested elsewhere.
//!
//! What is lost beside the epoll code: `polling` lets one thread wait at a time, so a thief that
//! polls while somebody waits finds nothing; hang-ups and errors are reported as far as the
//! platform tells; timeouts have the platform's precision.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polling::{Event, PollMode, Poller};

use super::{EVENTS_MAX, Token};
use crate::interest::Interest;
use crate::ready::Ready;

#[derive(Debug)]
pub(in super::super) struct Selector {
    poller: Poller,
    /// `polling` does not report its wake-up as an event; this stands for it.
    woken: AtomicBool,
}

#[cfg_attr(target_os = "linux", allow(dead_code))]
impl Selector {
    pub(in super::super) fn new() -> io::Result<Selector> {
        Ok(Selector {
            poller: Poller::new()?,
            woken: AtomicBool::new(false),
        })
    }

    pub(in super::super) fn add(
        &self,
        fd: BorrowedFd<'_>,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let key = token.to_u64() as usize;
        let mut event = Event::none(key);
        event.readable = interest.is_readable() || interest.is_error();
        event.writable = interest.is_writable();
        if interest.has_priority() {
            event.set_priority(true);
        }
        // SAFETY: whoever registers a source deletes it before its descriptor is closed (`source.rs`,
        // invariant 1).
        unsafe {
            self.poller
                .add_with_mode(fd.as_raw_fd(), event, PollMode::Edge)
        }
    }

    pub(in super::super) fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.delete(fd)
    }

    pub(in super::super) fn wake(&self) -> io::Result<()> {
        // Release: pairs with the Acquire in `wait`.
        self.woken.store(true, Ordering::Release);
        self.poller.notify()
    }

    pub(in super::super) fn wait(
        &self,
        events: &mut Events,
        max: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        events.resize(max);
        events.list.clear();
        self.poller.wait(&mut events.list, timeout)?;
        // Acquire: pairs with the Release in `wake`.
        events.woken = self.woken.swap(false, Ordering::Acquire);
        Ok(())
    }
}

pub(in super::super) struct Events {
    list: polling::Events,
    capacity: usize,
    woken: bool,
}

#[cfg_attr(target_os = "linux", allow(dead_code))]
impl Events {
    pub(in super::super) fn new() -> Events {
        let mut events = Events {
            list: polling::Events::new(),
            capacity: 0,
            woken: false,
        };
        events.resize(EVENTS_MAX);
        events
    }

    /// `polling` fetches as many events as the list has room for.
    fn resize(&mut self, max: usize) {
        if self.capacity == max {
            return;
        }
        if let Some(capacity) = NonZeroUsize::new(max) {
            self.list = polling::Events::with_capacity(capacity);
            self.capacity = max;
        }
    }

    pub(in super::super) fn iter(&self) -> impl Iterator<Item = (Token, Ready)> + '_ {
        self.list
            .iter()
            .map(|event| (Token::from_u64(event.key as u64), ready_of(&event)))
    }

    pub(in super::super) fn was_woken(&self) -> bool {
        self.woken
    }

    pub(in super::super) fn len(&self) -> usize {
        self.list.len()
    }
}

fn ready_of(event: &Event) -> Ready {
    let mut ready = Ready::EMPTY;
    if event.readable {
        ready |= Ready::READABLE;
    }
    if event.writable {
        ready |= Ready::WRITABLE;
    }
    if event.is_priority() {
        ready |= Ready::from_bits(1 << 4);
    }
    if event.is_interrupt() {
        ready |= Ready::CLOSED;
    }
    if event.is_err() == Some(true) {
        ready |= Ready::ERROR | Ready::READABLE | Ready::WRITABLE;
    }
    ready
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    const TOKEN: Token = Token {
        index: 1,
        generation: 2,
    };

    #[test]
    fn edges_and_wake_ups() {
        let selector = Selector::new().unwrap();
        let mut events = Events::new();
        let (a, mut b) = UnixStream::pair().unwrap();
        selector.add(a.as_fd(), TOKEN, Interest::READABLE).unwrap();
        b.write_all(b"x").unwrap();
        selector.wait(&mut events, 8, None).unwrap();
        let got: Vec<_> = events.iter().collect();
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].0, TOKEN);
        assert!(got[0].1.is_readable() && !events.was_woken());
        selector.wait(&mut events, 8, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.len(), 0);
        selector.wake().unwrap();
        selector.wait(&mut events, EVENTS_MAX, None).unwrap();
        assert!(events.was_woken());
        drop(b);
        selector.wait(&mut events, 8, None).unwrap();
        assert!(events.iter().all(|(_, ready)| ready.is_readable()));
        selector.delete(a.as_fd()).unwrap();
    }

    #[test]
    fn a_hang_up_closes_both_directions() {
        let selector = Selector::new().unwrap();
        let mut events = Events::new();
        let (a, b) = UnixStream::pair().unwrap();
        selector.add(a.as_fd(), TOKEN, Interest::SOCKET).unwrap();
        drop(b);
        selector.wait(&mut events, 8, None).unwrap();
        let ready = events.iter().next().unwrap().1;
        assert!(ready.is_read_closed() && ready.is_write_closed());
        selector.delete(a.as_fd()).unwrap();
    }
}
