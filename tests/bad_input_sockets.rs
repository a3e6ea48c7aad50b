//! Descriptors that are no good: bound ports, closed descriptors, none left.
//!
//! Each is an error for who asked for it, and none of them hangs, spins or leaks. The limit on descriptors
//! is a process's, so such tests are children.

mod support;

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gmp::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use gmp::runtime::{Handle, Runtime, RuntimeFlavor};
use gmp::task;
use support::child::in_child;
use support::{bounded, builder, current_thread, finish, run_task, runtime, threads};

const BOTH: [fn() -> Runtime; 2] = [|| runtime(2), current_thread];

#[track_caller]
fn assert_works(runtime: &Runtime) {
    run_task(runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = task::spawn(async move { listener.accept().await.unwrap() });
        let _client = TcpStream::connect(address).await.unwrap();
        server.await.unwrap();
        gmp::time::sleep(Duration::from_millis(1)).await;
    });
}

/// Waits until the monitor has begun, which opens files when it does.
fn settle(runtime: &Runtime) {
    if runtime.handle().runtime_flavor() == RuntimeFlavor::MultiThread {
        run_task(runtime, async {
            while Handle::current().metrics().retake_count() == 0 {
                // Something for another M to watch.
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                assert!(futures::poll!(std::pin::pin!(socket.readable())).is_pending());
                std::thread::sleep(Duration::from_millis(30));
            }
        });
    }
}

/// Closes a descriptor that is somebody else's, until the guard goes: its owner will close it once more.
struct Closed(RawFd);

impl Closed {
    fn new(fd: RawFd) -> Closed {
        // SAFETY: the descriptor is open. Its owner is left with a number that is nobody's, which is what
        // is tested here, in a process where nobody else opens any meanwhile.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        Closed(fd)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let null = std::fs::File::open("/dev/null").unwrap();
        if null.as_raw_fd() == self.0 {
            std::mem::forget(null);
            return;
        }
        // SAFETY: the number is nobody's, see above.
        assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), self.0) }, self.0);
    }
}

#[test]
fn a_bound_address_is_an_error() {
    bounded(|| {
        for make in BOTH {
            let runtime = make();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let error = TcpListener::bind(address).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::AddrInUse);
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let address = socket.local_addr().unwrap();
                let error = UdpSocket::bind(address).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::AddrInUse);
                let path = std::env::temp_dir();
                let path = path.join(format!("gmp-bound-{}", std::process::id()));
                let _listener = UnixListener::bind(&path).unwrap();
                let error = UnixListener::bind(&path).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::AddrInUse);
                std::fs::remove_file(&path).unwrap();
            });
            assert_works(&runtime);
            finish(runtime);
        }
    });
}

#[test]
fn a_descriptor_that_is_closed_behind_the_runtimes_back_is_an_error() {
    let test = "a_descriptor_that_is_closed_behind_the_runtimes_back_is_an_error";
    in_child(test, &[], || {
        for make in BOTH {
            let runtime = make();
            settle(&runtime);
            runtime.block_on(async {
                // One that has been waited for, and one that has not.
                for waited in [true, false] {
                    let (socket, peer) = UnixStream::pair().unwrap();
                    if waited {
                        peer.try_write(b"x").unwrap();
                        socket.readable().await.unwrap();
                        socket.try_read(&mut [0]).unwrap();
                    }
                    use gmp::io::{AsyncReadExt, AsyncWriteExt};
                    let mut socket = socket;
                    let _closed = Closed::new(socket.as_raw_fd());
                    let error = socket.write_all(b"x").await.unwrap_err();
                    assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{waited}");
                    // One that is registered waits for an event that the system has forgotten.
                    if !waited {
                        let error = socket.read(&mut [0]).await.unwrap_err();
                        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
                    }
                }
            });
            assert_works(&runtime);
            // So does one that waits right now; but the runtime works, and can end.
            let (socket, _peer) = {
                let _context = runtime.enter();
                UnixStream::pair().unwrap()
            };
            let fd = socket.as_raw_fd();
            let (registered, is_registered) = std::sync::mpsc::channel();
            let waits = runtime.spawn(async move {
                let mut readable = std::pin::pin!(socket.readable());
                assert!(futures::poll!(&mut readable).is_pending());
                registered.send(()).unwrap();
                readable.await
            });
            runtime.block_on(async { task::yield_now().await });
            is_registered.recv().unwrap();
            let closed = Closed::new(fd);
            runtime.block_on(async { gmp::time::sleep(Duration::from_millis(5)).await });
            drop(closed);
            assert_works(&runtime);
            drop(runtime);
            assert!(waits.is_finished());
        }
    })
    .succeeded();
}

