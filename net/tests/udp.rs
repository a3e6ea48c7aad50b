//! UDP sockets over the loopback interface.
#![cfg(not(gmp_loom))]

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{join, join_all, select};
use gmp_io::ReadBuf;
use gmp_net::{Interest, UdpSocket, lookup_host};
use support::*;

mod support;

const LOCAL: &str = "127.0.0.1:0";

async fn socket() -> UdpSocket {
    UdpSocket::bind(LOCAL).await.unwrap()
}

/// Two sockets connected with each other.
async fn connected() -> (UdpSocket, UdpSocket) {
    let (a, b) = (socket().await, socket().await);
    a.connect(b.local_addr().unwrap()).await.unwrap();
    b.connect(a.local_addr().unwrap()).await.unwrap();
    (a, b)
}

#[test]
fn bind_takes_addresses_and_names() {
    run(|| async {
        let addr: SocketAddr = LOCAL.parse().unwrap();
        for socket in [
            UdpSocket::bind(addr).await.unwrap(),
            UdpSocket::bind(LOCAL).await.unwrap(),
            UdpSocket::bind(("127.0.0.1", 0)).await.unwrap(),
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap(),
            UdpSocket::bind("localhost:0").await.unwrap(),
        ] {
            let local = socket.local_addr().unwrap();
            assert!(local.ip().is_loopback());
            assert_ne!(local.port(), 0);
        }
    });
}

#[test]
fn localhost_is_looked_up() {
    run(|| async {
        let hosts: Vec<_> = lookup_host("localhost:80").await.unwrap().collect();
        assert!(!hosts.is_empty());
        assert!(hosts.iter().all(|host| host.ip().is_loopback()));
        let hosts: Vec<_> = lookup_host(("localhost", 80)).await.unwrap().collect();
        assert!(hosts.iter().all(|host| host.port() == 80));
        let error = lookup_host("no port here").await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn bind_tries_every_address() {
    run(|| async {
        let taken = socket().await.local_addr().unwrap();
        let holder = UdpSocket::bind(taken).await.unwrap();
        let free: SocketAddr = LOCAL.parse().unwrap();
        let bound = UdpSocket::bind(&[taken, free][..]).await.unwrap();
        assert_ne!(bound.local_addr().unwrap(), taken);

        let error = UdpSocket::bind(taken).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(holder);

        let error = UdpSocket::bind(&[][..]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "could not resolve to any address");
    });
}

#[test]
fn a_connected_pair_exchanges_datagrams() {
    run(|| async {
        let (a, b) = connected().await;
        assert_eq!(a.peer_addr().unwrap(), b.local_addr().unwrap());
        assert_eq!(a.send(b"there").await.unwrap(), 5);
        let mut buf = [0; 16];
        let n = b.recv(&mut buf).await.unwrap();
        assert_eq!(&buf[..n], b"there");
        assert_eq!(b.send(b"and back").await.unwrap(), 8);
        let n = a.recv(&mut buf).await.unwrap();
        assert_eq!(&buf[..n], b"and back");
    });
}

#[test]
fn a_receiver_that_waits_is_woken() {
    run(|| async {
        let (a, b) = connected().await;
        let mut buf = [0; 16];
        let receive = b.recv(&mut buf);
        let send = async {
            yield_now().await;
            a.send(b"late").await.unwrap();
        };
        let (n, ()) = join(receive, send).await;
        assert_eq!(&buf[..n.unwrap()], b"late");
    });
}

#[test]
fn anybody_can_send() {
    run(|| async {
        let server = socket().await;
        let to = server.local_addr().unwrap();
        let (a, b) = (socket().await, socket().await);
        a.send_to(b"from a", to).await.unwrap();
        b.send_to(b"from b", to.to_string()).await.unwrap();

        let mut buf = [0; 16];
        let (n, from) = server.recv_from(&mut buf).await.unwrap();
        assert_eq!((&buf[..n], from), (&b"from a"[..], a.local_addr().unwrap()));
        let (n, from) = server.recv_from(&mut buf).await.unwrap();
        assert_eq!((&buf[..n], from), (&b"from b"[..], b.local_addr().unwrap()));

        let error = a.send_to(b"nowhere", &[][..]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "no addresses to send data to");
    });
}

#[test]
fn ipv6_works_where_there_is_any() {
    run(|| async {
        let Ok(a) = UdpSocket::bind("[::1]:0").await else {
            return;
        };
        let b = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).await.unwrap();
        a.send_to(b"six", b.local_addr().unwrap()).await.unwrap();
        let mut buf = Vec::with_capacity(16);
        let (n, from) = b.recv_buf_from(&mut buf).await.unwrap();
        assert_eq!((n, from), (3, a.local_addr().unwrap()));
        a.set_tclass_v6(0x20).unwrap();
        assert_eq!(a.tclass_v6().unwrap(), 0x20);
        a.set_multicast_loop_v6(false).unwrap();
        assert!(!a.multicast_loop_v6().unwrap());
        // `ff01::` is the scope of the host itself. Not every interface does multicast.
        let group = "ff01::1234".parse().unwrap();
        if a.join_multicast_v6(&group, 1).is_ok() {
            a.leave_multicast_v6(&group, 1).unwrap();
        }
    });
}

#[test]
fn empty_datagrams_are_datagrams() {
    run(|| async {
        let (a, b) = connected().await;
        assert_eq!(a.send(b"").await.unwrap(), 0);
        a.send(b"x").await.unwrap();
        let mut buf = [0; 4];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 0);
        assert_eq!(b.recv(&mut buf).await.unwrap(), 1);

        a.send(b"").await.unwrap();
        let mut vec = Vec::with_capacity(8);
        assert_eq!(b.recv_buf(&mut vec).await.unwrap(), 0);
        assert!(vec.is_empty());
    });
}

#[test]
fn a_small_buffer_truncates() {
    run(|| async {
        let (a, b) = connected().await;
        for _ in 0..4 {
            a.send(b"truncated").await.unwrap();
        }
        a.send(b"next").await.unwrap();
        let mut buf = [0; 5];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 5);
        assert_eq!(&buf, b"trunc");
        assert_eq!(b.recv_from(&mut buf[..0]).await.unwrap().0, 0);

        let mut space = [MaybeUninit::uninit(); 3];
        let mut buf = ReadBuf::uninit(&mut space);
        poll_fn(|cx| b.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"tru");

        let mut vec = Vec::from(&b"kept "[..]);
        vec.reserve_exact(4);
        let mut limited = bytes::BufMut::limit(&mut vec, 4);
        assert_eq!(b.recv_buf(&mut limited).await.unwrap(), 4);
        assert_eq!(vec, b"kept trun");

        let mut buf = [0; 9];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"next");
    });
}

