//! Unix datagram sockets.
#![cfg(not(gmp_loom))]

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net as std_net;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use futures::future::{join, join_all};
use gmp_io::ReadBuf;
use gmp_net::{Interest, UnixDatagram};
use support::*;

mod support;

/// Sends until nothing more fits; returns how many datagrams that were.
fn fill(mut send: impl FnMut() -> io::Result<usize>) -> usize {
    for n in 0.. {
        if let Err(error) = send() {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            return n;
        }
    }
    unreachable!()
}

/// Receives until there is nothing more; returns how many datagrams that were.
async fn drain(socket: &UnixDatagram, expected: usize) {
    for _ in 0..expected {
        socket.recv(&mut [0; 16]).await.unwrap();
    }
}

#[test]
fn an_echo_server_answers_to_the_sender() {
    run(|| async {
        let dir = Dir::new();
        let (server_path, client_path) = (dir.path("server"), dir.path("client"));
        let server = UnixDatagram::bind(&server_path).unwrap();
        let client = UnixDatagram::bind(&client_path).unwrap();
        assert_eq!(
            server.local_addr().unwrap().as_pathname(),
            Some(&*server_path)
        );
        let echo = async {
            let mut buf = [0; 16];
            for _ in 0..100 {
                let (n, from) = server.recv_from(&mut buf).await.unwrap();
                let to = from.as_pathname().unwrap();
                assert_eq!(server.send_to(&buf[..n], to).await.unwrap(), n);
            }
        };
        let ask = async {
            client.connect(&server_path).unwrap();
            let mut buf = [0; 16];
            for i in 0..100u32 {
                assert_eq!(client.send(&i.to_be_bytes()).await.unwrap(), 4);
                let n = client.recv(&mut buf).await.unwrap();
                assert_eq!(buf[..n], i.to_be_bytes());
            }
        };
        join(echo, ask).await;
        let peer = client.peer_addr().unwrap();
        assert_eq!(peer.as_pathname(), Some(&*server_path));
    });
}

#[test]
fn a_pair_keeps_boundaries() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for message in [&b"one"[..], b"", b"three"] {
            assert_eq!(a.send(message).await.unwrap(), message.len());
        }
        let mut buf = [0; 16];
        for message in [&b"one"[..], b"", b"three"] {
            let n = b.recv(&mut buf).await.unwrap();
            assert_eq!(&buf[..n], message);
        }
        assert!(a.local_addr().unwrap().is_unnamed());
        assert!(a.peer_addr().unwrap().is_unnamed());
    });
}

#[test]
fn a_small_buffer_truncates() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for _ in 0..4 {
            a.send(b"truncated").await.unwrap();
        }
        a.send(b"next").await.unwrap();
        let mut buf = [0; 5];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 5);
        assert_eq!(b.recv_from(&mut buf[..0]).await.unwrap().0, 0);
        let mut space = [MaybeUninit::uninit(); 3];
        let mut buf = ReadBuf::uninit(&mut space);
        poll_fn(|cx| b.poll_recv(cx, &mut buf)).await.unwrap();
        assert_eq!(buf.filled(), b"tru");
        let mut vec = Vec::new();
        let mut limited = bytes::BufMut::limit(&mut vec, 2);
        assert_eq!(b.recv_buf(&mut limited).await.unwrap(), 2);
        let mut buf = [0; 16];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"next");
    });
}

#[test]
fn a_sender_without_an_address_is_unnamed() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        assert!(sender.local_addr().unwrap().is_unnamed());
        for _ in 0..4 {
            sender.send_to(b"?", &path).await.unwrap();
        }
        let (n, from) = receiver.recv_from(&mut [0; 4]).await.unwrap();
        assert!(n == 1 && from.is_unnamed());
        let mut vec = Vec::with_capacity(8);
        let (n, from) = receiver.recv_buf_from(&mut vec).await.unwrap();
        assert!(n == 1 && from.is_unnamed());
        let mut space = [MaybeUninit::uninit(); 4];
        let mut buf = ReadBuf::uninit(&mut space);
        let from = poll_fn(|cx| receiver.poll_recv_from(cx, &mut buf)).await;
        assert!(from.unwrap().is_unnamed());
        let (n, from) = insist(|| receiver.try_recv_from(&mut [0; 4]))
            .await
            .unwrap();
        assert!(n == 1 && from.is_unnamed());
    });
}

