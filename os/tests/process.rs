//! Child processes: starting, waiting, killing, pipes, and that nobody stays behind as a zombie.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "system calls that a test makes side by side, without pointers"
)]

mod common;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::catch_unwind;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::Poll;

use common::{
    TempDir, current_thread, exists, multi_thread, poll_once, run, state, until, wait_until,
    watched,
};
use gmp_io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use gmp_os::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn send(child: &Child, signal: i32) {
    let pid = child.id().expect("the child has not been reaped") as i32;
    // SAFETY: the child is ours and has not been reaped, so the number is its own.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

async fn line(reader: &mut (impl gmp_io::AsyncBufRead + Unpin)) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    line
}

// ----- Waiting -----

#[test]
fn how_it_ended() {
    run(async || {
        let status = sh("exit 0").status().await.unwrap();
        assert!(status.success());
        let status = sh("exit 7").status().await.unwrap();
        assert_eq!(status.code(), Some(7));
        let status = sh("kill -9 $$").status().await.unwrap();
        assert_eq!((status.code(), status.signal()), (None, Some(9)));
    });
}

#[test]
fn waiting_again_gives_the_same_answer() {
    run(async || {
        let mut child = sh("exit 3").spawn().unwrap();
        let pid = child.id().unwrap();
        assert!(pid > 0);
        for _ in 0..3 {
            assert_eq!(child.wait().await.unwrap().code(), Some(3));
            assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
            assert_eq!(child.id(), None);
        }
        assert!(!exists(pid));
    });
}

#[test]
fn try_wait_does_not_wait() {
    run(async || {
        let mut child = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        assert!(child.stdin.is_some());
        drop(child.stdin.take());
        let mut status = None;
        until(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        assert_eq!(status.unwrap().code(), Some(1));
    });
}

#[test]
fn a_dropped_wait_loses_nothing() {
    run(async || {
        let mut child = sh("read x; exit 4").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        for _ in 0..10 {
            assert!(poll_once(&mut Box::pin(child.wait())).is_pending());
        }
        drop(stdin);
        assert_eq!(child.wait().await.unwrap().code(), Some(4));
    });
}

#[test]
fn wait_closes_stdin_unless_it_was_taken() {
    run(async || {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(child.wait().await.unwrap().success());
        assert!(child.stdin.is_none());
    });
}

#[test]
fn many_wait_at_once() {
    watched(|| {
        for rt in [multi_thread(), current_thread()] {
            rt.block_on(async {
                let tasks: Vec<_> = (0..200)
                    .map(|i| {
                        let mut child = sh(&format!("exit {}", i % 50)).spawn().unwrap();
                        let pid = child.id().unwrap();
                        rt.handle().spawn(async move {
                            let status = child.wait().await.unwrap();
                            assert_eq!(status.code(), Some(i % 50));
                            pid
                        })
                    })
                    .collect();
                for task in tasks {
                    let pid = task.await.unwrap();
                    assert!(!exists(pid), "{pid} is {:?}", state(pid));
                }
            });
        }
    });
}

#[test]
fn a_child_may_be_waited_for_in_another_runtime() {
    watched(|| {
        for make in [multi_thread, current_thread] {
            let first = make();
            let mut child = first
                .block_on(async { sh("read x; exit 5").stdin(Stdio::piped()).spawn().unwrap() });
            let stdin = child.stdin.take();
            drop(first);
            let second = make();
            second.block_on(async {
                assert!(poll_once(&mut Box::pin(child.wait())).is_pending());
                drop(stdin);
                assert_eq!(child.wait().await.unwrap().code(), Some(5));
            });
        }
    });
}

#[test]
fn a_child_somebody_else_reaped_is_an_error_and_no_hang() {
    run(async || {
        let mut child = sh("exit 0").spawn().unwrap();
        let mut status = 0;
        // SAFETY: the status is written to a place of ours.
        let reaped = unsafe { libc::waitpid(child.id().unwrap() as i32, &mut status, 0) };
        assert_eq!(reaped as u32, child.id().unwrap());
        let error = child.wait().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
    });
}

// ----- Killing -----

#[test]
fn kill_and_kill_again() {
    run(async || {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        child.kill().await.unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        child.start_kill().unwrap();
        child.kill().await.unwrap();
    });
}

#[test]
fn a_child_that_ignores_sigterm() {
    run(async || {
        let mut child = sh("trap '' TERM; echo ready; while :; do read x; done")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut stdout).await, "ready\n");
        for _ in 0..10 {
            send(&child, libc::SIGTERM);
        }
        stdin.write_all(b"still there?\n").await.unwrap();
        assert!(poll_once(&mut Box::pin(child.wait())).is_pending());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().await.unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        // The other end of its pipes is gone.
        assert_eq!(line(&mut stdout).await, "");
    });
}

