//! The netpoll driven by hand, on socket pairs and pipes.

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use gmp_executor::seam::Netpoll as _;
use gmp_executor::wait::WaitReason;

use super::poller::Buffers;
use super::source::Source;
use super::{Direction, Netpoll, Registration};
use crate::interest::Interest;
use crate::ready::Ready;

const NOW: Option<Duration> = Some(Duration::ZERO);

/// Counts its wakes.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn wakes() -> (Arc<Wakes>, Waker) {
    let wakes = Arc::new(Wakes::default());
    (wakes.clone(), wakes.into())
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Ends the process when a test takes for ever.
struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

fn watchdog() -> Watchdog {
    let (alive, dropped) = mpsc::channel::<()>();
    thread::spawn(move || {
        let limit = Duration::from_secs(600);
        if dropped.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    Watchdog(alive)
}

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

/// A stream with its registration.
struct Socket {
    registration: Registration,
    stream: UnixStream,
}

impl Socket {
    fn new(netpoll: &Netpoll, stream: UnixStream) -> Socket {
        let fd = stream.as_raw_fd();
        let registration = Registration::with(fd, Interest::SOCKET, netpoll.shared.clone());
        Socket {
            registration,
            stream,
        }
    }

    fn poll_read(&self, waker: &Waker) -> Poll<io::Result<usize>> {
        let cx = &mut Context::from_waker(waker);
        self.registration
            .poll_io(cx, Direction::Read, WaitReason::NetRead, |_| {
                (&self.stream).read(&mut [0; 16])
            })
    }

    fn poll_ready(&self, waker: &Waker, direction: Direction) -> Poll<io::Result<Ready>> {
        let cx = &mut Context::from_waker(waker);
        self.registration
            .poll_ready(cx, direction, WaitReason::NetRead)
            .map_ok(|event| event.ready)
    }

    fn p(&self) -> Option<usize> {
        self.registration.source().p()
    }

    async fn read_byte(&self) -> io::Result<u8> {
        let mut byte = [0];
        let read = || match (&self.stream).read(&mut byte) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            done => done,
        };
        self.registration
            .async_io(Interest::READABLE, WaitReason::NetRead, read)
            .await?;
        Ok(byte[0])
    }

    async fn write_byte(&self, byte: u8) -> io::Result<()> {
        let write = || (&self.stream).write(&[byte]);
        self.registration
            .async_io(Interest::WRITABLE, WaitReason::NetWrite, write)
            .await?;
        Ok(())
    }
}

fn is_gone<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    let error = result.unwrap_err();
    error.kind() == ErrorKind::Other
        && error.to_string() == "A Tokio 1.x context was found, but it is being shutdown."
}

#[test]
fn readiness_wakes_the_reader_once() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    let (wakes, waker) = wakes();
    assert!(a.poll_read(&waker).is_pending());
    netpoll.poll(0, 0, NOW).unwrap();
    assert_eq!(
        wakes.count(),
        0,
        "the socket is writable, nobody waits for that"
    );
    b.write_all(b"hello").unwrap();
    assert_eq!(netpoll.poll(0, 0, None).unwrap(), 1);
    assert_eq!(wakes.count(), 1);
    assert_eq!(netpoll.poll(0, 0, NOW).unwrap(), 0);
    assert!(matches!(a.poll_read(&waker), Poll::Ready(Ok(5))));
    assert!(a.poll_read(&waker).is_pending());
}

#[test]
fn a_socket_that_never_waits_is_not_registered() {
    let netpoll = Netpoll::new(2).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    b.write_all(b"x").unwrap();
    let (_, waker) = wakes();
    assert!(a.poll_read(&waker).is_ready());
    assert_eq!(a.p(), None);
    assert!(!netpoll.has_sources(0) && !netpoll.has_sources(1));
    assert!(a.poll_read(&waker).is_pending());
    assert!(a.p().is_some());
    assert!(netpoll.has_sources(a.p().unwrap()));
}

#[test]
fn sources_of_threads_without_a_p_spread() {
    let netpoll = Netpoll::new(3).unwrap();
    let (_, waker) = wakes();
    let sockets: Vec<_> = (0..6)
        .map(|_| {
            let (a, b) = pair();
            let a = Socket::new(&netpoll, a);
            assert!(a.poll_read(&waker).is_pending());
            (a, b)
        })
        .collect();
    for p in 0..3 {
        assert_eq!(sockets.iter().filter(|(a, _)| a.p() == Some(p)).count(), 2);
        assert!(netpoll.has_sources(p));
    }
    drop(sockets);
    assert!((0..3).all(|p| !netpoll.has_sources(p)));
}

