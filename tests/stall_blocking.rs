//! Tasks that block their thread without saying so, or compute without an await: the others go on.
//!
//! From the articles' programs: with one P, a goroutine in `read(2)` loses it within microseconds to whoever
//! is runnable; a loop of 300 ms lets a sleeper of 1 ms have its turn after 3 to 23 ms. A system call made by a
//! Rust future cannot be seen, so here the monitor takes the P away after a slice (`Builder::retake_after`).

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use gmp::io::AsyncReadExt;
use gmp::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use gmp::runtime::{Runtime, worker_index};
use gmp::sync::{Notify, Semaphore, oneshot};
use gmp::task::{self, JoinHandle};
use gmp::time::sleep;
use support::{Pipe, bounded, builder, compute, current_thread, finish, in_rounds};
use support::{run_task, runtime, wait_until};

/// Far more CPU time than any wait of a computing task takes.
const MUCH: Duration = Duration::from_secs(20);

/// Starts `count` tasks that block in `read(2)`, and waits until the last is about to.
fn block(runtime: &Runtime, count: usize) -> (Arc<Pipe>, Vec<JoinHandle<()>>) {
    let pipe = Arc::new(Pipe::new());
    let (started, all) = mpsc::channel();
    let spawn = |_| {
        let (pipe, started) = (pipe.clone(), started.clone());
        runtime.spawn(async move {
            started.send(()).unwrap();
            pipe.read();
        })
    };
    let handles = (0..count).map(spawn).collect();
    for _ in 0..count {
        all.recv().unwrap();
    }
    (pipe, handles)
}

fn unblock(runtime: &Runtime, (pipe, handles): (Arc<Pipe>, Vec<JoinHandle<()>>)) {
    assert!(handles.iter().all(|handle| !handle.is_finished()));
    pipe.write(handles.len());
    for handle in handles {
        runtime.block_on(handle).unwrap();
    }
}

/// A stream there and back.
async fn echo_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = task::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = stream.split();
        gmp::io::copy(&mut reader, &mut writer).await.unwrap();
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    use gmp::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(b"hello").await.unwrap();
    let mut text = [0; 5];
    stream.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"hello");
    drop(stream);
    server.await.unwrap();
}

/// New tasks, timers, sockets and blocking jobs, from a task and from the main future.
async fn everything_works() {
    task::spawn(async {}).await.unwrap();
    task::spawn(async {
        task::spawn(async {}).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        echo_over_tcp().await;
        task::spawn_blocking(|| {}).await.unwrap();
        task::yield_now().await;
    })
    .await
    .unwrap();
    sleep(Duration::from_millis(1)).await;
    echo_over_tcp().await;
}

#[test]
fn a_task_that_was_queued_behind_a_blocked_one_runs_and_unblocks_it() {
    bounded(|| {
        for ps in [1, 2, 4] {
            let runtime = runtime(ps);
            run_task(&runtime, async {
                let pipe = Arc::new(Pipe::new());
                let writer = pipe.clone();
                // The later one goes first.
                let write = task::spawn(async move { writer.write(1) });
                let read = task::spawn(async move { pipe.read() });
                read.await.unwrap();
                write.await.unwrap();
            });
            finish(runtime);
        }
    });
}

#[test]
fn one_p_goes_on_beside_a_blocked_task() {
    bounded(|| {
        let runtime = runtime(1);
        let blocked = block(&runtime, 1);
        runtime.block_on(everything_works());
        assert!(runtime.metrics().retake_count() >= 1);
        unblock(&runtime, blocked);
        finish(runtime);
    });
}

#[test]
fn all_ps_blocked_and_timers_sockets_and_new_tasks_still_run() {
    bounded(|| {
        for ps in [1, 2, 4] {
            for blockers in [ps, 2 * ps + 1] {
                let runtime = runtime(ps);
                let blocked = block(&runtime, blockers);
                runtime.block_on(everything_works());
                unblock(&runtime, blocked);
                runtime.block_on(everything_works());
                finish(runtime);
            }
        }
    });
}