#[test]
fn stopped_is_not_ended() {
    run(async || {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().unwrap();
        let stdin = child.stdin.take();
        send(&child, libc::SIGSTOP);
        until(|| state(pid) == Some('T')).await;
        assert!(poll_once(&mut Box::pin(child.wait())).is_pending());
        send(&child, libc::SIGCONT);
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
    });
}

// ----- Dropping -----

/// A60: a zombie stayed until another child was polled.
#[test]
fn killed_on_drop_and_no_zombie() {
    run(async || {
        let mut command = Command::new("sleep");
        assert!(!command.get_kill_on_drop());
        command.arg("1000").kill_on_drop(true);
        assert!(command.get_kill_on_drop());
        let child = command.spawn().unwrap();
        let pid = child.id().unwrap();
        assert!(exists(pid));
        drop(child);
        // Nobody spawns or waits: netpoll alone brings the end of it.
        until(|| !exists(pid)).await;
    });
}

#[test]
fn an_idle_runtime_reaps_too() {
    watched(|| {
        let rt = multi_thread();
        let pid = rt.block_on(async {
            let child = Command::new("sleep")
                .arg("1000")
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            child.id().unwrap()
        });
        wait_until(|| !exists(pid));
    });
}

#[test]
fn a_child_that_is_not_killed_goes_on_and_is_reaped_in_the_end() {
    run(async || {
        let mut child = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().unwrap();
        let stdin = child.stdin.take();
        drop(child);
        for _ in 0..20 {
            gmp_executor::task::yield_now().await;
            assert!(matches!(state(pid), Some(letter) if letter != 'Z'));
        }
        drop(stdin);
        until(|| !exists(pid)).await;
    });
}

#[test]
fn dropped_outside_the_runtime_it_is_reaped_inside() {
    watched(|| {
        let rt = multi_thread();
        let mut child = rt.block_on(async { sh("read x").stdin(Stdio::piped()).spawn().unwrap() });
        let pid = child.id().unwrap();
        let stdin = child.stdin.take();
        drop(child);
        drop(stdin);
        wait_until(|| !exists(pid));
    });
}

#[test]
fn two_hundred_orphans() {
    watched(|| {
        let rt = multi_thread();
        let mut pids = Vec::new();
        rt.block_on(async {
            for i in 0..200 {
                let child = sh("read x")
                    .stdin(Stdio::piped())
                    .kill_on_drop(i % 2 == 0)
                    .spawn()
                    .unwrap();
                pids.push(child.id().unwrap());
                drop(child);
            }
        });
        for pid in pids {
            wait_until(|| !exists(pid));
        }
    });
}

#[test]
fn orphans_of_a_dead_runtime_go_with_the_next_spawn() {
    watched(|| {
        let first = multi_thread();
        let mut stdins = Vec::new();
        let pids: Vec<_> = first.block_on(async {
            (0..20)
                .map(|_| {
                    let mut child = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
                    let pid = child.id().unwrap();
                    let stdin = child.stdin.take().unwrap();
                    // A descriptor of our own: the runtime's is closed with the runtime.
                    stdins.push(stdin.as_fd().try_clone_to_owned().unwrap());
                    pid
                })
                .collect()
        });
        drop(first);
        drop(stdins);
        let second = multi_thread();
        second.block_on(async {
            for pid in pids {
                until(|| {
                    drop(sh("true").spawn().unwrap());
                    !exists(pid)
                })
                .await;
            }
        });
    });
}