#[test]
fn data_that_was_there_before_the_registration_is_reported() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    b.write_all(b"x").unwrap();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    let (wakes, waker) = wakes();
    assert!(a.poll_ready(&waker, Direction::Read).is_pending());
    netpoll.poll(0, 0, None).unwrap();
    assert_eq!(wakes.count(), 1);
    assert!(a.poll_ready(&waker, Direction::Read).is_ready());
}

#[test]
fn assumed_readiness_lasts_until_an_operation_would_block() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, _b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration
        .assume_ready(Ready::READABLE | Ready::WRITABLE);
    let (_, waker) = wakes();
    assert!(a.poll_ready(&waker, Direction::Read).is_ready());
    let read = || (&a.stream).read(&mut [0]);
    let error = a.registration.try_io(Interest::READABLE, read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(a.poll_ready(&waker, Direction::Read).is_pending());
    assert!(a.poll_ready(&waker, Direction::Write).is_ready());
}

#[test]
fn the_last_poller_of_a_direction_is_woken() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    let (first, first_waker) = wakes();
    let (second, second_waker) = wakes();
    assert!(a.poll_read(&first_waker).is_pending());
    assert!(a.poll_read(&second_waker).is_pending());
    assert_eq!(
        Arc::strong_count(&first),
        2,
        "the displaced waker is dropped"
    );
    b.write_all(b"x").unwrap();
    netpoll.poll(0, 0, None).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn any_number_of_futures_wait_for_their_interest() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    netpoll.poll(0, 0, NOW).unwrap();
    let (wakes, waker) = wakes();
    let cx = &mut Context::from_waker(&waker);
    let mut readers: Vec<_> = (0..40)
        .map(|_| Box::pin(a.registration.readiness(Interest::READABLE)))
        .collect();
    let mut priority = pin!(a.registration.readiness(Interest::PRIORITY));
    for reader in &mut readers {
        assert!(reader.as_mut().poll(cx).is_pending());
    }
    assert!(priority.as_mut().poll(cx).is_pending());
    // Some leave, from the middle and the ends.
    readers.retain({
        let mut n = 0;
        move |_| {
            n += 1;
            n % 3 != 0
        }
    });
    b.write_all(b"x").unwrap();
    assert_eq!(netpoll.poll(0, 0, None).unwrap(), readers.len());
    assert_eq!(wakes.count(), readers.len());
    for reader in &mut readers {
        let Poll::Ready(event) = reader.as_mut().poll(cx) else {
            panic!("woken but not ready");
        };
        assert!(event.unwrap().ready.is_readable());
    }
    assert!(priority.as_mut().poll(cx).is_pending());
}

#[test]
fn a_woken_future_is_ready_though_another_took_the_data() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    let (_, waker) = wakes();
    let cx = &mut Context::from_waker(&waker);
    let mut reader = pin!(a.registration.readiness(Interest::READABLE));
    assert!(reader.as_mut().poll(cx).is_pending());
    b.write_all(b"x").unwrap();
    netpoll.poll(0, 0, None).unwrap();
    assert!(a.poll_read(&waker).is_ready());
    assert!(a.poll_read(&waker).is_pending());
    let Poll::Ready(event) = reader.as_mut().poll(cx) else {
        panic!("a wake-up was swallowed");
    };
    assert!(event.unwrap().ready.is_empty());
}

#[test]
fn hang_up_and_errors_wake_both_directions() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, b) = pair();
    let a = Socket::new(&netpoll, a);
    while (&a.stream).write(&[0; 4096]).is_ok() {}
    let (reader, reader_waker) = wakes();
    let (writer, writer_waker) = wakes();
    assert!(a.poll_ready(&reader_waker, Direction::Read).is_pending());
    assert!(a.poll_ready(&writer_waker, Direction::Write).is_pending());
    drop(b);
    netpoll.poll(0, 0, None).unwrap();
    assert_eq!((reader.count(), writer.count()), (1, 1));
    let Poll::Ready(ready) = a.poll_ready(&reader_waker, Direction::Read) else {
        panic!("not ready");
    };
    assert!(ready.unwrap().is_read_closed());
}

#[test]
fn the_writer_of_a_pipe_learns_that_its_reader_is_gone() {
    let netpoll = Netpoll::new(1).unwrap();
    let (rx, tx) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
    let tx = File::from(tx);
    while (&tx).write(&[0; 4096]).is_ok() {}
    let registration =
        Registration::with(tx.as_raw_fd(), Interest::WRITABLE, netpoll.shared.clone());
    let (wakes, waker) = wakes();
    let cx = &mut Context::from_waker(&waker);
    let mut write = || {
        registration.poll_io(cx, Direction::Write, WaitReason::NetWrite, |_| {
            (&tx).write(&[0])
        })
    };
    assert!(write().is_pending());
    drop(rx);
    netpoll.poll(0, 0, None).unwrap();
    assert_eq!(wakes.count(), 1);
    match write() {
        Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    }
}

