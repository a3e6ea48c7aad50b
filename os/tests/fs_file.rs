//! `File`: its buffering rules, cancellation, errors that come late, and shutdown.

mod common;

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use common::{TempDir, poll_once, run, watched};
use gmp_io::{AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWriteExt};
use gmp_os::fs::{File, FileTimes, OpenOptions};

const HELLO: &[u8] = b"hello world...";

async fn open(path: &Path) -> File {
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .await
        .unwrap()
}

/// Where the kernel's cursor is, which may be ahead of the file's.
fn kernel_cursor(file: &File) -> u64 {
    let fd = file.as_fd().try_clone_to_owned().unwrap();
    std::fs::File::from(fd).stream_position().unwrap()
}

/// Begins a read of `len` bytes, drops it, and waits until its bytes have been read.
async fn cancel_read(file: &mut File, len: usize) {
    let before = kernel_cursor(file);
    let mut dst = vec![0; len];
    // The job may be quicker than the poll that started it: then that read was no use.
    while poll_once(&mut Box::pin(file.read(&mut dst))).is_ready() {
        file.seek(SeekFrom::Start(before)).await.unwrap();
    }
    common::until(|| kernel_cursor(file) != before).await;
}

#[test]
fn reads_what_was_written() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let mut file = File::create(&path).await.unwrap();
        file.write_all(HELLO).await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), HELLO);

        let mut buf = [0; 1024];
        let mut file = File::open(&path).await.unwrap();
        assert_eq!(file.read(&mut buf).await.unwrap(), HELLO.len());
        assert_eq!(&buf[..HELLO.len()], HELLO);
        assert_eq!(file.read(&mut buf).await.unwrap(), 0);
        assert_eq!(file.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn shutdown_flushes() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let mut file = File::create(&path).await.unwrap();
        file.write_all(HELLO).await.unwrap();
        file.shutdown().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), HELLO);
    });
}

#[test]
fn vectored_write_is_one_write() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let mut file = File::create(&path).await.unwrap();
        let slices = [IoSlice::new(HELLO), IoSlice::new(b""), IoSlice::new(HELLO)];
        let n = file.write_vectored(&slices).await.unwrap();
        assert_eq!(n, 2 * HELLO.len());
        file.set_max_buf_size(4);
        assert_eq!(file.write_vectored(&slices).await.unwrap(), 4);
        file.flush().await.unwrap();
        let expected = [HELLO, HELLO, &HELLO[..4]].concat();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    });
}

#[test]
fn an_empty_read_is_ready_and_not_the_end() {
    run(async || {
        let dir = TempDir::new();
        let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
        let mut read = Box::pin(file.read(&mut []));
        assert!(matches!(poll_once(&mut read), Poll::Ready(Ok(0))));
        drop(read);
        let mut buf = [0; 1024];
        assert_eq!(file.read(&mut buf).await.unwrap(), HELLO.len());
    });
}

#[test]
fn a_read_asks_for_no_more_than_there_is_room_for() {
    run(async || {
        let dir = TempDir::new();
        let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
        file.read_exact(&mut [0; 4]).await.unwrap();
        assert_eq!(kernel_cursor(&file), 4);
    });
}

#[test]
fn a_cancelled_read_loses_no_byte() {
    run(async || {
        let dir = TempDir::new();
        let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
        cancel_read(&mut file, 10).await;
        let mut small = [0; 4];
        assert_eq!(file.read(&mut small).await.unwrap(), 4);
        assert_eq!(&small, b"hell");
        // More room than was read ahead: what is there comes first.
        let mut large = [0; 100];
        assert_eq!(file.read(&mut large).await.unwrap(), 6);
        assert_eq!(&large[..6], b"o worl");
        assert_eq!(file.read(&mut large).await.unwrap(), 4);
        assert_eq!(&large[..4], b"d...");
    });
}

#[test]
fn a_write_goes_where_the_reader_is_and_not_where_the_kernel_is() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = open(&path).await;
        cancel_read(&mut file, 14).await;
        file.read_exact(&mut [0; 6]).await.unwrap();
        assert_eq!(kernel_cursor(&file), 14);
        file.write_all(b"earth").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello earth...");
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"...");
    });
}