#[test]
fn orphans_of_a_dead_runtime_go_at_the_next_sigchld() {
    watched(|| {
        // Receives signals, and spawns nothing.
        let watcher = multi_thread();
        watcher.block_on(async {
            drop(gmp_os::signal::unix::signal(gmp_os::signal::unix::SignalKind::child()).unwrap());
        });
        let first = multi_thread();
        let (pid, stdin) = first.block_on(async {
            let mut child = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
            let stdin = child.stdin.take().unwrap();
            (
                child.id().unwrap(),
                stdin.as_fd().try_clone_to_owned().unwrap(),
            )
        });
        drop(first);
        drop(stdin);
        wait_until(|| !exists(pid));
    });
}

#[test]
fn a_child_dropped_after_its_runtime_moves_to_the_current_one() {
    watched(|| {
        let first = multi_thread();
        let mut child =
            first.block_on(async { sh("read x").stdin(Stdio::piped()).spawn().unwrap() });
        let pid = child.id().unwrap();
        let stdin = child.stdin.take();
        drop(first);
        let second = multi_thread();
        second.block_on(async {
            drop(child);
            drop(stdin);
            until(|| !exists(pid)).await;
        });
    });
}

#[test]
fn tasks_dropped_by_the_shutdown_kill_their_children() {
    watched(|| {
        for round in 0..20 {
            let rt = multi_thread();
            let pid = rt.block_on(async {
                let mut child = Command::new("sleep")
                    .arg("1000")
                    .kill_on_drop(true)
                    .spawn()
                    .unwrap();
                let pid = child.id().unwrap();
                let task = rt.handle().spawn(async move { child.wait().await });
                if round % 2 == 0 {
                    gmp_executor::task::yield_now().await;
                }
                drop(task);
                pid
            });
            drop(rt);
            // Dead in any case; reaped now or with the next spawn.
            wait_until(|| matches!(state(pid), None | Some('Z')));
        }
    });
}

// ----- Output -----

#[test]
fn output_captures_both_streams() {
    run(async || {
        let output = sh("echo out; echo err >&2; exit 2").output().await.unwrap();
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(2));
    });
}

#[test]
fn output_larger_than_the_pipes() {
    run(async || {
        let script = "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; \
                      head -c 1000 /dev/zero >&2";
        let output = sh(script).output().await.unwrap();
        assert!(output.status.success());
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (3_000_000, 3_001_000)
        );
    });
}

#[test]
fn wait_with_output_of_what_is_piped() {
    run(async || {
        let child = sh("cat; echo err >&2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(child.stderr.is_none());
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success());
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    });
}

#[test]
fn status_does_not_wait_for_readers() {
    run(async || {
        // Would fill its pipe and stop, if status kept the other end open.
        let status = sh("head -c 1000000 /dev/zero 2>/dev/null; exit 6")
            .stdout(Stdio::piped())
            .status()
            .await
            .unwrap();
        assert_eq!(status.code(), Some(6));
    });
}

#[test]
fn status_and_output_start_the_child_at_once() {
    run(async || {
        let dir = TempDir::new();
        let status = Command::new("touch").arg(dir.join("status")).status();
        until(|| dir.join("status").exists()).await;
        let output = Command::new("touch").arg(dir.join("output")).output();
        until(|| dir.join("output").exists()).await;
        assert!(output.await.unwrap().status.success());
        assert!(status.await.unwrap().success());
    });
}

#[test]
fn dropped_output_kills_with_kill_on_drop() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("pid");
        let script = format!(
            "echo $$ > {p}.new; mv {p}.new {p}; exec sleep 1000",
            p = path.display()
        );
        let mut output = Box::pin(sh(&script).kill_on_drop(true).output());
        until(|| {
            assert!(poll_once(&mut output).is_pending());
            path.exists()
        })
        .await;
        let pid = std::fs::read_to_string(&path)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(exists(pid));
        drop(output);
        until(|| !exists(pid)).await;
    });
}

// ----- Pipes -----