/// The end of a stream stays known when a user's closure says that it would block, because no edge
/// tells of it again; when the kernel says so it is no end.
#[test]
fn closed_is_cleared_by_the_kernel_alone() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    drop(b);
    netpoll.poll(0, 0, None).unwrap();
    let would_block = || Err::<(), _>(ErrorKind::WouldBlock.into());
    let (_, waker) = wakes();
    let _ = a.registration.try_user_io(Interest::READABLE, would_block);
    assert!(a.poll_ready(&waker, Direction::Read).is_ready());
    let _ = a.registration.try_io(Interest::READABLE, would_block);
    assert!(a.poll_ready(&waker, Direction::Read).is_pending());
}

#[test]
fn user_closures_are_not_called_before_there_is_an_event() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    let never = || -> io::Result<()> { panic!("called without readiness") };
    let error = a.registration.try_user_io(Interest::READABLE, never);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::WouldBlock);
    b.write_all(b"x").unwrap();
    netpoll.poll(0, 0, None).unwrap();
    let read = || (&a.stream).read(&mut [0; 4]);
    assert_eq!(
        a.registration
            .try_user_io(Interest::READABLE, read)
            .unwrap(),
        1
    );
}

#[test]
fn what_cannot_be_registered_says_so() {
    let netpoll = Netpoll::new(1).unwrap();
    let file = File::open("/proc/self/exe").unwrap();
    let of = |fd| Registration::with(fd, Interest::READABLE, netpoll.shared.clone());
    let error = of(file.as_raw_fd()).register().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    for fd in [-1, i32::MAX] {
        let error = of(fd).register().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
    assert!(
        !netpoll.has_sources(0),
        "a failed registration leaves nothing behind"
    );
}

#[test]
fn a_descriptor_registered_twice_is_an_error() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, _b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    a.registration
        .register()
        .expect("the same registration again is none");
    let again = Registration::with(
        a.stream.as_raw_fd(),
        Interest::READABLE,
        netpoll.shared.clone(),
    );
    let error = again.register().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

/// Closed behind the runtime's back, with a duplicate that keeps the description alive: closing
/// reports an error, and events for it are dropped without a spin.
#[test]
fn a_descriptor_closed_behind_our_back() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let duplicate = a.try_clone().unwrap();
    let fd = a.into_raw_fd();
    let registration = Registration::with(fd, Interest::SOCKET, netpoll.shared.clone());
    registration.register().unwrap();
    // SAFETY: the descriptor came from `into_raw_fd`; the registration, which still knows its
    // number, is what this test is about.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    let error = registration.close().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    assert!(!netpoll.has_sources(0));
    b.write_all(b"x").unwrap();
    let poller = netpoll.shared.poller(0);
    let mut buffers = Buffers::new();
    assert_eq!(poller.poll(None, NOW, &mut buffers).unwrap(), 0);
    let start = Instant::now();
    let wait = Duration::from_millis(20);
    assert_eq!(poller.poll(None, Some(wait), &mut buffers).unwrap(), 0);
    assert!(start.elapsed() >= wait, "the wait was cut short");
    drop(duplicate);
}

#[test]
fn notify_breaks_a_wait_now_or_the_next_time() {
    let _watchdog = watchdog();
    let netpoll = Arc::new(Netpoll::new(2).unwrap());
    netpoll.notify(1);
    netpoll.notify(1);
    assert_eq!(netpoll.poll(1, 1, None).unwrap(), 0);
    let waiter = {
        let netpoll = netpoll.clone();
        thread::spawn(move || netpoll.poll(0, 0, None).unwrap())
    };
    thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished());
    netpoll.notify(1);
    thread::sleep(Duration::from_millis(5));
    assert!(!waiter.is_finished(), "another P's notice");
    netpoll.notify(0);
    assert_eq!(waiter.join().unwrap(), 0);
    // Polls without waiting leave a notice to the one who waits.
    netpoll.notify(0);
    netpoll.poll(0, 1, NOW).unwrap();
    netpoll.poll(0, 0, NOW).unwrap();
    netpoll.poll(0, 0, None).unwrap();
}