#[test]
fn the_sender_is_told_by_every_function() {
    run(|| async {
        let dir = Dir::new();
        let (path, sender_path) = (dir.path("receiver"), dir.path("sender"));
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = UnixDatagram::bind(&sender_path).unwrap();
        let mut buf = [0; 8];
        for _ in 0..2 {
            sender.send_to(b"x", &path).await.unwrap();
        }
        poll_fn(|cx| sender.poll_send_to(cx, b"x", &path))
            .await
            .unwrap();
        insist(|| sender.try_send_to(b"x", &path)).await.unwrap();
        sender.connect(&path).unwrap();
        sender.send(b"x").await.unwrap();

        let mut senders = Vec::new();
        senders.push(receiver.recv_from(&mut buf).await.unwrap().1);
        senders.push(insist(|| receiver.try_recv_from(&mut buf)).await.unwrap().1);
        let mut vec = Vec::with_capacity(8);
        senders.push(receiver.recv_buf_from(&mut vec).await.unwrap().1);
        senders.push(
            insist(|| receiver.try_recv_buf_from(&mut vec))
                .await
                .unwrap()
                .1,
        );
        let mut buf = ReadBuf::new(&mut buf);
        senders.push(
            poll_fn(|cx| receiver.poll_recv_from(cx, &mut buf))
                .await
                .unwrap(),
        );
        for from in senders {
            assert_eq!(from.as_pathname(), Some(&*sender_path));
        }
        assert_eq!((&vec[..], buf.filled()), (&b"xx"[..], &b"x"[..]));
    });
}

#[test]
fn senders_in_the_abstract_namespace_have_their_names() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let name = format!("gmp-net-dgram-{}", std::process::id());
        let socket = gmp_net::UnixSocket::new_datagram().unwrap();
        socket.bind(format!("\0{name}")).unwrap();
        let sender = socket.datagram().unwrap();
        for _ in 0..2 {
            sender.send_to(b"x", &path).await.unwrap();
        }
        let (_, from) = receiver.recv_from(&mut [0; 4]).await.unwrap();
        assert_eq!(from.as_abstract_name(), Some(name.as_bytes()));
        let (_, from) = receiver.recv_buf_from(&mut Vec::new()).await.unwrap();
        assert_eq!(from.as_abstract_name(), Some(name.as_bytes()));
    });
}

#[test]
fn try_functions_never_wait() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let mut buf = [0; 16];
        assert_would_block(b.try_recv(&mut buf));
        assert_would_block(b.try_recv_from(&mut buf));
        assert_would_block(b.try_recv_buf(&mut Vec::new()));
        assert_would_block(b.try_recv_buf_from(&mut Vec::new()));

        a.writable().await.unwrap();
        let sent = fill(|| a.try_send(b"hello"));
        assert!(sent > 0);
        b.readable().await.unwrap();
        for i in 0..sent {
            let n = match i % 2 {
                0 => b.try_recv(&mut buf).unwrap(),
                _ => b.try_recv_buf(&mut Vec::with_capacity(8)).unwrap(),
            };
            assert_eq!(n, 5);
        }
        assert_would_block(b.try_recv(&mut buf));
        a.writable().await.unwrap();
        assert_eq!(a.try_send(b"again").unwrap(), 5);
    });
}

