//! TCP over the loopback interface.
#![cfg(not(gmp_loom))]

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use futures::executor::block_on;
use futures::future::{join, join_all};
use gmp_executor::task;
use gmp_io::{AsyncWrite, ReadBuf};
use gmp_net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use gmp_net::{Interest, Ready, TcpListener, TcpSocket, TcpStream};
use support::*;

mod support;

const LOCAL: &str = "127.0.0.1:0";

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

async fn pair() -> (TcpStream, TcpStream) {
    let (listener, addr) = listener().await;
    let (client, server) = join(TcpStream::connect(addr), listener.accept()).await;
    (client.unwrap(), server.unwrap().0)
}

fn std_listener() -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind(LOCAL).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// Writes until there is no space left; returns how much fitted.
fn fill(stream: &TcpStream) -> usize {
    let buf = vec![7; 1 << 16];
    let mut total = 0;
    loop {
        match stream.try_write(&buf) {
            Ok(n) => total += n,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return total;
            }
        }
    }
}

// ----- Connecting and accepting -----

#[test]
fn a_connection_knows_both_its_ends() {
    run(|| async {
        let (listener, addr) = listener().await;
        let (client, server) = join(TcpStream::connect(addr), listener.accept()).await;
        let (client, (server, peer)) = (client.unwrap(), server.unwrap());
        assert_eq!(client.peer_addr().unwrap(), addr);
        assert_eq!(server.local_addr().unwrap(), addr);
        assert_eq!(server.peer_addr().unwrap(), peer);
        assert_eq!(client.local_addr().unwrap(), peer);
        assert!(client.take_error().unwrap().is_none());
        assert!(format!("{client:?}").contains("127.0.0.1"));
        assert!(format!("{listener:?}").contains("127.0.0.1"));
    });
}