#[test]
fn a_write_after_a_read_that_nobody_collected() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = open(&path).await;
        cancel_read(&mut file, 14).await;
        file.write_all(b"HELLO").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"HELLO world...");
    });
}

#[test]
fn seeking_discards_what_was_read_ahead() {
    run(async || {
        let dir = TempDir::new();
        for (seek, expected) in [
            (SeekFrom::Start(1), 1),
            (SeekFrom::Current(0), 6),
            (SeekFrom::Current(-2), 4),
            (SeekFrom::Current(3), 9),
            (SeekFrom::End(-3), 11),
        ] {
            let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
            cancel_read(&mut file, 14).await;
            file.read_exact(&mut [0; 6]).await.unwrap();
            assert_eq!(file.seek(seek).await.unwrap(), expected, "{seek:?}");
            let mut rest = Vec::new();
            file.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, &HELLO[expected as usize..]);
        }
    });
}

#[test]
fn a_relative_seek_that_overflows_still_steps_back() {
    run(async || {
        let dir = TempDir::new();
        let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
        cancel_read(&mut file, 14).await;
        file.read_exact(&mut [0; 6]).await.unwrap();
        let error = file.seek(SeekFrom::Current(i64::MIN)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(file.stream_position().await.unwrap(), 6);
    });
}

#[test]
fn seek_positions() {
    run(async || {
        let dir = TempDir::new();
        let mut file = open(&dir.file("file", HELLO)).await;
        assert_eq!(file.seek(SeekFrom::Current(10)).await.unwrap(), 10);
        file.rewind().await.unwrap();
        assert_eq!(file.stream_position().await.unwrap(), 0);
        file.write_all(b"HELLO").await.unwrap();
        // A seek waits for the write under way.
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 5);
        assert!(file.seek(SeekFrom::Current(-6)).await.is_err());
        // Without a seek under way, where the last one arrived.
        let pos = poll_fn(|cx| Pin::new(&mut file).poll_complete(cx)).await;
        assert_eq!(pos.unwrap(), 5);
    });
}

#[test]
fn start_seek_while_busy_is_an_error() {
    run(async || {
        let dir = TempDir::new();
        let mut file = open(&dir.file("file", HELLO)).await;
        file.write_all(b"x").await.unwrap();
        let error = Pin::new(&mut file)
            .start_seek(SeekFrom::Start(0))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Other);
        file.flush().await.unwrap();
        Pin::new(&mut file).start_seek(SeekFrom::Start(7)).unwrap();
        let pos = poll_fn(|cx| Pin::new(&mut file).poll_complete(cx)).await;
        assert_eq!(pos.unwrap(), 7);
    });
}

#[test]
fn buffer_size_bounds_each_operation() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = open(&path).await;
        assert_eq!(file.max_buf_size(), 2 * 1024 * 1024);
        file.set_max_buf_size(3);
        assert_eq!(file.max_buf_size(), 3);
        assert_eq!(file.read(&mut [0; 100]).await.unwrap(), 3);
        assert_eq!(file.write(b"12345").await.unwrap(), 3);
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hel123world...");
        assert_eq!(file.try_clone().await.unwrap().max_buf_size(), 3);
    });
}

#[test]
fn buffer_size_of_zero_panics() {
    run(async || {
        let dir = TempDir::new();
        let mut file = File::open(dir.file("file", HELLO)).await.unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| file.set_max_buf_size(0))).unwrap_err();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert_eq!(*message, "`max_buf_size` must be greater than 0");
    });
}

#[test]
fn large_transfers_go_in_pieces_of_two_mebibytes() {
    const MAX: usize = 2 * 1024 * 1024;
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let bytes: Vec<u8> = (0..5 * MAX / 2).map(|i| (i % 251) as u8).collect();
        let mut file = File::create(&path).await.unwrap();
        assert_eq!(file.write(&bytes).await.unwrap(), MAX);
        file.write_all(&bytes[MAX..]).await.unwrap();
        file.flush().await.unwrap();

        let mut file = File::open(&path).await.unwrap();
        let mut read = vec![0; bytes.len()];
        assert_eq!(file.read(&mut read).await.unwrap(), MAX);
        file.read_exact(&mut read[MAX..]).await.unwrap();
        assert!(read == bytes);
    });
}

