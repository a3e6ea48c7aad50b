//! Unix stream sockets: listener, stream and its halves.
#![cfg(not(gmp_loom))]

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net as std_net;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures::future::{join, join_all, try_join};
use gmp_io::{AsyncWrite, ReadBuf};
use gmp_net::unix::{SocketAddr, UCred};
use gmp_net::{Interest, UnixListener, UnixStream};
use support::*;

mod support;

/// A stream and the one that was accepted for it.
async fn connected() -> (UnixStream, UnixStream) {
    let dir = Dir::new();
    let path = dir.path("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, server) = try_join(UnixStream::connect(&path), listener.accept())
        .await
        .unwrap();
    (client, server.0)
}

/// Writes until nothing more fits; returns how much that was.
fn fill(stream: &UnixStream) -> usize {
    let chunk = [7; 4096];
    let mut n = 0;
    while let Ok(more) = stream.try_write(&chunk) {
        n += more;
    }
    n
}

#[test]
fn a_client_talks_to_a_server() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let local = listener.local_addr().unwrap();
        assert_eq!(local.as_pathname(), Some(&*path));

        let serve = async {
            let (mut stream, addr) = listener.accept().await.unwrap();
            assert!(addr.is_unnamed());
            let request = read_to_end(&mut stream).await.unwrap();
            write_all(&mut stream, &request).await.unwrap();
        };
        let ask = async {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap().as_pathname(), Some(&*path));
            assert!(stream.local_addr().unwrap().is_unnamed());
            write_all(&mut stream, b"over a file").await.unwrap();
            shutdown(&mut stream).await.unwrap();
            read_to_end(&mut stream).await.unwrap()
        };
        let ((), answer) = join(serve, ask).await;
        assert_eq!(answer, b"over a file");
        assert!(listener.take_error().unwrap().is_none());
    });
}

#[test]
fn more_than_the_buffers_hold_gets_through() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let data = pattern(3_000_000);
        let send = async {
            write_all(&mut a, &data).await.unwrap();
            shutdown(&mut a).await.unwrap();
        };
        let (received, ()) = join(read_to_end(&mut b), send).await;
        assert_eq!(received.unwrap(), data);
    });
}

#[test]
fn many_clients_at_once() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let serve = async {
            for _ in 0..50 {
                let (mut stream, _) = listener.accept().await.unwrap();
                gmp_executor::task::spawn(async move {
                    let request = read_to_end(&mut stream).await.unwrap();
                    write_all(&mut stream, &request).await.unwrap();
                });
            }
        };
        let clients = (0..50u8).map(|i| {
            let path = path.clone();
            gmp_executor::task::spawn(async move {
                let mut stream = UnixStream::connect(path).await.unwrap();
                write_all(&mut stream, &[i; 1000]).await.unwrap();
                shutdown(&mut stream).await.unwrap();
                assert_eq!(read_to_end(&mut stream).await.unwrap(), [i; 1000]);
            })
        });
        let ((), clients) = join(serve, join_all(clients)).await;
        assert!(clients.into_iter().all(|client| client.is_ok()));
    });
}

#[test]
fn names_in_the_abstract_namespace() {
    run(|| async {
        let name = format!("gmp-net-abstract-{}", std::process::id());
        let path = format!("\0{name}");
        let listener = UnixListener::bind(&path).unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(addr.as_abstract_name(), Some(name.as_bytes()));
        let (by_name, _) = try_join(UnixStream::connect(&path), listener.accept())
            .await
            .unwrap();
        assert_eq!(
            by_name.peer_addr().unwrap().as_abstract_name(),
            Some(name.as_bytes())
        );
        try_join(UnixStream::connect_addr(&addr), listener.accept())
            .await
            .unwrap();
        let error = UnixListener::bind_addr(&addr).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn addresses_of_the_standard_library() {
    run(|| async {
        let dir = Dir::new();
        let std = std_net::SocketAddr::from_pathname(dir.path("socket")).unwrap();
        let addr = SocketAddr::from(std);
        let listener = UnixListener::bind_addr(&addr).unwrap();
        try_join(UnixStream::connect_addr(&addr), listener.accept())
            .await
            .unwrap();
    });
}

#[test]
fn connecting_fails_as_the_system_says() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        drop(UnixListener::bind(&path).unwrap());
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let error = UnixStream::connect("x".repeat(200)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = UnixStream::connect("a\0b").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

/// Linux refuses (EAGAIN) what does not fit into the queue; that is an error of this connection, and
/// there is nothing to wait for.
#[test]
fn a_full_queue_of_connections_is_would_block() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let socket = gmp_net::UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(0).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!waiting.is_empty());
        listener.accept().await.unwrap();
        UnixStream::connect(&path).await.unwrap();
    });
}