#[test]
fn what_waited_before_the_ps_were_blocked_wakes_up() {
    bounded(|| {
        for ps in [1, 2, 4] {
            let runtime = runtime(ps);
            let socket = runtime.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
            let address = socket.local_addr().unwrap();
            let notify = Arc::new(Notify::new());
            let on_socket = runtime.spawn(async move { socket.recv(&mut [0]).await });
            let on_timer = runtime.spawn(async { sleep(Duration::from_millis(30)).await });
            let on_notify = runtime.spawn({
                let notify = notify.clone();
                async move { notify.notified().await }
            });
            let blocked = block(&runtime, ps);
            let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            sender.send_to(&[1], address).unwrap();
            notify.notify_one();
            assert_eq!(runtime.block_on(on_socket).unwrap().unwrap(), 1);
            runtime.block_on(on_timer).unwrap();
            runtime.block_on(on_notify).unwrap();
            unblock(&runtime, blocked);
            finish(runtime);
        }
    });
}

#[test]
fn a_blocked_task_resumes_where_it_was_and_can_wait_again() {
    bounded(|| {
        for ps in [1, 2] {
            let runtime = runtime(ps);
            let pipe = Arc::new(Pipe::new());
            let reader = pipe.clone();
            let task = runtime.spawn(async move {
                let mut rounds = 0;
                for _ in 0..5 {
                    reader.read();
                    rounds += 1;
                    task::yield_now().await;
                    sleep(Duration::from_millis(1)).await;
                    task::spawn(async {}).await.unwrap();
                }
                rounds
            });
            for _ in 0..5 {
                // Long enough for the P to be taken away, mostly; either way it must come right.
                std::thread::sleep(Duration::from_millis(12));
                pipe.write(1);
            }
            assert_eq!(runtime.block_on(task).unwrap(), 5);
            finish(runtime);
        }
    });
}

#[test]
fn with_block_in_place_the_p_is_handed_off_at_once() {
    bounded(|| {
        for ps in [1, 2, 4] {
            // Nobody takes a P away: it is given.
            let runtime = builder(ps).retake_after(None).build().unwrap();
            let pipe = Arc::new(Pipe::new());
            let (started, all) = mpsc::channel();
            let handles: Vec<_> = (0..2 * ps)
                .map(|_| {
                    let (pipe, started) = (pipe.clone(), started.clone());
                    runtime.spawn(async move {
                        started.send(()).unwrap();
                        task::block_in_place(|| pipe.read());
                        task::yield_now().await;
                    })
                })
                .collect();
            for _ in &handles {
                all.recv().unwrap();
            }
            runtime.block_on(everything_works());
            unblock(&runtime, (pipe, handles));
            assert_eq!(runtime.metrics().retake_count(), 0);
            finish(runtime);
        }
    });
}

#[test]
fn block_in_place_hands_off_what_the_task_has_just_woken() {
    bounded(|| {
        for ps in [1, 2, 4] {
            let runtime = builder(ps).retake_after(None).build().unwrap();
            for _ in 0..50 {
                run_task(&runtime, async {
                    let pipe = Arc::new(Pipe::new());
                    let writer = pipe.clone();
                    task::spawn(async move { writer.write(1) });
                    task::block_in_place(|| pipe.read());
                });
            }
            finish(runtime);
        }
    });
}

/// A task wakes another and blocks its thread until that one has run.
async fn wake_and_block() {
    let (wake, woken) = oneshot::channel();
    let (answer, answered) = mpsc::channel();
    let (waits, is_waiting) = oneshot::channel();
    let waiter = task::spawn(async move {
        waits.send(()).unwrap();
        woken.await.unwrap();
        answer.send(()).unwrap();
    });
    is_waiting.await.unwrap();
    task::yield_now().await;
    wake.send(()).unwrap();
    answered.recv().unwrap();
    waiter.await.unwrap();
}

