//! Linux: epoll, an eventfd, and one system call a wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polling::Poller;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::{EVENTS_MAX, Token};
use crate::interest::Interest;
use crate::ready::Ready;

/// No timeout is longer than this (12 days): then neither its seconds nor its milliseconds overflow
/// anywhere, and a wait that ends early is none the worse.
const TIMEOUT_MAX: Duration = Duration::from_secs(1 << 20);

/// Whether the kernel lacks `epoll_pwait2` (older than 5.11), or a filter forbids it.
static NO_PWAIT2: AtomicBool = AtomicBool::new(false);

/// An epoll instance with an eventfd that breaks its wait.
#[derive(Debug)]
pub(in super::super) struct Selector {
    poller: Poller,
    waker: OwnedFd,
}

impl Selector {
    pub(in super::super) fn new() -> io::Result<Selector> {
        let poller = Poller::new()?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &poller,
            &waker,
            EventData::new_u64(Token::WAKE.to_u64()),
            EventFlags::ET | EventFlags::IN,
        )?;
        Ok(Selector { poller, waker })
    }

    /// Registers a descriptor, edge-triggered; what it is ready for now counts as an edge.
    pub(in super::super) fn add(
        &self,
        fd: BorrowedFd<'_>,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token.to_u64());
        epoll::add(&self.poller, fd, data, flags_of(interest))?;
        Ok(())
    }

    pub(in super::super) fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        epoll::delete(&self.poller, fd)?;
        Ok(())
    }

    /// Makes a wait return, now or the next time.
    pub(in super::super) fn wake(&self) -> io::Result<()> {
        match rustix::io::write(&self.waker, &1u64.to_ne_bytes()) {
            // A counter that is full has its edge.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Fetches at most `max` events; with `None` it waits for one.
    pub(in super::super) fn wait(
        &self,
        events: &mut Events,
        max: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        events.len = 0;
        let list = &mut events.list[..max.min(EVENTS_MAX)];
        events.len = match timeout {
            None => epoll::wait(&self.poller, list, None)?,
            Some(Duration::ZERO) => epoll::wait(&self.poller, list, Some(&Timespec::default()))?,
            Some(timeout) => wait_for(self.poller.as_fd(), list, timeout.min(TIMEOUT_MAX))?,
        };
        Ok(())
    }
}

/// Waits with the precision of the kernel's clock, or with milliseconds rounded up.
fn wait_for(
    poller: BorrowedFd<'_>,
    list: &mut [epoll::Event],
    timeout: Duration,
) -> io::Result<usize> {
    // Relaxed: a hint; whoever does not know yet tries once more.
    if !NO_PWAIT2.load(Ordering::Relaxed) {
        match pwait2(poller, list, timeout) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                NO_PWAIT2.store(true, Ordering::Relaxed);
            }
            done => return done,
        }
    }
    let millis = timeout.as_nanos().div_ceil(1_000_000) as i64;
    let timeout = Timespec {
        tv_sec: millis / 1000,
        tv_nsec: millis % 1000 * 1_000_000,
    };
    Ok(epoll::wait(poller, list, Some(&timeout))?)
}

