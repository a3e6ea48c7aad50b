//! Connections without number. Alone in its process: it counts descriptors and memory.
#![cfg(all(target_os = "linux", not(gmp_loom)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gmp_executor::task;
use gmp_net::{TcpListener, TcpStream};
use support::*;

mod support;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// 50,000 connects and closes leave neither descriptors nor memory behind.
#[test]
fn fifty_thousand_connections_leave_nothing_behind() {
    const CLIENTS: usize = 8;
    let _watchdog = Watchdog::new();
    let runtime = rt::multi_thread();
    let served = Arc::new(AtomicUsize::new(0));
    let addr = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let served = served.clone();
        task::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let served = served.clone();
                task::spawn(async move {
                    // The client resets the connection.
                    read(&mut stream, &mut [0]).await.unwrap_err();
                    // It is counted when its descriptor has been closed.
                    drop(stream);
                    served.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        addr
    });
    let connect = |count: usize| {
        let before = served.load(Ordering::SeqCst);
        runtime.block_on(async {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    task::spawn(async move {
                        for _ in 0..count / CLIENTS {
                            let stream = TcpStream::connect(addr).await.unwrap();
                            // A close would keep the port for a minute.
                            stream.set_zero_linger().unwrap();
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            while served.load(Ordering::SeqCst) < before + count {
                task::yield_now().await;
            }
        });
    };
    connect(10_000);
    let fds = descriptors();
    // How much is in use at once depends on who runs when. What leaks grows in each round.
    let grows = || {
        let memory = resident_bytes();
        connect(40_000);
        assert!(descriptors() <= fds + 1, "a descriptor leaks");
        resident_bytes().saturating_sub(memory) >= 40_000 * 50
    };
    assert!(!(0..5).all(|_| grows()), "memory leaks");
}