#[test]
fn polls_keep_one_waker_a_direction() {
    run_unconstrained(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        poll_fn(|cx| a.poll_send_ready(cx)).await.unwrap();
        let (wakes, waker) = Wakes::new();
        let mut cx = Context::from_waker(&waker);
        let mut buf = [0; 16];
        let mut buf = ReadBuf::new(&mut buf);
        assert!(b.poll_recv_ready(&mut cx).is_pending());
        assert!(b.poll_recv(&mut cx, &mut buf).is_pending());
        assert!(b.poll_recv_from(&mut cx, &mut buf).is_pending());
        assert_eq!(poll_fn(|cx| a.poll_send(cx, b"one")).await.unwrap(), 3);
        while wakes.count() == 0 {
            yield_now().await;
        }
        assert_eq!(wakes.count(), 1);
        assert!(b.poll_recv_ready(&mut cx).is_ready());
        assert!(b.poll_recv(&mut cx, &mut buf).is_ready());
        assert_eq!(buf.filled(), b"one");
    });
}

/// Both ends of a new pair are writable without a word from the netpoll, and not readable.
#[test]
fn a_new_pair_is_writable() {
    run_current_thread(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        assert!(poll_once(&mut pin!(a.writable())).await.is_ready());
        assert!(poll_once(&mut pin!(b.writable())).await.is_ready());
        assert!(poll_once(&mut pin!(b.readable())).await.is_pending());
        a.try_send(b"x").unwrap();
        b.readable().await.unwrap();
        assert_eq!(b.try_recv(&mut [0; 4]).unwrap(), 1);
    });
}

#[test]
fn a_full_queue_makes_a_connected_sender_wait() {
    run_unconstrained(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        a.writable().await.unwrap();
        let sent = fill(|| a.try_send(b"x"));
        let mut send = pin!(a.send(b"last"));
        assert!(poll_once(&mut send).await.is_pending());
        let (done, ()) = join(send, drain(&b, sent)).await;
        assert_eq!(done.unwrap(), 4);
        let mut buf = [0; 8];
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
    });
}

#[test]
fn a_full_queue_makes_a_sender_wait() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.writable().await.unwrap();
        let sent = fill(|| sender.try_send_to(b"x", &path));
        let mut send = pin!(sender.send_to(b"last", &path));
        assert!(poll_once(&mut send).await.is_pending());
        let (done, ()) = join(send, drain(&receiver, sent)).await;
        assert_eq!(done.unwrap(), 4);
        drain(&receiver, 1).await;
    });
}

/// The kernel tells a sender that is not connected of room in its own buffer only, not in the queue
/// of the receiver, which somebody else has filled.
#[test]
fn a_queue_filled_by_others_makes_a_sender_wait() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        // Not one of ours, which would send nothing before it has heard of the room.
        let crowd = std_net::UnixDatagram::unbound().unwrap();
        crowd.set_nonblocking(true).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.writable().await.unwrap();
        for _ in 0..3 {
            let sent = fill(|| crowd.send_to(b"x", &path));
            let mut send = pin!(sender.send_to(b"last", &path));
            assert!(poll_once(&mut send).await.is_pending());
            let (done, ()) = join(send, drain(&receiver, sent)).await;
            assert_eq!(done.unwrap(), 4);
            drain(&receiver, 1).await;

            let sent = fill(|| crowd.send_to(b"x", &path));
            let mut send = pin!(poll_fn(|cx| sender.poll_send_to(cx, b"last", &path)));
            assert!(poll_once(&mut send).await.is_pending());
            let (done, ()) = join(send, drain(&receiver, sent)).await;
            assert_eq!(done.unwrap(), 4);
            drain(&receiver, 1).await;
        }
    });
}

