//! Standard input, output and error, each in a process of its own.

mod common;

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use common::{TempDir, current_thread, multi_thread, poll_once, wait_until, watched};
use gmp_io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use gmp_os::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

const LARGE: usize = 5_000_000;

fn large() -> Vec<u8> {
    (0..LARGE).map(|i| (i % 249) as u8).collect()
}

fn finish(mut child: Child, input: impl AsRef<[u8]> + Send + 'static) -> Output {
    watched(move || {
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                stdin.write_all(input.as_ref()).unwrap();
            }
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    })
}

fn piped(role: &str) -> Child {
    common::helper(role)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn input_from_a_pipe() {
    let output = finish(piped("echo"), large());
    assert!(common::own_output(&output.stdout) == large());
}

/// A35: epoll refuses files, and standard input may be one.
#[test]
fn input_from_a_file() {
    // A regular file cannot be polled; it is read all the same.
    let dir = TempDir::new();
    let file = std::fs::File::open(dir.file("input", large())).unwrap();
    let child = common::helper("echo").stdin(file).spawn().unwrap();
    let output = finish(child, "");
    assert!(common::own_output(&output.stdout) == large());
}

#[test]
fn no_input() {
    let child = common::helper("echo").spawn().unwrap();
    assert_eq!(common::own_output(&finish(child, "").stdout), b"");
}

#[test]
fn lines_of_input() {
    let output = finish(piped("lines"), "one\ntwo\nthree");
    assert_eq!(common::own_output(&output.stdout), b"<one><two><three>");
}

#[test]
fn the_end_of_input_is_told_again_and_again() {
    let output = finish(piped("end"), "x");
    assert_eq!(common::own_output(&output.stdout), b"1 0 0 0");
}

#[test]
fn a_dropped_read_loses_nothing_of_its_handle() {
    let mut child = piped("cancel");
    let mut stdin = child.stdin.take().unwrap();
    let output = watched(move || {
        let mut stderr = child.stderr.take().unwrap();
        // It has dropped its first read.
        stderr.read_exact(&mut [0; 1]).unwrap();
        stdin.write_all(b"hello").unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    });
    assert_eq!(common::own_output(&output.stdout), b"hello");
}

#[test]
fn output_keeps_its_order_and_its_end() {
    let output = finish(piped("pieces"), "");
    let expected: String = (0..2000).map(|i| format!("{i},")).collect();
    assert_eq!(common::own_output(&output.stdout), expected.as_bytes());
    assert!(output.stderr.ends_with(expected.as_bytes()));
}

#[test]
fn output_that_was_answered_survives_the_runtime() {
    for role in ["unflushed", "unflushed-current"] {
        let output = finish(piped(role), "");
        assert_eq!(common::own_output(&output.stdout), b"the end\n");
    }
}

#[test]
fn a_reader_that_is_gone_is_an_error() {
    let mut child = piped("broken");
    watched(move || {
        let mut stdin = child.stdin.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        common::await_begin(&mut stdout);
        drop(stdout);
        stdin.write_all(b"x").unwrap();
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success(), "{text}");
        assert!(text.ends_with("BrokenPipe"), "{text}");
    });
}

/// A57: the exit waited for standard input.
#[test]
fn an_idle_reader_holds_a_dropped_runtime_but_not_the_other_ways_to_end_it() {
    for (role, waits) in [("drop", true), ("background", false), ("timeout", false)] {
        let mut child = piped(role);
        watched(move || {
            let stdin = child.stdin.take().unwrap();
            let mut stderr = child.stderr.take().unwrap();
            stderr.read_exact(&mut [0; 1]).unwrap();
            if waits {
                // As in tokio: until there is input, or its end.
                std::thread::sleep(Duration::from_millis(100));
                assert!(child.try_wait().unwrap().is_none());
                drop(stdin);
                assert!(child.wait().unwrap().success());
            } else {
                let mut ended = None;
                wait_until(|| {
                    ended = child.try_wait().unwrap();
                    ended.is_some()
                });
                assert!(ended.unwrap().success());
                drop(stdin);
            }
        });
    }
}

#[test]
fn descriptors_and_traits() {
    fn check<T: Send + Sync + Unpin>() {}
    fn unwind<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    check::<Stdin>();
    check::<Stdout>();
    check::<Stderr>();
    unwind::<Stdin>();
    unwind::<Stdout>();
    unwind::<Stderr>();
    // Made anywhere; only their use needs a runtime.
    assert_eq!((stdin().as_raw_fd(), stdin().as_fd().as_raw_fd()), (0, 0));
    assert_eq!((stdout().as_raw_fd(), stdout().as_fd().as_raw_fd()), (1, 1));
    assert_eq!((stderr().as_raw_fd(), stderr().as_fd().as_raw_fd()), (2, 2));
    assert!(format!("{:?}", stdin()).contains("Stdin"));
}

#[test]
fn outside_a_runtime_a_read_panics() {
    let panic = std::panic::catch_unwind(|| {
        let mut input = stdin();
        let mut bytes = [0; 8];
        let _ = poll_once(&mut Box::pin(input.read(&mut bytes)));
    });
    assert!(panic.is_err());
}