/// The story of tokio #3879: the listener goes between `connect` and the accept.
#[test]
fn a_listener_that_goes_refuses_who_waits() {
    run_current_thread(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut connect = pin!(UnixStream::connect(&path));
        assert!(poll_once(&mut connect).await.is_pending());
        drop(listener);
        let error = connect.await.unwrap_err();
        assert!(matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
        ));
    });
}

#[test]
fn accept_polled_by_hand() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let (wakes, waker) = Wakes::new();
        let mut cx = Context::from_waker(&waker);
        assert!(listener.poll_accept(&mut cx).is_pending());
        let client = UnixStream::connect(&path).await.unwrap();
        while wakes.count() == 0 {
            yield_now().await;
        }
        let Poll::Ready(Ok((server, _))) = listener.poll_accept(&mut cx) else {
            panic!("there is a connection to accept");
        };
        assert!(listener.poll_accept(&mut cx).is_pending());
        client.try_write(b"x").unwrap();
        server.readable().await.unwrap();
    });
}

/// An accepted stream can be read from and written to without a word from the netpoll.
#[test]
fn an_accepted_stream_is_tried_at_once() {
    run_current_thread(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = std_net::UnixStream::connect(&path).unwrap();
        (&client).write_all(b"request").unwrap();
        let (server, _) = listener.accept().await.unwrap();
        assert!(poll_once(&mut pin!(server.writable())).await.is_ready());
        let mut buf = [0; 16];
        assert_eq!(server.try_read(&mut buf).unwrap(), 7);
        assert_would_block(server.try_read(&mut buf));
        assert_eq!(server.try_write(b"answer").unwrap(), 6);
    });
}

/// Both ends of a new pair are writable without a word from the netpoll, and not readable.
#[test]
fn a_new_pair_is_writable() {
    run_current_thread(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        assert!(poll_once(&mut pin!(a.writable())).await.is_ready());
        assert_eq!(a.try_write(b"hi").unwrap(), 2);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut b).poll_write(&mut cx, b"yo").is_ready());

        let (c, _d) = UnixStream::pair().unwrap();
        assert!(poll_once(&mut pin!(c.readable())).await.is_pending());
        assert_would_block(c.try_read(&mut [0; 1]));
        a.readable().await.unwrap();
        assert_eq!(a.try_read(&mut [0; 8]).unwrap(), 2);
    });
}

#[test]
fn readers_and_writers_are_woken() {
    run_unconstrained(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (read_wakes, read_waker) = Wakes::new();
        let mut read_cx = Context::from_waker(&read_waker);
        assert!(b.poll_read_ready(&mut read_cx).is_pending());

        assert!(with_cx(|cx| a.poll_write_ready(cx)).await.is_ready());
        let written = fill(&a);
        let (write_wakes, write_waker) = Wakes::new();
        let mut write_cx = Context::from_waker(&write_waker);
        assert!(a.poll_write_ready(&mut write_cx).is_pending());

        while read_wakes.count() == 0 {
            yield_now().await;
        }
        assert!(b.poll_read_ready(&mut read_cx).is_ready());
        let mut left = written;
        let mut buf = vec![0; 65_536];
        while left > 0 {
            left -= insist(|| b.try_read(&mut buf)).await.unwrap();
        }
        while write_wakes.count() == 0 {
            yield_now().await;
        }
        assert!(a.poll_write_ready(&mut write_cx).is_ready());
        assert_would_block(b.try_read(&mut buf));
        assert!(b.poll_read_ready(&mut read_cx).is_pending());
    });
}

