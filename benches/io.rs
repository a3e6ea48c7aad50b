//! I/O, files and processes beside tokio's, on the same work in one run; the echo beside a bare loop over
//! epoll, too.
//!
//! `cargo bench --bench io [-- PATTERN…]`; `ROUNDS=15` for more samples.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;
#[path = "io/epoll.rs"]
mod epoll;

use common::{Sample, WORKERS, Workload, per_operation};

/// One write.
const CHUNK: usize = 64 << 10;
const MIB: usize = 1 << 20;
const ACTIVE: usize = 100;

/// Says to a copy of this program which peer's memory to measure.
const IDLE_PEER: &str = "GMP_BENCH_IDLE_PEER";

macro_rules! tokio_like {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;
            use std::net::SocketAddr;
            use $rt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
            use $rt::net::{TcpListener, TcpStream, UdpSocket, UnixStream};

            /// Runs the work in a task, once to warm up and once for the measure.
            fn measure<F>(operations: usize, work: impl Fn() -> F) -> f64
            where
                F: Future<Output = ()> + Send + 'static,
            {
                let runtime = $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(async { $rt::spawn(work()).await.expect("the work") });
                per_operation(operations as u64, || {
                    runtime.block_on(async { $rt::spawn(work()).await.expect("the work") });
                })
            }

            async fn listen() -> (TcpListener, SocketAddr) {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
                let addr = listener.local_addr().expect("addr");
                (listener, addr)
            }

            async fn connect(addr: SocketAddr) -> TcpStream {
                let stream = TcpStream::connect(addr).await.expect("connect");
                stream.set_nodelay(true).expect("nodelay");
                // A close would keep the port for a minute.
                stream.set_zero_linger().expect("linger");
                stream
            }

            async fn pair() -> (TcpStream, TcpStream) {
                let (listener, addr) = listen().await;
                let client = TcpStream::connect(addr).await.expect("connect");
                (client, listener.accept().await.expect("accept").0)
            }

            /// Accepts for ever; echoes pieces of 64 bytes.
            async fn echo(listener: TcpListener) {
                loop {
                    let (mut stream, _) = listener.accept().await.expect("accept");
                    stream.set_nodelay(true).expect("nodelay");
                    $rt::spawn(async move {
                        let mut buf = [0; 64];
                        while stream.read_exact(&mut buf).await.is_ok() {
                            if stream.write_all(&buf).await.is_err() {
                                break;
                            }
                        }
                    });
                }
            }

            async fn trip(stream: &mut TcpStream, buf: &mut [u8; 64]) {
                stream.write_all(buf).await.expect("write");
                stream.read_exact(buf).await.expect("read");
            }

            async fn send(mut writer: impl AsyncWrite + Unpin, mib: usize) {
                let chunk = vec![7; CHUNK];
                for _ in 0..mib * MIB / CHUNK {
                    writer.write_all(&chunk).await.expect("write");
                }
                writer.shutdown().await.expect("shutdown");
            }

            async fn receive(mut reader: impl AsyncRead + Unpin, mib: usize) {
                let mut buf = vec![0; CHUNK];
                let mut received = 0;
                while let n @ 1.. = reader.read(&mut buf).await.expect("read") {
                    received += n;
                }
                assert_eq!(received, mib * MIB);
            }

            /// Nanoseconds a MiB.
            pub fn tcp_throughput(mib: usize) -> f64 {
                measure(mib, move || async move {
                    let (client, server) = pair().await;
                    let sending = $rt::spawn(send(client, mib));
                    receive(server, mib).await;
                    sending.await.expect("the sender");
                })
            }

            pub fn unix_throughput(mib: usize) -> f64 {
                measure(mib, move || async move {
                    let (client, server) = UnixStream::pair().expect("a pair");
                    let sending = $rt::spawn(send(client, mib));
                    receive(server, mib).await;
                    sending.await.expect("the sender");
                })
            }

            /// Through `copy_bidirectional`, there and back.
            pub fn proxy(mib: usize) -> f64 {
                measure(mib, move || async move {
                    let (client, mut near) = pair().await;
                    let (mut far, server) = pair().await;
                    let proxy = $rt::spawn(async move {
                        $rt::io::copy_bidirectional(&mut near, &mut far)
                            .await
                            .expect("copy")
                    });
                    let serving = $rt::spawn(async move {
                        let (reader, writer) = server.into_split();
                        let sending = $rt::spawn(send(writer, mib / 2));
                        receive(reader, mib / 2).await;
                        sending.await.expect("the sender");
                    });
                    let (reader, writer) = client.into_split();
                    let sending = $rt::spawn(send(writer, mib / 2));
                    receive(reader, mib / 2).await;
                    sending.await.expect("the sender");
                    serving.await.expect("the server");
                    proxy.await.expect("the proxy");
                })
            }

            /// Nanoseconds a round trip of 64 bytes, over this many connections at once.
            pub fn tcp_echo(connections: usize) -> f64 {
                let trips = epoll::trips(connections);
                measure(trips * connections, move || async move {
                    let (listener, addr) = listen().await;
                    let server = $rt::spawn(echo(listener));
                    let clients: Vec<_> = (0..connections)
                        .map(|_| {
                            $rt::spawn(async move {
                                let mut stream = connect(addr).await;
                                let mut buf = [7; 64];
                                for _ in 0..trips {
                                    trip(&mut stream, &mut buf).await;
                                }
                            })
                        })
                        .collect();
                    for client in clients {
                        client.await.expect("a client");
                    }
                    server.abort();
                })
            }

            /// Nanoseconds a packet there and back again.
            pub fn udp(packets: usize) -> f64 {
                measure(packets, move || async move {
                    const WINDOW: usize = 16;
                    let a = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
                    let b = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
                    a.connect(b.local_addr().expect("addr"))
                        .await
                        .expect("connect");
                    b.connect(a.local_addr().expect("addr"))
                        .await
                        .expect("connect");
                    let echo = $rt::spawn(async move {
                        let mut buf = [0; 64];
                        for _ in 0..packets {
                            let n = b.recv(&mut buf).await.expect("recv");
                            b.send(&buf[..n]).await.expect("send");
                        }
                    });
                    let mut buf = [7; 64];
                    for _ in 0..WINDOW {
                        a.send(&buf).await.expect("send");
                    }
                    for sent in WINDOW..packets + WINDOW {
                        a.recv(&mut buf).await.expect("recv");
                        if sent < packets {
                            a.send(&buf).await.expect("send");
                        }
                    }
                    echo.await.expect("the echo");
                })
            }

            /// Connections that echo, all but a few of them idle.
            async fn idle_connections(addr: SocketAddr) -> Vec<TcpStream> {
                let mut streams = Vec::new();
                for _ in 0..idle() {
                    let mut stream = connect(addr).await;
                    trip(&mut stream, &mut [7; 64]).await;
                    streams.push(stream);
                }
                streams
            }

            /// Nanoseconds a round trip of the active ones.
            pub fn mostly_idle(trips: usize) -> f64 {
                let runtime = $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime");
                let mut idle = runtime.block_on(async {
                    let (listener, addr) = listen().await;
                    $rt::spawn(echo(listener));
                    $rt::spawn(idle_connections(addr))
                        .await
                        .expect("connections")
                });
                let active = idle.split_off(idle.len() - ACTIVE);
                per_operation((trips * ACTIVE) as u64, || {
                    runtime.block_on(async {
                        let clients: Vec<_> = active
                            .into_iter()
                            .map(|mut stream| {
                                $rt::spawn(async move {
                                    let mut buf = [7; 64];
                                    for _ in 0..trips {
                                        trip(&mut stream, &mut buf).await;
                                    }
                                })
                            })
                            .collect();
                        for client in clients {
                            client.await.expect("a client");
                        }
                    });
                })
            }

            /// Resident bytes a connection: two streams, and a task that waits on one of them.
            pub fn resident() -> f64 {
                let runtime = $rt::runtime::Builder::new_multi_thread()
                    .worker_threads(WORKERS)
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(async {
                    let (listener, addr) = listen().await;
                    $rt::spawn(echo(listener));
                    let before = resident_bytes();
                    let streams = $rt::spawn(idle_connections(addr)).await;
                    let bytes = (resident_bytes() - before) as f64 / idle() as f64;
                    drop(streams);
                    bytes
                })
            }

            /// Nanoseconds a read of a small file.
            pub fn file_reads(reads: usize) -> f64 {
                let path = std::env::temp_dir().join(format!("gmp-bench-{}", std::process::id()));
                std::fs::write(&path, [7; 512]).expect("a file");
                let name = path.clone();
                let nanos = measure(reads, move || {
                    let path = name.clone();
                    async move {
                        let tasks: Vec<_> = (0..8)
                            .map(|_| {
                                let path = path.clone();
                                $rt::spawn(async move {
                                    for _ in 0..reads / 8 {
                                        let content = $rt::fs::read(&path).await.expect("read");
                                        assert_eq!(content.len(), 512);
                                    }
                                })
                            })
                            .collect();
                        for task in tasks {
                            task.await.expect("a reader");
                        }
                    }
                });
                std::fs::remove_file(path).expect("remove");
                nanos
            }

            /// Nanoseconds a child spawned and reaped, eight at a time.
            pub fn children(count: usize) -> f64 {
                measure(count, move || async move {
                    let tasks: Vec<_> = (0..8)
                        .map(|_| {
                            $rt::spawn(async move {
                                for _ in 0..count / 8 {
                                    let status =
                                        $rt::process::Command::new("/bin/true").status().await;
                                    assert!(status.expect("a child").success());
                                }
                            })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("a parent");
                    }
                })
            }
        }
    };
}