#[test]
fn a_task_woken_just_before_its_waker_blocks_is_run_by_an_idle_p() {
    bounded(|| {
        for ps in [2, 4] {
            // Without retake only a thief can take it out of runnext.
            let runtime = builder(ps).retake_after(None).build().unwrap();
            for _ in 0..10 {
                run_task(&runtime, wake_and_block());
            }
            assert_eq!(runtime.metrics().retake_count(), 0);
            finish(runtime);
        }
    });
}

#[test]
fn a_task_woken_just_before_its_waker_blocks_the_only_p_is_run_by_another_thread() {
    bounded(|| {
        for ps in [1, 2] {
            let runtime = runtime(ps);
            for _ in 0..10 {
                run_task(&runtime, wake_and_block());
            }
            finish(runtime);
        }
    });
}

#[test]
fn a_task_woken_by_the_main_future_before_it_blocks_runs() {
    bounded(|| {
        for ps in [1, 2] {
            for retake in [None, Some(Duration::from_millis(10))] {
                let runtime = builder(ps).retake_after(retake).build().unwrap();
                if ps == 1 && retake.is_none() {
                    // Nobody may take the P that the main future has borrowed.
                    continue;
                }
                for _ in 0..10 {
                    runtime.block_on(wake_and_block());
                }
                finish(runtime);
            }
        }
    });
}

/// A task begins to wait on a P, and another one blocks the thread there until the wait is over. The only other M
/// never runs dry, so that it never searches, and nobody takes the P away. `wait` gives what to wait for and what
/// `end` needs to end it.
fn a_busy_p_looks_after<W, E>(wait: fn() -> (W, E), end: fn(E))
where
    W: Future<Output = ()> + Send + 'static,
    E: Send + 'static,
{
    bounded(move || {
        let runtime = builder(2).retake_after(None).build().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let busy = runtime.spawn({
            let over = over.clone();
            async move {
                while !over.load(Ordering::Relaxed) {
                    task::yield_now().await;
                }
            }
        });
        let (about_to_block, blocks) = mpsc::channel();
        let blocked = runtime.spawn(async move {
            let (ended, to_end) = loop {
                let (wait, to_end) = wait();
                let ended = Arc::new(AtomicBool::new(false));
                let waits_on = Arc::new(AtomicUsize::new(usize::MAX));
                task::spawn({
                    let (ended, waits_on) = (ended.clone(), waits_on.clone());
                    async move {
                        waits_on.store(worker_index().unwrap(), Ordering::Relaxed);
                        wait.await;
                        ended.store(true, Ordering::Relaxed);
                    }
                });
                task::yield_now().await;
                if worker_index() == Some(waits_on.load(Ordering::Relaxed)) {
                    break (ended, to_end);
                }
            };
            about_to_block.send(to_end).unwrap();
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Ordering::Relaxed);
        });
        end(blocks.recv().unwrap());
        runtime.block_on(blocked).unwrap();
        runtime.block_on(busy).unwrap();
        assert_eq!(runtime.metrics().retake_count(), 0);
        finish(runtime);
    });
}

#[test]
fn a_socket_behind_a_blocked_task_is_looked_after_by_a_busy_p() {
    let wait = || {
        let (mut listener, speaker) = UnixStream::pair().unwrap();
        let hear = async move { drop(listener.read_u8().await) };
        (hear, speaker)
    };
    a_busy_p_looks_after(wait, |speaker| {
        assert_eq!(speaker.try_write(&[1]).unwrap(), 1);
    });
}

#[test]
fn a_timer_behind_a_blocked_task_is_looked_after_by_a_busy_p() {
    a_busy_p_looks_after(|| (sleep(Duration::from_millis(20)), ()), drop);
}

