//! Pipes: anonymous ones and FIFO files.
#![cfg(not(gmp_loom))]

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::Context;

use futures::future::join;
use gmp_io::{AsyncRead, AsyncWrite, ReadBuf};
use gmp_net::Interest;
use gmp_net::unix::pipe;
use rustix::fs::{Mode, OFlags};
use support::*;

mod support;

fn fifo(dir: &Dir) -> PathBuf {
    let path = dir.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RWXU).unwrap();
    path
}

fn open(path: &Path, read: bool, write: bool) -> File {
    fs::OpenOptions::new()
        .read(read)
        .write(write)
        .open(path)
        .unwrap()
}

fn is_nonblocking(fd: impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(fd).unwrap();
    flags.contains(OFlags::NONBLOCK)
}

/// Writes until nothing more fits; returns how much that was.
fn fill(tx: &pipe::Sender) -> usize {
    let chunk = [7; 4096];
    let mut n = 0;
    loop {
        match tx.try_write(&chunk) {
            Ok(more) => n += more,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                return n;
            }
        }
    }
}

#[test]
fn an_anonymous_pipe_carries_more_than_it_holds() {
    run(|| async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        let data = pattern(1_000_000);
        let send = async {
            write_all(&mut tx, &data).await.unwrap();
            shutdown(&mut tx).await.unwrap();
            drop(tx);
        };
        let (received, ()) = join(read_to_end(&mut rx), send).await;
        assert_eq!(received.unwrap(), data);
    });
}

#[test]
fn ends_in_tasks_of_their_own() {
    run(|| async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        let reader = gmp_executor::task::spawn(async move {
            let mut buf = [0; 4];
            for i in 0..500u32 {
                read_exact(&mut rx, &mut buf).await.unwrap();
                assert_eq!(u32::from_be_bytes(buf), i);
            }
        });
        for i in 0..500u32 {
            write_all(&mut tx, &i.to_be_bytes()).await.unwrap();
        }
        reader.await.unwrap();
    });
}

#[test]
fn shutting_a_sender_down_does_nothing() {
    run(|| async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        shutdown(&mut tx).await.unwrap();
        write_all(&mut tx, b"still open").await.unwrap();
        let mut buf = [0; 16];
        assert_eq!(read(&mut rx, &mut buf).await.unwrap(), 10);
    });
}

#[test]
fn a_fifo_receiver_may_come_first() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let mut rx = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        // Nobody has opened the file for writing yet: there is nothing to read, nor an end.
        assert!(
            poll_once(&mut pin!(read(&mut rx, &mut [0; 4])))
                .await
                .is_pending()
        );
        let mut tx = pipe::OpenOptions::new().open_sender(&path).unwrap();
        write_all(&mut tx, b"hello").await.unwrap();
        let mut buf = [0; 8];
        assert_eq!(read(&mut rx, &mut buf).await.unwrap(), 5);
        drop(tx);
        assert_eq!(read(&mut rx, &mut buf).await.unwrap(), 0);
    });
}

#[test]
fn a_fifo_sender_needs_a_receiver() {
    run(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let error = pipe::OpenOptions::new().open_sender(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
        // One that is opened for both directions does not.
        let mut tx = pipe::OpenOptions::new()
            .read_write(true)
            .open_sender(&path)
            .unwrap();
        write_all(&mut tx, b"early").await.unwrap();
        let mut rx = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        let mut buf = [0; 8];
        assert_eq!(read(&mut rx, &mut buf).await.unwrap(), 5);
    });
}

#[test]
fn a_fifo_gets_new_senders_after_its_end() {
    run(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let mut rx = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        for i in 0..20u8 {
            let mut tx = pipe::OpenOptions::new().open_sender(&path).unwrap();
            write_all(&mut tx, &[i; 3]).await.unwrap();
            drop(tx);
            assert_eq!(read_to_end(&mut rx).await.unwrap(), [i; 3]);
        }
    });
}