fn pwait2(
    poller: BorrowedFd<'_>,
    list: &mut [epoll::Event],
    timeout: Duration,
) -> io::Result<usize> {
    // The kernel's own layout: two 64-bit fields on every architecture.
    let timeout: [i64; 2] = [timeout.as_secs() as i64, timeout.subsec_nanos().into()];
    // SAFETY: the kernel writes at most `list.len()` records to `list`, which is borrowed mutably
    // for the call and whose type has the layout of `epoll_event` (rustix's own `wait` relies on
    // it). It reads `timeout`. A null signal mask changes no mask; its size is then unused.
    let n = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            poller.as_raw_fd(),
            list.as_mut_ptr(),
            list.len() as libc::c_int,
            timeout.as_ptr(),
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// What a descriptor is registered for. Errors and hang-ups are always reported.
fn flags_of(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::ET;
    if interest.is_readable() {
        flags |= EventFlags::IN | EventFlags::RDHUP;
    }
    if interest.is_writable() {
        flags |= EventFlags::OUT;
    }
    if interest.has_priority() {
        flags |= EventFlags::PRI;
    }
    flags
}

/// What the kernel's flags mean, as tokio has it, except that an error wakes both directions: the
/// operation is to fail with it whichever it is.
fn ready_of(flags: EventFlags) -> Ready {
    let has = |some: EventFlags| flags.intersects(some);
    let mut ready = Ready::EMPTY;
    if has(EventFlags::IN | EventFlags::PRI | EventFlags::ERR) {
        ready |= Ready::READABLE;
    }
    if has(EventFlags::OUT | EventFlags::ERR) {
        ready |= Ready::WRITABLE;
    }
    if has(EventFlags::PRI) {
        ready |= Ready::PRIORITY;
    }
    if has(EventFlags::RDHUP | EventFlags::HUP) {
        ready |= Ready::READ_CLOSED;
    }
    // A pipe without readers has an error, alone or beside its space.
    let error_only = flags == EventFlags::ERR;
    if has(EventFlags::HUP) || error_only || flags.contains(EventFlags::OUT | EventFlags::ERR) {
        ready |= Ready::WRITE_CLOSED;
    }
    if has(EventFlags::ERR) {
        ready |= Ready::ERROR;
    }
    ready
}

/// Memory for the events of one wait.
pub(in super::super) struct Events {
    list: Box<[epoll::Event]>,
    len: usize,
}

impl Events {
    pub(in super::super) fn new() -> Events {
        let none = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        Events {
            list: vec![none; EVENTS_MAX].into_boxed_slice(),
            len: 0,
        }
    }

    /// The sources' events of the last wait.
    pub(in super::super) fn iter(&self) -> impl Iterator<Item = (Token, Ready)> + '_ {
        self.list[..self.len]
            .iter()
            .map(|event| {
                // By value: the record is packed.
                let (flags, data) = (event.flags, event.data);
                (Token::from_u64(data.u64()), ready_of(flags))
            })
            .filter(|(token, _)| *token != Token::WAKE)
    }

    /// Whether the last wait was handed the edge of the wake-up.
    pub(in super::super) fn was_woken(&self) -> bool {
        self.list[..self.len].iter().any(|event| {
            let data = event.data;
            data.u64() == Token::WAKE.to_u64()
        })
    }

    /// How many records the last wait fetched.
    pub(in super::super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    const TOKEN: Token = Token {
        index: 3,
        generation: 9,
    };

    fn poll(selector: &Selector, timeout: Option<Duration>) -> Vec<(Token, Ready)> {
        let mut events = Events::new();
        selector.wait(&mut events, EVENTS_MAX, timeout).unwrap();
        events.iter().collect()
    }

    #[test]
    fn flags_map_to_readiness() {
        use EventFlags as F;
        let cases = [
            (F::IN, Ready::READABLE),
            (F::OUT, Ready::WRITABLE),
            (F::PRI, Ready::READABLE | Ready::PRIORITY),
            (F::IN | F::RDHUP, Ready::READABLE | Ready::READ_CLOSED),
            (F::HUP, Ready::READ_CLOSED | Ready::WRITE_CLOSED),
            (
                F::ERR,
                Ready::READABLE | Ready::WRITABLE | Ready::WRITE_CLOSED | Ready::ERROR,
            ),
            (
                F::IN | F::ERR,
                Ready::READABLE | Ready::WRITABLE | Ready::ERROR,
            ),
            (
                F::OUT | F::ERR,
                Ready::READABLE | Ready::WRITABLE | Ready::WRITE_CLOSED | Ready::ERROR,
            ),
        ];
        for (flags, ready) in cases {
            assert_eq!(ready_of(flags), ready, "{flags:?}");
        }
    }

    #[test]
    fn interests_map_to_flags() {
        use EventFlags as F;
        assert_eq!(
            flags_of(Interest::SOCKET),
            F::ET | F::IN | F::OUT | F::RDHUP | F::PRI
        );
        assert_eq!(flags_of(Interest::READABLE), F::ET | F::IN | F::RDHUP);
        assert_eq!(flags_of(Interest::WRITABLE), F::ET | F::OUT);
        assert_eq!(flags_of(Interest::ERROR), F::ET);
    }

    #[test]
    fn an_edge_is_reported_once() {
        let selector = Selector::new().unwrap();
        let (a, mut b) = UnixStream::pair().unwrap();
        selector.add(a.as_fd(), TOKEN, Interest::READABLE).unwrap();
        assert!(poll(&selector, Some(Duration::ZERO)).is_empty());
        b.write_all(b"x").unwrap();
        assert_eq!(poll(&selector, None), [(TOKEN, Ready::READABLE)]);
        assert!(poll(&selector, Some(Duration::ZERO)).is_empty());
        b.write_all(b"y").unwrap();
        assert_eq!(poll(&selector, None).len(), 1);
        selector.delete(a.as_fd()).unwrap();
        b.write_all(b"z").unwrap();
        assert!(poll(&selector, Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn adding_reports_what_is_ready_already() {
        let selector = Selector::new().unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        selector.add(a.as_fd(), TOKEN, Interest::SOCKET).unwrap();
        let events = poll(&selector, None);
        assert_eq!(events.len(), 1);
        assert!(events[0].1.is_read_closed() && events[0].1.is_write_closed());
    }

    #[test]
    fn a_wake_up_is_an_edge_each_time() {
        let selector = Selector::new().unwrap();
        let mut events = Events::new();
        for _ in 0..3 {
            selector.wake().unwrap();
            selector.wait(&mut events, 16, None).unwrap();
            assert!(events.was_woken());
            assert_eq!(events.iter().count(), 0);
            selector
                .wait(&mut events, 16, Some(Duration::ZERO))
                .unwrap();
            assert!(!events.was_woken());
        }
    }

    #[test]
    fn a_wait_never_ends_before_its_time() {
        let selector = Selector::new().unwrap();
        for timeout in [
            Duration::from_nanos(1),
            Duration::from_micros(300),
            Duration::from_micros(2_500),
        ] {
            let start = Instant::now();
            assert!(poll(&selector, Some(timeout)).is_empty());
            assert!(start.elapsed() >= timeout);
            let start = Instant::now();
            let list = &mut Events::new().list[..4];
            NO_PWAIT2.store(true, Ordering::Relaxed);
            let n = wait_for(selector.poller.as_fd(), list, timeout).unwrap();
            NO_PWAIT2.store(false, Ordering::Relaxed);
            assert_eq!(n, 0);
            assert!(start.elapsed() >= timeout);
        }
        selector.wake().unwrap();
        poll(&selector, Some(Duration::MAX));
    }

    #[test]
    fn all_descriptors_close_on_exec() {
        let selector = Selector::new().unwrap();
        for fd in [selector.poller.as_fd(), selector.waker.as_fd()] {
            let flags = rustix::io::fcntl_getfd(fd).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
    }

    #[test]
    fn no_more_events_than_asked_for() {
        let selector = Selector::new().unwrap();
        let pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
        for (a, _) in &pairs {
            selector.add(a.as_fd(), TOKEN, Interest::WRITABLE).unwrap();
        }
        let mut events = Events::new();
        selector.wait(&mut events, 2, None).unwrap();
        assert_eq!(events.iter().count(), 2);
        selector.wait(&mut events, EVENTS_MAX, None).unwrap();
        assert_eq!(events.iter().count(), 3);
    }
}