#[test]
fn the_failure_of_a_write_comes_with_the_next_write_or_flush() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let bad = |error: io::Error| assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        let read_only = async || File::open(&path).await.unwrap();

        let mut file = read_only().await;
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        bad(file.flush().await.unwrap_err());
        file.flush().await.unwrap();

        let mut file = read_only().await;
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        bad(file.write(b"y").await.unwrap_err());
        // The second write never began.
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), HELLO);
    });
}

#[test]
fn the_failure_of_a_write_outlives_a_read_and_a_seek() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let read_only = async || File::open(&path).await.unwrap();
        let kind = io::Error::from_raw_os_error(libc::EBADF).kind();

        let mut file = read_only().await;
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        assert_eq!(file.read(&mut [0; 5]).await.unwrap(), 5);
        assert_eq!(file.flush().await.unwrap_err().kind(), kind);
        file.flush().await.unwrap();

        let mut file = read_only().await;
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        assert_eq!(file.seek(SeekFrom::Start(3)).await.unwrap(), 3);
        assert_eq!(file.write(b"y").await.unwrap_err().kind(), kind);

        let mut file = read_only().await;
        assert_eq!(file.write(b"x").await.unwrap(), 1);
        file.sync_all().await.unwrap();
        file.sync_data().await.unwrap();
        file.metadata().await.unwrap();
        assert_eq!(file.flush().await.unwrap_err().kind(), kind);
    });
}

#[test]
fn a_failed_read_leaves_the_file_usable() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = OpenOptions::new().write(true).open(&path).await.unwrap();
        let error = file.read(&mut [0; 5]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        file.write_all(b"HELLO").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"HELLO world...");

        let mut directory = File::open(dir.path()).await.unwrap();
        let error = directory.read(&mut [0; 5]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    });
}

#[test]
fn a_full_disk_is_reported_by_flush() {
    run(async || {
        let mut full = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .await
            .unwrap();
        assert_eq!(full.write(HELLO).await.unwrap(), HELLO.len());
        let error = full.flush().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    });
}

#[test]
fn set_len_cuts_and_extends() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = open(&path).await;
        cancel_read(&mut file, 14).await;
        file.read_exact(&mut [0; 3]).await.unwrap();
        file.set_len(5).await.unwrap();
        // What was read ahead of the cut is not handed out.
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"lo");
        file.set_len(7).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello\0\0");

        let read_only = File::open(&path).await.unwrap();
        let error = read_only.set_len(0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn sync_waits_for_the_write_under_way() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let mut file = File::create(&path).await.unwrap();
        for i in 1..=20 {
            file.write_all(HELLO).await.unwrap();
            if i % 2 == 0 {
                file.sync_all().await.unwrap();
            } else {
                file.sync_data().await.unwrap();
            }
            assert_eq!(
                std::fs::metadata(&path).unwrap().len() as usize,
                i * HELLO.len()
            );
        }
    });
}

#[test]
fn a_clone_shares_the_cursor() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let mut file = open(&path).await;
        file.write_all(b"HE").await.unwrap();
        let mut clone = file.try_clone().await.unwrap();
        clone.write_all(b"LLO").await.unwrap();
        clone.flush().await.unwrap();
        let mut rest = String::new();
        file.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, " world...");
        assert_eq!(std::fs::read(&path).unwrap(), b"HELLO world...");
    });
}

#[test]
fn back_into_std() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let mut file = File::create(&path).await.unwrap();
        file.write_all(HELLO).await.unwrap();
        let mut std = file.into_std().await;
        std.write_all(b"!").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello world...!");

        let file = File::from(std);
        let std = file.try_into_std().unwrap();
        let mut file = File::from_std(std);
        file.write_all(b"?").await.unwrap();
        // The write may still be under way; then the file comes back.
        if let Err(mut file) = file.try_into_std() {
            file.flush().await.unwrap();
            file.try_into_std().unwrap();
        }
        common::until(|| std::fs::read(&path).unwrap() == b"hello world...!?").await;
    });
}

