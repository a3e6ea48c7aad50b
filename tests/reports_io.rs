//! What users of other runtimes report about sockets and the poller. The numbers are those of
//! `docs/reports.md`; more of these complaints are tests of the net crate.

mod support;

use std::cell::Cell;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::poll;
use gmp::io::{AsyncReadExt, AsyncWriteExt, Interest};
use gmp::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use gmp::task;
use support::child::in_child;
use support::{bounded, current_thread, finish, run_task, runtime};

/// A29: an event for a descriptor that was closed went to the next one with its number. In a process of its own,
/// where nobody else takes the numbers.
#[test]
fn a_descriptor_with_the_number_of_a_closed_one_is_not_ready() {
    let test = "a_descriptor_with_the_number_of_a_closed_one_is_not_ready";
    in_child(test, &[], || {
        for runtime in [runtime(1), runtime(2), current_thread()] {
            // The M that closes is the one that fetches the events; or the P's watcher fetches them meanwhile.
            run_task(&runtime, close_and_open());
            runtime.block_on(close_and_open());
            runtime.block_on(close_and_open_while_events_are_delivered());
            finish(runtime);
        }
    })
    .succeeded();
}

async fn close_and_open() {
    const ROUNDS: usize = 2_000;
    let mut same_number = 0;
    for round in 0..ROUNDS {
        let (first, peer) = UnixStream::pair().unwrap();
        let number = first.as_raw_fd();
        let event = || assert_eq!(peer.try_write(b"x").unwrap(), 1);
        {
            let mut readable = pin!(first.readable());
            match round % 4 {
                // Its event is delivered before it is closed,
                0 => {
                    event();
                    readable.await.unwrap();
                }
                // is there when it is registered,
                1 => {
                    event();
                    let _registered = poll!(&mut readable);
                }
                // comes afterwards,
                2 => {
                    assert!(poll!(&mut readable).is_pending());
                    event();
                }
                // or has time to be fetched.
                _ => {
                    assert!(poll!(&mut readable).is_pending());
                    event();
                    task::yield_now().await;
                }
            }
        }
        drop(first);
        let (second, peer) = UnixStream::pair().unwrap();
        same_number += usize::from(second.as_raw_fd() == number);
        {
            let mut readable = pin!(second.readable());
            for _ in 0..3 {
                assert!(poll!(&mut readable).is_pending(), "round {round}");
                task::yield_now().await;
            }
            let error = second.try_read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            // Its own event arrives.
            assert_eq!(peer.try_write(b"y").unwrap(), 1);
            readable.await.unwrap();
        }
        let mut byte = [0];
        assert_eq!((second.try_read(&mut byte).unwrap(), byte), (1, *b"y"));
    }
    assert!(same_number > ROUNDS / 10 * 9, "{same_number} of {ROUNDS}");
}

#[cfg(target_os = "linux")]
async fn echo_round_trips(rounds: u64) {
    use support::syscalls::mark;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 64];
        loop {
            match stream.read(&mut bytes).await.unwrap() {
                0 => return,
                n => stream.write_all(&bytes[..n]).await.unwrap(),
            }
        }
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut round = async || {
        stream.write_all(b"to and fro").await.unwrap();
        assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 10);
    };
    for _ in 0..100 {
        round().await;
    }
    mark();
    let start = Instant::now();
    for _ in 0..rounds {
        round().await;
    }
    let lasted = start.elapsed();
    // Told to the parent, who sees nothing but system calls.
    for _ in 0..lasted.as_millis() {
        // SAFETY: the call has no preconditions.
        unsafe { libc::syscall(A_MILLISECOND) };
    }
    mark();
    drop(stream);
    echo.await.unwrap();
}

/// What no runtime calls: stands for a millisecond that the round trips lasted.
#[cfg(target_os = "linux")]
const A_MILLISECOND: i64 = libc::SYS_getppid;