#[test]
fn connect_takes_names_and_lists_of_addresses() {
    run(|| async {
        let (listener, addr) = listener().await;
        let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let accept = async {
            for _ in 0..3 {
                listener.accept().await.unwrap();
            }
        };
        let connect = async {
            TcpStream::connect(("localhost", addr.port()))
                .await
                .unwrap();
            TcpStream::connect(&[closed, addr][..]).await.unwrap();
            TcpStream::connect(addr.to_string()).await.unwrap();
        };
        join(accept, connect).await;
        let none: &[SocketAddr] = &[];
        let error = TcpStream::connect(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = TcpListener::bind(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_refused_connection_is_an_error() {
    run(|| async {
        let (listener, addr) = listener().await;
        drop(listener);
        let error = TcpStream::connect(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let socket = TcpSocket::new_v4().unwrap();
        let error = socket.connect(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn an_address_in_use_is_an_error() {
    run(|| async {
        let (_listener, addr) = listener().await;
        let error = TcpListener::bind(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

#[test]
fn a_listener_can_be_bound_again_at_once() {
    run(|| async {
        let (listener, addr) = listener().await;
        let (_client, _server) = join(TcpStream::connect(addr), listener.accept()).await;
        drop(listener);
        TcpListener::bind(addr).await.unwrap();
    });
}

#[test]
fn many_tasks_accept_from_one_listener() {
    run(|| async {
        let (listener, addr) = listener().await;
        let listener = Arc::new(listener);
        let acceptors: Vec<_> = (0..20)
            .map(|_| {
                let listener = listener.clone();
                task::spawn(async move {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    write_all(&mut stream, b"hi").await.unwrap();
                })
            })
            .collect();
        let clients = (0..20).map(|_| async {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            assert_eq!(read_to_end(&mut stream).await.unwrap(), b"hi");
        });
        join_all(clients).await;
        for acceptor in acceptors {
            acceptor.await.unwrap();
        }
    });
}

#[test]
fn poll_accept_wakes_its_last_caller() {
    run_unconstrained(|| async {
        let (listener, addr) = listener().await;
        let (first, waker) = Wakes::new();
        assert!(
            listener
                .poll_accept(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let accepted = poll_fn(|cx| listener.poll_accept(cx));
        // The accept first: nobody may connect before it waits.
        let (accepted, client) = join(accepted, TcpStream::connect(addr)).await;
        assert_eq!(client.unwrap().local_addr().unwrap(), accepted.unwrap().1);
        assert_eq!(first.count(), 0);
    });
}

#[test]
fn a_dropped_accept_takes_no_connection() {
    run(|| async {
        let (listener, addr) = listener().await;
        for _ in 0..10 {
            let mut accept = Box::pin(listener.accept());
            assert!(poll_once(&mut accept).await.is_pending());
        }
        let client = TcpStream::connect(addr).await.unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(client.local_addr().unwrap(), peer);
    });
}

#[test]
fn accepted_sockets_close_on_exec_and_do_not_block() {
    run(|| async {
        let (client, server) = pair().await;
        for stream in [&client, &server] {
            let flags = rustix::io::fcntl_getfd(stream.as_fd()).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            let flags = rustix::fs::fcntl_getfl(stream.as_fd()).unwrap();
            assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
        }
    });
}

// ----- Reading and writing -----

#[test]
fn what_is_sent_arrives() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        let data = pattern(3 << 20);
        let send = async {
            write_all(&mut client, &data).await.unwrap();
            shutdown(&mut client).await.unwrap();
        };
        let (_, received) = join(send, read_to_end(&mut server)).await;
        assert_eq!(received.unwrap(), data);
    });
}

#[test]
fn reads_append() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        write_all(&mut client, b"abcdef").await.unwrap();
        let mut space = [MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut space);
        buf.put_slice(b">>");
        let mut server = Pin::new(&mut server);
        let mut part = buf.take(3);
        poll_fn(|cx| gmp_io::AsyncRead::poll_read(server.as_mut(), cx, &mut part))
            .await
            .unwrap();
        assert_eq!(part.filled(), b"abc");
        let n = part.filled().len();
        // SAFETY: `part` is the beginning of the unfilled part of `buf`, and its first `n` bytes are
        // initialised.
        unsafe { buf.assume_init(n) };
        buf.advance(n);
        poll_fn(|cx| gmp_io::AsyncRead::poll_read(server.as_mut(), cx, &mut buf))
            .await
            .unwrap();
        assert_eq!(buf.filled(), b">>abcdef");
    });
}

/// As in tokio: what the system call does.
#[test]
fn a_read_into_nothing_waits_for_data() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        {
            let mut nothing = Box::pin(read(&mut server, &mut []));
            assert!(poll_once(&mut nothing).await.is_pending());
            write_all(&mut client, b"x").await.unwrap();
            assert_eq!(nothing.await.unwrap(), 0);
        }
        assert_eq!(read(&mut server, &mut [0; 4]).await.unwrap(), 1);
    });
}

#[test]
fn vectored_writes_go_out_in_one() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        assert!(client.is_write_vectored());
        let parts = [
            IoSlice::new(b"one "),
            IoSlice::new(b""),
            IoSlice::new(b"two"),
        ];
        assert_eq!(write_vectored(&mut client, &parts).await.unwrap(), 7);
        shutdown(&mut client).await.unwrap();
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"one two");
    });
}

#[test]
fn the_end_comes_after_the_data() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        write_all(&mut client, b"last words").await.unwrap();
        drop(client);
        let mut buf = [0; 64];
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 10);
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 0);
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 0);
        let ready = server.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_read_closed());
    });
}

#[test]
fn a_reset_is_an_error_for_reader_and_writer() {
    run(|| async {
        let (client, mut server) = pair().await;
        client.set_zero_linger().unwrap();
        drop(client);
        let error = read(&mut server, &mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let error = write(&mut server, b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        shutdown(&mut server)
            .await
            .expect("there is nobody to tell");
    });
}

#[test]
fn a_writer_waits_for_space() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        client.writable().await.unwrap();
        // There is space again while what was sent is on its way to the other side.
        let mut sent = 0;
        for _ in 0.. {
            sent += fill(&client);
            let mut blocked = Box::pin(write_all(&mut client, b"more"));
            if let Poll::Ready(done) = poll_once(&mut blocked).await {
                done.unwrap();
                sent += 4;
                assert!(sent < 1 << 30, "it never waits");
                continue;
            }
            let mut received = vec![0; sent];
            let (done, read) = join(blocked, read_exact(&mut server, &mut received)).await;
            done.unwrap();
            read.unwrap();
            break;
        }
        let mut rest = [0; 4];
        read_exact(&mut server, &mut rest).await.unwrap();
        assert_eq!(&rest, b"more");
    });
}

#[test]
fn peeking_takes_nothing() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 8];
        {
            let mut peek = pin!(server.peek(&mut buf));
            assert!(poll_once(&mut peek).await.is_pending());
        }
        write_all(&mut client, b"abc").await.unwrap();
        for _ in 0..2 {
            assert_eq!(server.peek(&mut buf).await.unwrap(), 3);
            assert_eq!(&buf[..3], b"abc");
        }
        let mut buf = [0; 8];
        let mut buf = ReadBuf::new(&mut buf);
        buf.put_slice(b"-");
        assert_eq!(
            poll_fn(|cx| server.poll_peek(cx, &mut buf)).await.unwrap(),
            3
        );
        assert_eq!(buf.filled(), b"-abc");
        let mut buf = [0; 8];
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 3);
    });
}