/// A receiver that is a sender too does not come to the end.
#[test]
fn a_receiver_for_both_directions_survives_its_senders() {
    run_unconstrained(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let mut rx = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&path)
            .unwrap();
        for i in 0..20u8 {
            let mut tx = pipe::OpenOptions::new().open_sender(&path).unwrap();
            write_all(&mut tx, &[i; 3]).await.unwrap();
            drop(tx);
            let mut buf = [0; 3];
            read_exact(&mut rx, &mut buf).await.unwrap();
            assert_eq!(buf, [i; 3]);
            assert!(
                poll_once(&mut pin!(read(&mut rx, &mut buf)))
                    .await
                    .is_pending()
            );
        }
    });
}

#[test]
fn what_is_no_fifo_is_refused() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("file");
        fs::write(&path, b"a regular file").unwrap();
        let options = pipe::OpenOptions::new();
        for error in [
            options.open_sender(&path).map(drop).unwrap_err(),
            options.open_receiver(&path).map(drop).unwrap_err(),
            pipe::Sender::from_file(open(&path, false, true))
                .map(drop)
                .unwrap_err(),
            pipe::Receiver::from_file(open(&path, true, false))
                .map(drop)
                .unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), "not a pipe");
        }
        let error = options.open_receiver(dir.path("missing")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        // Unchecked, it is the registration that fails.
        let mut options = pipe::OpenOptions::new();
        let error = options.unchecked(true).open_receiver(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    });
}

#[test]
fn fifos_are_opened_unchecked_too() {
    run(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let mut options = pipe::OpenOptions::default();
        let options = options.unchecked(true).clone();
        let mut rx = options.open_receiver(&path).unwrap();
        let mut tx = options.open_sender(&path).unwrap();
        write_all(&mut tx, b"x").await.unwrap();
        assert_eq!(read(&mut rx, &mut [0; 4]).await.unwrap(), 1);
        assert!(format!("{options:?}").starts_with("OpenOptions"));
    });
}

#[test]
fn files_become_ends() {
    run(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let both = open(&path, true, true);
        let mut rx = pipe::Receiver::from_file(open(&path, true, false)).unwrap();
        let mut tx = pipe::Sender::from_file(open(&path, false, true)).unwrap();
        assert!(is_nonblocking(&rx) && is_nonblocking(&tx) && !is_nonblocking(&both));
        let mut both = pipe::Sender::from_file(both).unwrap();
        write_all(&mut tx, b"one ").await.unwrap();
        write_all(&mut both, b"two").await.unwrap();
        let mut buf = [0; 16];
        read_exact(&mut rx, &mut buf[..7]).await.unwrap();
        assert_eq!(&buf[..7], b"one two");
    });
}