/// `body` makes so many round trips over a connection of which both ends are in this process, on so many Ps.
#[cfg(target_os = "linux")]
#[track_caller]
fn expect_a_read_a_write_and_a_wait_a_side(test: &str, rounds: u64, ps: u64, body: impl FnOnce()) {
    let trips = 2 * rounds;
    let some = trips / 20;
    // Where the machine is busy, some children may do more.
    let good = Cell::new(0);
    support::syscalls::expect_calls(test, body, |calls| {
        let reads = calls.of(&[libc::SYS_read, libc::SYS_recvfrom, libc::SYS_readv]);
        let writes = calls.of(&[libc::SYS_write, libc::SYS_sendto, libc::SYS_writev]);
        let waits =
            calls.of(&[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2]) + calls.of(WAITS_OF_OLD);
        let registrations = calls.of(&[libc::SYS_epoll_ctl]);
        // A busy M looks without waiting, too, when a millisecond has passed: seldom, but where every call is traced.
        let milliseconds = calls.of(&[A_MILLISECOND]);
        // No read finds nothing: a short one says that nothing is left.
        let is_good = reads <= trips + some
            && writes <= trips + some
            && waits <= trips + milliseconds + some
            // A source that moves to the other P is registered there; it does not do so all the time.
            && registrations <= (ps - 1) * some
            && calls.total() <= reads + writes + waits + milliseconds + some;
        good.set(good.get() + u32::from(is_good));
        good.get() == 3
    });
}

/// More events than netpoll delivers in one go: the others have been fetched when their descriptors are closed.
async fn close_and_open_while_events_are_delivered() {
    const ROUNDS: usize = 75;
    const MANY: usize = 200;
    let mut same_number = 0;
    for round in 0..ROUNDS {
        let pairs: Vec<_> = (0..MANY).map(|_| UnixStream::pair().unwrap()).collect();
        for (first, _) in &pairs {
            assert!(poll!(pin!(first.readable())).is_pending());
        }
        for (_, peer) in &pairs {
            assert_eq!(peer.try_write(b"x").unwrap(), 1);
        }
        let mut opened = Vec::new();
        for (first, _peer) in pairs.into_iter().rev() {
            let number = first.as_raw_fd();
            drop(first);
            let pair = UnixStream::pair().unwrap();
            same_number += usize::from(pair.0.as_raw_fd() == number);
            assert!(poll!(pin!(pair.0.readable())).is_pending(), "round {round}");
            opened.push(pair);
        }
        task::yield_now().await;
        for (second, _) in &opened {
            assert!(poll!(pin!(second.readable())).is_pending(), "round {round}");
        }
    }
    let all = ROUNDS * MANY;
    assert!(same_number > all / 10 * 9, "{same_number} of {all}");
}

/// A30: five system calls for one wait, and a registration for each.
#[cfg(target_os = "linux")]
#[test]
fn a_round_trip_is_a_read_a_write_and_a_wait_a_side() {
    const ROUNDS: u64 = 2_000;
    let test = "a_round_trip_is_a_read_a_write_and_a_wait_a_side";
    expect_a_read_a_write_and_a_wait_a_side(test, ROUNDS, 1, || {
        current_thread().block_on(echo_round_trips(ROUNDS));
    });
}