// ----- Readiness -----

#[test]
fn try_operations_go_with_readiness() {
    run(|| async {
        let (client, server) = pair().await;
        let mut buf = [0; 16];
        assert_would_block(server.try_read(&mut buf));
        let mut readable = Box::pin(server.readable());
        assert!(poll_once(&mut readable).await.is_pending());

        client.writable().await.unwrap();
        assert_eq!(client.try_write(b"abc").unwrap(), 3);
        readable.await.unwrap();
        assert_eq!(server.try_read(&mut buf).unwrap(), 3);
        assert_would_block(server.try_read(&mut buf));

        let parts = [IoSlice::new(b"de"), IoSlice::new(b"fgh")];
        assert_eq!(client.try_write_vectored(&parts).unwrap(), 5);
        server.readable().await.unwrap();
        let (mut one, mut two) = ([0; 4], [0; 4]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(server.try_read_vectored(&mut bufs).unwrap(), 5);
        assert_eq!((&one, &two[..1]), (b"defg", &b"h"[..]));

        assert_eq!(client.try_write(b"ijk").unwrap(), 3);
        let mut buf = BytesMut::with_capacity(64);
        insist(|| server.try_read_buf(&mut buf)).await.unwrap();
        assert_eq!(&buf[..], b"ijk");
        assert_would_block(server.try_read(&mut [0; 1]));
    });
}

#[test]
fn readiness_of_both_directions_is_told_apart() {
    run(|| async {
        let (client, server) = pair().await;
        assert_would_block(server.try_read(&mut [0; 1]));
        let ready = server
            .ready(Interest::READABLE | Interest::WRITABLE)
            .await
            .unwrap();
        assert_eq!(ready, Ready::WRITABLE);
        client.writable().await.unwrap();
        client.try_write(b"x").unwrap();
        let ready = server.ready(Interest::READABLE).await.unwrap();
        assert_eq!(ready, Ready::READABLE);
        poll_fn(|cx| server.poll_read_ready(cx)).await.unwrap();
        poll_fn(|cx| server.poll_write_ready(cx)).await.unwrap();

        // There is space again while what was sent is on its way to the other side.
        let mut rounds = 0;
        let writable = loop {
            fill(&client);
            let mut writable = Box::pin(client.writable());
            let waits = poll_once(&mut writable).await.is_pending();
            if waits && with_cx(|cx| client.poll_write_ready(cx).is_pending()).await {
                break writable;
            }
            rounds += 1;
            assert!(rounds < 10_000, "it is full and said to be writable");
        };
        drop(server);
        writable.await.unwrap();
        assert!(
            client
                .ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_writable()
        );
    });
}

#[test]
fn user_operations_through_try_io_and_async_io() {
    run(|| async {
        let (mut client, server) = pair().await;
        let recv = || {
            let mut byte = [0];
            rustix::io::read(server.as_fd(), &mut byte)?;
            Ok(byte[0])
        };
        assert_would_block(server.try_io(Interest::READABLE, recv));
        assert_would_block(server.try_io(Interest::READABLE, || -> io::Result<()> {
            panic!("called without readiness")
        }));
        let (byte, sent) = join(
            server.async_io(Interest::READABLE, recv),
            write_all(&mut client, b"ab"),
        )
        .await;
        assert_eq!(byte.unwrap(), b'a');
        sent.unwrap();
        assert_eq!(
            server.async_io(Interest::READABLE, recv).await.unwrap(),
            b'b'
        );
        let error = server
            .async_io(Interest::WRITABLE, || Err::<(), _>(io::Error::other("no")))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "no");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn urgent_data_is_priority_readiness() {
    run(|| async {
        let (client, server) = pair().await;
        let mut urgent = Box::pin(server.ready(Interest::PRIORITY));
        assert!(poll_once(&mut urgent).await.is_pending());
        rustix::net::send(client.as_fd(), b"!", rustix::net::SendFlags::OOB).unwrap();
        assert!(urgent.await.unwrap().is_priority());
    });
}

/// A read ends at the urgent mark, though there is more behind it and no edge will tell.
#[test]
#[cfg(target_os = "linux")]
fn data_behind_urgent_data_is_not_forgotten() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 64];
        {
            let mut read = Box::pin(read(&mut server, &mut buf));
            assert!(poll_once(&mut read).await.is_pending());
        }
        let send = |data: &[u8], flags| {
            let sent = rustix::net::send(client.as_fd(), data, flags).unwrap();
            assert_eq!(sent, data.len());
        };
        send(b"before", rustix::net::SendFlags::empty());
        send(b"!", rustix::net::SendFlags::OOB);
        send(b"behind", rustix::net::SendFlags::empty());
        let mut received = Vec::new();
        while received.len() < 12 {
            let n = read(&mut server, &mut buf).await.unwrap();
            received.extend_from_slice(&buf[..n]);
        }
        assert_eq!(received, b"beforebehind");
        write_all(&mut client, b"and on").await.unwrap();
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 6);
    });
}