#[test]
fn the_largest_datagram_arrives_and_a_larger_one_is_refused() {
    run(|| async {
        let (a, b) = connected().await;
        let data = pattern(65_507);
        assert_eq!(a.send(&data).await.unwrap(), data.len());
        let mut buf = vec![0; 70_000];
        let n = b.recv(&mut buf).await.unwrap();
        assert_eq!(buf[..n], data);
        let error = a.send(&pattern(65_508)).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    });
}

#[test]
fn buffers_are_appended_to() {
    run(|| async {
        let (a, b) = connected().await;
        a.send(b"one ").await.unwrap();
        a.send(b"two ").await.unwrap();
        a.send(b"three ").await.unwrap();
        a.send(b"four").await.unwrap();
        let mut vec = Vec::with_capacity(64);
        assert_eq!(b.recv_buf(&mut vec).await.unwrap(), 4);
        let (n, from) = b.recv_buf_from(&mut vec).await.unwrap();
        assert_eq!((n, from), (4, a.local_addr().unwrap()));
        insist(|| b.try_recv_buf(&mut vec)).await.unwrap();
        let (n, from) = insist(|| b.try_recv_buf_from(&mut vec)).await.unwrap();
        assert_eq!((n, from), (4, a.local_addr().unwrap()));
        assert_eq!(vec, b"one two three four");
        assert_would_block(b.try_recv_buf(&mut vec));
        assert_would_block(b.try_recv_buf_from(&mut vec));
    });
}