/// Notices are not lost to thieves that are handed the edge: a waiter, a notifier in lock-step, and
/// a thief that polls all the time.
#[test]
fn a_thief_cannot_steal_a_notice() {
    let _watchdog = watchdog();
    let netpoll = Arc::new(Netpoll::new(1).unwrap());
    let (a, _b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let thief = {
        let (netpoll, over) = (netpoll.clone(), over.clone());
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                netpoll.poll(0, 1, NOW).unwrap();
            }
        })
    };
    let turn = Arc::new(AtomicUsize::new(0));
    let waiter = {
        let (netpoll, turn) = (netpoll.clone(), turn.clone());
        thread::spawn(move || {
            for expected in 1..=20_000 {
                while turn.load(Ordering::Acquire) < expected {
                    netpoll.poll(0, 0, None).unwrap();
                }
                turn.fetch_add(1 << 32, Ordering::AcqRel);
                turn.fetch_sub(1 << 32, Ordering::AcqRel);
            }
        })
    };
    for n in 1..=20_000 {
        turn.store(n, Ordering::Release);
        netpoll.notify(0);
        if n % 64 == 0 {
            thread::yield_now();
        }
    }
    waiter.join().unwrap();
    over.store(true, Ordering::Relaxed);
    thief.join().unwrap();
}

#[test]
fn a_timeout_ends_the_wait() {
    let netpoll = Netpoll::new(1).unwrap();
    let start = Instant::now();
    let wait = Duration::from_millis(3);
    assert_eq!(netpoll.poll(0, 0, Some(wait)).unwrap(), 0);
    assert!(start.elapsed() >= wait);
}

#[test]
fn a_poll_that_does_not_wait_takes_a_part() {
    let netpoll = Netpoll::new(1).unwrap();
    let (wakes, waker) = wakes();
    let sockets: Vec<_> = (0..300)
        .map(|_| {
            let (a, b) = pair();
            let a = Socket::new(&netpoll, a);
            assert!(a.poll_read(&waker).is_pending());
            (a, b)
        })
        .collect();
    netpoll.poll(0, 0, None).unwrap();
    for (_, b) in &sockets {
        (&mut &*b).write_all(b"x").unwrap();
    }
    let first = netpoll.poll(0, 0, NOW).unwrap();
    assert!(first <= 128, "{first}");
    assert!(first > 0);
    assert_eq!(netpoll.poll(0, 0, None).unwrap(), 300 - first);
    assert_eq!(wakes.count(), 300);
}

#[test]
fn a_panicking_waker_does_not_take_the_others_with_it() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of somebody else's");
        }
    }
    let netpoll = Netpoll::new(1).unwrap();
    let (wakes, waker) = wakes();
    let bad = Waker::from(Arc::new(Panics));
    let sockets: Vec<_> = (0..10)
        .map(|n| {
            let (a, b) = pair();
            let a = Socket::new(&netpoll, a);
            let waker = if n % 2 == 0 { &bad } else { &waker };
            assert!(a.poll_read(waker).is_pending());
            (a, b)
        })
        .collect();
    for (_, b) in &sockets {
        (&mut &*b).write_all(b"x").unwrap();
    }
    let polled = catch_unwind(AssertUnwindSafe(|| netpoll.poll(0, 0, None).unwrap()));
    assert_eq!(polled.unwrap(), 10);
    assert_eq!(wakes.count(), 5);
}

/// A waker that drops the last reference to a source, or polls the netpoll, meets no lock.
#[test]
fn a_waker_may_close_the_source_and_poll() {
    struct Closes {
        netpoll: Arc<Netpoll>,
        socket: Mutex<Option<Socket>>,
    }
    impl Wake for Closes {
        fn wake(self: Arc<Self>) {
            drop(self.socket.lock().unwrap().take());
            self.netpoll.poll(0, 0, NOW).unwrap();
        }
    }
    let _watchdog = watchdog();
    let netpoll = Arc::new(Netpoll::new(1).unwrap());
    let (a, mut b) = pair();
    let closes = Arc::new(Closes {
        netpoll: netpoll.clone(),
        socket: Mutex::new(Some(Socket::new(&netpoll, a))),
    });
    let waker = Waker::from(closes.clone());
    {
        let socket = closes.socket.lock().unwrap();
        assert!(socket.as_ref().unwrap().poll_read(&waker).is_pending());
    }
    b.write_all(b"x").unwrap();
    netpoll.poll(0, 0, None).unwrap();
    assert!(closes.socket.lock().unwrap().is_none());
    assert!(!netpoll.has_sources(0));
}