/// A loop that waits with `readable` and reads past it, so that the readiness is never cleared,
/// spends its budget and lets others run.
#[test]
fn readable_takes_part_in_the_budget() {
    run(|| async {
        let (client, server) = pair().await;
        client.writable().await.unwrap();
        client.try_write(b"x").unwrap();
        server.readable().await.unwrap();
        let mut spins = Box::pin(async {
            loop {
                server.readable().await.unwrap();
                let _ = rustix::io::read(server.as_fd(), &mut [0u8; 8][..]);
            }
        });
        for _ in 0..10 {
            let polled: Poll<()> = poll_once(&mut spins).await;
            assert!(polled.is_pending());
            task::yield_now().await;
        }
    });
}

#[test]
fn reading_takes_part_in_the_budget() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        write_all(&mut client, &[1; 4096]).await.unwrap();
        while server.peek(&mut [0; 4096]).await.unwrap() < 4096 {
            task::yield_now().await;
        }
        task::yield_now().await;
        let mut reads = 0;
        let mut reader = Box::pin(async {
            loop {
                read(&mut server, &mut [0]).await.unwrap();
                reads += 1;
            }
        });
        // Not the task's own waker: a poll with that one also ends when it has lasted for too long.
        let polled: Poll<()> = reader
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        drop(reader);
        assert!((100..=128).contains(&reads), "{reads}");
    });
}

// ----- Halves -----

#[test]
fn borrowed_halves_work_side_by_side() {
    run(|| async {
        let (mut client, mut server) = pair().await;
        let peer = client.local_addr().unwrap();
        let (mut rx, mut tx) = server.split();
        assert_eq!(rx.peer_addr().unwrap(), peer);
        assert_eq!(tx.peer_addr().unwrap(), peer);
        assert_eq!(rx.local_addr().unwrap(), tx.local_addr().unwrap());
        tx.writable().await.unwrap();
        assert!(tx.ready(Interest::WRITABLE).await.unwrap().is_writable());
        assert_eq!(tx.try_write(b"a").unwrap(), 1);
        assert_eq!(tx.try_write_vectored(&[IoSlice::new(b"b")]).unwrap(), 1);
        assert!(tx.is_write_vectored());
        write_vectored(&mut tx, &[IoSlice::new(b"c")])
            .await
            .unwrap();
        write_all(&mut tx, b"d").await.unwrap();
        write_all(&mut client, b"12345").await.unwrap();

        rx.readable().await.unwrap();
        let mut buf = [0; 2];
        assert_eq!(rx.peek(&mut buf).await.unwrap(), 2);
        let mut peeked = ReadBuf::new(&mut buf);
        assert_eq!(
            poll_fn(|cx| rx.poll_peek(cx, &mut peeked)).await.unwrap(),
            2
        );
        assert_eq!(rx.try_read(&mut buf).unwrap(), 2);
        let mut one = [0];
        let mut bufs = [IoSliceMut::new(&mut one)];
        assert_eq!(rx.try_read_vectored(&mut bufs).unwrap(), 1);
        let mut rest = Vec::with_capacity(1);
        assert_eq!(rx.try_read_buf(&mut rest).unwrap(), 1);
        read_exact(&mut rx, &mut buf[..1]).await.unwrap();
        assert_eq!((one, &rest[..], buf[0]), ([b'3'], &b"4"[..], b'5'));
        assert!(rx.as_ref().nodelay().is_ok() && tx.as_ref().nodelay().is_ok());
        assert!(rx.ready(Interest::WRITABLE).await.unwrap().is_writable());

        shutdown(&mut tx).await.unwrap();
        assert_eq!(read_to_end(&mut client).await.unwrap(), b"abcd");
    });
}

fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    stream.into_split()
}

#[test]
fn owned_halves_go_to_two_tasks() {
    run(|| async {
        let (client, server) = pair().await;
        let (mut rx, mut tx) = split(server);
        let echo = task::spawn(async move {
            let mut buf = [0; 1024];
            loop {
                match read(&mut rx, &mut buf).await.unwrap() {
                    0 => break,
                    n => write_all(&mut tx, &buf[..n]).await.unwrap(),
                }
            }
            (rx, tx)
        });
        let (mut rx, mut tx) = split(client);
        let sender = task::spawn(async move {
            write_all(&mut tx, &pattern(1 << 20)).await.unwrap();
            // Dropping the half ends the stream.
        });
        let mut received = vec![0; 1 << 20];
        read_exact(&mut rx, &mut received).await.unwrap();
        assert_eq!(received, pattern(1 << 20));
        sender.await.unwrap();
        let (server_rx, server_tx) = echo.await.unwrap();
        let server = server_tx.reunite(server_rx).unwrap();
        assert!(server.peer_addr().is_ok());
    });
}

#[test]
fn owned_halves_have_the_streams_methods() {
    run(|| async {
        let (client, server) = pair().await;
        let (mut rx, tx) = split(server);
        client.writable().await.unwrap();
        client.try_write(b"1234").unwrap();
        rx.readable().await.unwrap();
        let mut buf = [0; 1];
        assert_eq!(rx.peek(&mut buf).await.unwrap(), 1);
        let mut peeked = ReadBuf::new(&mut buf);
        assert_eq!(
            poll_fn(|cx| rx.poll_peek(cx, &mut peeked)).await.unwrap(),
            1
        );
        assert_eq!(rx.try_read(&mut buf).unwrap(), 1);
        let mut bufs = [IoSliceMut::new(&mut buf)];
        assert_eq!(rx.try_read_vectored(&mut bufs).unwrap(), 1);
        let mut rest = Vec::with_capacity(8);
        assert_eq!(rx.try_read_buf(&mut rest).unwrap(), 2);
        assert_eq!(rx.peer_addr().unwrap(), tx.peer_addr().unwrap());
        assert_eq!(rx.local_addr().unwrap(), tx.local_addr().unwrap());
        tx.writable().await.unwrap();
        assert!(tx.ready(Interest::WRITABLE).await.unwrap().is_writable());
        assert_eq!(tx.try_write(b"a").unwrap(), 1);
        assert_eq!(tx.try_write_vectored(&[IoSlice::new(b"b")]).unwrap(), 1);
        assert!(rx.ready(Interest::WRITABLE).await.unwrap().is_writable());
        assert!(rx.as_ref().ttl().is_ok() && tx.as_ref().ttl().is_ok());
    });
}

#[test]
fn only_halves_of_one_stream_reunite() {
    run(|| async {
        let (client, server) = pair().await;
        let (client_rx, client_tx) = split(client);
        let (server_rx, server_tx) = split(server);
        let error = client_rx.reunite(server_tx).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the two halves are not of the same socket"
        );
        let mut client = client_tx.reunite(error.0).unwrap();
        let mut server = server_rx.reunite(error.1).unwrap();
        write_all(&mut client, b"still open").await.unwrap();
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"still open");
    });
}

#[test]
fn a_write_half_ends_the_stream_unless_it_is_forgotten() {
    run(|| async {
        let (client, mut server) = pair().await;
        let (rx, tx) = split(client);
        tx.forget();
        let mut buf = [0];
        {
            let mut read = Box::pin(read(&mut server, &mut buf));
            assert!(poll_once(&mut read).await.is_pending());
        }
        drop(rx);
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 0);

        let (client, mut server) = pair().await;
        let (_rx, mut tx) = split(client);
        shutdown(&mut tx).await.unwrap();
        drop(tx);
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 0);
    });
}

// ----- Options, conversions -----

#[test]
#[allow(deprecated)]
fn options_are_kept() {
    run(|| async {
        let (client, server) = pair().await;
        client.set_nodelay(true).unwrap();
        assert!(client.nodelay().unwrap());
        client.set_ttl(42).unwrap();
        assert_eq!(client.ttl().unwrap(), 42);
        client.set_linger(Some(Duration::from_secs(3))).unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::from_secs(3)));
        client.set_linger(None).unwrap();
        assert_eq!(client.linger().unwrap(), None);
        client.set_zero_linger().unwrap();
        assert_eq!(client.linger().unwrap(), Some(Duration::ZERO));
        server.set_quickack(false).unwrap();
        assert!(!server.quickack().unwrap());
        server.set_quickack(true).unwrap();
        assert!(server.quickack().unwrap());
        let (listener, _) = listener().await;
        listener.set_ttl(9).unwrap();
        assert_eq!(listener.ttl().unwrap(), 9);
    });
}

