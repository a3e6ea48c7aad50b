//! What peers and networks do to sockets: nothing is lost, nobody spins, the error is the documented one.
#![cfg(not(gmp_loom))]

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Context;
use std::thread;
use std::time::Duration;

use futures::future::join;
use gmp_executor::task;
use gmp_io::{AsyncRead, ReadBuf};
use gmp_net::{Interest, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream};
use support::*;

mod support;

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (client, accepted) = join(TcpStream::connect(addr), listener.accept()).await;
    (client.unwrap(), accepted.unwrap().0)
}

fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}

// ----- Resets -----

#[test]
fn a_reset_wakes_a_waiting_reader() {
    run_unconstrained(|| async {
        let (client, mut server) = pair().await;
        let mut buf = [0; 8];
        let mut waiting = Box::pin(read(&mut server, &mut buf));
        assert!(poll_once(&mut waiting).await.is_pending());
        reset(client);
        let error = waiting.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        // The error is told once; after it there is the end, as with the standard library.
        assert_eq!(read(&mut server, &mut [0; 8]).await.unwrap(), 0);
    });
}

/// A34: an event that says "error" alone wakes both directions.
#[test]
fn a_reset_wakes_a_reader_and_a_writer_that_wait() {
    run(|| async {
        let (client, server) = pair().await;
        let (mut reader, mut writer) = server.into_split();
        let reading = task::spawn(async move { read(&mut reader, &mut [0; 8]).await });
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let writing = task::spawn(async move {
            loop {
                match write(&mut writer, &[7; 1 << 16]).await {
                    Ok(n) => count.fetch_add(n, Ordering::SeqCst),
                    Err(error) => return error,
                };
            }
        });
        // The writer has filled what there is between the two when it sends no more.
        let mut seen = 0;
        loop {
            for _ in 0..1_000 {
                task::yield_now().await;
            }
            let now = sent.load(Ordering::SeqCst);
            if now > 0 && now == seen {
                break;
            }
            seen = now;
        }
        reset(client);
        let mut kinds = vec![writing.await.unwrap().kind()];
        // Whichever of the two was first took the error of the socket.
        match reading.await.unwrap() {
            Ok(n) => assert_eq!(n, 0),
            Err(error) => kinds.push(error.kind()),
        }
        assert!(kinds.contains(&ErrorKind::ConnectionReset), "{kinds:?}");
        let known = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(kinds.iter().all(|kind| known.contains(kind)), "{kinds:?}");
    });
}

/// A connection that was reset in the queue of the listener does not harm the next one.
#[test]
fn a_reset_before_the_accept_is_a_stream_that_fails() {
    run(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        reset(TcpStream::connect(addr).await.unwrap());
        let mut good = TcpStream::connect(addr).await.unwrap();
        write_all(&mut good, b"hello").await.unwrap();
        let mut failed = 0;
        loop {
            // Linux hands the connection out; other systems leave it out or say so.
            let Ok((mut stream, peer)) = listener.accept().await else {
                continue;
            };
            let mut buf = [0; 5];
            match read_exact(&mut stream, &mut buf).await {
                Ok(()) => {
                    assert_eq!((&buf, peer), (b"hello", good.local_addr().unwrap()));
                    break;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
            failed += 1;
            assert!(failed < 2);
        }
    });
}

// ----- Half-closed streams -----

#[test]
fn a_half_closed_stream_goes_on_in_the_other_direction() {
    run(|| async {
        let (client, mut server) = pair().await;
        let (mut reader, mut writer) = client.into_split();
        let answer = pattern(1 << 20);
        let expected = answer.clone();
        let serving = task::spawn(async move {
            let question = read_to_end(&mut server).await.unwrap();
            assert_eq!(question, b"question");
            // The end stays the end while the other direction is in use.
            for chunk in answer.chunks(1 << 16) {
                write_all(&mut server, chunk).await.unwrap();
                assert_eq!(read(&mut server, &mut [0; 8]).await.unwrap(), 0);
            }
            let ready = server.ready(Interest::READABLE).await.unwrap();
            assert!(ready.is_read_closed() && !ready.is_write_closed());
        });
        write_all(&mut writer, b"question").await.unwrap();
        shutdown(&mut writer).await.unwrap();
        let error = write(&mut writer, b"more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(read_to_end(&mut reader).await.unwrap(), expected);
        serving.await.unwrap();
    });
}

/// The reader of a stream that has ended is told so at each call, and the loop around it lets others run.
#[test]
fn a_loop_at_the_end_of_a_stream_does_not_starve_others() {
    let _watchdog = Watchdog::new();
    rt::current_thread().block_on(async {
        let (mut client, mut server) = pair().await;
        shutdown(&mut client).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let spinning = task::spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                assert_eq!(read(&mut server, &mut [0; 8]).await.unwrap(), 0);
            }
        });
        task::yield_now().await;
        task::spawn(async move { stop.store(true, Ordering::SeqCst) })
            .await
            .unwrap();
        spinning.await.unwrap();
    });
}