tokio_like!(on_gmp, gmp);
tokio_like!(on_tokio, tokio);

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("pages");
    pages * 4096
}

/// What a copy of this program measures, so that the memory of earlier samples is not in the way.
fn resident_of(peer: &'static str) -> Sample {
    Box::new(move || {
        let program = std::env::current_exe().expect("this program");
        let output = std::process::Command::new(program)
            .env(IDLE_PEER, peer)
            .output()
            .expect("a copy of this program");
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().expect("bytes")
    })
}

/// As high as it may be.
fn descriptor_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes to the structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads the structure.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    assert_eq!(raised, 0, "setrlimit");
    limit.rlim_cur as usize
}

/// 10,000, or as many as there are descriptors for: both ends are in this process.
fn idle() -> usize {
    let room = (descriptor_limit() - 100) / 2;
    assert!(room > 1_000, "too few descriptors");
    room.min(10_000)
}

macro_rules! workload {
    ($name:literal, $unit:literal, $function:ident($($argument:expr)?) $(, beside $bare:expr)?) => {
        Workload {
            name: $name,
            unit: $unit,
            peers: vec![
                ("gmp", Box::new(|| on_gmp::$function($($argument)?)) as Sample),
                ("tokio", Box::new(|| on_tokio::$function($($argument)?))),
                $(("epoll", Box::new(|| $bare)))?
            ],
        }
    };
}