#[test]
#[allow(deprecated)]
fn options_of_a_socket_before_it_is_connected() {
    let socket = TcpSocket::new_v4().unwrap();
    for on in [true, false] {
        socket.set_keepalive(on).unwrap();
        assert_eq!(socket.keepalive().unwrap(), on);
        socket.set_reuseaddr(on).unwrap();
        assert_eq!(socket.reuseaddr().unwrap(), on);
        socket.set_reuseport(on).unwrap();
        assert_eq!(socket.reuseport().unwrap(), on);
        socket.set_nodelay(on).unwrap();
        assert_eq!(socket.nodelay().unwrap(), on);
    }
    socket.set_send_buffer_size(20_000).unwrap();
    assert!(socket.send_buffer_size().unwrap() >= 20_000);
    socket.set_recv_buffer_size(20_000).unwrap();
    assert!(socket.recv_buffer_size().unwrap() >= 20_000);
    socket.set_linger(Some(Duration::from_secs(2))).unwrap();
    assert_eq!(socket.linger().unwrap(), Some(Duration::from_secs(2)));
    socket.set_zero_linger().unwrap();
    assert_eq!(socket.linger().unwrap(), Some(Duration::ZERO));
    socket.set_tos_v4(0x10).unwrap();
    assert_eq!(
        (socket.tos_v4().unwrap(), socket.tos().unwrap()),
        (0x10, 0x10)
    );
    socket.set_tos(0x08).unwrap();
    assert_eq!(socket.tos_v4().unwrap(), 0x08);
    assert_eq!(socket.device().unwrap(), None);
    assert!(socket.take_error().unwrap().is_none());
    socket.bind(LOCAL.parse().unwrap()).unwrap();
    assert!(socket.local_addr().unwrap().ip().is_loopback());
    assert!(format!("{socket:?}").contains("Socket"));
    if let Ok(socket) = TcpSocket::new_v6() {
        socket.set_tclass_v6(0x20).unwrap();
        assert_eq!(socket.tclass_v6().unwrap(), 0x20);
    }
}

#[test]
fn a_socket_listens_or_connects() {
    run(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(LOCAL.parse().unwrap()).unwrap();
        let listener = socket.listen(u32::MAX).unwrap();
        let addr = listener.local_addr().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_nodelay(true).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let bound = socket.local_addr().unwrap();
        let (client, server) = join(socket.connect(addr), listener.accept()).await;
        assert!(client.unwrap().nodelay().unwrap());
        assert_eq!(server.unwrap().1, bound);
    });
}

#[test]
fn sockets_pass_through_the_standard_library() {
    run(|| async {
        let (client, server) = pair().await;
        let mut client = client.into_std().unwrap();
        client.write_all(b"std").unwrap();
        let server = server.into_std().unwrap();
        let mut server = TcpStream::try_from(server).unwrap();
        let mut buf = [0; 3];
        read_exact(&mut server, &mut buf).await.unwrap();
        assert_eq!(&buf, b"std");
        let mut client = TcpStream::from_std(client).unwrap();
        write_all(&mut server, b"gmp").await.unwrap();
        read_exact(&mut client, &mut buf).await.unwrap();
        assert_eq!(&buf, b"gmp");

        let listener = TcpListener::try_from(std_listener()).unwrap();
        let listener = TcpListener::from_std(listener.into_std().unwrap()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (client, server) = join(TcpStream::connect(addr), listener.accept()).await;
        drop((client.unwrap(), server.unwrap()));

        let fd = TcpSocket::new_v4().unwrap().into_raw_fd();
        // SAFETY: the descriptor has just been given up by its owner.
        let socket = unsafe { TcpSocket::from_raw_fd(fd) };
        assert_eq!((socket.as_raw_fd(), socket.as_fd().as_raw_fd()), (fd, fd));
        let std_stream: std::net::TcpStream = socket2_stream();
        let socket = TcpSocket::from_std_stream(std_stream);
        let stream = socket.connect(addr).await.unwrap();
        assert_eq!(stream.as_raw_fd(), stream.as_fd().as_raw_fd());
        assert_eq!(listener.as_raw_fd(), listener.as_fd().as_raw_fd());
        let itself: &TcpStream = stream.as_ref();
        assert_eq!(itself.as_raw_fd(), stream.as_raw_fd());
    });
}

fn socket2_stream() -> std::net::TcpStream {
    let socket = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::STREAM.nonblocking(),
        None,
    );
    socket.unwrap().into()
}