#[test]
fn large_pipes_both_ways() {
    watched(|| {
        for rt in [multi_thread(), current_thread()] {
            rt.block_on(async {
                let mut child = Command::new("cat")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let bytes: Vec<u8> = (0..8_000_000u32).map(|i| (i % 251) as u8).collect();
                let sent = bytes.clone();
                let mut stdin = child.stdin.take().unwrap();
                let writer = rt.handle().spawn(async move {
                    stdin.write_all(&sent).await.unwrap();
                });
                let mut received = Vec::new();
                let mut stdout = child.stdout.take().unwrap();
                stdout.read_to_end(&mut received).await.unwrap();
                assert!(received == bytes);
                writer.await.unwrap();
                assert!(child.wait().await.unwrap().success());
            });
        }
    });
}

#[test]
fn lines_back_and_forth() {
    run(async || {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for i in 0..2000 {
            let text = format!("line {i}\n");
            stdin.write_all(text.as_bytes()).await.unwrap();
            stdin.flush().await.unwrap();
            assert_eq!(line(&mut stdout).await, text);
        }
        stdin.shutdown().await.unwrap();
        drop(stdin);
        assert_eq!(line(&mut stdout).await, "");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_vectored_write_is_one_write() {
    run(async || {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        assert!(gmp_io::AsyncWrite::is_write_vectored(stdin));
        let slices = [IoSlice::new(b"hello "), IoSlice::new(b"world")];
        assert_eq!(stdin.write_vectored(&slices).await.unwrap(), 11);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.stdout, b"hello world");
    });
}

#[test]
fn a_writer_wakes_when_the_child_dies() {
    watched(|| {
        let rt = multi_thread();
        rt.block_on(async {
            let mut child = Command::new("sleep")
                .arg("1000")
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let writer = rt.handle().spawn(async move {
                loop {
                    if let Err(error) = stdin.write_all(&[0; 8192]).await {
                        return error;
                    }
                }
            });
            gmp_executor::task::yield_now().await;
            child.kill().await.unwrap();
            assert_eq!(writer.await.unwrap().kind(), ErrorKind::BrokenPipe);
        });
    });
}

#[test]
fn the_output_of_one_is_the_input_of_another() {
    run(async || {
        let mut echo = sh("sleep 0.01; echo hello world")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin: Stdio = echo.stdout.take().unwrap().try_into().unwrap();
        let tr = Command::new("tr")
            .args(["a-z", "A-Z"])
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = tr.wait_with_output().await.unwrap();
        assert_eq!(output.stdout, b"HELLO WORLD\n");
        assert!(echo.wait().await.unwrap().success());
    });
}

#[test]
fn descriptors_come_back_in_blocking_mode() {
    fn blocks(fd: &OwnedFd) -> bool {
        // SAFETY: asks for the flags of an open descriptor.
        let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
        flags & libc::O_NONBLOCK == 0
    }
    run(async || {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        assert_eq!(stdin.as_fd().as_raw_fd(), stdin.as_raw_fd());
        let stdin = stdin.into_owned_fd().unwrap();
        let stdout = child.stdout.take().unwrap().into_owned_fd().unwrap();
        let stderr = child.stderr.take().unwrap().into_owned_fd().unwrap();
        assert!(blocks(&stdin) && blocks(&stdout) && blocks(&stderr));
        std::fs::File::from(stdin).write_all(b"hello").unwrap();
        let mut text = String::new();
        std::fs::File::from(stdout)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "hello");
        child.wait().await.unwrap();
    });
}

#[test]
fn pipes_of_the_standard_library_can_be_taken_over() {
    run(async || {
        let mut std = std::process::Command::new("sh")
            .args(["-c", "cat; echo err >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = ChildStdin::from_std(std.stdin.take().unwrap()).unwrap();
        let mut stdout = ChildStdout::from_std(std.stdout.take().unwrap()).unwrap();
        let mut stderr = ChildStderr::from_std(std.stderr.take().unwrap()).unwrap();
        stdin.write_all(b"in").await.unwrap();
        drop(stdin);
        let (mut out, mut err) = (String::new(), String::new());
        stdout.read_to_string(&mut out).await.unwrap();
        stderr.read_to_string(&mut err).await.unwrap();
        assert_eq!((out.as_str(), err.as_str()), ("in", "err\n"));
        std.wait().unwrap();
    });
}

// ----- Commands -----

#[test]
fn arguments_environment_and_directory() {
    run(async || {
        let dir = TempDir::new();
        let out = async |command: &mut Command| {
            String::from_utf8(command.output().await.unwrap().stdout).unwrap()
        };
        let mut command = sh("echo $# $1 $2 $3");
        command.arg("zero").args(["a", "b c"]);
        assert_eq!(out(&mut command).await, "2 a b c\n");

        let mut command = sh("echo $A$B$C-$D");
        command
            .env("A", "1")
            .envs([("B", "2"), ("C", "3"), ("D", "4")]);
        command.env_remove("D");
        assert_eq!(out(&mut command).await, "123-\n");

        let mut command = Command::new("/usr/bin/env");
        command.env("LOST", "1").env_clear().env("KEPT", "2");
        assert_eq!(out(&mut command).await, "KEPT=2\n");

        let mut command = sh("pwd -P");
        command.current_dir(dir.path());
        let expected = dir.path().canonicalize().unwrap();
        assert_eq!(out(&mut command).await.trim(), expected.to_str().unwrap());

        let mut command = sh("echo $0");
        command.arg0("another name");
        assert_eq!(out(&mut command).await.trim(), "another name");
    });
}

#[test]
fn user_group_and_process_group() {
    run(async || {
        // SAFETY: these have no preconditions.
        let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
        let output = sh("echo $(id -u) $(id -g)")
            .uid(uid)
            .gid(gid)
            .output()
            .await;
        let output = output.unwrap();
        assert_eq!(output.stdout, format!("{uid} {gid}\n").as_bytes());

        let mut child = sh("read x")
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap() as i32;
        // SAFETY: asks about a child of ours.
        assert_eq!(unsafe { libc::getpgid(pid) }, pid);
        child.wait().await.unwrap();
    });
}

#[test]
fn pre_exec_runs_in_the_child_and_its_error_comes_back() {
    run(async || {
        let mut command = sh("ulimit -n");
        // SAFETY: `setrlimit` may be called after a fork.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit {
                    rlim_cur: 77,
                    rlim_max: 77,
                };
                assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
                Ok(())
            });
        }
        assert_eq!(command.output().await.unwrap().stdout, b"77\n");

        let mut command = sh("true");
        // SAFETY: it makes an error of a number, which allocates nothing.
        unsafe { command.pre_exec(|| Err(std::io::Error::from_raw_os_error(libc::EDOM))) };
        assert_eq!(
            command.spawn().unwrap_err().raw_os_error(),
            Some(libc::EDOM)
        );
    });
}