/// Events that were fetched before their source was closed and its place taken by another one
/// (often with the same descriptor number) are dropped.
#[test]
fn stale_events_find_nobody() {
    let netpoll = Netpoll::new(1).unwrap();
    let poller = netpoll.shared.poller(0);
    let mut buffers = Buffers::new();
    let (wakes, waker) = wakes();
    for _ in 0..1_000 {
        let (a, mut b) = pair();
        let old = Socket::new(&netpoll, a);
        old.registration.register().unwrap();
        let place = old.registration.source().token().unwrap().index;
        b.write_all(b"x").unwrap();
        poller.fetch(NOW, &mut buffers).unwrap();
        drop((old, b));

        let (c, _d) = pair();
        let new = Socket::new(&netpoll, c);
        assert!(new.poll_ready(&waker, Direction::Read).is_pending());
        assert_eq!(new.registration.source().token().unwrap().index, place);
        assert_eq!(poller.dispatch(None, &mut buffers), 0);
        assert!(new.poll_ready(&waker, Direction::Read).is_pending());
    }
    assert_eq!(wakes.count(), 0);
    assert!(!netpoll.has_sources(0));
}

/// The same with a thread that polls all the time, so that every overlap occurs.
#[test]
fn a_hundred_thousand_sources_come_and_go_under_a_poller() {
    let _watchdog = watchdog();
    let netpoll = Arc::new(Netpoll::new(2).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let pollers: Vec<_> = (0..2)
        .map(|by| {
            let (netpoll, over) = (netpoll.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    for p in 0..2 {
                        netpoll.poll(p, by, NOW).unwrap();
                    }
                }
            })
        })
        .collect();
    let (wakes, waker) = wakes();
    for n in 0..100_000 {
        let (a, mut b) = pair();
        let a = Socket::new(&netpoll, a);
        a.registration.register().unwrap();
        // Every other one is readable when it goes. The next one gets its numbers.
        if n % 2 == 0 {
            b.write_all(b"x").unwrap();
        } else {
            assert!(a.poll_ready(&waker, Direction::Read).is_pending());
        }
    }
    over.store(true, Ordering::Relaxed);
    for poller in pollers {
        poller.join().unwrap();
    }
    assert_eq!(wakes.count(), 0, "spurious readiness");
    assert!((0..2).all(|p| !netpoll.has_sources(p)));
    assert_eq!(Arc::strong_count(&netpoll.shared), 1, "sources were leaked");
}

/// Lets `by` take `n` events of the socket, each from where it is.
fn steal(netpoll: &Netpoll, socket: &Socket, peer: &mut UnixStream, by: usize, n: usize) {
    let (wakes, waker) = wakes();
    for round in 1..=n {
        assert!(socket.poll_read(&waker).is_pending());
        peer.write_all(b"x").unwrap();
        let p = socket.p().unwrap();
        assert_eq!(netpoll.poll(p, by, NOW).unwrap(), 1);
        assert_eq!(wakes.count(), round);
        assert!(matches!(socket.poll_read(&waker), Poll::Ready(Ok(1))));
    }
}

#[test]
fn a_source_moves_to_the_thief_that_keeps_taking_its_events() {
    let netpoll = Netpoll::new(3).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    let home = a.p().unwrap();
    let thief = (home + 1) % 3;
    let other = (home + 2) % 3;
    netpoll.poll(home, home, NOW).unwrap();

    steal(&netpoll, &a, &mut b, thief, 3);
    assert_eq!(a.p(), Some(home), "three times are not enough");
    steal(&netpoll, &a, &mut b, home, 1);
    steal(&netpoll, &a, &mut b, thief, 3);
    assert_eq!(a.p(), Some(home), "its own P came between");
    steal(&netpoll, &a, &mut b, other, 1);
    steal(&netpoll, &a, &mut b, thief, 3);
    assert_eq!(a.p(), Some(home), "another thief came between");
    steal(&netpoll, &a, &mut b, thief, 1);
    assert_eq!(a.p(), Some(thief));
    assert!(!netpoll.has_sources(home) && netpoll.has_sources(thief));

    steal(&netpoll, &a, &mut b, thief, 10);
    assert_eq!(a.p(), Some(thief), "at home");
    drop(a);
    assert!((0..3).all(|p| !netpoll.has_sources(p)));
}

/// Runs `f` on a thread of its own, on one CPU.
#[cfg(target_os = "linux")]
fn on_cpu<R: Send>(cpu: usize, f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut set = rustix::thread::CpuSet::new();
            set.set(cpu);
            rustix::thread::sched_setaffinity(None, &set).unwrap();
            f()
        });
        thread.join().unwrap()
    })
}

