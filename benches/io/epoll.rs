//! The echo as a program without a runtime would do it: a thread for the servers and a thread for the
//! clients, each with a loop over its epoll.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;

use crate::common::per_operation;

/// Round trips of each connection.
pub fn trips(connections: usize) -> usize {
    (40_000 / connections).max(100)
}

struct Epoll(OwnedFd);

impl Epoll {
    fn new() -> Epoll {
        // SAFETY: makes a descriptor.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(fd >= 0, "epoll_create1");
        // SAFETY: it is open, and nobody else's.
        Epoll(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn add(&self, stream: &TcpStream, key: usize) {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32 | libc::EPOLLET as u32,
            u64: key as u64,
        };
        let (epoll, fd) = (self.0.as_raw_fd(), stream.as_raw_fd());
        // SAFETY: the kernel reads the event.
        let added = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) };
        assert_eq!(added, 0, "epoll_ctl");
    }

    fn wait(&self, events: &mut Vec<libc::epoll_event>) {
        events.clear();
        let (room, epoll) = (events.capacity() as i32, self.0.as_raw_fd());
        // SAFETY: the kernel writes at most `room` events, which fit.
        let n = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, -1) };
        // SAFETY: so many has the kernel written.
        unsafe { events.set_len(n.max(0) as usize) };
    }
}

/// Calls `answer` with each connection that has received 64 bytes, until it has said `false` to all.
fn serve(streams: Vec<TcpStream>, mut answer: impl FnMut(usize, &mut TcpStream) -> bool) {
    let epoll = Epoll::new();
    for (key, stream) in streams.iter().enumerate() {
        epoll.add(stream, key);
    }
    let mut open = streams.len();
    let mut streams: Vec<Option<TcpStream>> = streams.into_iter().map(Some).collect();
    let mut events = Vec::with_capacity(1024);
    let mut buf = [0; 64];
    while open > 0 {
        epoll.wait(&mut events);
        for event in &events {
            let key = event.u64 as usize;
            // An event of the same wait may be about one that is done.
            let Some(stream) = &mut streams[key] else {
                continue;
            };
            // A piece of 64 bytes arrives whole: it is one segment.
            match stream.read(&mut buf) {
                Ok(64) if answer(key, stream) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => {
                    streams[key] = None;
                    open -= 1;
                }
            }
        }
    }
}

/// Nanoseconds a round trip of 64 bytes.
pub fn echo(connections: usize) -> f64 {
    let trips = trips(connections);
    let run = || {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let addr = listener.local_addr().expect("addr");
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for _ in 0..connections {
            clients.push(TcpStream::connect(addr).expect("connect"));
            servers.push(listener.accept().expect("accept").0);
        }
        for stream in clients.iter().chain(&servers) {
            stream.set_nodelay(true).expect("nodelay");
            stream.set_nonblocking(true).expect("nonblocking");
        }
        let server = thread::spawn(move || {
            let mut left = vec![trips; connections];
            serve(servers, |key, stream| {
                stream.write_all(&[7; 64]).expect("write");
                left[key] -= 1;
                left[key] > 0
            });
        });
        for client in &mut clients {
            client.write_all(&[7; 64]).expect("write");
        }
        let mut left = vec![trips; connections];
        serve(clients, |key, stream| {
            left[key] -= 1;
            if left[key] == 0 {
                return false;
            }
            stream.write_all(&[7; 64]).expect("write");
            true
        });
        server.join().expect("the server");
    };
    run();
    per_operation((trips * connections) as u64, run)
}