#[test]
fn try_functions_never_wait() {
    run(|| async {
        let (a, b) = connected().await;
        let mut buf = [0; 16];
        assert_would_block(b.try_read(&mut buf));
        a.writable().await.unwrap();
        assert_eq!(a.try_write(b"abc").unwrap(), 3);
        let parts = [IoSlice::new(b"de"), IoSlice::new(b""), IoSlice::new(b"fgh")];
        assert_eq!(a.try_write_vectored(&parts).unwrap(), 5);
        b.readable().await.unwrap();

        let (mut one, mut two) = ([0; 2], [0; 4]);
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(b.try_read_vectored(&mut parts).unwrap(), 6);
        assert_eq!((&one, &two), (b"ab", b"cdef"));
        let mut vec = Vec::from(&b"+"[..]);
        vec.reserve(16);
        assert_eq!(b.try_read_buf(&mut vec).unwrap(), 2);
        assert_eq!(vec, b"+gh");
        assert_would_block(b.try_read_buf(&mut vec));
        assert_would_block(b.try_read_vectored(&mut [IoSliceMut::new(&mut buf)]));

        assert!(fill(&a) > 0);
        assert_would_block(a.try_write(b"x"));
        assert_would_block(a.try_write_vectored(&[IoSlice::new(b"x")]));

        drop(a);
        while insist(|| b.try_read(&mut [0; 4096])).await.unwrap() > 0 {}
        assert_eq!(b.try_read(&mut buf).unwrap(), 0);
    });
}

#[test]
fn vectored_writes_are_one_write() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        assert!(a.is_write_vectored());
        let parts = [
            IoSlice::new(b"one "),
            IoSlice::new(b"two "),
            IoSlice::new(b"three"),
        ];
        assert_eq!(write_vectored(&mut a, &parts).await.unwrap(), 13);
        let mut buf = [0; 32];
        assert_eq!(read(&mut b, &mut buf).await.unwrap(), 13);
        assert_eq!(&buf[..13], b"one two three");
    });
}

#[test]
fn reading_fills_the_unfilled_part() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        write_all(&mut a, b"hello").await.unwrap();
        let mut space = [MaybeUninit::uninit(); 16];
        let mut buf = ReadBuf::uninit(&mut space);
        buf.put_slice(b"> ");
        poll_fn(|cx| gmp_io::AsyncRead::poll_read(Pin::new(&mut b), cx, &mut buf))
            .await
            .unwrap();
        assert_eq!(buf.filled(), b"> hello");
        // Nothing is asked for, so nothing is waited for.
        write_all(&mut a, b"more").await.unwrap();
        assert_eq!(read(&mut b, &mut []).await.unwrap(), 0);
        assert_eq!(read(&mut b, &mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn the_end_and_what_comes_after_it() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        write_all(&mut a, b"last words").await.unwrap();
        drop(a);
        assert_eq!(read_to_end(&mut b).await.unwrap(), b"last words");
        assert_eq!(read(&mut b, &mut [0; 4]).await.unwrap(), 0);
        let error = write(&mut b, b"hello?").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        // Shutting down a connection whose peer has gone is no error.
        shutdown(&mut b).await.unwrap();
        let ready = b.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_read_closed());
    });
}

#[test]
fn a_waiting_reader_sees_the_peer_go() {
    run(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let go = async {
            yield_now().await;
            drop(a);
        };
        let mut buf = [0; 4];
        let (n, ()) = join(read(&mut b, &mut buf), go).await;
        assert_eq!(n.unwrap(), 0);
    });
}

#[test]
fn a_waiting_writer_sees_the_peer_go() {
    run(|| async {
        let (mut a, b) = UnixStream::pair().unwrap();
        fill(&a);
        let go = async {
            yield_now().await;
            drop(b);
        };
        let (error, ()) = join(write_all(&mut a, &[0; 4096]), go).await;
        let kind = error.unwrap_err().kind();
        assert!(matches!(
            kind,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ));
    });
}

#[test]
fn a_cancelled_read_loses_nothing() {
    run_unconstrained(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        for i in 0..50u8 {
            let mut buf = [0; 8];
            {
                let mut reading = pin!(read(&mut b, &mut buf));
                assert!(poll_once(&mut reading).await.is_pending());
                write_all(&mut a, &[i, i]).await.unwrap();
            }
            assert_eq!(read(&mut b, &mut buf).await.unwrap(), 2);
            assert_eq!(buf[..2], [i, i]);
        }
    });
}