#[test]
fn polls_fill_the_unfilled_part() {
    run(|| async {
        let (a, b) = connected().await;
        let to = b.local_addr().unwrap();
        let sent = poll_fn(|cx| a.poll_send(cx, b"one")).await.unwrap();
        assert_eq!(sent, 3);
        poll_fn(|cx| b.poll_recv_ready(cx)).await.unwrap();

        let mut space = [MaybeUninit::uninit(); 16];
        let mut buf = ReadBuf::uninit(&mut space);
        buf.put_slice(b"> ");
        poll_fn(|cx| b.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"> one");

        let c = socket().await;
        poll_fn(|cx| c.poll_send_ready(cx)).await.unwrap();
        let sent = poll_fn(|cx| c.poll_send_to(cx, b"two", to)).await;
        assert_eq!(sent.unwrap(), 3);
        let d = socket().await;
        poll_fn(|cx| d.poll_send_to(cx, b"!", c.local_addr().unwrap()))
            .await
            .unwrap();
        let from = poll_fn(|cx| c.poll_recv_from(cx, &mut buf)).await.unwrap();
        assert_eq!(from, d.local_addr().unwrap());
        assert_eq!(buf.filled(), b"> one!");
    });
}

#[test]
fn try_functions_never_wait() {
    run(|| async {
        let (a, b) = connected().await;
        let mut buf = [0; 16];
        assert_would_block(b.try_recv(&mut buf));
        assert_would_block(b.try_recv_from(&mut buf));
        assert_would_block(b.try_peek(&mut buf));
        assert_would_block(b.try_peek_from(&mut buf));
        assert_would_block(b.try_peek_sender());

        insist(|| a.try_send(b"one")).await.unwrap();
        b.readable().await.unwrap();
        assert_eq!(b.try_peek(&mut buf).unwrap(), 3);
        assert_eq!(
            b.try_peek_from(&mut buf).unwrap(),
            (3, a.local_addr().unwrap())
        );
        assert_eq!(b.try_peek_sender().unwrap(), a.local_addr().unwrap());
        assert_eq!(b.try_recv(&mut buf).unwrap(), 3);
        assert_would_block(b.try_recv(&mut buf));

        let (c, d) = (socket().await, socket().await);
        c.writable().await.unwrap();
        c.try_send_to(b"two", d.local_addr().unwrap()).unwrap();
        d.readable().await.unwrap();
        assert_eq!(
            d.try_recv_from(&mut buf).unwrap(),
            (3, c.local_addr().unwrap())
        );
        assert_would_block(d.try_recv_from(&mut buf));
    });
}