#[test]
#[cfg(target_os = "linux")]
fn a_source_follows_its_data_to_the_p_of_the_sender() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let (Some(here), Some(there)) = (cpus.next(), cpus.next()) else {
        eprintln!("one CPU: nobody is elsewhere");
        return;
    };
    let netpoll = Netpoll::new(2).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let receiver = listener.accept().unwrap().0;
    receiver.set_nonblocking(true).unwrap();
    let receiver = Socket::new(&netpoll, UnixStream::from(OwnedFd::from(receiver)));
    receiver.registration.register().unwrap();
    let home = receiver.p().unwrap();
    let other = 1 - home;
    let (_, waker) = wakes();

    // One message after another from the CPU on which the other P polls.
    let mut sent = 0;
    while receiver.p() == Some(home) {
        sent += 1;
        assert!(sent < 10_000, "it stays where it is");
        while receiver.poll_read(&waker).is_ready() {}
        on_cpu(there, || {
            // Not `NOW`: nothing is registered there.
            let moment = Some(Duration::from_nanos(1));
            netpoll.poll(other, other, moment).unwrap();
            sender.write_all(b"x").unwrap();
        });
        on_cpu(here, || netpoll.poll(home, home, NOW).unwrap());
    }
    assert_eq!(receiver.p(), Some(other));
    assert!(!netpoll.has_sources(home) && netpoll.has_sources(other));

    // With its data at home it stays.
    for _ in 0..300 {
        while receiver.poll_read(&waker).is_ready() {}
        on_cpu(there, || {
            sender.write_all(b"x").unwrap();
            netpoll.poll(other, other, NOW).unwrap();
        });
    }
    assert_eq!(receiver.p(), Some(other));
}

#[test]
fn a_move_loses_nothing() {
    let netpoll = Netpoll::new(2).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    a.registration.register().unwrap();
    let from = a.p().unwrap();
    let to = 1 - from;
    netpoll.poll(from, from, NOW).unwrap();
    let (wakes, waker) = wakes();
    let mut buffers = Buffers::new();
    let shared = &netpoll.shared;

    // The event is fetched from the old poller, the source moves, and the event comes too late.
    assert!(a.poll_read(&waker).is_pending());
    b.write_all(b"x").unwrap();
    shared.poller(from).fetch(NOW, &mut buffers).unwrap();
    let source = a.registration.source();
    source.move_to(from, source.token().unwrap(), to);
    assert_eq!(a.p(), Some(to));
    assert_eq!(shared.poller(from).dispatch(None, &mut buffers), 0);
    assert_eq!(
        netpoll.poll(to, to, NOW).unwrap(),
        1,
        "the new poller reports it"
    );
    assert_eq!(wakes.count(), 1);

    // A move that names a place where the source is not any more is void.
    let token = source.token().unwrap();
    source.move_to(from, token, from);
    assert_eq!(a.p(), Some(to));
    source.move_to(to, token, from);
    source.move_to(to, token, from);
    assert_eq!(a.p(), Some(from));

    // A waiter does not notice.
    assert!(a.poll_read(&waker).is_ready());
    assert!(a.poll_read(&waker).is_pending());
    source.move_to(from, source.token().unwrap(), to);
    b.write_all(b"x").unwrap();
    assert_eq!(netpoll.poll(to, to, NOW).unwrap(), 1);
    assert_eq!(wakes.count(), 2);

    a.registration.close().unwrap();
    source.move_to(to, token, from);
    assert_eq!(a.p(), None);
    assert!((0..2).all(|p| !netpoll.has_sources(p)));
}

#[test]
fn after_the_shutdown_everything_fails_at_once() {
    let netpoll = Netpoll::new(2).unwrap();
    let (a, mut b) = pair();
    let (c, _d) = pair();
    let waiting = Socket::new(&netpoll, a);
    let fresh = Socket::new(&netpoll, c);
    let (wakes, waker) = wakes();
    let cx = &mut Context::from_waker(&waker);
    assert!(waiting.poll_read(&waker).is_pending());
    let mut ready = Box::pin(waiting.registration.readiness(Interest::PRIORITY));
    assert!(ready.as_mut().poll(cx).is_pending());
    netpoll.shutdown();
    assert_eq!(wakes.count(), 2);
    assert!((0..2).all(|p| !netpoll.has_sources(p)));

    b.write_all(b"x").unwrap();
    let Poll::Ready(result) = ready.as_mut().poll(cx) else {
        panic!("waits for a runtime that is gone");
    };
    assert!(is_gone(result));
    for socket in [&waiting, &fresh] {
        let Poll::Ready(result) = socket.poll_read(&waker) else {
            panic!("waits for a runtime that is gone");
        };
        assert!(is_gone(result));
        let Poll::Ready(result) = socket.poll_ready(&waker, Direction::Write) else {
            panic!("waits for a runtime that is gone");
        };
        assert!(is_gone(result));
        let nop = || Ok(());
        let registration = &socket.registration;
        // A system call that does not wait is tried, as in tokio: what has arrived can be had.
        registration.try_io(Interest::READABLE, nop).unwrap();
        assert!(is_gone(registration.try_user_io(Interest::READABLE, nop)));
        assert!(is_gone(block_on(
            registration.readiness(Interest::READABLE)
        )));
        assert!(is_gone(block_on(socket.read_byte())));
    }
    assert!(is_gone(fresh.registration.register()));
    let (e, _f) = pair();
    let late = Socket::new(&netpoll, e);
    assert!(is_gone(late.registration.register()));
    netpoll.shutdown();
    drop(ready);
    drop((waiting, fresh, late));
    assert_eq!(Arc::strong_count(&netpoll.shared), 1);
}