/// A read stops at a message that carries descriptors, although more bytes are queued behind it. A
/// short read is then no sign that the queue is empty.
#[test]
fn descriptors_on_the_way_do_not_hide_the_bytes_behind_them() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    run_unconstrained(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        // The netpoll has seen the stream idle, so that from now on only edges count.
        assert!(
            poll_once(&mut pin!(read(&mut b, &mut [0; 1])))
                .await
                .is_pending()
        );
        yield_now().await;

        let passed = [a.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        sendmsg(
            &a,
            &[IoSlice::new(b"one")],
            &mut control,
            SendFlags::empty(),
        )
        .unwrap();
        a.try_write(b"two").unwrap();

        let mut buf = [0; 16];
        assert_eq!(read(&mut b, &mut buf).await.unwrap(), 3);
        assert_eq!(read(&mut b, &mut buf).await.unwrap(), 3);
        assert_eq!(&buf[..3], b"two");
        assert!(
            poll_once(&mut pin!(read(&mut b, &mut buf)))
                .await
                .is_pending()
        );
    });
}

#[test]
fn readiness_is_told() {
    run(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let both = Interest::READABLE | Interest::WRITABLE;
        let ready = b.ready(both).await.unwrap();
        assert!(ready.is_writable() && !ready.is_readable());
        a.writable().await.unwrap();
        a.try_write(b"x").unwrap();
        b.readable().await.unwrap();
        assert!(b.ready(both).await.unwrap().is_readable());
        read(&mut b, &mut [0; 4]).await.unwrap();
        assert!(!b.ready(both).await.unwrap().is_readable());
        drop(a);
        assert!(b.ready(Interest::READABLE).await.unwrap().is_read_closed());
    });
}

#[test]
fn operations_of_ones_own() {
    run(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let raw_read = |buf: &mut [u8]| Ok(rustix::io::read(b.as_fd(), buf)?);
        let mut buf = [0; 16];
        assert_would_block(b.try_io(Interest::READABLE, || raw_read(&mut buf)));
        let reading = b.async_io(Interest::READABLE, || raw_read(&mut buf));
        let writing = a.async_io(Interest::WRITABLE, || {
            Ok(rustix::io::write(a.as_fd(), b"raw")?)
        });
        let (read, written) = join(reading, writing).await;
        assert_eq!((read.unwrap(), written.unwrap()), (3, 3));
        a.try_write(b"again").unwrap();
        b.readable().await.unwrap();
        assert_eq!(
            b.try_io(Interest::READABLE, || raw_read(&mut buf)).unwrap(),
            5
        );
    });
}

#[test]
fn credentials_of_the_peer() {
    run(|| async {
        let (a, b) = connected().await;
        let cred: UCred = a.peer_cred().unwrap();
        assert_eq!(cred, b.peer_cred().unwrap());
        assert_eq!(cred.pid(), Some(std::process::id() as i32));
        assert_eq!(cred.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(cred.gid(), rustix::process::getegid().as_raw());
        assert!(a.take_error().unwrap().is_none());
    });
}

#[test]
fn std_streams_come_and_go() {
    run_unconstrained(|| async {
        let (std_a, std_b) = std_net::UnixStream::pair().unwrap();
        std_a.set_nonblocking(true).unwrap();
        std_b.set_nonblocking(true).unwrap();
        let mut a = UnixStream::from_std(std_a).unwrap();
        let mut b = UnixStream::try_from(std_b).unwrap();
        write_all(&mut a, b"std").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(read(&mut b, &mut buf).await.unwrap(), 3);
        assert!(
            poll_once(&mut pin!(read(&mut b, &mut buf)))
                .await
                .is_pending()
        );

        let fd = b.as_raw_fd();
        assert_eq!(b.as_fd().as_raw_fd(), fd);
        let std_b = b.into_std().unwrap();
        assert_eq!(std_b.as_raw_fd(), fd);
        assert_would_block((&std_b).read(&mut buf));
        write_all(&mut a, b"more").await.unwrap();
        assert_eq!((&std_b).read(&mut buf).unwrap(), 4);
        let mut b = UnixStream::from_std(std_b).unwrap();
        write_all(&mut a, b"again").await.unwrap();
        assert_eq!(read(&mut b, &mut buf).await.unwrap(), 5);
    });
}

#[test]
fn std_listeners_come_and_go() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let std = std_net::UnixListener::bind(&path).unwrap();
        std.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(std).unwrap();
        try_join(UnixStream::connect(&path), listener.accept())
            .await
            .unwrap();
        let fd = listener.as_raw_fd();
        let std = listener.into_std().unwrap();
        assert_eq!(std.as_raw_fd(), fd);
        let listener = UnixListener::try_from(std).unwrap();
        assert_eq!(listener.as_fd().as_raw_fd(), fd);
        try_join(UnixStream::connect(&path), listener.accept())
            .await
            .unwrap();
    });
}

