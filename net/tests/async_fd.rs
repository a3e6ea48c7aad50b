//! `AsyncFd` on socket pairs, pipes, eventfds and what cannot be registered.
#![cfg(not(gmp_loom))]
// The safe constructors are deprecated, as in tokio, and do what the unsafe ones do.
#![allow(deprecated)]

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::Context;

use futures::future::{join, join_all};
use gmp_executor::task;
use gmp_net::{AsyncFd, AsyncFdReadyGuard, Interest, Ready};
use support::*;

mod support;

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

fn registered() -> (AsyncFd<UnixStream>, UnixStream) {
    let (a, b) = pair();
    // SAFETY: a `UnixStream` keeps its descriptor open and does not change it.
    let a = unsafe { AsyncFd::register(a) }.unwrap();
    (a, b)
}

#[test]
fn a_guard_clears_what_an_operation_disproved() {
    run(|| async {
        let (a, mut b) = registered();
        {
            let mut readable = Box::pin(a.readable());
            assert!(poll_once(&mut readable).await.is_pending());
        }
        b.write_all(b"xy").unwrap();
        let mut guard = a.readable().await.unwrap();
        assert_eq!(guard.ready(), Ready::READABLE);
        let read = |fd: &AsyncFd<UnixStream>| (&mut fd.get_ref()).read(&mut [0; 1]);
        assert_eq!(guard.try_io(read).unwrap().unwrap(), 1);
        guard.retain_ready();
        assert!(a.readable().await.unwrap().ready().is_readable());
        assert_eq!(guard.try_io(read).unwrap().unwrap(), 1);
        assert!(guard.try_io(read).is_err());
        assert!(guard.ready().is_empty());
        let mut readable = Box::pin(a.readable());
        assert!(poll_once(&mut readable).await.is_pending());
        b.write_all(b"z").unwrap();
        readable.await.unwrap().clear_ready();
        let error = guard
            .try_io(|_| Err::<(), _>(io::Error::other("told")))
            .unwrap();
        assert_eq!(error.unwrap_err().to_string(), "told");
        assert_eq!(guard.get_inner().as_raw_fd(), guard.get_ref().as_raw_fd());
    });
}

#[test]
fn mutable_guards_do_the_same() {
    run(|| async {
        let (mut a, mut b) = registered();
        b.write_all(b"x").unwrap();
        let mut guard = a.readable_mut().await.unwrap();
        let read = |fd: &mut AsyncFd<UnixStream>| fd.get_mut().read(&mut [0; 1]);
        assert_eq!(guard.try_io(read).unwrap().unwrap(), 1);
        assert!(guard.try_io(read).is_err());
        assert_eq!(guard.get_ref().as_raw_fd(), guard.get_inner().as_raw_fd());
        let fd = guard.get_mut().as_raw_fd();
        assert_eq!(guard.get_inner_mut().as_raw_fd(), fd);
        guard.retain_ready();
        a.writable_mut().await.unwrap().clear_ready();
        {
            let mut writable = Box::pin(a.writable());
            assert!(poll_once(&mut writable).await.is_pending());
        }
        b.write_all(b"x").unwrap();
        let guard = a.ready_mut(Interest::READABLE | Interest::WRITABLE).await;
        assert!(guard.unwrap().ready().is_readable());
        let guard = poll_fn(|cx| a.poll_read_ready_mut(cx).map_ok(|guard| guard.ready())).await;
        assert!(guard.unwrap().is_readable());
        let guard = poll_fn(|cx| a.poll_write_ready_mut(cx).map_ok(|guard| guard.ready())).await;
        assert!(guard.unwrap().is_writable());
    });
}

#[test]
fn part_of_the_readiness_can_be_cleared() {
    run(|| async {
        let (mut a, mut b) = registered();
        b.write_all(b"x").unwrap();
        // The event of the registration, which tells that it is writable, may come by itself.
        a.readable().await.unwrap().retain_ready();
        let both = Interest::READABLE | Interest::WRITABLE;
        let mut guard = a.ready(both).await.unwrap();
        assert_eq!(guard.ready(), Ready::READABLE | Ready::WRITABLE);
        guard.clear_ready_matching(Ready::READABLE);
        assert_eq!(guard.ready(), Ready::WRITABLE);
        assert_eq!(a.ready(both).await.unwrap().ready(), Ready::WRITABLE);
        let mut guard = a.ready_mut(both).await.unwrap();
        guard.clear_ready_matching(Ready::WRITABLE);
        assert_eq!(guard.ready(), Ready::EMPTY);
        guard.clear_ready_matching(Ready::WRITABLE);
        let mut ready = Box::pin(a.ready(both));
        assert!(poll_once(&mut ready).await.is_pending());
    });
}

