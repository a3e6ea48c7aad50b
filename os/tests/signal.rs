//! Signals: every kind, coalescing, several runtimes, and what cannot be listened for.
//!
//! Signals are the process's. Tests that raise the same one would disturb each other, so each test
//! here takes a signal of its own, or the lock.

mod common;

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{current_thread, multi_thread, poll_once, run, wait_until, watched};
use gmp_io::{AsyncReadExt, AsyncWriteExt};
use gmp_os::fs::File;
use gmp_os::signal::ctrl_c;
use gmp_os::signal::unix::{Signal, SignalKind, signal};

fn raise(signal: i32) {
    // SAFETY: the tests raise only what they listen for, so it has a handler.
    assert_eq!(unsafe { libc::kill(std::process::id() as i32, signal) }, 0);
}

/// As [`raise`], but this thread handles it, and has done so when this returns. What the process is sent waits
/// for whichever thread comes first, and two signals may change places.
fn raise_here(signal: i32) {
    // SAFETY: the tests raise only what they listen for, so it has a handler.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// The real-time signal that belongs to the test with this number.
fn own_signal(test: i32) -> SignalKind {
    let signal = libc::SIGRTMIN() + test;
    assert!(signal <= libc::SIGRTMAX());
    SignalKind::from_raw(signal)
}

/// For the tests that cannot do with a signal of their own.
fn named_signals() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn is_pending(signal: &mut Signal) -> bool {
    signal
        .poll_recv(&mut Context::from_waker(Waker::noop()))
        .is_pending()
}

#[test]
fn every_kind_arrives() {
    let _lock = named_signals();
    run(async || {
        let kinds = [
            SignalKind::alarm(),
            SignalKind::child(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::io(),
            SignalKind::pipe(),
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
            SignalKind::window_change(),
        ];
        for kind in kinds {
            let mut signals = signal(kind).unwrap();
            raise(kind.as_raw_value());
            assert_eq!(signals.recv().await, Some(()));
        }
    });
}

#[test]
fn real_time_signals_arrive() {
    run(async || {
        // The upper half; the lower belongs to the other tests.
        let kinds: Vec<_> = (libc::SIGRTMIN() + 16..=libc::SIGRTMAX())
            .map(SignalKind::from_raw)
            .collect();
        let mut signals: Vec<_> = kinds.iter().map(|kind| signal(*kind).unwrap()).collect();
        for kind in &kinds {
            raise(kind.as_raw_value());
        }
        for signal in &mut signals {
            signal.recv().await.unwrap();
        }
    });
}

#[test]
fn what_cannot_be_listened_for() {
    run(async || {
        let forbidden = [
            libc::SIGKILL,
            libc::SIGSTOP,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGSEGV,
        ];
        let no_such = [i32::MIN, -1, 0, libc::SIGRTMAX() + 1, i32::MAX];
        for number in forbidden.into_iter().chain(no_such) {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Other);
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
        // The threads library keeps this one for itself.
        let error = signal(SignalKind::from_raw(32)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    });
}

#[test]
fn signals_before_a_look_are_one_and_the_next_is_another() {
    run(async || {
        let kind = own_signal(0);
        let mut signals = signal(kind).unwrap();
        let mut marker = signal(own_signal(1)).unwrap();
        for _ in 0..10 {
            raise_here(kind.as_raw_value());
        }
        raise_here(own_signal(1).as_raw_value());
        marker.recv().await.unwrap();
        signals.recv().await.unwrap();
        // What the first look at the pipe did not see yet may be one more, and no more than that.
        raise_here(own_signal(1).as_raw_value());
        marker.recv().await.unwrap();
        let _ = is_pending(&mut signals);
        assert!(is_pending(&mut signals));
        raise_here(kind.as_raw_value());
        signals.recv().await.unwrap();
    });
}

#[test]
fn a_signal_before_listening_is_not_seen() {
    run(async || {
        let kind = own_signal(2);
        let mut first = signal(kind).unwrap();
        raise(kind.as_raw_value());
        first.recv().await.unwrap();
        let mut second = signal(kind).unwrap();
        assert!(is_pending(&mut second));
        raise(kind.as_raw_value());
        first.recv().await.unwrap();
        second.recv().await.unwrap();
    });
}

#[test]
fn dropping_recv_loses_nothing() {
    run(async || {
        let kind = own_signal(3);
        let mut signals = signal(kind).unwrap();
        for _ in 0..100 {
            let _ = poll_once(&mut Box::pin(signals.recv()));
            raise(kind.as_raw_value());
            signals.recv().await.unwrap();
        }
    });
}

#[test]
fn dropping_a_listener_leaves_the_others_alone() {
    run(async || {
        let kind = own_signal(4);
        let (dropped, mut kept) = (signal(kind).unwrap(), signal(kind).unwrap());
        drop(dropped);
        raise(kind.as_raw_value());
        kept.recv().await.unwrap();
        drop(kept);
        // Nobody listens, and the handler is still there: the process lives on.
        raise(kind.as_raw_value());
        let mut again = signal(kind).unwrap();
        // The one that nobody listened for may be published only now.
        let _ = is_pending(&mut again);
        raise(kind.as_raw_value());
        again.recv().await.unwrap();
    });
}

#[test]
fn a_storm_coalesces_and_its_last_signal_arrives() {
    const STORM: usize = 20_000;
    run(async || {
        let (storm, end) = (own_signal(5), own_signal(6));
        let mut signals = signal(storm).unwrap();
        let mut ended = signal(end).unwrap();
        let sent = Arc::new(AtomicBool::new(false));
        let sender = std::thread::spawn({
            let sent = sent.clone();
            move || {
                (0..STORM).for_each(|_| raise(storm.as_raw_value()));
                sent.store(true, Ordering::Release);
                raise(end.as_raw_value());
            }
        });
        let mut received = 0;
        let mut over = false;
        while !over {
            poll_fn(|cx| {
                let signalled = signals.poll_recv(cx).is_ready();
                received += usize::from(signalled);
                over = ended.poll_recv(cx).is_ready();
                if signalled || over {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        sender.join().unwrap();
        assert!(sent.load(Ordering::Acquire));
        assert!((1..=STORM).contains(&received), "{received}");
        // After the storm it still works.
        let _ = is_pending(&mut signals);
        raise(storm.as_raw_value());
        signals.recv().await.unwrap();
    });
}

#[test]
fn several_runtimes_get_the_same_signal() {
    watched(|| {
        let kind = own_signal(7);
        let (ready, readied) = mpsc::channel();
        for round in 0..20 {
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let ready = ready.clone();
                    std::thread::spawn(move || {
                        let rt = if (round + i) % 2 == 0 {
                            multi_thread()
                        } else {
                            current_thread()
                        };
                        rt.block_on(async {
                            let mut signals = signal(kind).unwrap();
                            ready.send(()).unwrap();
                            signals.recv().await.unwrap();
                        });
                    })
                })
                .collect();
            for _ in &threads {
                readied.recv().unwrap();
            }
            raise(kind.as_raw_value());
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}

#[test]
fn a_dropped_runtime_starves_nobody() {
    watched(|| {
        let kind = own_signal(8);
        let (first, second) = (current_thread(), current_thread());
        let mut first_signals = first.block_on(async { signal(kind).unwrap() });
        let mut second_signals = second.block_on(async { signal(kind).unwrap() });
        raise(kind.as_raw_value());
        first.block_on(first_signals.recv()).unwrap();
        drop(first);
        raise(kind.as_raw_value());
        second.block_on(second_signals.recv()).unwrap();
    });
}

#[test]
fn a_listener_moves_to_a_runtime_that_never_listened() {
    watched(|| {
        let kind = own_signal(9);
        for make in [multi_thread, current_thread] {
            let first = make();
            let mut signals = first.block_on(async { signal(kind).unwrap() });
            drop(first);
            let second = make();
            let raiser = std::thread::spawn(move || raise(kind.as_raw_value()));
            second.block_on(signals.recv()).unwrap();
            raiser.join().unwrap();
        }
    });
}

#[test]
fn a_foreign_executor_can_wait() {
    watched(|| {
        let kind = own_signal(10);
        let rt = multi_thread();
        let mut signals = rt.block_on(async { signal(kind).unwrap() });
        for _ in 0..100 {
            let raiser = std::thread::spawn(move || raise(kind.as_raw_value()));
            futures::executor::block_on(signals.recv()).unwrap();
            raiser.join().unwrap();
        }
    });
}

#[test]
fn many_listeners_in_many_tasks() {
    watched(|| {
        let kind = own_signal(11);
        let rt = multi_thread();
        rt.block_on(async {
            let tasks: Vec<_> = (0..200)
                .map(|_| {
                    let mut signals = signal(kind).unwrap();
                    rt.handle().spawn(async move { signals.recv().await })
                })
                .collect();
            raise(kind.as_raw_value());
            for task in tasks {
                assert_eq!(task.await.unwrap(), Some(()));
            }
        });
    });
}

#[test]
fn listening_costs_a_runtime_one_descriptor() {
    // In a process of its own: the other tests open descriptors at the same time.
    let output = common::helper("descriptors").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn interrupted_system_calls_do_no_harm() {
    watched(|| {
        let kind = own_signal(12);
        let rt = multi_thread();
        let stop = Arc::new(AtomicBool::new(false));
        let mut signals = rt.block_on(async { signal(kind).unwrap() });
        let storm = std::thread::spawn({
            let stop = stop.clone();
            move || {
                while !stop.load(Ordering::Relaxed) {
                    raise(kind.as_raw_value());
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
        });
        rt.block_on(async {
            let dir = common::TempDir::new();
            let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 233) as u8).collect();
            for round in 0..20 {
                let mut file = File::create_new(dir.join(&round.to_string()))
                    .await
                    .unwrap();
                file.set_max_buf_size(10_000);
                file.write_all(&bytes).await.unwrap();
                gmp_io::AsyncSeekExt::rewind(&mut file).await.unwrap();
                let mut read = Vec::new();
                file.read_to_end(&mut read).await.unwrap();
                assert!(read == bytes);
                signals.recv().await.unwrap();
            }
        });
        stop.store(true, Ordering::Relaxed);
        storm.join().unwrap();
    });
}

#[test]
fn ctrl_c_is_sigint() {
    let _lock = named_signals();
    run(async || {
        let mut waiting = Box::pin(ctrl_c());
        assert!(poll_once(&mut waiting).is_pending());
        raise(libc::SIGINT);
        waiting.await.unwrap();
    });
}

#[test]
fn after_the_shutdown_listening_fails() {
    watched(|| {
        let rt = multi_thread();
        let mut signals = rt.block_on(async { signal(own_signal(13)).unwrap() });
        let handle = rt.handle().clone();
        drop(rt);
        let _entered = handle.enter();
        assert!(signal(own_signal(13)).is_err());
        assert!(is_pending(&mut signals));

        let rt = multi_thread();
        let handle = rt.handle().clone();
        drop(rt);
        let _entered = handle.enter();
        assert!(signal(own_signal(13)).is_err());
    });
}

#[test]
fn panics_without_a_runtime_or_without_io_name_the_caller() {
    fn panic_of(f: impl FnOnce() + std::panic::UnwindSafe) -> (String, String) {
        static LOCK: Mutex<()> = Mutex::new(());
        static FILE: Mutex<String> = Mutex::new(String::new());
        let _lock = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let me = std::thread::current().id();
        let hook = Arc::new(std::panic::take_hook());
        let before = hook.clone();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == me {
                *FILE.lock().unwrap() = info.location().unwrap().file().to_owned();
            } else {
                before(info);
            }
        }));
        let panic = catch_unwind(f).unwrap_err();
        std::panic::set_hook(Box::new(move |info| hook(info)));
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned());
        (message, FILE.lock().unwrap().clone())
    }

    let (message, file) = panic_of(|| drop(signal(SignalKind::hangup())));
    assert!(message.contains("there is no reactor running"), "{message}");
    assert!(
        file.ends_with("signal.rs") && file.contains("tests"),
        "{file}"
    );

    let (message, file) = panic_of(|| {
        common::without_io().block_on(async { drop(signal(SignalKind::from_raw(-1))) });
    });
    assert!(message.contains("enable_io"), "{message}");
    assert!(
        file.ends_with("signal.rs") && file.contains("tests"),
        "{file}"
    );
}

/// A61: as in tokio the handler stays, so a second Ctrl-C has to be waited for.
#[test]
fn the_first_ctrl_c_asks_and_the_second_ends() {
    watched(|| {
        let mut child = common::helper("two-steps").spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut await_line = |expected: &str| {
            while lines.next().unwrap().unwrap() != expected {}
        };
        let interrupt = || {
            // SAFETY: the child is ours and has not been waited for.
            assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        };
        await_line("waiting");
        interrupt();
        await_line("finishing");
        // The default has not come back, as in tokio: this one is swallowed...
        interrupt();
        await_line("swallowed");
        // ...and now somebody listens again.
        await_line("listening again");
        interrupt();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    });
}

#[test]
fn by_default_a_signal_ends_the_process() {
    // The counterpart: nothing is installed before somebody listens.
    watched(|| {
        let mut child = common::helper("idle-runtime").spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while lines.next().unwrap().unwrap() != "running" {}
        // SAFETY: the child is ours and has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    });
}

/// A62: parent and child read from one signal pipe.
#[test]
fn a_forked_child_listens_in_a_runtime_of_its_own() {
    let output = common::helper("fork").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(common::own_output(&output.stdout)).into_owned();
    assert!(text.contains("the parent got its own"), "{text}");
}

/// The processes that the tests above start.
#[test]
fn helper() {
    let Some(role) = common::role() else {
        return;
    };
    match role.as_str() {
        "two-steps" => two_steps(),
        "idle-runtime" => idle_runtime(),
        "descriptors" => descriptors(),
        "fork" => fork(),
        other => panic!("no helper is called {other}"),
    }
    std::process::exit(0);
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

fn two_steps() {
    current_thread().block_on(async {
        let mut first = Box::pin(ctrl_c());
        assert!(poll_once(&mut first).is_pending());
        say("waiting");
        first.await.unwrap();
        // Another listener, only to learn that the second one was delivered.
        let mut witness = signal(SignalKind::interrupt()).unwrap();
        say("finishing");
        witness.recv().await.unwrap();
        say("swallowed");
        let mut second = Box::pin(ctrl_c());
        assert!(poll_once(&mut second).is_pending());
        say("listening again");
        second.await.unwrap();
        std::process::exit(130);
    });
}

fn idle_runtime() {
    let rt = multi_thread();
    rt.block_on(async { gmp_executor::task::yield_now().await });
    say("running");
    let mut line = Vec::new();
    // For ever: standard input is /dev/null, so a pipe of our own.
    let (mut reader, _writer) = std::io::pipe().unwrap();
    reader.read_to_end(&mut line).unwrap();
}

fn descriptors() {
    let none = common::open_descriptors();
    for _ in 0..20 {
        let rt = multi_thread();
        rt.block_on(async {
            let first = signal(own_signal(0)).unwrap();
            let with_one = common::open_descriptors();
            let more: Vec<_> = (0..50)
                .map(|i| signal(own_signal(i % 16)).unwrap())
                .collect();
            // Some slack for a thread that starts meanwhile; one a listener would be 50.
            assert!(common::open_descriptors() < with_one + 10);
            drop((first, more));
        });
        drop(rt);
        // What stays is the process's self-pipe.
        wait_until(|| common::open_descriptors() <= none + 2);
    }
}

fn fork() {
    let rt = multi_thread();
    let kind = own_signal(0);
    let mut ours = rt.block_on(async {
        let mut ours = signal(kind).unwrap();
        raise(kind.as_raw_value());
        ours.recv().await.unwrap();
        ours
    });
    // SAFETY: the child goes on in this function alone, and builds a runtime of its own.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The parent's runtime has no threads here.
        std::mem::forget(rt);
        current_thread().block_on(async {
            let mut signals = signal(kind).unwrap();
            for _ in 0..100 {
                raise(kind.as_raw_value());
                signals.recv().await.unwrap();
            }
        });
        // SAFETY: ends the process without running what the parent registered.
        unsafe { libc::_exit(7) };
    }
    // While the child raises its own, ours arrive too: nobody drains our pipe.
    for _ in 0..1000 {
        raise(kind.as_raw_value());
        rt.block_on(ours.recv()).unwrap();
    }
    let mut status = 0;
    // SAFETY: the status is written to a place of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(std::process::ExitStatus::from_raw(status).code(), Some(7));
    say("the parent got its own");
}

#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin>() {}
    fn hashed<T: Copy + Eq + std::hash::Hash + std::panic::UnwindSafe>() {}
    fn future<T: Send>(_: T) {}
    check::<Signal>();
    check::<SignalKind>();
    hashed::<SignalKind>();
    future(ctrl_c());
    let recv = |signals: &'static mut Signal| future(signals.recv());
    let _ = recv;
}
