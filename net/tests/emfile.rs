//! A listener in a process that is out of descriptors. Alone in its process: the limit is everybody's.
#![cfg(not(gmp_loom))]

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gmp_executor::task;
use gmp_net::TcpListener;
use rustix::process::{Resource, getrlimit, setrlimit};
use support::*;

mod support;

/// Each `accept` says `EMFILE`, the loop around it leaves room for other tasks although it only tries
/// again, and service resumes when there are descriptors.
#[test]
fn accept_goes_on_when_there_are_descriptors_again() {
    let _watchdog = Watchdog::new();
    let runtime = rt::multi_thread();
    let limit = getrlimit(Resource::Nofile);
    let addr_and_errors = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let errors = Arc::new(AtomicUsize::new(0));
        let seen = errors.clone();
        let server = task::spawn(async move {
            // They stay open: a number that was free after all serves one client only.
            let mut accepted = Vec::new();
            while accepted.len() < 10 {
                match listener.accept().await {
                    Ok((stream, _)) => accepted.push(stream),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                        assert_ne!(error.kind(), ErrorKind::WouldBlock);
                        seen.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        (addr, errors, server)
    });
    let (addr, errors, server) = addr_and_errors;
    let clients: Vec<_> = {
        let sockets: Vec<_> = (0..10)
            .map(|_| socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None))
            .collect();
        // The lowest number that is free: nothing can be opened any more.
        let free = std::fs::File::open("/dev/null").unwrap();
        let lowest = std::os::fd::AsRawFd::as_raw_fd(&free) as u64;
        drop(free);
        let mut low = limit;
        low.current = Some(lowest);
        setrlimit(Resource::Nofile, low).unwrap();
        sockets
            .into_iter()
            .map(|socket| {
                let socket = socket.unwrap();
                socket.connect(&addr.into()).unwrap();
                TcpStream::from(socket)
            })
            .collect()
    };
    runtime.block_on(async {
        while errors.load(Ordering::SeqCst) < 1_000 {
            task::yield_now().await;
        }
    });
    setrlimit(Resource::Nofile, limit).unwrap();
    runtime.block_on(server).unwrap();
    drop(clients);
}