#[test]
fn a_socket_that_went_back_is_not_polled_any_more() {
    run(|| async {
        let (client, mut server) = pair().await;
        {
            let mut buf = [0];
            let mut read = Box::pin(read(&mut server, &mut buf));
            assert!(poll_once(&mut read).await.is_pending());
        }
        let server = server.into_std().unwrap();
        let mut client = client.into_std().unwrap();
        client.write_all(b"x").unwrap();
        yield_now().await;
        let again = TcpStream::from_std(server).unwrap();
        again.readable().await.unwrap();
        assert_eq!(again.try_read(&mut [0; 4]).unwrap(), 1);
    });
}

// ----- What the runtime has to do with it -----

#[test]
fn sockets_need_a_runtime_with_io() {
    let outside = panic_of(|| drop(TcpListener::from_std(std_listener())));
    assert!(outside.unwrap().contains("there is no reactor running"));
    let outside = panic_of(|| drop(block_on(TcpListener::bind(LOCAL))));
    assert!(outside.unwrap().contains("there is no reactor running"));
    let runtime = AssertUnwindSafe(rt::without_io());
    let without = panic_of(move || {
        runtime.block_on(async { drop(TcpListener::from_std(std_listener())) });
    });
    assert!(
        without
            .unwrap()
            .contains("IO is disabled. Call `enable_io`")
    );
}

#[test]
#[cfg(debug_assertions)]
fn a_blocking_socket_is_refused() {
    let runtime = AssertUnwindSafe(rt::current_thread());
    let refused = panic_of(move || {
        let _guard = runtime.enter();
        drop(TcpListener::from_std(
            std::net::TcpListener::bind(LOCAL).unwrap(),
        ));
    });
    assert!(refused.is_some());
}

/// The error that the first poll gives.
#[track_caller]
fn fails_at_once<T: std::fmt::Debug>(future: impl Future<Output = io::Result<T>>) -> io::Error {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.unwrap_err(),
        Poll::Pending => panic!("it waits for a runtime that is gone"),
    }
}

/// Resources of a runtime that is gone fail at once, and whoever waited is woken to see it.
#[test]
fn sockets_of_a_runtime_that_is_gone_fail_at_once() {
    let _watchdog = Watchdog::new();
    for make in [rt::current_thread, rt::multi_thread] {
        let runtime = make();
        let (mut client, mut server, listener, fresh) = runtime.block_on(async {
            let (client, server) = pair().await;
            let (listener, _) = listener().await;
            let fresh = TcpListener::from_std(std_listener()).unwrap();
            (client, server, listener, fresh)
        });
        let mut buf = [0];
        let (wakes, waker) = Wakes::new();
        let cx = &mut Context::from_waker(&waker);
        let mut waiting = Box::pin(read(&mut client, &mut buf));
        assert!(waiting.as_mut().poll(cx).is_pending());
        let mut accepting = Box::pin(listener.accept());
        assert!(accepting.as_mut().poll(cx).is_pending());
        drop(runtime);
        assert_eq!(wakes.count(), 2);

        let errors = [
            fails_at_once(waiting),
            fails_at_once(accepting),
            fails_at_once(read(&mut server, &mut [0])),
            fails_at_once(write(&mut server, b"x")),
            fails_at_once(server.readable()),
            fails_at_once(fresh.accept()),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Other);
            assert_eq!(
                error.to_string(),
                "A Tokio 1.x context was found, but it is being shutdown."
            );
        }
    }
}

#[test]
fn a_socket_may_be_used_in_another_runtime() {
    let _watchdog = Watchdog::new();
    let home = rt::multi_thread();
    let abroad = rt::multi_thread();
    let (mut client, mut server) = home.block_on(pair());
    let echo = abroad.handle().spawn(async move {
        let mut buf = [0; 16];
        for _ in 0..100 {
            let n = read(&mut server, &mut buf).await.unwrap();
            write_all(&mut server, &buf[..n]).await.unwrap();
        }
    });
    // A thread that is in no runtime at all.
    for n in 0..100u8 {
        block_on(write_all(&mut client, &[n])).unwrap();
        let mut byte = [0];
        block_on(read_exact(&mut client, &mut byte)).unwrap();
        assert_eq!(byte[0], n);
    }
    abroad.block_on(echo).unwrap();
}