#[test]
fn after_the_shutdown_there_are_errors_and_no_panics() {
    watched(|| {
        let rt = multi_thread();
        let handle = rt.handle().clone();
        rt.shutdown_timeout(Duration::ZERO);
        let _entered = handle.enter();
        let (mut input, mut output) = (stdin(), stdout());
        for _ in 0..3 {
            let mut bytes = [0; 8];
            match poll_once(&mut Box::pin(input.read(&mut bytes))) {
                std::task::Poll::Ready(read) => drop(read.unwrap_err()),
                std::task::Poll::Pending => panic!("it waits for a job that never runs"),
            }
            match poll_once(&mut Box::pin(output.write(b"x"))) {
                std::task::Poll::Ready(written) => drop(written.unwrap_err()),
                std::task::Poll::Pending => panic!("it waits for a job that never runs"),
            }
        }
    });
}

#[test]
fn helper() {
    let Some(role) = common::role() else {
        return;
    };
    match role.as_str() {
        "echo" => multi_thread().block_on(echo()),
        "lines" => current_thread().block_on(lines()),
        "end" => multi_thread().block_on(end()),
        "cancel" => multi_thread().block_on(cancel()),
        "pieces" => multi_thread().block_on(pieces()),
        "unflushed" => unflushed(multi_thread()),
        "unflushed-current" => unflushed(current_thread()),
        "broken" => multi_thread().block_on(broken()),
        "drop" | "background" | "timeout" => idle_reader(&role),
        other => panic!("no helper is called {other}"),
    }
    std::process::exit(0);
}

async fn echo() {
    let (mut input, mut output) = (stdin(), stdout());
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).await.unwrap();
    output.write_all(&bytes).await.unwrap();
    output.flush().await.unwrap();
}

async fn lines() {
    let mut lines = BufReader::new(stdin()).lines();
    let mut output = stdout();
    while let Some(line) = lines.next_line().await.unwrap() {
        output
            .write_all(format!("<{line}>").as_bytes())
            .await
            .unwrap();
    }
    output.flush().await.unwrap();
}

async fn end() {
    let mut input = stdin();
    let mut bytes = [0; 8];
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(input.read(&mut bytes).await.unwrap().to_string());
    }
    let mut output = stdout();
    output.write_all(counts.join(" ").as_bytes()).await.unwrap();
    output.flush().await.unwrap();
}

async fn cancel() {
    let (mut input, mut output, mut errors) = (stdin(), stdout(), stderr());
    let mut bytes = [0; 3];
    assert!(poll_once(&mut Box::pin(input.read(&mut bytes))).is_pending());
    errors.write_all(b"!").await.unwrap();
    errors.flush().await.unwrap();
    let mut rest = Vec::new();
    input.read_to_end(&mut rest).await.unwrap();
    output.write_all(&rest).await.unwrap();
    output.flush().await.unwrap();
}

async fn pieces() {
    let (mut output, mut errors) = (stdout(), stderr());
    for i in 0..2000 {
        let piece = format!("{i},");
        output.write_all(piece.as_bytes()).await.unwrap();
        errors.write_all(piece.as_bytes()).await.unwrap();
    }
    output.flush().await.unwrap();
    errors.shutdown().await.unwrap();
    errors.flush().await.unwrap();
}

fn unflushed(rt: gmp_executor::Runtime) {
    rt.block_on(async {
        // The line end makes the standard library's buffer let go.
        stdout().write_all(b"the end\n").await.unwrap();
    });
    drop(rt);
}

async fn broken() {
    let mut input = stdin();
    // The reader is gone when this has come.
    input.read_u8().await.unwrap();
    let mut output = stdout();
    let error = loop {
        if let Err(error) = output.write_all(b"hello\n").await {
            break error;
        }
        if let Err(error) = output.flush().await {
            break error;
        }
    };
    let mut errors = stderr();
    errors
        .write_all(format!("{:?}", error.kind()).as_bytes())
        .await
        .unwrap();
    errors.flush().await.unwrap();
}

fn idle_reader(role: &str) {
    let rt = multi_thread();
    let reader = rt.handle().spawn(async {
        let mut input = stdin();
        let _ = input.read_u8().await;
    });
    rt.block_on(async {
        // Until the read occupies its thread.
        common::until(|| {
            let threads = std::fs::read_dir("/proc/self/task").unwrap();
            threads
                .map(|thread| std::fs::read_to_string(thread.unwrap().path().join("syscall")))
                .any(|call| {
                    call.is_ok_and(|call| call.starts_with(&format!("{} 0x0 ", libc::SYS_read)))
                })
        })
        .await;
    });
    drop(reader);
    std::io::stderr().write_all(b"!").unwrap();
    match role {
        "drop" => drop(rt),
        "background" => rt.shutdown_background(),
        _ => rt.shutdown_timeout(Duration::from_millis(50)),
    }
}