#[test]
fn a_shutdown_meets_registrations_waits_and_moves() {
    let _watchdog = watchdog();
    for _ in 0..300 {
        let netpoll = Arc::new(Netpoll::new(2).unwrap());
        let start = Arc::new(Barrier::new(4));
        let users: Vec<_> = (0..2)
            .map(|_| {
                let (netpoll, start) = (netpoll.clone(), start.clone());
                thread::spawn(move || {
                    let (a, _b) = pair();
                    let a = Socket::new(&netpoll, a);
                    start.wait();
                    assert!(is_gone(block_on(a.read_byte())));
                })
            })
            .collect();
        let mover = {
            let (netpoll, start) = (netpoll.clone(), start.clone());
            thread::spawn(move || {
                let (a, _b) = pair();
                let a = Socket::new(&netpoll, a);
                a.registration.register().unwrap();
                let source = a.registration.source();
                start.wait();
                for _ in 0..20 {
                    let p = source.p().unwrap();
                    source.move_to(p, source.token().unwrap(), 1 - p);
                }
                assert!(is_gone(block_on(a.read_byte())));
            })
        };
        start.wait();
        netpoll.shutdown();
        for user in users {
            user.join().unwrap();
        }
        mover.join().unwrap();
        assert_eq!(Arc::strong_count(&netpoll.shared), 1);
    }
}

/// A socket with a waiter, for as long as somebody else lets it live.
struct Passing {
    socket: Socket,
    peer: UnixStream,
    wakes: Arc<Wakes>,
    /// It is readable by now, or soon.
    is_to_be_woken: bool,
}

impl Passing {
    fn new(netpoll: &Netpoll) -> Passing {
        let (a, peer) = pair();
        let socket = Socket::new(netpoll, a);
        let (wakes, waker) = wakes();
        assert!(socket.poll_read(&waker).is_pending());
        Passing {
            socket,
            peer,
            wakes,
            is_to_be_woken: false,
        }
    }
}

/// Moves sources between two pollers to and fro until it is `over`; returns how many moves there were.
fn move_to_and_fro(over: &AtomicBool, sources: impl Fn() -> Vec<Arc<Source>>) -> usize {
    let mut moves = 0;
    while !over.load(Ordering::Relaxed) {
        for source in sources() {
            if let (Some(p), Some(token)) = (source.p(), source.token()) {
                source.move_to(p, token, 1 - p);
                moves += usize::from(source.p() == Some(1 - p));
            }
        }
        thread::yield_now();
    }
    moves
}