#[test]
fn dropping_the_runtime_with_connections_open_ends() {
    let _watchdog = Watchdog::new();
    for _ in 0..50 {
        let runtime = rt::multi_thread();
        let addr = runtime.block_on(async {
            let (listener, addr) = listener().await;
            task::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    task::spawn(async move {
                        let _ = read(&mut stream, &mut [0; 16]).await;
                    });
                }
            });
            addr
        });
        let clients: Vec<_> = (0..4)
            .map(|_| std::net::TcpStream::connect(addr).unwrap())
            .collect();
        drop(runtime);
        for mut client in clients {
            // Closed or reset, but over: it waits for nothing.
            assert!(!matches!(client.read(&mut [0]), Ok(1..)));
        }
    }
}

/// Echoes among tasks that move between Ps, with sources that follow them; a lost wake-up stops a
/// connection, and the watchdog ends the test.
#[test]
fn sixty_four_connections_echo() {
    let _watchdog = Watchdog::new();
    let rounds = 500;
    for runtime in [rt::current_thread(), rt::multi_thread()] {
        runtime.block_on(async {
            let (listener, addr) = listener().await;
            let server = task::spawn(async move {
                for _ in 0..64 {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    task::spawn(async move {
                        let mut buf = [0; 256];
                        while let n @ 1.. = read(&mut stream, &mut buf).await.unwrap() {
                            write_all(&mut stream, &buf[..n]).await.unwrap();
                        }
                    });
                }
            });
            let clients: Vec<_> = (0..64usize)
                .map(|n| {
                    task::spawn(async move {
                        let mut stream = TcpStream::connect(addr).await.unwrap();
                        stream.set_nodelay(true).unwrap();
                        let data = pattern(1 + n);
                        let mut buf = vec![0; data.len()];
                        for _ in 0..rounds {
                            write_all(&mut stream, &data).await.unwrap();
                            read_exact(&mut stream, &mut buf).await.unwrap();
                            assert_eq!(buf, data);
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            server.await.unwrap();
        });
    }
}

/// Connections that come and go while the runtime runs, from tasks and from a foreign thread.
#[test]
fn thousands_of_short_connections() {
    let _watchdog = Watchdog::new();
    let runtime = rt::multi_thread();
    let addr = runtime.block_on(async {
        let (listener, addr) = listener().await;
        task::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                task::spawn(async move {
                    let mut byte = [0];
                    read_exact(&mut stream, &mut byte).await.unwrap();
                    write_all(&mut stream, &byte).await.unwrap();
                });
            }
        });
        addr
    });
    let foreign = thread::spawn(move || {
        for n in 0..300u32 {
            let mut stream = std::net::TcpStream::connect(addr).unwrap();
            stream.write_all(&[n as u8]).unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            assert_eq!(byte[0], n as u8);
        }
    });
    runtime.block_on(async {
        let clients = (0..20).map(|_| {
            task::spawn(async move {
                for n in 0..50u8 {
                    let mut stream = TcpStream::connect(addr).await.unwrap();
                    write_all(&mut stream, &[n]).await.unwrap();
                    assert_eq!(read_to_end(&mut stream).await.unwrap(), [n]);
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
    });
    foreign.join().unwrap();
}

/// A63: a child process inherits nothing of the netpoll.
#[test]
#[cfg(target_os = "linux")]
fn a_child_process_sees_no_descriptor_of_ours() {
    run(|| async {
        let (_client, _server) = pair().await;
        let output = std::process::Command::new("ls")
            .args(["-l", "/proc/self/fd"])
            .output()
            .unwrap();
        let listing = String::from_utf8_lossy(&output.stdout);
        for ours in ["eventpoll", "eventfd", "timerfd", "socket:"] {
            assert!(!listing.contains(ours), "{listing}");
        }
    });
}

#[test]
fn auto_traits_are_tokios() {
    fn all<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    all::<TcpListener>();
    all::<TcpStream>();
    all::<TcpSocket>();
    all::<OwnedReadHalf>();
    all::<OwnedWriteHalf>();
    all::<gmp_net::tcp::ReadHalf<'static>>();
    all::<gmp_net::tcp::WriteHalf<'static>>();
    all::<gmp_net::tcp::ReuniteError>();
    fn send<T: Send>(_: T) {}
    let addr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    send(TcpStream::connect(addr));
    send(TcpListener::bind(addr));
}