#[test]
fn try_into_std_fails_while_an_operation_is_under_way() {
    run(async || {
        // A pipe nobody writes to yet: the read is under way for certain.
        let (reader, mut writer) = io::pipe().unwrap();
        let mut file = File::from(OwnedFd::from(reader));
        let mut dst = [0; 8];
        assert!(poll_once(&mut Box::pin(file.read(&mut dst))).is_pending());
        let mut file = file.try_into_std().unwrap_err();
        writer.write_all(b"late").unwrap();
        let mut dst = [0; 8];
        assert_eq!(file.read(&mut dst).await.unwrap(), 4);
        file.try_into_std().unwrap();
    });
}

#[test]
fn into_std_after_a_cancelled_query() {
    run(async || {
        let dir = TempDir::new();
        for _ in 0..100 {
            let file = File::open(dir.file("file", HELLO)).await.unwrap();
            let _ = poll_once(&mut Box::pin(file.metadata()));
            let mut contents = Vec::new();
            file.into_std().await.read_to_end(&mut contents).unwrap();
            assert_eq!(contents, HELLO);
        }
    });
}

#[test]
fn metadata_permissions_and_times() {
    run(async || {
        let dir = TempDir::new();
        let file = open(&dir.file("file", HELLO)).await;
        assert_eq!(file.metadata().await.unwrap().len(), 14);

        let mut permissions = file.metadata().await.unwrap().permissions();
        permissions.set_mode(0o640);
        file.set_permissions(permissions).await.unwrap();
        let mode = file.metadata().await.unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);

        let (accessed, modified) = (at(1_600_000_000), at(1_500_000_000));
        let times = FileTimes::new()
            .set_accessed(accessed)
            .set_modified(modified);
        file.set_times(times).await.unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_eq!(metadata.accessed().unwrap(), accessed);
        assert_eq!(metadata.modified().unwrap(), modified);

        file.set_modified(at(1_400_000_000)).await.unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_eq!(metadata.accessed().unwrap(), accessed);
        assert_eq!(metadata.modified().unwrap(), at(1_400_000_000));
    });

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }
}

#[test]
fn times_are_not_overwritten_by_the_write_under_way() {
    run(async || {
        let dir = TempDir::new();
        let mut file = open(&dir.file("file", HELLO)).await;
        let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for _ in 0..50 {
            file.write_all(b"x").await.unwrap();
            file.set_modified(past).await.unwrap();
            assert_eq!(file.metadata().await.unwrap().modified().unwrap(), past);
        }
    });
}

#[test]
fn descriptors() {
    run(async || {
        let dir = TempDir::new();
        let file = File::open(dir.file("file", HELLO)).await.unwrap();
        assert!(file.as_raw_fd() > 2);
        assert_eq!(file.as_fd().as_raw_fd(), file.as_raw_fd());
        // tokio's words.
        let debug = format!("{file:?}");
        assert!(debug.starts_with("tokio::fs::File { std: File { fd:"));

        let raw = file.into_std().await.into_raw_fd();
        // SAFETY: the descriptor is open, and was given up in the line above.
        let mut file = unsafe { File::from_raw_fd(raw) };
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).await.unwrap();
        assert_eq!(contents, HELLO);
    });
}

