//! What cannot be seen from outside on a system with pidfds: reaping by `SIGCHLD`, and the strays.

use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{Child as StdChild, Command as StdCommand, Stdio};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use gmp_executor::{Config, Flavor, Handle, Runtime};

use super::notice::{self, Notice};
use super::orphan;
use super::reaper::Reaper;

/// Far above what anything here needs.
const LIMIT: Duration = Duration::from_secs(600);

fn runtime(flavor: Flavor) -> Runtime {
    let procs = if flavor == Flavor::MultiThread { 2 } else { 1 };
    let mut config = Config::new(flavor, procs);
    config.netpoll = Some(Arc::new(gmp_net::Netpoll::new(procs).unwrap()));
    Runtime::new(config).unwrap()
}

fn on_both<F: Future<Output = ()>>(test: impl Fn() -> F) {
    runtime(Flavor::MultiThread).block_on(test());
    runtime(Flavor::CurrentThread).block_on(test());
}

fn sh(script: &str) -> StdChild {
    let mut command = StdCommand::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped());
    command.spawn().unwrap()
}

/// A reaper that knows of its child's end by `SIGCHLD` alone.
fn by_sigchld(child: StdChild) -> Reaper {
    let notice = Notice::sigchld(&Handle::current()).unwrap();
    Reaper::with_notice(child, notice)
}

async fn until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_micros(200));
        gmp_executor::task::yield_now().await;
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_child_is_reaped_by_sigchld() {
    on_both(async || {
        let mut child = sh("read x; exit 5");
        let stdin = child.stdin.take();
        let mut reaper = by_sigchld(child);
        let pid = reaper.id();
        {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(pin!(&mut reaper).poll(&mut cx).is_pending());
        }
        drop(stdin);
        assert_eq!((&mut reaper).await.unwrap().code(), Some(5));
        assert!(!exists(pid));
    });
}

#[test]
fn one_sigchld_may_stand_for_many_children() {
    on_both(async || {
        let mut reapers: Vec<_> = (0..100)
            .map(|i| (i, by_sigchld(sh(&format!("exit {i}")))))
            .collect();
        for (i, reaper) in &mut reapers {
            assert_eq!(reaper.await.unwrap().code(), Some(*i));
        }
    });
}

#[test]
fn many_tasks_wait_for_sigchld() {
    let rt = runtime(Flavor::MultiThread);
    rt.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|i| {
                let reaper = by_sigchld(sh(&format!("exit {i}")));
                rt.handle()
                    .spawn(async move { (i, reaper.await.unwrap().code()) })
            })
            .collect();
        for task in tasks {
            let (i, code) = task.await.unwrap();
            assert_eq!(code, Some(i));
        }
    });
}

#[test]
fn a_killed_child_is_reaped_by_sigchld() {
    on_both(async || {
        let mut reaper = by_sigchld(sh("exec sleep 1000"));
        assert!(reaper.try_wait().unwrap().is_none());
        reaper.kill().unwrap();
        assert_eq!(reaper.await.unwrap().signal(), Some(9));
    });
}

#[test]
fn the_runtime_that_waits_need_not_be_the_one_that_spawned() {
    let first = runtime(Flavor::MultiThread);
    let mut child = sh("read x; exit 6");
    let stdin = child.stdin.take();
    let reaper = {
        let _entered = first.enter();
        by_sigchld(child)
    };
    drop(first);
    let second = runtime(Flavor::CurrentThread);
    let closer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        drop(stdin);
    });
    assert_eq!(second.block_on(reaper).unwrap().code(), Some(6));
    closer.join().unwrap();
}

#[test]
fn a_dropped_child_without_a_pidfd_is_a_stray_and_is_reaped() {
    on_both(async || {
        let mut child = sh("read x");
        let stdin = child.stdin.take();
        let reaper = by_sigchld(child);
        let pid = reaper.id();
        drop(reaper);
        assert!(exists(pid));
        drop(stdin);
        // Nobody sweeps but `SIGCHLD`.
        until(|| !exists(pid)).await;
    });
}

#[test]
fn a_child_without_a_notice_is_a_stray_too() {
    // So it is when there were no descriptors left to watch it by.
    on_both(async || {
        let mut child = sh("read x");
        let (pid, stdin) = (child.id(), child.stdin.take());
        drop(Reaper::new(child));
        drop(stdin);
        until(|| !exists(pid)).await;
    });
}

#[test]
fn strays_are_swept_without_a_runtime() {
    let mut child = sh("read x");
    let (pid, stdin) = (child.id(), child.stdin.take());
    orphan::adopt(child, None);
    assert!(exists(pid));
    drop(stdin);
    let start = Instant::now();
    while exists(pid) {
        assert!(start.elapsed() < LIMIT);
        orphan::sweep();
    }
}

#[test]
fn a_child_that_ended_before_the_drop_is_reaped_at_once() {
    on_both(async || {
        let mut child = sh("read x");
        let (pid, stdin) = (child.id(), child.stdin.take());
        let reaper = by_sigchld(child);
        drop(stdin);
        until(|| {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .unwrap()
                .contains(") Z ")
        })
        .await;
        drop(reaper);
        assert!(!exists(pid));
    });
}

#[test]
fn a_pidfd_tells_the_running_from_the_ended() {
    let mut child = sh("read x");
    let pidfd = notice::open_pidfd(child.id());
    let pidfd = pidfd.expect("the tests run where there are pidfds");
    assert!(!notice::has_ended(&pidfd));
    drop(child.stdin.take());
    let start = Instant::now();
    while !notice::has_ended(&pidfd) {
        assert!(start.elapsed() < LIMIT);
    }
    assert!(child.try_wait().unwrap().is_some());
    assert!(notice::open_pidfd(0).is_none());
    assert!(notice::open_pidfd(u32::MAX).is_none());
}