#[test]
fn to_and_from_the_standard_library() {
    run(async || {
        let mut std = std::process::Command::new("sh");
        std.args(["-c", "echo $A"]);
        let mut command = Command::from(std);
        assert!(!command.get_kill_on_drop());
        command.as_std_mut().env("A", "hello");
        assert_eq!(command.as_std().get_program(), "sh");
        let envs: HashMap<_, _> = command.as_std().get_envs().collect();
        assert_eq!(envs.len(), 1);
        assert_eq!(command.output().await.unwrap().stdout, b"hello\n");
        assert!(format!("{command:?}").contains("hello") || format!("{command:?}").contains("sh"));
        let mut std = command.into_std();
        std.stdout(Stdio::piped()).arg0("sh");
        assert_eq!(std.output().unwrap().stdout, b"hello\n");
    });
}

#[test]
fn one_command_many_children() {
    run(async || {
        let mut command = sh("exit 9");
        for _ in 0..10 {
            let status: ExitStatus = command.status().await.unwrap();
            assert_eq!(status.code(), Some(9));
        }
    });
}

#[test]
fn what_cannot_be_started() {
    run(async || {
        let error = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let dir = TempDir::new();
        let plain = dir.file("plain", "");
        let error = Command::new(&plain).spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let error = Command::new("/no/such/program").status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = Command::new("/no/such/program").output().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn outside_a_runtime_it_panics_and_starts_nothing() {
    let dir = TempDir::new();
    let path = dir.join("started");
    let message = |panic: Box<dyn std::any::Any + Send>| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
    };
    let panic = catch_unwind(|| Command::new("touch").arg(&path).spawn()).unwrap_err();
    assert!(message(panic).contains("there is no reactor running"));
    let panic = catch_unwind(|| {
        common::without_io().block_on(async { Command::new("touch").arg(&path).spawn() })
    })
    .unwrap_err();
    assert!(message(panic).contains("enable_io"));
    assert!(!path.exists());
}

/// A63: the descriptor of epoll leaked to children.
#[test]
fn children_inherit_the_standard_streams_alone() {
    helped("inheritance");
}

#[test]
fn children_and_orphans_cost_no_descriptor_in_the_end() {
    helped("descriptors");
}

#[test]
fn without_descriptors_there_is_an_error_and_no_zombie() {
    helped("no-descriptors");
}

/// A62: after a fork the orphans and the pipe of the parent were in the child.
#[test]
fn a_forked_child_spawns_in_a_runtime_of_its_own() {
    helped("fork");
}

#[test]
fn a_corpse_that_a_debugger_holds_is_waited_for() {
    helped("debugger");
}

fn helped(role: &'static str) {
    watched(move || {
        let output = common::helper(role).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    });
}

#[test]
fn helper() {
    let Some(role) = common::role() else {
        return;
    };
    match role.as_str() {
        "inheritance" => inheritance(),
        "descriptors" => descriptors(),
        "no-descriptors" => no_descriptors(),
        "fork" => fork(),
        "debugger" => debugger(),
        other => panic!("no helper is called {other}"),
    }
    std::process::exit(0);
}

/// The descriptors that a child has beyond those that it has without a runtime.
fn inheritance() {
    const LIST: &str = "echo /proc/self/fd/*";
    // We may have inherited some ourselves.
    let std = std::process::Command::new("sh")
        .args(["-c", LIST])
        .output()
        .unwrap();
    for rt in [multi_thread(), current_thread()] {
        rt.block_on(async {
            // One of everything that the runtime may have open.
            let _signals =
                gmp_os::signal::unix::signal(gmp_os::signal::unix::SignalKind::hangup()).unwrap();
            let mut other = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
            let output = sh(LIST).stdin(Stdio::null()).output().await.unwrap();
            assert_eq!(output.stdout, std.stdout);
            other.wait().await.unwrap();
        });
    }
}

fn descriptors() {
    let rt = multi_thread();
    rt.block_on(async {
        assert!(sh("true").status().await.unwrap().success());
        let before = common::open_descriptors();
        for i in 0..100 {
            let child = sh("read x").stdin(Stdio::piped()).spawn().unwrap();
            match i % 3 {
                0 => drop(child),
                1 => drop(child.wait_with_output().await.unwrap()),
                _ => {
                    let mut child = child;
                    child.kill().await.unwrap();
                }
            }
        }
        until(|| common::open_descriptors() <= before).await;
    });
}

fn no_descriptors() {
    let rt = multi_thread();
    rt.block_on(async {
        assert!(sh("true").status().await.unwrap().success());
        let mut failures = 0;
        // At each step another descriptor is the one that is missing.
        for spare in 0..16 {
            let hoard = hoard_all_but(spare);
            let spawned = sh("read x")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn();
            drop(hoard);
            match spawned {
                Ok(mut child) => child.kill().await.unwrap(),
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                    failures += 1;
                }
            }
        }
        assert!((4..16).contains(&failures), "{failures}");
        // Nobody is left: neither running nor a zombie.
        until(|| {
            let mut status = 0;
            // SAFETY: asks without reaping; the status is written to a place of ours.
            let found = unsafe {
                libc::waitid(
                    libc::P_ALL,
                    0,
                    &mut std::mem::zeroed(),
                    libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
                )
            };
            status += found;
            status == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD)
        })
        .await;
    });
}