#[test]
fn create_new_refuses_what_is_there() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("new");
        let mut file = File::create_new(&path).await.unwrap();
        file.write_all(HELLO).await.unwrap();
        file.rewind().await.unwrap();
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).await.unwrap();
        assert_eq!(contents, HELLO);
        let error = File::create_new(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn ten_thousand_small_reads() {
    watched(|| {
        common::multi_thread().block_on(async {
            let dir = TempDir::new();
            let bytes: Vec<u8> = (0..10_000u32).map(|i| (i % 241) as u8).collect();
            let mut file = File::open(dir.file("file", &bytes)).await.unwrap();
            for expected in &bytes {
                assert_eq!(file.read_u8().await.unwrap(), *expected);
            }
            assert_eq!(
                file.read_u8().await.unwrap_err().kind(),
                ErrorKind::UnexpectedEof
            );
        });
    });
}

#[test]
fn many_files_at_once() {
    watched(|| {
        let rt = common::multi_thread();
        let dir = TempDir::new();
        rt.block_on(async {
            let tasks: Vec<_> = (0..100)
                .map(|i| {
                    let path = dir.join(&i.to_string());
                    rt.handle().spawn(async move {
                        let mut file = File::create_new(&path).await.unwrap();
                        for _ in 0..20 {
                            file.write_all(path.as_os_str().as_encoded_bytes())
                                .await
                                .unwrap();
                        }
                        file.rewind().await.unwrap();
                        let mut text = String::new();
                        file.read_to_string(&mut text).await.unwrap();
                        assert_eq!(text, path.to_str().unwrap().repeat(20));
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
}

#[test]
fn cancelled_operations_in_every_order_keep_the_file_right() {
    // Each read is polled once and dropped, so that the next operation meets it at any stage.
    run(async || {
        let dir = TempDir::new();
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i % 239) as u8).collect();
        let mut file = open(&dir.file("file", &bytes)).await;
        let mut expected = bytes;
        let mut at = 0;
        for step in 0..400 {
            let mut dst = vec![0; 1 + step % 17];
            if let Poll::Ready(read) = poll_once(&mut Box::pin(file.read(&mut dst))) {
                at += read.unwrap();
            }
            match step % 4 {
                0 => {
                    assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), at as u64);
                }
                1 => {
                    file.write_all(b"##").await.unwrap();
                    expected[at..at + 2].copy_from_slice(b"##");
                    at += 2;
                }
                2 => {
                    let mut byte = [0];
                    file.read_exact(&mut byte).await.unwrap();
                    assert_eq!(byte[0], expected[at]);
                    at += 1;
                }
                _ => file.flush().await.unwrap(),
            }
        }
        file.rewind().await.unwrap();
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).await.unwrap();
        assert!(contents == expected);
    });
}

#[test]
fn a_write_that_was_answered_survives_the_runtime() {
    watched(|| {
        let dir = TempDir::new();
        for round in 0..50 {
            let path = dir.join(&round.to_string());
            let rt = if round % 2 == 0 {
                common::multi_thread()
            } else {
                common::current_thread()
            };
            rt.block_on(async {
                let mut file = File::create(&path).await.unwrap();
                assert_eq!(file.write(HELLO).await.unwrap(), HELLO.len());
            });
            drop(rt);
            assert_eq!(std::fs::read(&path).unwrap(), HELLO);
        }
    });
}

#[test]
fn after_the_shutdown_there_are_errors_and_no_panics() {
    watched(|| {
        let dir = TempDir::new();
        let path = dir.file("file", HELLO);
        let rt = common::multi_thread();
        let handle = rt.handle().clone();
        rt.shutdown_timeout(Duration::ZERO);
        let _entered = handle.enter();

        let std = || {
            std::fs::File::options()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap()
        };
        let failed = |result: Poll<io::Result<()>>| match result {
            Poll::Ready(result) => assert_eq!(result.unwrap_err().kind(), ErrorKind::Other),
            Poll::Pending => panic!("it waits for a job that never runs"),
        };
        let mut file = File::from_std(std());
        for _ in 0..3 {
            failed(poll_once(&mut Box::pin(async {
                file.read(&mut [0; 8]).await.map(drop)
            })));
            failed(poll_once(&mut Box::pin(async {
                file.write(b"x").await.map(drop)
            })));
            failed(poll_once(&mut Box::pin(async { file.set_len(0).await })));
            failed(poll_once(&mut Box::pin(async {
                file.rewind().await.map(drop)
            })));
            failed(poll_once(&mut Box::pin(async {
                file.metadata().await.map(drop)
            })));
        }
        assert!(poll_once(&mut Box::pin(file.flush())).is_ready());
        assert_eq!(std::fs::read(&path).unwrap(), HELLO);
    });
}

#[test]
fn outside_a_runtime_it_panics() {
    let panic = catch_unwind(|| poll_once(&mut Box::pin(File::open("/dev/null")))).unwrap_err();
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap();
    assert!(message.contains("there is no reactor running"), "{message}");
}

#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin>() {}
    fn future<T: Send>(_: T) {}
    check::<File>();
    check::<OpenOptions>();
    check::<FileTimes>();
    future(File::open("x"));
    let _ = |file: &File| future(file.sync_all());
    let _ = |file: &File| future(file.set_len(0));
}