#[test]
fn many_senders_and_one_slow_receiver() {
    run(|| async {
        let dir = Dir::new();
        let path = Arc::new(dir.path("receiver"));
        let receiver = UnixDatagram::bind(&*path).unwrap();
        let senders = (0..8u8).map(|i| {
            let path = path.clone();
            gmp_executor::task::spawn(async move {
                let sender = UnixDatagram::unbound().unwrap();
                for _ in 0..50 {
                    sender.send_to(&[i], &*path).await.unwrap();
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        let mut counts = [0; 8];
        for _ in 0..400 {
            let mut buf = [0; 4];
            assert_eq!(receiver.recv(&mut buf).await.unwrap(), 1);
            counts[usize::from(buf[0])] += 1;
            yield_now().await;
        }
        assert_eq!(counts, [50; 8]);
        assert!(join_all(senders).await.into_iter().all(|done| done.is_ok()));
    });
}

#[test]
fn the_receiver_that_goes_is_an_error_of_the_sender() {
    run_unconstrained(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        a.writable().await.unwrap();
        fill(|| a.try_send(b"x"));
        let mut send = pin!(a.send(b"last"));
        assert!(poll_once(&mut send).await.is_pending());
        drop(b);
        let error = send.await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let crowd = UnixDatagram::unbound().unwrap();
        fill(|| crowd.try_send_to(b"x", &path));
        let sender = UnixDatagram::unbound().unwrap();
        let mut send = pin!(sender.send_to(b"last", &path));
        assert!(poll_once(&mut send).await.is_pending());
        drop(receiver);
        let error = send.await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn errors_are_the_systems() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let socket = UnixDatagram::unbound().unwrap();
        let error = socket.send_to(b"x", &path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = socket.send(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        let error = socket.peer_addr().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        let error = socket.connect(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let _receiver = UnixDatagram::bind(&path).unwrap();
        let error = UnixDatagram::bind(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let error = UnixDatagram::bind("x".repeat(200)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = socket.send_to(&vec![0; 1 << 24], &path).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        assert!(socket.take_error().unwrap().is_none());
    });
}

/// What waits for a receiver is asleep meanwhile: the datagram that was refused wakes nobody.
#[test]
fn a_sender_that_waits_is_not_woken_for_nothing() {
    run_current_thread(|| async {
        let dir = Dir::new();
        let path = dir.path("receiver");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let crowd = UnixDatagram::unbound().unwrap();
        let sent = fill(|| crowd.try_send_to(b"x", &path));
        let sender = UnixDatagram::unbound().unwrap();
        let (wakes, waker) = Wakes::new();
        let mut cx = Context::from_waker(&waker);
        let mut send = pin!(sender.send_to(b"async", &path));
        assert!(send.as_mut().poll(&mut cx).is_pending());
        assert!(sender.poll_send_to(&mut cx, b"poll", &path).is_pending());
        let mut polls = 0;
        for _ in 0..200 {
            yield_now().await;
            if wakes.count() > polls {
                polls = wakes.count();
                assert!(send.as_mut().poll(&mut cx).is_pending());
                assert!(sender.poll_send_to(&mut cx, b"poll", &path).is_pending());
            }
        }
        assert_eq!(polls, 0);
        drain(&receiver, sent).await;
        while wakes.count() < 2 {
            yield_now().await;
        }
        assert!(send.as_mut().poll(&mut cx).is_ready());
        assert!(sender.poll_send_to(&mut cx, b"poll", &path).is_ready());
    });
}

/// A wait for one receiver does not stand in the way of another.
#[test]
fn polling_with_another_target_forgets_the_first() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let (full_path, free_path) = (dir.path("full"), dir.path("free"));
        let full = UnixDatagram::bind(&full_path).unwrap();
        let free = UnixDatagram::bind(&free_path).unwrap();
        let crowd = UnixDatagram::unbound().unwrap();
        let sent = fill(|| crowd.try_send_to(b"x", &full_path));
        let sender = UnixDatagram::unbound().unwrap();
        assert!(
            with_cx(|cx| sender.poll_send_to(cx, b"1", &full_path))
                .await
                .is_pending()
        );
        poll_fn(|cx| sender.poll_send_to(cx, b"2", &free_path))
            .await
            .unwrap();
        drain(&free, 1).await;
        drain(&full, sent).await;
        poll_fn(|cx| sender.poll_send_to(cx, b"3", &full_path))
            .await
            .unwrap();
        drain(&full, 1).await;
    });
}

/// The future of a socket may be polled by a thread that is in no runtime.
#[test]
fn a_sender_waits_outside_the_runtime_too() {
    let _watchdog = Watchdog::new();
    let runtime = rt::multi_thread();
    let dir = Dir::new();
    let path = dir.path("receiver");
    let (receiver, crowd, sender) = {
        let _entered = runtime.enter();
        let receiver = UnixDatagram::bind(&path).unwrap();
        let crowd = UnixDatagram::unbound().unwrap();
        (receiver, crowd, UnixDatagram::unbound().unwrap())
    };
    let sent = fill(|| crowd.try_send_to(b"x", &path));
    let done =
        futures::executor::block_on(join(sender.send_to(b"last", &path), drain(&receiver, sent)));
    assert_eq!(done.0.unwrap(), 4);
}

#[test]
fn shutting_down() {
    run_unconstrained(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        b.shutdown(Shutdown::Read).unwrap();
        let error = a.send(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        // Whoever receives from a socket that was shut down waits, and is not woken for nothing.
        let mut receive = pin!(b.recv(&mut []));
        for _ in 0..10 {
            assert!(poll_once(&mut receive).await.is_pending());
            yield_now().await;
        }
        b.shutdown(Shutdown::Both).unwrap();
        let error = b.send(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    run_unconstrained(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for i in 0..50u8 {
            let mut buf = [0; 4];
            {
                let mut receive = pin!(b.recv(&mut buf));
                assert!(poll_once(&mut receive).await.is_pending());
                a.send(&[i]).await.unwrap();
            }
            assert_eq!(b.recv(&mut buf).await.unwrap(), 1);
            assert_eq!(buf[0], i);
        }
    });
}

#[test]
fn a_shared_socket_sends_and_receives_at_once() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let (a, b) = (Arc::new(a), Arc::new(b));
        let echo = gmp_executor::task::spawn(async move {
            let mut buf = [0; 8];
            for _ in 0..300 {
                let n = b.recv(&mut buf).await.unwrap();
                b.send(&buf[..n]).await.unwrap();
            }
        });
        let sender = a.clone();
        let send = gmp_executor::task::spawn(async move {
            for i in 0..300u32 {
                sender.send(&i.to_be_bytes()).await.unwrap();
            }
        });
        let mut buf = [0; 8];
        for i in 0..300u32 {
            let n = a.recv(&mut buf).await.unwrap();
            assert_eq!(buf[..n], i.to_be_bytes());
        }
        send.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn readiness_is_told() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let both = Interest::READABLE | Interest::WRITABLE;
        assert!(b.ready(both).await.unwrap().is_writable());
        a.send(b"x").await.unwrap();
        b.readable().await.unwrap();
        assert!(b.ready(both).await.unwrap().is_readable());
    });
}

#[test]
fn operations_of_ones_own() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let raw_read = |buf: &mut [u8]| Ok(rustix::io::read(b.as_fd(), buf)?);
        let mut buf = [0; 16];
        assert_would_block(b.try_io(Interest::READABLE, || raw_read(&mut buf)));
        let reading = b.async_io(Interest::READABLE, || raw_read(&mut buf));
        let (n, sent) = join(reading, a.send(b"raw")).await;
        assert_eq!((n.unwrap(), sent.unwrap()), (3, 3));
    });
}

#[test]
fn std_sockets_come_and_go() {
    run(|| async {
        let (std_a, std_b) = std_net::UnixDatagram::pair().unwrap();
        std_a.set_nonblocking(true).unwrap();
        std_b.set_nonblocking(true).unwrap();
        let a = UnixDatagram::from_std(std_a).unwrap();
        let b = UnixDatagram::try_from(std_b).unwrap();
        a.send(b"std").await.unwrap();
        assert_eq!(b.recv(&mut [0; 8]).await.unwrap(), 3);
        let fd = b.as_raw_fd();
        assert_eq!(b.as_fd().as_raw_fd(), fd);
        let std_b = b.into_std().unwrap();
        assert_eq!(std_b.as_raw_fd(), fd);
        assert_would_block(std_b.recv(&mut [0; 8]));
        a.send(b"more").await.unwrap();
        assert_eq!(std_b.recv(&mut [0; 8]).unwrap(), 4);
    });
}

#[test]
fn debug_shows_the_socket() {
    run(|| async {
        let (a, _b) = UnixDatagram::pair().unwrap();
        assert!(format!("{a:?}").starts_with("UnixDatagram"));
    });
}