/// The same of what is queued there, and of what is in runnext.
#[test]
fn tasks_queued_behind_a_blocked_task_are_run_by_a_busy_p() {
    bounded(|| {
        let runtime = builder(2).retake_after(None).build().unwrap();
        let left = Arc::new(AtomicUsize::new(20));
        let busy = runtime.spawn({
            let left = left.clone();
            async move {
                while left.load(Ordering::Relaxed) > 0 {
                    task::yield_now().await;
                }
            }
        });
        let blocked = runtime.spawn({
            let left = left.clone();
            async move {
                for _ in 0..left.load(Ordering::Relaxed) {
                    let left = left.clone();
                    task::spawn(async move { left.fetch_sub(1, Ordering::Relaxed) });
                }
                while left.load(Ordering::Relaxed) > 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        runtime.block_on(blocked).unwrap();
        runtime.block_on(busy).unwrap();
        assert_eq!(runtime.metrics().retake_count(), 0);
        finish(runtime);
    });
}

#[test]
fn a_sleeper_has_its_turn_while_a_task_computes() {
    bounded(|| {
        for ps in [1, 2] {
            let runtime = runtime(ps);
            let round = || {
                let woke = Arc::new(AtomicBool::new(false));
                let computers: Vec<_> = (0..ps)
                    .map(|_| {
                        let woke = woke.clone();
                        let stop = move || woke.load(Ordering::Relaxed);
                        runtime.spawn(async move { compute(MUCH, stop) })
                    })
                    .collect();
                runtime.block_on(async {
                    let sleeper = task::spawn(sleep(Duration::from_millis(1)));
                    sleeper.await.unwrap();
                });
                woke.store(true, Ordering::Relaxed);
                let join = |computer: JoinHandle<Duration>| runtime.block_on(computer).unwrap();
                let used: Vec<Duration> = computers.into_iter().map(join).collect();
                assert!(used.iter().all(|&used| used < MUCH), "not before the end");
                used
            };
            // A slice or two: it is CPU time, to which the machine's other work adds little.
            let little = |used: &Duration| *used <= Duration::from_millis(50);
            in_rounds(3, round, |used| used.iter().all(little));
            finish(runtime);
        }
    });
}

#[test]
fn a_ticker_ticks_on_beside_a_task_that_computes() {
    bounded(|| {
        let runtime = runtime(1);
        let done = Arc::new(AtomicBool::new(false));
        let ticks = Arc::new(AtomicUsize::new(0));
        let ticker = runtime.spawn({
            let (done, ticks) = (done.clone(), ticks.clone());
            async move {
                let mut interval = gmp::time::interval(Duration::from_millis(1));
                while !done.load(Ordering::Relaxed) {
                    interval.tick().await;
                    ticks.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let computer = runtime.spawn({
            let ticks = ticks.clone();
            async move {
                let before = ticks.load(Ordering::Relaxed);
                compute(MUCH, || ticks.load(Ordering::Relaxed) >= before + 10)
            }
        });
        let used = runtime.block_on(computer).unwrap();
        done.store(true, Ordering::Relaxed);
        runtime.block_on(ticker).unwrap();
        assert!(used < MUCH, "it did not tick ten times meanwhile");
        assert!(runtime.metrics().retake_count() >= 1);
        finish(runtime);
    });
}

/// One P, a sleeper, and two tasks that compute until it wakes. Returns how many of them began before.
fn begin_beside_a_sleeper() -> usize {
    let runtime = runtime(1);
    let woke = Arc::new(AtomicBool::new(false));
    let asleep = Arc::new(AtomicBool::new(false));
    let waiting = Arc::new(AtomicUsize::new(0));
    let began = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Semaphore::new(0));
    let computers = [(); 2].map(|()| {
        let (woke, began) = (woke.clone(), began.clone());
        let (start, waiting) = (start.clone(), waiting.clone());
        runtime.spawn(async move {
            waiting.fetch_add(1, Ordering::Relaxed);
            let _permit = start.acquire().await.unwrap();
            if !woke.load(Ordering::Relaxed) {
                began.fetch_add(1, Ordering::Relaxed);
            }
            compute(MUCH, || woke.load(Ordering::Relaxed))
        })
    });
    wait_until("both wait", || waiting.load(Ordering::Relaxed) == 2);
    let sleeper = runtime.spawn({
        let (woke, asleep) = (woke.clone(), asleep.clone());
        async move {
            // Less than it takes to lose a P.
            let mut sleep = std::pin::pin!(sleep(Duration::from_millis(5)));
            let _ = futures::poll!(sleep.as_mut());
            asleep.store(true, Ordering::Relaxed);
            sleep.await;
            woke.store(true, Ordering::Relaxed);
        }
    });
    // The poll in which it goes to sleep is over, too: the system may stop a thread in the middle of one.
    let is_idle = || runtime.metrics().num_idle_workers() == 1;
    while !(asleep.load(Ordering::Relaxed) && is_idle()) {
        std::thread::yield_now();
    }
    start.add_permits(2);
    for computer in computers {
        assert!(runtime.block_on(computer).unwrap() < MUCH);
    }
    runtime.block_on(sleeper).unwrap();
    finish(runtime);
    began.load(Ordering::Relaxed)
}

/// Whoever gets a P that was taken away looks at its timers first: the next task may compute as long as the last.
#[test]
fn a_sleeper_that_is_due_goes_before_the_next_task_that_computes() {
    bounded(|| {
        // If it wakes before anybody began, that tells nothing.
        let round = || {
            let mut rounds = (0..1_000).map(|_| begin_beside_a_sleeper());
            let began = rounds.find(|&began| began > 0);
            began.expect("one begins before it wakes")
        };
        // Two may be wrong: the system may stop the thread that is about to run the sleeper, which then loses the P.
        in_rounds(8, round, |&began| began == 1);
    });
}

#[test]
fn many_tasks_that_compute_share_the_ps_with_a_sleeper() {
    bounded(|| {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        let computers: Vec<_> = (0..8)
            .map(|_| {
                let stop = stop.clone();
                runtime.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        compute(Duration::from_millis(3), || stop.load(Ordering::Relaxed));
                        task::yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for _ in 0..10 {
                task::spawn(sleep(Duration::from_millis(1))).await.unwrap();
            }
            echo_over_tcp().await;
        });
        stop.store(true, Ordering::Relaxed);
        for computer in computers {
            runtime.block_on(computer).unwrap();
        }
        finish(runtime);
    });
}

#[test]
fn a_current_thread_runtime_never_retakes() {
    bounded(|| {
        let runtime = current_thread();
        runtime.block_on(async {
            loop {
                let woke = Arc::new(AtomicBool::new(false));
                let sleeper = task::spawn({
                    let woke = woke.clone();
                    async move {
                        sleep(Duration::from_millis(1)).await;
                        woke.store(true, Ordering::Relaxed);
                    }
                });
                task::yield_now().await;
                // Where the machine is busy, the millisecond may be over.
                let before = woke.load(Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
                assert_eq!(woke.load(Ordering::Relaxed), before);
                sleeper.await.unwrap();
                if !before {
                    break;
                }
            }
        });
        assert_eq!(runtime.metrics().retake_count(), 0);
        finish(runtime);
    });
}

#[test]
fn shutdown_waits_for_a_blocked_task_and_drops_the_rest() {
    bounded(|| {
        let runtime = runtime(2);
        let blocked = block(&runtime, 3);
        let (pipe, handles) = (blocked.0.clone(), blocked.1);
        let waiting = runtime.spawn(std::future::pending::<()>());
        let watcher = std::thread::spawn(move || {
            support::wait_until("the waiting task is dropped", || waiting.is_finished());
            pipe.write(3);
        });
        drop(runtime);
        watcher.join().unwrap();
        assert!(handles.iter().all(JoinHandle::is_finished));
    });
}
