//! Sockets beside tokio's and Go's, on the same work in one run.
//!
//! `cargo bench --bench net [-- PATTERN…]`; `ROUNDS=15` for more samples. Go is a peer if `go` is in the path, or
//! `GO` names it.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use common::{WORKERS, Workload, per_operation};

macro_rules! tokio_like {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::{WORKERS, per_operation};
            use $rt::io::{AsyncReadExt, AsyncWriteExt};
            use $rt::net::{TcpListener, TcpStream};

            /// Nanoseconds a round trip of 64 bytes, both ends of each connection in this process.
            pub fn tcp_echo(connections: u64) -> f64 {
                let trips = 40_000 / connections;
                let runtime = $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime");
                let run = move || async move {
                    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
                    let addr = listener.local_addr().expect("addr");
                    let server = $rt::spawn(async move {
                        loop {
                            let (mut stream, _) = listener.accept().await.expect("accept");
                            stream.set_nodelay(true).expect("nodelay");
                            $rt::spawn(async move {
                                let mut buf = [0; 64];
                                while stream.read_exact(&mut buf).await.is_ok() {
                                    stream.write_all(&buf).await.expect("echo");
                                }
                            });
                        }
                    });
                    let clients: Vec<_> = (0..connections)
                        .map(|_| {
                            $rt::spawn(async move {
                                let mut stream = TcpStream::connect(addr).await.expect("connect");
                                stream.set_nodelay(true).expect("nodelay");
                                let mut buf = [7; 64];
                                for _ in 0..trips {
                                    stream.write_all(&buf).await.expect("write");
                                    stream.read_exact(&mut buf).await.expect("read");
                                }
                            })
                        })
                        .collect();
                    for client in clients {
                        client.await.expect("a client");
                    }
                    server.abort();
                };
                runtime.block_on(async { $rt::spawn(run()).await.expect("the work") });
                per_operation(trips * connections, || {
                    runtime.block_on(async { $rt::spawn(run()).await.expect("the work") });
                })
            }
        }
    };
}

tokio_like!(on_gmp, gmp);
tokio_like!(on_tokio, tokio);

/// The same with smol's crates.
mod on_smol {
    use super::{common::with_smol, per_operation};
    use smol::future;
    use smol::io::{AsyncReadExt, AsyncWriteExt};
    use smol::net::{TcpListener, TcpStream};

    pub fn tcp_echo(connections: u64) -> f64 {
        let trips = 40_000 / connections;
        let mut figure = 0.0;
        with_smol(|executor| {
            let run = || {
                let own = executor.clone();
                let work = executor.spawn(async move {
                    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
                    let addr = listener.local_addr().expect("addr");
                    let spawner = own.clone();
                    let server = own.spawn(async move {
                        loop {
                            let (mut stream, _) = listener.accept().await.expect("accept");
                            stream.set_nodelay(true).expect("nodelay");
                            let serve = async move {
                                let mut buf = [0; 64];
                                while stream.read_exact(&mut buf).await.is_ok() {
                                    stream.write_all(&buf).await.expect("echo");
                                }
                            };
                            spawner.spawn(serve).detach();
                        }
                    });
                    let client = |_| {
                        own.spawn(async move {
                            let mut stream = TcpStream::connect(addr).await.expect("connect");
                            stream.set_nodelay(true).expect("nodelay");
                            let mut buf = [7; 64];
                            for _ in 0..trips {
                                stream.write_all(&buf).await.expect("write");
                                stream.read_exact(&mut buf).await.expect("read");
                            }
                        })
                    };
                    let clients: Vec<_> = (0..connections).map(client).collect();
                    for client in clients {
                        client.await;
                    }
                    server.cancel().await;
                });
                future::block_on(work);
            };
            run();
            figure = per_operation(trips * connections, run);
        });
        figure
    }
}

/// What the reads and writes of the same round trips cost without anybody who waits for them: a thread a core does
/// both ends of its share of the connections, one after another. No runtime on these calls can be faster.
fn calls_alone(connections: u64) -> f64 {
    let trips = 40_000 / connections;
    let threads = connections.min(WORKERS as u64);
    let share = connections / threads;
    let run = || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut pairs: Vec<_> = (0..share).map(|_| connected()).collect();
                    let mut buf = [7; 64];
                    for _ in 0..trips {
                        for (client, _) in &mut pairs {
                            client.write_all(&buf).expect("write");
                        }
                        for (_, server) in &mut pairs {
                            server.read_exact(&mut buf).expect("read");
                            server.write_all(&buf).expect("echo");
                        }
                        for (client, _) in &mut pairs {
                            client.read_exact(&mut buf).expect("read");
                        }
                    }
                });
            }
        });
    };
    per_operation(trips * share * threads, run)
}

/// Both ends of a connection.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let client = TcpStream::connect(listener.local_addr().expect("addr")).expect("connect");
    let (server, _) = listener.accept().expect("accept");
    client.set_nodelay(true).expect("nodelay");
    server.set_nodelay(true).expect("nodelay");
    (client, server)
}

fn tcp_echo(name: &'static str, connections: u64) -> Workload {
    Workload {
        name,
        unit: "ns",
        peers: vec![
            ("gmp", Box::new(move || on_gmp::tcp_echo(connections))),
            ("tokio", Box::new(move || on_tokio::tcp_echo(connections))),
            ("smol", Box::new(move || on_smol::tcp_echo(connections))),
            ("calls alone", Box::new(move || calls_alone(connections))),
        ],
    }
}

fn main() {
    common::run(vec![
        tcp_echo("TCP echo, 64 connections", 64).beside_go("TCP echo, 64"),
        tcp_echo("TCP echo, 8 connections", 8).beside_go("TCP echo, 8"),
        tcp_echo("TCP echo, 1 connection", 1).beside_go("TCP echo, 1"),
    ]);
}