fn main() {
    descriptor_limit();
    if let Ok(peer) = std::env::var(IDLE_PEER) {
        let bytes = if peer == "gmp" {
            on_gmp::resident()
        } else {
            on_tokio::resident()
        };
        println!("{bytes}");
        return;
    }
    common::run(vec![
        workload!("TCP throughput, a MiB", "ns", tcp_throughput(1024)),
        workload!("Unix throughput, a MiB", "ns", unix_throughput(1024)),
        workload!("proxy throughput, a MiB", "ns", proxy(512)),
        workload!("TCP echo, 1 connection", "ns", tcp_echo(1), beside epoll::echo(1)),
        workload!("TCP echo, 64 connections", "ns", tcp_echo(64), beside epoll::echo(64)),
        workload!("TCP echo, 1,024 connections", "ns", tcp_echo(1024), beside epoll::echo(1024)),
        workload!("UDP echo, a packet", "ns", udp(40_000)),
        workload!("10,000 connections, 100 active", "ns", mostly_idle(400)),
        Workload {
            name: "10,000 connections, memory of each",
            unit: "B",
            peers: vec![("gmp", resident_of("gmp")), ("tokio", resident_of("tokio"))],
        },
        workload!("100,000 small file reads", "ns", file_reads(100_000)),
        workload!("1,000 children", "ns", children(1000)),
    ]);
}
