//! Sockets beside tokio's and Go's, on the same work in one run.
//!
//! `cargo bench --bench net [-- PATTERN…]`; `ROUNDS=15` for more samples. Go is a peer if `go` is in the path, or
//! `GO` names it.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use common::{WORKERS, Workload, per_operation};

macro_rules! tokio_like {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;
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

macro_rules! workload {
    ($name:literal, $unit:literal, $function:ident($($argument:expr)?)) => {
        Workload {
            name: $name,
            unit: $unit,
            peers: vec![
                ("gmp", Box::new(|| on_gmp::$function($($argument)?)) as common::Sample),
                ("tokio", Box::new(|| on_tokio::$function($($argument)?))),
            ],
        }
    };
}

fn main() {
    common::run(vec![
        workload!("TCP echo, 64 connections", "ns", tcp_echo(64)).beside_go("TCP echo, 64"),
        workload!("TCP echo, 8 connections", "ns", tcp_echo(8)).beside_go("TCP echo, 8"),
        workload!("TCP echo, 1 connection", "ns", tcp_echo(1)).beside_go("TCP echo, 1"),
    ]);
}