#[test]
fn the_wrong_direction_is_refused() {
    run(|| async {
        let dir = Dir::new();
        let path = fifo(&dir);
        let _both = open(&path, true, true);
        let error = pipe::Sender::from_file(open(&path, true, false)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "not in O_WRONLY or O_RDWR access mode");
        let error = pipe::Receiver::from_file(open(&path, false, true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "not in O_RDONLY or O_RDWR access mode");
    });
}

#[test]
fn descriptors_become_ends() {
    run(|| async {
        let (std_rx, std_tx) = io::pipe().unwrap();
        let mut rx = pipe::Receiver::from_owned_fd(std_rx.into()).unwrap();
        let mut tx = pipe::Sender::from_owned_fd(std_tx.into()).unwrap();
        assert!(is_nonblocking(&rx) && is_nonblocking(&tx));
        write_all(&mut tx, b"fd").await.unwrap();
        assert_eq!(read(&mut rx, &mut [0; 4]).await.unwrap(), 2);

        let (std_rx, std_tx) = io::pipe().unwrap();
        assert!(pipe::Receiver::from_owned_fd(std_tx.into()).is_err());
        assert!(pipe::Sender::from_owned_fd(std_rx.into()).is_err());
        let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
        let error = pipe::Sender::from_owned_fd(OwnedFd::from(socket)).unwrap_err();
        assert_eq!(error.to_string(), "not a pipe");
    });
}

#[test]
fn ends_become_descriptors() {
    run(|| async {
        let (tx, rx) = pipe::pipe().unwrap();
        let (tx_fd, rx_fd) = (tx.as_raw_fd(), rx.as_raw_fd());
        assert_eq!(
            (tx.as_fd().as_raw_fd(), rx.as_fd().as_raw_fd()),
            (tx_fd, rx_fd)
        );
        let tx = tx.into_nonblocking_fd().unwrap();
        let rx = rx.into_nonblocking_fd().unwrap();
        assert_eq!((tx.as_raw_fd(), rx.as_raw_fd()), (tx_fd, rx_fd));
        assert!(is_nonblocking(&tx) && is_nonblocking(&rx));

        // They may be registered again.
        let mut tx = pipe::Sender::from_owned_fd_unchecked(tx).unwrap();
        let mut rx = pipe::Receiver::from_owned_fd_unchecked(rx).unwrap();
        write_all(&mut tx, b"again").await.unwrap();
        assert_eq!(read(&mut rx, &mut [0; 8]).await.unwrap(), 5);

        let tx = tx.into_blocking_fd().unwrap();
        let rx = rx.into_blocking_fd().unwrap();
        assert!(!is_nonblocking(&tx) && !is_nonblocking(&rx));
        File::from(tx).write_all(b"blocking").unwrap();
        let mut text = String::new();
        File::from(rx).read_to_string(&mut text).unwrap();
        assert_eq!(text, "blocking");
    });
}

#[test]
fn an_end_is_given_to_a_process() {
    run(|| async {
        let (tx, mut rx) = pipe::pipe().unwrap();
        let mut child = std::process::Command::new("echo")
            .arg("from the child")
            .stdout(tx.into_blocking_fd().unwrap())
            .spawn()
            .unwrap();
        let text = read_to_end(&mut rx).await.unwrap();
        assert_eq!(text, b"from the child\n");
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn try_functions_never_wait() {
    run(|| async {
        let (tx, rx) = pipe::pipe().unwrap();
        let mut buf = [0; 16];
        assert_would_block(rx.try_read(&mut buf));
        assert_would_block(rx.try_read_buf(&mut Vec::new()));
        assert_would_block(rx.try_read_vectored(&mut [IoSliceMut::new(&mut buf)]));

        tx.writable().await.unwrap();
        assert_eq!(tx.try_write(b"abc").unwrap(), 3);
        let parts = [IoSlice::new(b"de"), IoSlice::new(b"fgh")];
        assert_eq!(tx.try_write_vectored(&parts).unwrap(), 5);
        rx.readable().await.unwrap();
        let (mut one, mut two) = ([0; 2], [0; 4]);
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(rx.try_read_vectored(&mut parts).unwrap(), 6);
        assert_eq!((&one, &two), (b"ab", b"cdef"));
        let mut vec = Vec::from(&b"+"[..]);
        vec.reserve(16);
        assert_eq!(rx.try_read_buf(&mut vec).unwrap(), 2);
        assert_eq!(vec, b"+gh");
        assert_would_block(rx.try_read(&mut buf));

        let written = fill(&tx);
        assert!(written > 0);
        assert_would_block(tx.try_write_vectored(&[IoSlice::new(b"x")]));
        rx.readable().await.unwrap();
        let mut all = vec![0; written];
        let mut n = 0;
        while n < written {
            n += insist(|| rx.try_read(&mut all[n..])).await.unwrap();
        }
        drop(tx);
        rx.readable().await.unwrap();
        assert_eq!(rx.try_read(&mut buf).unwrap(), 0);
    });
}

#[test]
fn readers_and_writers_are_woken() {
    run_unconstrained(|| async {
        let (tx, rx) = pipe::pipe().unwrap();
        let (read_wakes, read_waker) = Wakes::new();
        let mut read_cx = Context::from_waker(&read_waker);
        assert!(rx.poll_read_ready(&mut read_cx).is_pending());
        poll_fn(|cx| tx.poll_write_ready(cx)).await.unwrap();
        let written = fill(&tx);
        let (write_wakes, write_waker) = Wakes::new();
        let mut write_cx = Context::from_waker(&write_waker);
        assert!(tx.poll_write_ready(&mut write_cx).is_pending());
        while read_wakes.count() == 0 {
            yield_now().await;
        }
        assert!(rx.poll_read_ready(&mut read_cx).is_ready());
        let mut left = written;
        while left > 0 {
            left -= insist(|| rx.try_read(&mut [0; 4096])).await.unwrap();
        }
        while write_wakes.count() == 0 {
            yield_now().await;
        }
        assert!(tx.poll_write_ready(&mut write_cx).is_ready());
        assert!(tx.ready(Interest::WRITABLE).await.unwrap().is_writable());
    });
}

/// A34: edges that tell of nothing but an error wake, too.
#[test]
fn a_waiting_writer_sees_the_reader_go() {
    run(|| async {
        let (mut tx, rx) = pipe::pipe().unwrap();
        tx.writable().await.unwrap();
        fill(&tx);
        let go = async {
            yield_now().await;
            drop(rx);
        };
        let (error, ()) = join(write_all(&mut tx, &[0; 4096]), go).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(
            tx.ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_write_closed()
        );
        let error = tx.try_write(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_waiting_reader_sees_the_writer_go() {
    run(|| async {
        let (tx, mut rx) = pipe::pipe().unwrap();
        let go = async {
            yield_now().await;
            drop(tx);
        };
        let mut buf = [0; 4];
        let (n, ()) = join(read(&mut rx, &mut buf), go).await;
        assert_eq!(n.unwrap(), 0);
        assert!(rx.ready(Interest::READABLE).await.unwrap().is_read_closed());
    });
}

#[test]
fn vectored_writes_and_uninitialised_reads() {
    run(|| async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        assert!(tx.is_write_vectored());
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(write_vectored(&mut tx, &parts).await.unwrap(), 7);
        let mut space = [MaybeUninit::uninit(); 16];
        let mut buf = ReadBuf::uninit(&mut space);
        buf.put_slice(b"> ");
        poll_fn(|cx| Pin::new(&mut rx).poll_read(cx, &mut buf))
            .await
            .unwrap();
        assert_eq!(buf.filled(), b"> one two");
    });
}

#[test]
fn a_cancelled_read_loses_nothing() {
    run_unconstrained(|| async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        for i in 0..50u8 {
            let mut buf = [0; 8];
            {
                let mut reading = pin!(read(&mut rx, &mut buf));
                assert!(poll_once(&mut reading).await.is_pending());
                write_all(&mut tx, &[i, i]).await.unwrap();
            }
            assert_eq!(read(&mut rx, &mut buf).await.unwrap(), 2);
            assert_eq!(buf[..2], [i, i]);
        }
    });
}

#[test]
fn operations_of_ones_own() {
    run(|| async {
        let (tx, rx) = pipe::pipe().unwrap();
        tx.writable().await.unwrap();
        let raw_write = || Ok(rustix::io::write(tx.as_fd(), b"raw")?);
        assert_eq!(tx.try_io(raw_write).unwrap(), 3);
        rx.readable().await.unwrap();
        let mut buf = [0; 8];
        let mut raw_read = || Ok(rustix::io::read(rx.as_fd(), &mut buf)?);
        assert_eq!(rx.try_io(&mut raw_read).unwrap(), 3);
        assert_would_block(rx.try_io(&mut raw_read));
        // It is known now that there is nothing, so nothing is called.
        assert_would_block(rx.try_io(|| -> io::Result<()> { unreachable!() }));
        fill(&tx);
        assert_would_block(tx.try_io(|| -> io::Result<()> { unreachable!() }));
    });
}

#[test]
fn debug_shows_the_end() {
    run(|| async {
        let (tx, rx) = pipe::pipe().unwrap();
        assert!(format!("{tx:?}").starts_with("Sender"));
        assert!(format!("{rx:?}").starts_with("Receiver"));
    });
}