// ----- Slow readers -----

/// The writer waits for the reader and holds no more than the kernel's buffers; all arrives.
#[test]
fn a_slow_reader_slows_the_writer_down_and_loses_nothing() {
    const TOTAL: usize = 8 << 20;
    run(|| async {
        let (mut client, mut server) = pair().await;
        let writing = task::spawn(async move {
            for start in (0..TOTAL).step_by(1 << 16) {
                let chunk: Vec<u8> = (start..start + (1 << 16)).map(|i| i as u8).collect();
                write_all(&mut client, &chunk).await.unwrap();
            }
        });
        let mut received = 0;
        let mut buf = [0; 1000];
        while received < TOTAL {
            if received < 10_000 {
                for _ in 0..100 {
                    task::yield_now().await;
                }
                // Sockets of one host have a few megabytes of room at most.
                assert!(!writing.is_finished(), "the writer did not wait");
            }
            let len = 1 + received % buf.len();
            let n = read(&mut server, &mut buf[..len]).await.unwrap();
            assert!(n > 0);
            for (i, byte) in buf[..n].iter().enumerate() {
                assert_eq!(*byte, (received + i) as u8);
            }
            received += n;
        }
        writing.await.unwrap();
        assert_eq!(read(&mut server, &mut buf).await.unwrap(), 0);
    });
}

/// A wait for space costs no polls while there is none.
#[test]
fn a_full_send_buffer_makes_no_wakes() {
    run_current_thread(|| async {
        let (client, mut server) = UnixStream::pair().unwrap();
        let sent = {
            let mut sent = 0;
            while let Ok(n) = client.try_write(&[7; 4096]) {
                sent += n;
            }
            sent
        };
        let (wakes, waker) = Wakes::new();
        assert!(
            client
                .poll_write_ready(&mut Context::from_waker(&waker))
                .is_pending()
        );
        for _ in 0..1_000 {
            yield_now().await;
        }
        assert_eq!(wakes.count(), 0);
        read_exact(&mut server, &mut vec![0; sent]).await.unwrap();
        while wakes.count() == 0 {
            yield_now().await;
        }
        assert_eq!(wakes.count(), 1);
        client.try_write(b"more").unwrap();
    });
}

// ----- Datagrams -----

/// An empty datagram is neither the end nor "nothing there", whichever function receives it.
#[test]
fn empty_datagrams_between_others_keep_their_place() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let c = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let d = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        c.connect(d.local_addr().unwrap()).await.unwrap();
        let mut buf = [9; 8];
        for datagram in [b"".as_slice(), b"x", b"", b"", b"yz"] {
            a.send(datagram).await.unwrap();
            c.send(datagram).await.unwrap();
            let n = b.recv(&mut buf).await.unwrap();
            assert_eq!(&buf[..n], datagram);
            let (n, from) = d.recv_from(&mut buf).await.unwrap();
            assert_eq!((&buf[..n], from), (datagram, c.local_addr().unwrap()));
        }
        assert_would_block(b.try_recv(&mut buf));
    });
}