#[test]
fn peeking_leaves_the_datagram() {
    run(|| async {
        let (a, b) = connected().await;
        let from = a.local_addr().unwrap();
        a.send(b"look").await.unwrap();
        let mut buf = [0; 16];
        assert_eq!(b.peek(&mut buf).await.unwrap(), 4);
        assert_eq!(b.peek_from(&mut buf).await.unwrap(), (4, from));
        assert_eq!(b.peek_sender().await.unwrap(), from);
        assert_eq!(b.peek(&mut buf[..2]).await.unwrap(), 2);

        let mut space = [MaybeUninit::uninit(); 16];
        let mut buf = ReadBuf::uninit(&mut space);
        poll_fn(|cx| b.poll_peek(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"look");
        let sender = poll_fn(|cx| b.poll_peek_from(cx, &mut buf)).await;
        assert_eq!(sender.unwrap(), from);
        assert_eq!(buf.filled(), b"looklook");
        let sender = poll_fn(|cx| b.poll_peek_sender(cx)).await;
        assert_eq!(sender.unwrap(), from);

        let mut buf = [0; 16];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_would_block(b.try_peek(&mut buf));
    });
}

/// The answer to a datagram that nobody received ends the wait of the one who sent it.
#[test]
fn a_refused_datagram_is_an_error_of_the_next_receive() {
    run(|| async {
        let (a, b) = connected().await;
        drop(b);
        a.send(b"anybody?").await.unwrap();
        let error = a.recv(&mut [0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

        a.send(b"anybody?").await.unwrap();
        let error = insist(|| {
            a.take_error()
                .transpose()
                .unwrap_or(Err(io::ErrorKind::WouldBlock.into()))
        });
        assert_eq!(
            error.await.unwrap().kind(),
            io::ErrorKind::ConnectionRefused
        );
        assert!(a.take_error().unwrap().is_none());
    });
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    run_unconstrained(|| async {
        let (a, b) = connected().await;
        for i in 0..50u8 {
            let mut buf = [0; 4];
            {
                let mut receive = pin!(b.recv(&mut buf));
                let polled = poll_fn(|cx| Poll::Ready(receive.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
                a.send(&[i]).await.unwrap();
            }
            assert_eq!(b.recv(&mut buf).await.unwrap(), 1);
            assert_eq!(buf[0], i);
        }
    });
}

#[test]
fn many_tasks_receive_from_one_socket() {
    run(|| async {
        let (a, b) = connected().await;
        let receivers = (0..8).map(|_| async {
            let mut buf = [0; 4];
            let n = b.recv(&mut buf).await.unwrap();
            assert_eq!(n, 1);
            buf[0]
        });
        let send = async {
            for i in 0..8u8 {
                yield_now().await;
                a.send(&[i]).await.unwrap();
            }
        };
        let (mut received, ()) = join(join_all(receivers), send).await;
        received.sort_unstable();
        assert_eq!(received, [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn a_shared_socket_sends_and_receives_at_once() {
    run(|| async {
        let echo = Arc::new(socket().await);
        let to = echo.local_addr().unwrap();
        let client = Arc::new(socket().await);
        let server = async {
            let mut buf = [0; 16];
            for _ in 0..200 {
                let (n, from) = echo.recv_from(&mut buf).await.unwrap();
                echo.send_to(&buf[..n], from).await.unwrap();
            }
        };
        let ask = async {
            let mut buf = [0; 16];
            for i in 0..200u32 {
                client.send_to(&i.to_be_bytes(), to).await.unwrap();
                let (n, from) = client.recv_from(&mut buf).await.unwrap();
                assert_eq!((&buf[..n], from), (&i.to_be_bytes()[..], to));
            }
        };
        join(server, ask).await;
    });
}

#[test]
fn readiness_is_told() {
    run(|| async {
        let (a, b) = connected().await;
        let both = Interest::READABLE | Interest::WRITABLE;
        let ready = b.ready(both).await.unwrap();
        assert!(ready.is_writable());
        a.send(b"x").await.unwrap();
        loop {
            if b.ready(both).await.unwrap().is_readable() {
                break;
            }
            yield_now().await;
        }
        // A wait for what never comes is told from one for what is there.
        let never = pin!(b.ready(Interest::PRIORITY));
        let now = pin!(b.readable());
        assert!(matches!(
            select(now, never).await,
            futures::future::Either::Left(_)
        ));
    });
}

#[test]
fn operations_of_ones_own() {
    run(|| async {
        let (a, b) = connected().await;
        let raw_recv = |buf: &mut [u8]| {
            let (n, _) = rustix::net::recv(b.as_fd(), buf, rustix::net::RecvFlags::empty())?;
            Ok(n)
        };
        let mut buf = [0; 16];
        assert_would_block(b.try_io(Interest::READABLE, || raw_recv(&mut buf)));
        let receive = b.async_io(Interest::READABLE, || raw_recv(&mut buf));
        let (n, sent) = join(receive, a.send(b"raw")).await;
        assert_eq!((n.unwrap(), sent.unwrap()), (3, 3));
        a.send(b"again").await.unwrap();
        // It is known as readable since before, and the datagram may be on its way.
        let again = insist(|| b.try_io(Interest::READABLE, || raw_recv(&mut buf)));
        assert_eq!(again.await.unwrap(), 5);
        let other = b.async_io(Interest::WRITABLE, || {
            Err::<(), _>(io::Error::other("mine"))
        });
        assert_eq!(other.await.unwrap_err().to_string(), "mine");
    });
}

#[test]
fn only_the_last_poll_is_woken() {
    run_unconstrained(|| async {
        let (a, b) = connected().await;
        let (first, first_waker) = Wakes::new();
        let (last, last_waker) = Wakes::new();
        let mut buf = [0; 4];
        let mut buf = ReadBuf::new(&mut buf);
        for waker in [&first_waker, &last_waker] {
            let polled = b.poll_recv(&mut Context::from_waker(waker), &mut buf);
            assert!(polled.is_pending());
        }
        a.send(b"x").await.unwrap();
        while last.count() == 0 {
            yield_now().await;
        }
        assert_eq!((first.count(), last.count()), (0, 1));
        poll_fn(|cx| b.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"x");
    });
}

#[test]
fn options_are_set_and_read() {
    run(|| async {
        let socket = socket().await;
        assert!(!socket.broadcast().unwrap());
        socket.set_broadcast(true).unwrap();
        assert!(socket.broadcast().unwrap());
        socket.set_ttl(33).unwrap();
        assert_eq!(socket.ttl().unwrap(), 33);
        socket.set_tos_v4(0x10).unwrap();
        assert_eq!(socket.tos_v4().unwrap(), 0x10);
        socket.set_multicast_loop_v4(false).unwrap();
        assert!(!socket.multicast_loop_v4().unwrap());
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 1);
        socket.set_multicast_ttl_v4(7).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 7);
        assert_eq!(socket.device().unwrap(), None);
        assert!(socket.take_error().unwrap().is_none());
    });
}

#[test]
#[allow(deprecated)]
fn the_old_names_of_tos_are_there() {
    run(|| async {
        let socket = socket().await;
        socket.set_tos(0x08).unwrap();
        assert_eq!(socket.tos().unwrap(), 0x08);
    });
}

#[test]
fn a_socket_is_bound_to_an_interface() {
    run(|| async {
        let socket = socket().await;
        // Binding to an interface may need a privilege.
        match socket.bind_device(Some(b"lo")) {
            Ok(()) => assert_eq!(socket.device().unwrap().as_deref(), Some(&b"lo"[..])),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert!(socket.bind_device(Some(b"no-such-device")).is_err());
    });
}

#[test]
fn groups_are_joined_and_left() {
    run(|| async {
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let group = Ipv4Addr::new(224, 0, 0, 123);
        socket
            .join_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .unwrap();
        let error = socket
            .join_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        socket
            .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .unwrap();
        assert!(
            socket
                .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
                .is_err()
        );
    });
}

#[test]
fn not_connected_is_an_error() {
    run(|| async {
        let socket = socket().await;
        let error = socket.peer_addr().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        let error = socket.send(b"whereto?").await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
        let v6: SocketAddr = "[::1]:9".parse().unwrap();
        assert!(socket.connect(v6).await.is_err());
        let error = socket.connect(&[][..]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn std_sockets_come_and_go() {
    run(|| async {
        let std = std::net::UdpSocket::bind(LOCAL).unwrap();
        std.set_nonblocking(true).unwrap();
        let addr = std.local_addr().unwrap();
        let socket = UdpSocket::from_std(std).unwrap();
        assert_eq!(socket.local_addr().unwrap(), addr);
        let sender = UdpSocket::try_from({
            let std = std::net::UdpSocket::bind(LOCAL).unwrap();
            std.set_nonblocking(true).unwrap();
            std
        })
        .unwrap();
        sender.send_to(b"hi", addr).await.unwrap();
        socket.readable().await.unwrap();

        let fd = socket.as_raw_fd();
        let std = socket.into_std().unwrap();
        assert_eq!(std.as_raw_fd(), fd);
        let mut buf = [0; 4];
        assert_eq!(std.recv(&mut buf).unwrap(), 2);
        assert_eq!(
            std.recv(&mut buf).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );

        // It may be registered again.
        let socket = UdpSocket::from_std(std).unwrap();
        sender.send_to(b"again", addr).await.unwrap();
        assert_eq!(socket.recv(&mut buf).await.unwrap(), 4);
    });
}

#[test]
#[cfg(debug_assertions)]
fn a_blocking_socket_is_refused() {
    let text = panic_of(|| {
        run(|| async {
            let std = std::net::UdpSocket::bind(LOCAL).unwrap();
            let _ = UdpSocket::from_std(std);
        });
    });
    assert!(text.unwrap().contains("blocking mode"));
}

#[test]
fn outside_a_runtime_is_a_panic() {
    let std = std::net::UdpSocket::bind(LOCAL).unwrap();
    std.set_nonblocking(true).unwrap();
    let text = panic_of(|| drop(UdpSocket::from_std(std))).unwrap();
    assert!(text.contains("there is no reactor running"), "{text}");
}

#[test]
fn debug_shows_the_socket() {
    run(|| async {
        let socket = socket().await;
        let text = format!("{socket:?}");
        assert!(text.contains("UdpSocket"), "{text}");
        assert!(text.contains("127.0.0.1"), "{text}");
    });
}