/// Takes every descriptor that this process may have, but for some.
fn hoard_all_but(spare: usize) -> Vec<OwnedFd> {
    let limit = libc::rlimit {
        rlim_cur: 256,
        rlim_max: 256,
    };
    // SAFETY: lowers our own limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let mut hoard = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(OwnedFd::from(file));
    }
    hoard.truncate(hoard.len() - spare);
    hoard
}

fn fork() {
    let rt = multi_thread();
    rt.block_on(async { assert!(sh("true").status().await.unwrap().success()) });
    // SAFETY: the child goes on in this function alone, and builds a runtime of its own.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        std::mem::forget(rt);
        let own = multi_thread();
        let ok = own.block_on(async { sh("exit 3").status().await.unwrap().code() == Some(3) });
        // SAFETY: ends the process without running what the parent registered.
        unsafe { libc::_exit(if ok { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: the status is written to a place of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(ExitStatus::from_raw(status).code(), Some(7));
    rt.block_on(async { assert!(sh("true").status().await.unwrap().success()) });
}

/// A process that is not its parent attaches to the child, kills it, and keeps the corpse for a while.
fn debugger() {
    let (mut from_debugger, mut to_us) = std::io::pipe().unwrap();
    let (mut from_us, mut to_debugger) = std::io::pipe().unwrap();
    let rt = current_thread();
    let mut child = rt.block_on(async { Command::new("sleep").arg("1000").spawn().unwrap() });
    let pid = child.id().unwrap() as i32;
    let dropped = rt.block_on(async { Command::new("sleep").arg("1000").spawn().unwrap() });
    let dropped_pid = dropped.id().unwrap() as i32;
    // SAFETY: the child makes system calls alone; no other thread of ours holds a lock that it needs.
    let debugger = unsafe { libc::fork() };
    if debugger == 0 {
        let attached = [pid, dropped_pid].into_iter().all(|pid| {
            // SAFETY: attaches to a process, without reading or writing its memory.
            unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) == 0 }
        });
        to_us.write_all(&[u8::from(attached)]).unwrap();
        from_us.read_exact(&mut [0]).unwrap();
        // SAFETY: ends the process, and with it the tracing.
        unsafe { libc::_exit(0) };
    }
    let mut attached = [0];
    from_debugger.read_exact(&mut attached).unwrap();
    if attached == [0] {
        println!("this system lets nobody attach to a process");
        return;
    }
    rt.block_on(async {
        child.start_kill().unwrap();
        drop(dropped);
        // SAFETY: the dropped child still runs, so the number is its own.
        assert_eq!(unsafe { libc::kill(dropped_pid, libc::SIGKILL) }, 0);
        until(|| state(pid as u32) == Some('Z') && state(dropped_pid as u32) == Some('Z')).await;
        // Its pidfd says that it has ended, and it cannot be reaped.
        for _ in 0..100 {
            assert!(poll_once(&mut Box::pin(child.wait())).is_pending());
            gmp_executor::task::yield_now().await;
        }
        let mut waiting = Box::pin(child.wait());
        poll_fn(|cx| {
            assert!(waiting.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        to_debugger.write_all(&[0]).unwrap();
        assert_eq!(waiting.await.unwrap().signal(), Some(9));
        until(|| !exists(dropped_pid as u32)).await;
    });
    let mut status = 0;
    // SAFETY: the status is written to a place of ours.
    assert_eq!(unsafe { libc::waitpid(debugger, &mut status, 0) }, debugger);
}

#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin>() {}
    fn unwind<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    fn future<T: Future + Send + 'static>(_: T) {}
    check::<Command>();
    check::<Child>();
    check::<ChildStdin>();
    check::<ChildStdout>();
    check::<ChildStderr>();
    unwind::<ChildStdin>();
    unwind::<ChildStdout>();
    unwind::<ChildStderr>();
    // These borrow nothing of the command.
    let _ = |command: &mut Command| {
        future(command.status());
        future(command.output());
    };
    let _ = |child: Child| future(child.wait_with_output());
    let _ = |mut child: Child| future(async move { Pin::new(&mut child).wait().await });
}