/// What does not fit into the buffer is gone, and the next datagram begins where it begins.
#[test]
fn a_truncated_datagram_does_not_run_into_the_next() {
    run(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for datagram in [b"0123456789".as_slice(), b"abc", b"", b"ABCDEFGH"] {
            a.send(datagram).await.unwrap();
        }
        let mut buf = [0; 4];
        for expected in [b"0123".as_slice(), b"abc", b"", b"ABCD"] {
            let n = b.recv(&mut buf).await.unwrap();
            assert_eq!(&buf[..n], expected);
        }
        // No buffer at all takes a datagram off the queue, too.
        a.send(b"lost").await.unwrap();
        a.send(b"kept").await.unwrap();
        assert_eq!(b.recv(&mut []).await.unwrap(), 0);
        assert_eq!(b.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf, b"kept");
    });
}

// ----- EINTR -----

/// Signals that interrupt the system calls of every thread, the waits of netpoll among them, are
/// nobody's error and cost no data.
#[test]
fn signals_do_not_interrupt_anybody() {
    extern "C" fn ignore(_: libc::c_int) {}
    // Without SA_RESTART.
    // SAFETY: all zeros are a `sigaction` with the default handler and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ignore as *const () as usize;
    // SAFETY: the handler does nothing, and nothing else in this process uses the signal.
    let installed = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
    assert_eq!(installed, 0);

    let done = Arc::new(AtomicBool::new(false));
    let storm = {
        let done = done.clone();
        thread::spawn(move || {
            let pid = std::process::id();
            let myself = rustix::thread::gettid().as_raw_nonzero().get();
            while !done.load(Ordering::SeqCst) {
                for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
                    let tid: i32 = thread.file_name().to_str().unwrap().parse().unwrap();
                    if tid == myself {
                        continue;
                    }
                    // SAFETY: sends a signal that has a handler; a thread that is gone is an error.
                    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGUSR1) };
                }
                thread::sleep(Duration::from_micros(200));
            }
        })
    };
    run(|| async {
        let echoes = (0..4).map(|_| async {
            let (mut client, mut server) = pair().await;
            let echo = task::spawn(async move {
                let mut buf = [0; 512];
                while let n @ 1.. = read(&mut server, &mut buf).await.unwrap() {
                    write_all(&mut server, &buf[..n]).await.unwrap();
                }
            });
            let data = pattern(512);
            for _ in 0..200 {
                write_all(&mut client, &data).await.unwrap();
                let mut back = [0; 512];
                read_exact(&mut client, &mut back).await.unwrap();
                assert_eq!(back[..], data);
            }
            drop(client);
            echo.await.unwrap();
        });
        futures::future::join_all(echoes).await;
    });
    done.store(true, Ordering::SeqCst);
    storm.join().unwrap();
}

/// A reader that is dropped in the middle of a wait is not called back.
#[test]
fn a_stream_dropped_while_its_peer_writes_is_forgotten() {
    run_unconstrained(|| async {
        let (wakes, waker) = Wakes::new();
        let (a, mut b) = UnixStream::pair().unwrap();
        let mut bytes = [0; 8];
        let mut buf = ReadBuf::new(&mut bytes);
        let mut a = Box::pin(a);
        let mut cx = Context::from_waker(&waker);
        assert!(a.as_mut().poll_read(&mut cx, &mut buf).is_pending());
        drop(a);
        let error = write(&mut b, b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        yield_now().await;
        assert_eq!(wakes.count(), 0);
        drop(waker);
        assert_eq!(Arc::strong_count(&wakes), 1, "the waker is let go");
    });
}