#[test]
fn a_clear_cannot_wipe_a_later_event() {
    run(|| async {
        let (a, mut b) = registered();
        b.write_all(b"x").unwrap();
        let mut guard = a.readable().await.unwrap();
        b.write_all(b"y").unwrap();
        // Lets the netpoll deliver the second event.
        let mut other = a.ready(Interest::READABLE).await.unwrap();
        for _ in 0..100 {
            task::yield_now().await;
        }
        guard.clear_ready();
        assert!(a.readable().await.unwrap().ready().is_readable());
        other.clear_ready();
    });
}

#[test]
fn the_end_is_never_cleared() {
    run(|| async {
        let (a, b) = registered();
        drop(b);
        for _ in 0..3 {
            let mut guard = a.readable().await.unwrap();
            assert!(guard.ready().is_read_closed());
            guard.clear_ready();
        }
        assert!(a.writable().await.unwrap().ready().is_write_closed());
    });
}

#[test]
fn operations_in_a_loop() {
    run(|| async {
        let (mut a, mut b) = registered();
        let mut byte = [0];
        {
            let mut read =
                Box::pin(a.async_io(Interest::READABLE, |mut stream| stream.read(&mut byte)));
            assert!(poll_once(&mut read).await.is_pending());
            b.write_all(b"q").unwrap();
            assert_eq!(read.await.unwrap(), 1);
        }
        assert_eq!(&byte, b"q");
        let n = a
            .async_io_mut(Interest::WRITABLE, |stream| stream.write(b"ab"))
            .await;
        assert_eq!(n.unwrap(), 2);
        let mut buf = [0; 8];
        assert_eq!(b.read(&mut buf).unwrap(), 2);
        let error = a.async_io(Interest::WRITABLE, |_| {
            Err::<(), _>(io::Error::from(ErrorKind::InvalidData))
        });
        assert_eq!(error.await.unwrap_err().kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn trying_needs_readiness() {
    run(|| async {
        let (mut a, mut b) = registered();
        let would_block = |_: &UnixStream| Err::<(), _>(ErrorKind::WouldBlock.into());
        assert_would_block(a.try_io(Interest::READABLE, |_| -> io::Result<()> {
            panic!("called without readiness")
        }));
        assert!(a.writable().await.is_ok());
        a.try_io(Interest::WRITABLE, |mut stream| stream.write(b"x"))
            .unwrap();
        a.try_io_mut(Interest::WRITABLE, |stream| stream.write(b"x"))
            .unwrap();
        assert_would_block(a.try_io(Interest::WRITABLE, would_block));
        assert_would_block(a.try_io_mut(Interest::WRITABLE, |_| -> io::Result<()> {
            panic!("called though it was cleared")
        }));
        b.write_all(b"x").unwrap();
        a.readable().await.unwrap().retain_ready();
        a.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 4]))
            .unwrap();
    });
}

#[test]
fn many_waiters_and_one_slot_a_direction() {
    run(|| async {
        let (a, mut b) = registered();
        let a = Arc::new(a);
        let (forgotten, waker) = Wakes::new();
        let pending = a
            .poll_read_ready(&mut Context::from_waker(&waker))
            .is_pending();
        assert!(pending);
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let a = a.clone();
                task::spawn(async move { a.readable().await.unwrap().retain_ready() })
            })
            .collect();
        let slot = poll_fn(|cx| a.poll_read_ready(cx).map_ok(|guard| guard.ready()));
        let mut slot = Box::pin(slot);
        assert!(poll_once(&mut slot).await.is_pending());
        task::yield_now().await;
        b.write_all(b"x").unwrap();
        assert!(slot.await.unwrap().is_readable());
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(forgotten.count(), 0, "only the last caller is woken");
        let writable = poll_fn(|cx| a.poll_write_ready(cx).map_ok(|guard| guard.ready()));
        assert!(writable.await.unwrap().is_writable());
    });
}

#[test]
fn interests_that_were_not_registered_stay_silent() {
    run(|| async {
        let (a, mut b) = pair();
        // SAFETY: a `UnixStream` keeps its descriptor open and does not change it.
        let a = unsafe { AsyncFd::register_with_interest(a, Interest::READABLE) }.unwrap();
        let mut writable = Box::pin(a.writable());
        assert!(poll_once(&mut writable).await.is_pending());
        b.write_all(b"x").unwrap();
        a.readable().await.unwrap().retain_ready();
        assert!(poll_once(&mut writable).await.is_pending());
    });
}

#[test]
#[cfg(target_os = "linux")]
fn an_eventfd_can_be_awaited() {
    run(|| async {
        use rustix::event::{EventfdFlags, eventfd};
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        // SAFETY: an `OwnedFd` keeps its descriptor open and does not change it.
        let fd = Arc::new(unsafe { AsyncFd::register(fd) }.unwrap());
        let waiter = {
            let fd = fd.clone();
            task::spawn(async move {
                let mut count = [0; 8];
                let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut count)?);
                fd.async_io(Interest::READABLE, read).await.unwrap();
                u64::from_ne_bytes(count)
            })
        };
        task::yield_now().await;
        rustix::io::write(fd.get_ref(), &7u64.to_ne_bytes()).unwrap();
        assert_eq!(waiter.await.unwrap(), 7);
    });
}