/// A stream of its own accord for a while: pairs of threads send single bytes to and fro, while two
/// pollers take their own and each other's events. Meanwhile one thread makes sockets with a waiter,
/// another drops them, of which it has seen every other one woken, and two threads move all that there
/// are to and fro.
///
/// A byte that nobody is told of stops a pair, or the one that drops, which the watchdog notices. This
/// is the test to run under ThreadSanitizer.
#[test]
fn nothing_is_lost_while_everything_moves() {
    let _watchdog = watchdog();
    let rounds = 20_000;
    let netpoll = Arc::new(Netpoll::new(2).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let all_woken = Arc::new(AtomicBool::new(false));
    let pollers: Vec<_> = (0..2)
        .map(|by| {
            let (netpoll, all_woken) = (netpoll.clone(), all_woken.clone());
            thread::spawn(move || {
                let mut turn: usize = by;
                while !all_woken.load(Ordering::Relaxed) {
                    turn = turn.wrapping_mul(5).wrapping_add(3);
                    let p = if turn % 7 < 3 { 1 - by } else { by };
                    netpoll.poll(p, by, NOW).unwrap();
                    if turn.is_multiple_of(32) {
                        netpoll
                            .poll(by, by, Some(Duration::from_micros(50)))
                            .unwrap();
                    }
                }
            })
        })
        .collect();
    let mut users = Vec::new();
    let mut staying = Vec::new();
    for _ in 0..3 {
        let (a, b) = pair();
        let (a, b) = (Socket::new(&netpoll, a), Socket::new(&netpoll, b));
        staying.extend([&a, &b].map(|socket| socket.registration.source().clone()));
        users.push(thread::spawn(move || {
            for n in 0..rounds {
                block_on(a.write_byte(n as u8)).unwrap();
                assert_eq!(block_on(a.read_byte()).unwrap(), n as u8);
            }
        }));
        users.push(thread::spawn(move || {
            for _ in 0..rounds {
                let byte = block_on(b.read_byte()).unwrap();
                block_on(b.write_byte(byte)).unwrap();
            }
        }));
    }
    let moves_staying = {
        let over = over.clone();
        thread::spawn(move || move_to_and_fro(&over, || staying.clone()))
    };
    // Not std's mutex and channels, whose order ThreadSanitizer does not see.
    let passing = Arc::new(parking_lot::Mutex::new(VecDeque::new()));
    let moves_passing = {
        let (over, passing) = (over.clone(), passing.clone());
        let sources = move || passing.lock().iter().cloned().collect();
        thread::spawn(move || move_to_and_fro(&over, sources))
    };
    let made = Arc::new(parking_lot::Mutex::new(VecDeque::new()));
    let all_made = Arc::new(AtomicBool::new(false));
    let makes = {
        let (netpoll, over, made) = (netpoll.clone(), over.clone(), made.clone());
        thread::spawn(move || {
            for turn in 0_u32.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let mut new = Passing::new(&netpoll);
                {
                    let mut passing = passing.lock();
                    passing.push_back(new.socket.registration.source().clone());
                    if passing.len() > 8 {
                        passing.pop_front();
                    }
                }
                // Of the others every other one is readable, too, but dropped at once.
                new.is_to_be_woken = turn.is_multiple_of(2);
                if new.is_to_be_woken || turn.is_multiple_of(3) {
                    new.peer.write_all(b"x").unwrap();
                }
                made.lock().push_back(new);
                while made.lock().len() > 4 {
                    thread::yield_now();
                }
            }
        })
    };
    let drops = {
        let all_made = all_made.clone();
        thread::spawn(move || {
            let mut woken = 0;
            loop {
                let last = all_made.load(Ordering::Acquire);
                let Some(old) = made.lock().pop_front() else {
                    if last {
                        return woken;
                    }
                    thread::yield_now();
                    continue;
                };
                while old.is_to_be_woken && old.wakes.count() == 0 {
                    thread::yield_now();
                }
                woken += usize::from(old.is_to_be_woken);
                drop(old.socket);
                // Its waker is gone, too, once no poller is about to wake it.
                while Arc::strong_count(&old.wakes) > 1 {
                    thread::yield_now();
                }
            }
        })
    };
    for user in users {
        user.join().unwrap();
    }
    over.store(true, Ordering::Relaxed);
    makes.join().unwrap();
    all_made.store(true, Ordering::Release);
    let woken = drops.join().unwrap();
    let moves = [moves_staying, moves_passing].map(|mover| mover.join().unwrap());
    // Those that were to be woken last needed the pollers.
    all_woken.store(true, Ordering::Relaxed);
    for poller in pollers {
        poller.join().unwrap();
    }
    assert!(
        woken > 0 && moves.iter().all(|moves| *moves > 0),
        "{woken} woken, {moves:?} moves"
    );
    assert!((0..2).all(|p| !netpoll.has_sources(p)));
}

/// A future that is dropped at any moment leaves no waiter behind.
#[test]
fn cancelled_waits_leave_nothing_behind() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, mut b) = pair();
    let a = Socket::new(&netpoll, a);
    let (wakes, waker) = wakes();
    let cx = &mut Context::from_waker(&waker);
    for _ in 0..100 {
        let mut future: Pin<Box<dyn Future<Output = io::Result<u8>>>> = Box::pin(a.read_byte());
        assert!(future.as_mut().poll(cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&wakes), 2, "wakers were leaked");
    b.write_all(b"x").unwrap();
    assert_eq!(netpoll.poll(0, 0, None).unwrap(), 0);
    assert_eq!(block_on(a.read_byte()).unwrap(), b'x');
}

#[test]
fn closing_drops_the_wakers() {
    let netpoll = Netpoll::new(1).unwrap();
    let (a, _b) = pair();
    let a = Socket::new(&netpoll, a);
    let (wakes, waker) = wakes();
    assert!(a.poll_read(&waker).is_pending());
    assert_eq!(Arc::strong_count(&wakes), 3);
    a.registration.close().unwrap();
    assert_eq!(Arc::strong_count(&wakes), 2);
    let fd = a.stream.as_fd();
    let again = Registration::with(fd.as_raw_fd(), Interest::READABLE, netpoll.shared.clone());
    again.register().expect("it can be registered anew");
}