/// A30, with a second P, whose M has nothing to do.
#[cfg(target_os = "linux")]
#[test]
fn a_round_trip_beside_an_idle_p_costs_no_more() {
    const ROUNDS: u64 = 2_000;
    let test = "a_round_trip_beside_an_idle_p_costs_no_more";
    expect_a_read_a_write_and_a_wait_a_side(test, ROUNDS, 2, || {
        let runtime = runtime(2);
        run_task(&runtime, echo_round_trips(ROUNDS));
        finish(runtime);
    });
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const WAITS_OF_OLD: &[i64] = &[libc::SYS_epoll_wait];
#[cfg(all(target_os = "linux", not(target_arch = "x86_64")))]
const WAITS_OF_OLD: &[i64] = &[];

/// A28: a clear of the readiness of long ago wiped a newer event, once in 256 events. A stress; the model
/// is `net/src/netpoll/readiness.rs`.
#[test]
fn no_event_is_lost_in_many_rounds_of_single_bytes() {
    bounded(|| {
        for runtime in [runtime(2), current_thread()] {
            runtime.block_on(async {
                let pairs = (0..4).map(|_| {
                    let (mut a, mut b) = UnixStream::pair().unwrap();
                    let echo = task::spawn(async move {
                        let mut byte = [0];
                        while b.read(&mut byte).await.unwrap() == 1 {
                            b.write_all(&byte).await.unwrap();
                        }
                    });
                    task::spawn(async move {
                        for i in 0..5_000u32 {
                            a.write_all(&[i as u8]).await.unwrap();
                            let mut byte = [0];
                            a.read_exact(&mut byte).await.unwrap();
                            assert_eq!(byte, [i as u8]);
                        }
                        drop(a);
                        echo.await.unwrap();
                    })
                });
                for pair in pairs.collect::<Vec<_>>() {
                    pair.await.unwrap();
                }
            });
            finish(runtime);
        }
    });
}

/// A33: `readable` and then a read that the runtime does not see, over and over: nobody clears the
/// readiness, and even a timeout around it starved.
#[test]
fn a_loop_around_stale_readiness_can_be_timed_out() {
    bounded(|| {
        for runtime in [runtime(1), current_thread()] {
            runtime.block_on(async {
                let (a, b) = UnixStream::pair().unwrap();
                b.try_write(b"x").unwrap();
                a.readable().await.unwrap();
                let looping = async {
                    loop {
                        a.readable().await.unwrap();
                        // As recvmsg of the user's own: the first takes the byte, the others find nothing.
                        let flags = libc::MSG_DONTWAIT;
                        let mut byte = 0u8;
                        // SAFETY: the buffer is one byte long, and so is what is read.
                        unsafe { libc::recv(a.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
                    }
                };
                let elapsed = gmp::time::timeout(Duration::from_millis(20), looping).await;
                elapsed.unwrap_err();
            });
            finish(runtime);
        }
    });
}

/// Blocks the thread until there is something to read.
fn wait_readable(descriptor: RawFd) {
    let mut polled = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the pointer is to one such structure, which is this function's.
    while unsafe { libc::poll(&raw mut polled, 1, -1) } != 1 {}
}

/// A47: a task that yields came back 61 times before a socket was looked at.
#[test]
fn a_yield_lets_a_ready_socket_go_first() {
    bounded(|| {
        for runtime in [
            current_thread(),
            support::builder(1).retake_after(None).build().unwrap(),
        ] {
            run_task(&runtime, async {
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let address = socket.local_addr().unwrap();
                let descriptor = socket.as_raw_fd();
                let handled = Arc::new(AtomicUsize::new(0));
                let handler = task::spawn({
                    let handled = handled.clone();
                    async move {
                        loop {
                            socket.recv(&mut [0]).await.unwrap();
                            handled.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
                task::yield_now().await;
                let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                for round in 1..=100 {
                    sender.send_to(&[1], address).unwrap();
                    // Where the machine is busy, it arrives later than it is sent.
                    wait_readable(descriptor);
                    let mut yields = 0;
                    while handled.load(Ordering::Relaxed) < round {
                        task::yield_now().await;
                        yields += 1;
                        assert!(yields <= 3, "round {round}: {yields} yields");
                    }
                }
                handler.abort();
            });
            finish(runtime);
        }
    });
}

/// A59: a socket of a runtime that is gone, as in a pool of connections that tests share, failed with
/// words about something else, or never.
#[test]
fn a_socket_of_a_dropped_runtime_fails_at_once_and_says_why() {
    bounded(|| {
        for make in [|| runtime(2), current_thread] {
            let dead = make();
            let (mut stream, mut peer) = dead.block_on(async {
                let (stream, peer) = UnixStream::pair().unwrap();
                stream.writable().await.unwrap();
                (stream, peer)
            });
            let read = std::thread::scope(|scope| {
                let other = runtime(1);
                // One that waits while the runtime goes, and one that comes later.
                let waits = scope.spawn(move || other.block_on(peer.read(&mut [0])));
                std::thread::sleep(Duration::from_millis(5));
                drop(dead);
                waits.join().unwrap()
            });
            let alive = current_thread();
            let late = alive.block_on(async {
                (
                    stream.read(&mut [0]).await,
                    stream.ready(Interest::READABLE).await.map(drop),
                )
            });
            for error in [read.unwrap_err(), late.0.unwrap_err(), late.1.unwrap_err()] {
                let text = error.to_string();
                assert!(text.contains("being shutdown"), "{text}");
            }
        }
    });
}

/// A timer of a dropped runtime, too: it neither hangs nor passes.
#[test]
fn a_sleep_of_a_dropped_runtime_says_so() {
    bounded(|| {
        let dead = current_thread();
        let mut sleep = {
            let _context = dead.enter();
            Box::pin(gmp::time::sleep(Duration::from_secs(60)))
        };
        drop(dead);
        let alive = current_thread();
        let text = support::panics(|| {
            alive.block_on(async {
                if let Poll::Ready(()) = poll!(sleep.as_mut()) {
                    panic!("a minute has passed");
                }
                sleep.as_mut().await;
            });
        });
        assert!(text.contains("shut"), "{text}");
    });
}