#[test]
fn borrowed_halves() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let data = pattern(500_000);
        let (mut read_a, mut write_a) = a.split();
        let (mut read_b, mut write_b) = b.split();
        let send_a = async {
            write_all(&mut write_a, &data).await.unwrap();
            shutdown(&mut write_a).await.unwrap();
        };
        let send_b = async {
            write_all(&mut write_b, &data).await.unwrap();
            shutdown(&mut write_b).await.unwrap();
        };
        let receive = join(read_to_end(&mut read_a), read_to_end(&mut read_b));
        let ((got_a, got_b), _) = join(receive, join(send_a, send_b)).await;
        assert_eq!(got_a.unwrap(), data);
        assert_eq!(got_b.unwrap(), data);

        assert!(read_a.as_ref().local_addr().unwrap().is_unnamed());
        assert!(read_a.peer_addr().unwrap().is_unnamed());
        assert!(read_a.local_addr().unwrap().is_unnamed());
        assert!(write_a.peer_addr().unwrap().is_unnamed());
        assert!(write_a.local_addr().unwrap().is_unnamed());
        assert_eq!(write_a.as_ref().as_raw_fd(), read_a.as_ref().as_raw_fd());
    });
}

#[test]
fn borrowed_halves_try_too() {
    run(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let (_, mut writer) = a.split();
        let (reader, _) = b.split();
        writer.writable().await.unwrap();
        assert!(
            writer
                .ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_writable()
        );
        assert!(writer.is_write_vectored());
        assert_eq!(writer.try_write(b"ab").unwrap(), 2);
        assert_eq!(
            writer.try_write_vectored(&[IoSlice::new(b"cd")]).unwrap(),
            2
        );
        assert_eq!(
            write_vectored(&mut writer, &[IoSlice::new(b"e"), IoSlice::new(b"f")])
                .await
                .unwrap(),
            2
        );
        reader.readable().await.unwrap();
        assert!(
            reader
                .ready(Interest::READABLE)
                .await
                .unwrap()
                .is_readable()
        );
        let mut one = [0; 1];
        assert_eq!(reader.try_read(&mut one).unwrap(), 1);
        assert_eq!(
            reader
                .try_read_vectored(&mut [IoSliceMut::new(&mut one)])
                .unwrap(),
            1
        );
        let mut rest = Vec::with_capacity(8);
        assert_eq!(reader.try_read_buf(&mut rest).unwrap(), 4);
        assert_eq!(rest, b"cdef");
    });
}