fn limit_descriptors(most: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a limit of this function's.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    assert_eq!(got, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, most.min(limit.rlim_max));
    // SAFETY: as above.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(set, 0);
    before
}

/// The number that the next descriptor gets.
fn next_descriptor() -> u64 {
    std::fs::File::open("/dev/null").unwrap().as_raw_fd() as u64
}

#[test]
fn without_descriptors_building_fails_and_leaves_no_thread() {
    let test = "without_descriptors_building_fails_and_leaves_no_thread";
    in_child(test, &[], || {
        // None, and one too few for the last of the Ps.
        for left in [0, 1, 5] {
            let before = limit_descriptors(next_descriptor() + left);
            let built = builder(8).thread_name("no-descriptors").build();
            let current = gmp::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let next = std::fs::File::open("/dev/null").map(|file| file.as_raw_fd() as u64);
            limit_descriptors(before);
            let error = built.expect_err("a poller needs descriptors");
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            if left == 0 {
                let error = current.as_ref().expect_err("a poller needs descriptors");
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            }
            drop((current, next));
            support::wait_until("no thread is left", || {
                threads::named("no-descriptors") == 0
            });
        }
        let runtime = runtime(2);
        assert_works(&runtime);
    })
    .succeeded();
}

/// A32: an error each time, no spin of the runtime's own, and service resumes.
#[test]
fn an_accept_loop_without_descriptors_recovers_and_costs_little() {
    const CLIENTS: usize = 20;
    let test = "an_accept_loop_without_descriptors_recovers_and_costs_little";
    in_child(test, &[], || {
        for make in BOTH {
            let runtime = make();
            let errors = Arc::new(AtomicUsize::new(0));
            let (address, server) = runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let errors = errors.clone();
                let server = task::spawn(async move {
                    let mut accepted = Vec::new();
                    while accepted.len() < CLIENTS {
                        match listener.accept().await {
                            Ok(stream) => accepted.push(stream),
                            Err(error) => {
                                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                                errors.fetch_add(1, Ordering::Relaxed);
                                gmp::time::sleep(Duration::from_millis(20)).await;
                            }
                        }
                    }
                });
                (address, server)
            });
            // The sockets of the clients, and then a limit that leaves room for none more.
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let socket =
                        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
                    socket.unwrap()
                })
                .collect();
            let before = limit_descriptors(next_descriptor());
            for client in &clients {
                client.connect(&address.into()).unwrap();
            }
            // How often anything has been polled, or waited for.
            let done = || -> u64 {
                let metrics = runtime.metrics();
                let of = |p| metrics.worker_poll_count(p) + metrics.worker_park_count(p);
                (0..metrics.num_workers()).map(of).sum()
            };
            let before_that = done();
            let sleeps = runtime.block_on(async {
                let mut sleeps = 0;
                while errors.load(Ordering::Relaxed) < 10 {
                    gmp::time::sleep(Duration::from_millis(20)).await;
                    sleeps += 1;
                }
                sleeps
            });
            let done = done() - before_that;
            let asked_for = errors.load(Ordering::Relaxed) as u64 + sleeps;
            // A few polls and waits each; a listener that is ready and looked at all the time is thousands.
            assert!(done <= 20 * asked_for, "{done} for {asked_for}");
            assert!(!server.is_finished());
            limit_descriptors(before);
            runtime.block_on(server).unwrap();
            assert_works(&runtime);
            finish(runtime);
        }
    })
    .succeeded();
}