/// A34: an event of nothing but an error woke nobody.
#[test]
#[cfg(target_os = "linux")]
fn errors_alone_wake_those_who_wait_for_errors_and_for_data() {
    run(|| async {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        // Nobody is there to receive: the answer is an error of the socket.
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(closed.local_addr().unwrap()).unwrap();
        drop(closed);
        // SAFETY: a `UdpSocket` keeps its descriptor open and does not change it.
        let fd = unsafe { AsyncFd::register(socket) }.unwrap();
        let mut error = Box::pin(fd.ready(Interest::ERROR));
        assert!(poll_once(&mut error).await.is_pending());
        let mut received =
            Box::pin(fd.async_io(Interest::READABLE, |socket| socket.recv(&mut [0; 8])));
        assert!(poll_once(&mut received).await.is_pending());
        fd.get_ref().send(b"x").unwrap();
        let (error, received) = join(error, received).await;
        assert_eq!(error.unwrap().ready(), Ready::ERROR);
        assert_eq!(received.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

/// A35: a regular file is a clear error, not a panic.
#[test]
fn what_cannot_be_polled_is_refused() {
    struct Nothing;
    impl AsRawFd for Nothing {
        fn as_raw_fd(&self) -> RawFd {
            -1
        }
    }
    run(|| async {
        let file = || File::open("/proc/self/exe").unwrap();
        let error = AsyncFd::new(file()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        let error = AsyncFd::with_interest(file(), Interest::READABLE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let error = AsyncFd::try_with_interest(file(), Interest::READABLE).unwrap_err();
        assert!(!format!("{error}").is_empty() && !format!("{error:?}").is_empty());
        assert!(std::error::Error::source(&error).is_some());
        let (mut file, cause) = error.into_parts();
        assert_eq!(cause.raw_os_error(), Some(libc::EPERM));
        assert_eq!(
            file.read(&mut [0; 4]).unwrap(),
            4,
            "it is given back as it was"
        );
        let Err(error) = AsyncFd::try_new(Nothing) else {
            panic!("no descriptor at all");
        };
        assert_eq!(io::Error::from(error).raw_os_error(), Some(libc::EBADF));
    });
}

#[test]
fn taking_it_apart_and_dropping_it() {
    run(|| async {
        let (a, mut b) = registered();
        let a = a.into_inner();
        assert_would_block(b.read(&mut [0]));
        // SAFETY: a `UnixStream` keeps its descriptor open and does not change it.
        let a = unsafe { AsyncFd::register(a) }.unwrap();
        assert_eq!(a.as_fd().as_raw_fd(), a.as_raw_fd());
        assert!(format!("{a:?}").contains("AsyncFd"));
        let guard: AsyncFdReadyGuard<'_, _> = a.writable().await.unwrap();
        assert!(format!("{guard:?}").contains("ReadyGuard"));
        drop(a);
        assert_eq!(b.read(&mut [0]).unwrap(), 0, "the descriptor is closed");
    });
}

#[test]
fn it_fails_when_the_runtime_is_gone() {
    use futures::executor::block_on;
    let _watchdog = Watchdog::new();
    for _ in 0..50 {
        let runtime = rt::current_thread();
        let (a, b) = {
            let _guard = runtime.enter();
            registered()
        };
        let waiter = std::thread::spawn(move || {
            assert!(block_on(a.readable()).is_err());
            assert!(block_on(poll_fn(|cx| a.poll_read_ready(cx).map_ok(|_| ()))).is_err());
            a
        });
        drop(runtime);
        let a = waiter.join().unwrap();
        assert!(block_on(a.readable()).is_err());
        assert!(block_on(a.async_io(Interest::READABLE, |_| Ok(()))).is_err());
        drop(b);
    }
}

#[test]
fn a_hundred_descriptors_at_once() {
    run(|| async {
        let tasks: Vec<_> = (0..100u8)
            .map(|n| {
                task::spawn(async move {
                    let (a, b) = registered();
                    // SAFETY: a `UnixStream` keeps its descriptor open and does not change it.
                    let b = unsafe { AsyncFd::register(b) }.unwrap();
                    let ping = async {
                        for round in 0..50 {
                            let byte = [n ^ round];
                            let write = a.async_io(Interest::WRITABLE, |mut s| s.write(&byte));
                            write.await.unwrap();
                            let mut back = [0];
                            let read = a.async_io(Interest::READABLE, |mut s| s.read(&mut back));
                            read.await.unwrap();
                            assert_eq!(back, byte);
                        }
                    };
                    let pong = async {
                        for _ in 0..50 {
                            let mut byte = [0];
                            let read = b.async_io(Interest::READABLE, |mut s| s.read(&mut byte));
                            read.await.unwrap();
                            let write = b.async_io(Interest::WRITABLE, |mut s| s.write(&byte));
                            write.await.unwrap();
                        }
                    };
                    join(ping, pong).await;
                })
            })
            .collect();
        for done in join_all(tasks).await {
            done.unwrap();
        }
    });
}