#[test]
fn owned_halves_in_tasks_of_their_own() {
    run(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let data = pattern(500_000);
        let (mut read_a, mut write_a) = a.into_split();
        let (mut read_b, mut write_b) = b.into_split();
        let echo = gmp_executor::task::spawn(async move {
            let all = read_to_end(&mut read_b).await.unwrap();
            write_all(&mut write_b, &all).await.unwrap();
            shutdown(&mut write_b).await.unwrap();
        });
        let sent = data.clone();
        let send = gmp_executor::task::spawn(async move {
            write_all(&mut write_a, &sent).await.unwrap();
            // Dropping the half ends the direction.
        });
        assert_eq!(read_to_end(&mut read_a).await.unwrap(), data);
        send.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn owned_halves_try_too() {
    run(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (_read_a, mut writer) = a.into_split();
        let (reader, _write_b) = b.into_split();
        writer.writable().await.unwrap();
        assert!(
            writer
                .ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_writable()
        );
        assert!(writer.is_write_vectored());
        assert_eq!(writer.try_write(b"ab").unwrap(), 2);
        assert_eq!(
            writer.try_write_vectored(&[IoSlice::new(b"cd")]).unwrap(),
            2
        );
        assert_eq!(
            write_vectored(&mut writer, &[IoSlice::new(b"ef")])
                .await
                .unwrap(),
            2
        );
        reader.readable().await.unwrap();
        assert!(
            reader
                .ready(Interest::READABLE)
                .await
                .unwrap()
                .is_readable()
        );
        let mut one = [0; 1];
        assert_eq!(reader.try_read(&mut one).unwrap(), 1);
        assert_eq!(
            reader
                .try_read_vectored(&mut [IoSliceMut::new(&mut one)])
                .unwrap(),
            1
        );
        let mut rest = Vec::with_capacity(8);
        assert_eq!(reader.try_read_buf(&mut rest).unwrap(), 4);
        for addr in [
            reader.peer_addr(),
            reader.local_addr(),
            writer.peer_addr(),
            writer.local_addr(),
            reader.as_ref().local_addr(),
            writer.as_ref().local_addr(),
        ] {
            assert!(addr.unwrap().is_unnamed());
        }
    });
}

#[test]
fn dropping_the_writer_ends_its_direction_only() {
    run(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (mut reader, writer) = a.into_split();
        drop(writer);
        assert_eq!(read(&mut b, &mut [0; 4]).await.unwrap(), 0);
        write_all(&mut b, b"still there").await.unwrap();
        drop(b);
        assert_eq!(read_to_end(&mut reader).await.unwrap(), b"still there");
    });
}

#[test]
fn a_forgotten_writer_ends_nothing() {
    run_unconstrained(|| async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (reader, writer) = a.into_split();
        writer.forget();
        assert!(
            poll_once(&mut pin!(read(&mut b, &mut [0; 4])))
                .await
                .is_pending()
        );
        drop(reader);
        assert_eq!(read(&mut b, &mut [0; 4]).await.unwrap(), 0);
    });
}

#[test]
fn halves_reunite() {
    run(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (read_a, write_a) = a.into_split();
        let (read_b, write_b) = b.into_split();
        let error = read_a.reunite(write_b).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tried to reunite halves that are not from the same socket"
        );
        let (read_a, write_b) = (error.0, error.1);
        let mut b = write_b.reunite(read_b).unwrap();
        let mut a = read_a.reunite(write_a).unwrap();
        // Reuniting ended no direction.
        write_all(&mut a, b"one").await.unwrap();
        assert_eq!(read(&mut b, &mut [0; 8]).await.unwrap(), 3);
        write_all(&mut b, b"two").await.unwrap();
        assert_eq!(read(&mut a, &mut [0; 8]).await.unwrap(), 3);
    });
}

#[test]
#[cfg(debug_assertions)]
fn blocking_sockets_are_refused() {
    let text = panic_of(|| {
        run(|| async {
            let (a, _b) = std_net::UnixStream::pair().unwrap();
            let _ = UnixStream::from_std(a);
        });
    });
    assert!(text.unwrap().contains("blocking mode"));
    let text = panic_of(|| {
        run(|| async {
            let dir = Dir::new();
            let listener = std_net::UnixListener::bind(dir.path("socket")).unwrap();
            let _ = UnixListener::from_std(listener);
        });
    });
    assert!(text.unwrap().contains("blocking mode"));
}

#[test]
fn debug_shows_the_socket() {
    run(|| async {
        let (client, server) = connected().await;
        assert!(format!("{client:?}").starts_with("UnixStream"));
        let (reader, writer) = server.into_split();
        assert!(format!("{reader:?}").starts_with("OwnedReadHalf"));
        assert!(format!("{writer:?}").starts_with("OwnedWriteHalf"));
        let dir = Dir::new();
        let listener = UnixListener::bind(dir.path("socket")).unwrap();
        assert!(format!("{listener:?}").starts_with("UnixListener"));
    });
}

/// A future that is never polled has done nothing.
#[test]
fn connecting_is_lazy() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        drop(UnixStream::connect(&path));
        assert!(poll_once(&mut pin!(listener.accept())).await.is_pending());
        fn is_send<F: Future + Send>(_: F) {}
        is_send(UnixStream::connect(&path));
    });
}
