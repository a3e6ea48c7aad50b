//! The set on real tasks, and its list of tickets alone where a race has to be met exactly.

use std::cell::Cell;
use std::collections::HashSet;
use std::future::{pending, ready};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Weak, mpsc};
use std::task::Wake;
use std::thread;
use std::time::Duration;

use super::*;
use crate::coop::consume_budget;
use crate::task::{spawn, yield_now};
use crate::{Config, Flavor, Runtime};

/// A runtime under watch: a test that hangs ends the process.
struct Watched {
    runtime: Runtime,
    /// Dropped with the runtime, which stops the watch.
    _stop: mpsc::Sender<()>,
}

impl Watched {
    fn new(config: Config) -> Watched {
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            let waited = stopped.recv_timeout(Duration::from_secs(600));
            if waited == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("a test of the JoinSet hangs");
                std::process::abort();
            }
        });
        Watched {
            runtime: Runtime::new(config).expect("threads"),
            _stop: stop,
        }
    }
}

impl Deref for Watched {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

fn current() -> Watched {
    Watched::new(Config::new(Flavor::CurrentThread, 1))
}

fn multi(procs: usize) -> Watched {
    Watched::new(Config::new(Flavor::MultiThread, procs))
}

/// Runs the test on every kind of runtime.
fn everywhere<F: Future<Output = ()>>(test: impl Fn() -> F) {
    for runtime in [current(), multi(1), multi(4)] {
        runtime.block_on(test());
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes::default());
        (wakes.clone(), Waker::from(wakes))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Tells when it is dropped.
struct Tells(mpsc::Sender<()>);

impl Drop for Tells {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// How many tasks have completed and wait to be joined.
fn listed<T>(set: &JoinSet<T>) -> usize {
    let inner = set.inner.as_ref().expect("it has had a task");
    inner.finished.0.lock().tickets.len()
}

/// Lets the tasks run until `n` have completed.
async fn until_listed<T>(set: &JoinSet<T>, n: usize) {
    while listed(set) < n {
        yield_now().await;
    }
}

/// A task that never ends, and the news of its end.
fn endless() -> (impl Future<Output = ()> + Send, mpsc::Receiver<()>) {
    let (send, receive) = mpsc::channel();
    let tells = Tells(send);
    let task = async move {
        let _tells = tells;
        pending::<()>().await;
    };
    (task, receive)
}

#[test]
fn every_task_is_joined_once() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        for n in 0..1_000 {
            set.spawn(async move {
                if n % 3 == 0 {
                    yield_now().await;
                }
                n
            });
            assert_eq!(set.len(), n + 1);
        }
        let mut seen = HashSet::new();
        while let Some(result) = set.join_next().await {
            assert!(seen.insert(result.expect("no panic")));
            assert_eq!(set.len(), 1_000 - seen.len());
        }
        assert_eq!(seen.len(), 1_000);
        assert!(set.is_empty());
    });
}

#[test]
fn an_empty_set_is_done() {
    everywhere(|| async {
        let mut set = JoinSet::<u8>::default();
        assert!((set.is_empty(), set.len()) == (true, 0));
        assert!(set.join_next().await.is_none());
        assert!(set.join_next_with_id().await.is_none());
        assert!(set.try_join_next().is_none());
        assert!(set.try_join_next_with_id().is_none());
        set.abort_all();
        set.detach_all();
        set.shutdown().await;
        // Also when it was not always empty.
        set.spawn(async { 1 });
        assert_eq!(set.join_next().await.expect("a task").expect("no panic"), 1);
        assert!(set.join_next().await.is_none());
        assert!(set.try_join_next().is_none());
        assert!(set.join_all().await.is_empty());
    });
}

#[test]
fn tasks_come_in_the_order_in_which_they_complete() {
    current().block_on(async {
        let mut set = JoinSet::new();
        let (mut sends, receives): (Vec<_>, Vec<_>) = (0..5).map(|_| gate()).unzip();
        for (n, receive) in receives.into_iter().enumerate() {
            set.spawn(async move {
                receive.await;
                n
            });
        }
        yield_now().await;
        for (done, n) in [3, 0, 4].into_iter().enumerate() {
            sends[n].open();
            until_listed(&set, done + 1).await;
        }
        sends.clear();
        assert_eq!(set.join_all().await[..3], [3, 0, 4]);
    });
}

/// A future that is ready once the other half says so or is gone.
fn gate() -> (Opener, impl Future<Output = ()> + Send) {
    let shared = Arc::new(Mutex::new((false, None::<Waker>)));
    let waits = shared.clone();
    let opened = poll_fn(move |cx| {
        let mut gate = waits.lock();
        if gate.0 {
            return Poll::Ready(());
        }
        gate.1 = Some(cx.waker().clone());
        Poll::Pending
    });
    (Opener(shared), opened)
}

struct Opener(Arc<Mutex<(bool, Option<Waker>)>>);

impl Opener {
    fn open(&self) {
        let mut gate = self.0.lock();
        gate.0 = true;
        let waker = gate.1.take();
        drop(gate);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.open();
    }
}

#[test]
fn tasks_can_be_added_between_joins() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        set.spawn(async { 0 });
        set.spawn(async { 1 });
        for n in 2..500 {
            set.join_next().await.expect("a task").expect("no panic");
            assert_eq!(set.len(), 1);
            set.spawn(async move { n });
            assert_eq!(set.len(), 2);
        }
    });
}

#[test]
fn ids_are_those_of_the_tasks() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let mut expected: HashSet<_> = (0..50)
            .map(|n| (set.spawn(async move { (n, crate::task::id()) }).id(), n))
            .collect();
        let failing = set.spawn(async { panic!("on purpose") }).id();
        while let Some(result) = set.join_next_with_id().await {
            match result {
                Ok((id, (n, own))) => {
                    assert_eq!(id, own);
                    assert!(expected.remove(&(id, n)));
                }
                Err(error) => assert!(error.is_panic() && error.id() == failing),
            }
        }
        assert!(expected.is_empty());
    });
}

#[test]
fn try_join_finds_what_has_completed_and_no_more() {
    current().block_on(async {
        let mut set = JoinSet::new();
        for n in 0..300 {
            set.spawn(async move { n });
        }
        let (task, _news) = endless();
        set.spawn(async move {
            task.await;
            0
        });
        assert!(set.try_join_next().is_none(), "none has run");
        until_listed(&set, 300).await;
        // More than a budget, in one poll.
        let mut sum = 0;
        while let Some(result) = set.try_join_next() {
            sum += result.expect("no panic");
        }
        assert_eq!((sum, set.len()), (299 * 150, 1));
        assert!(set.try_join_next_with_id().is_none());
    });
}

#[test]
fn dropping_the_set_aborts_its_tasks() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let news: Vec<_> = (0..16)
            .map(|_| {
                let (task, news) = endless();
                set.spawn(task);
                news
            })
            .collect();
        yield_now().await;
        drop(set);
        for news in news {
            while news.try_recv().is_err() {
                yield_now().await;
            }
        }
    });
}

#[test]
fn detached_tasks_go_on() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let (send, receive) = mpsc::channel();
        let (opener, opened) = gate();
        set.spawn(async move {
            opened.await;
            send.send(1).expect("it is received");
        });
        yield_now().await;
        set.detach_all();
        assert!(set.is_empty());
        assert!(set.join_next().await.is_none());
        drop(set);
        opener.open();
        while receive.try_recv().is_err() {
            yield_now().await;
        }
    });
}

#[test]
fn aborted_tasks_stay_until_they_are_joined() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        for n in 0..20 {
            if n % 2 == 0 {
                set.spawn(async {});
            } else {
                set.spawn(endless().0);
            }
        }
        let aborted = set.spawn(endless().0);
        yield_now().await;
        aborted.abort();
        set.abort_all();
        assert_eq!(set.len(), 21);
        let mut cancelled = 0;
        while let Some(result) = set.join_next_with_id().await {
            if let Err(error) = result {
                assert!(error.is_cancelled());
                cancelled += 1;
            }
        }
        assert!(cancelled >= 11, "{cancelled}");
    });
}

#[test]
fn shutdown_waits_until_all_are_gone() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let (task, news) = endless();
        set.spawn(task);
        set.spawn(async { panic!("ignored") });
        yield_now().await;
        set.shutdown().await;
        assert!(set.is_empty());
        assert_eq!(news.try_recv(), Ok(()));
    });
}

#[test]
fn join_all_gives_all_outputs() {
    everywhere(|| async {
        let set: JoinSet<u32> = (0..300).map(|n| async move { n }).collect();
        let mut outputs = set.join_all().await;
        outputs.sort_unstable();
        assert_eq!(outputs, (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn join_all_hands_on_a_panic_and_aborts_the_rest() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let (task, news) = endless();
        set.spawn(task);
        set.spawn(async { panic!("of a task") });
        let error = spawn(set.join_all()).await.expect_err("a panic");
        assert_eq!(error.into_panic().downcast_ref(), Some(&"of a task"));
        while news.try_recv().is_err() {
            yield_now().await;
        }
    });
}

#[test]
fn join_all_panics_when_a_task_was_aborted() {
    current().block_on(async {
        let mut set = JoinSet::new();
        set.spawn(endless().0).abort();
        assert!(spawn(set.join_all()).await.expect_err("a panic").is_panic());
    });
}

#[test]
fn extend_adds_to_what_is_there() {
    everywhere(|| async {
        let mut set: JoinSet<_> = (0..5).map(|n| async move { n }).collect();
        set.extend((5..10).map(|n| async move { n }));
        assert_eq!(set.len(), 10);
        let mut outputs = set.join_all().await;
        outputs.sort_unstable();
        assert_eq!(outputs, (0..10).collect::<Vec<i32>>());
    });
}

#[test]
fn blocking_jobs_are_joined_too() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        for n in 0..10 {
            set.spawn_blocking(move || n);
        }
        set.spawn_blocking(|| panic!("of a job"));
        let (mut sum, mut panics) = (0, 0);
        while let Some(result) = set.join_next().await {
            match result {
                Ok(n) => sum += n,
                Err(error) => panics += u32::from(error.is_panic()),
            }
        }
        assert_eq!((sum, panics), (45, 1));
    });
}

#[test]
fn tasks_of_another_runtime() {
    let there = multi(1);
    current().block_on(async {
        let mut set = JoinSet::new();
        let thread = || thread::current().id();
        set.spawn_on(async move { thread() }, there.handle());
        set.spawn_blocking_on(thread, there.handle());
        while let Some(result) = set.join_next().await {
            assert_ne!(result.expect("no panic"), thread());
        }
    });
}

#[test]
fn tasks_of_a_runtime_that_is_gone_are_cancelled() {
    let mut set = JoinSet::new();
    let runtime = current();
    let handle = runtime.handle().clone();
    set.spawn_on(async { 1 }, &handle);
    drop(runtime);
    // This one never gets to run: it may be complete before it is in the set.
    set.spawn_on(async { 2 }, &handle);
    set.spawn_blocking_on(|| 3, &handle);
    assert_eq!(set.len(), 3);
    current().block_on(async {
        for left in [2, 1, 0] {
            let error = set
                .join_next()
                .await
                .expect("a task")
                .expect_err("an error");
            assert!(error.is_cancelled());
            assert_eq!(set.len(), left);
        }
    });
}

#[test]
fn a_task_that_was_complete_before_it_came_in() {
    everywhere(|| async {
        for way in 0..4 {
            let finished = spawn(async { Box::new(7) });
            while !finished.is_finished() {
                yield_now().await;
            }
            let mut set = JoinSet::new();
            let id = finished.id();
            assert_eq!(set.insert(finished).id(), id);
            assert_eq!(set.len(), 1);
            set.abort_all();
            match way {
                0 => {
                    let (found, output) = set.join_next_with_id().await.unwrap().unwrap();
                    assert_eq!((found, *output), (id, 7));
                }
                1 => assert_eq!(*set.try_join_next().unwrap().unwrap(), 7),
                2 => set.detach_all(),
                _ => {}
            }
            assert!(way == 3 || set.is_empty());
        }
    });
}

/// Tasks that are not `Send`, and what happens to them in each way the set can end.
#[test]
fn local_tasks_of_the_current_local_set() {
    for end in ["join", "shutdown", "drop"] {
        let runtime = current();
        let local = LocalSet::new();
        runtime.block_on(local.run_until(async {
            let mut set = JoinSet::new();
            let dropped = Rc::new(Cell::new(0));
            for n in 0..8 {
                let counts = CountsDrop(dropped.clone());
                set.spawn_local(async move {
                    if end != "join" {
                        pending::<()>().await;
                    }
                    drop(counts);
                    n
                });
            }
            assert!(set.try_join_next().is_none(), "none has run");
            match end {
                "join" => {
                    let mut outputs = set.join_all().await;
                    outputs.sort_unstable();
                    assert_eq!(outputs, (0..8).collect::<Vec<i32>>());
                }
                "shutdown" => {
                    set.shutdown().await;
                    assert!(set.is_empty());
                }
                _ => drop(set),
            }
            while dropped.get() < 8 {
                yield_now().await;
            }
        }));
    }
}

struct CountsDrop(Rc<Cell<u32>>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn local_tasks_of_a_local_set_that_runs_later() {
    let runtime = current();
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    let dropped = Rc::new(Cell::new(0));
    for n in 0..4 {
        let n = Rc::new(n);
        set.spawn_local_on(async move { *n }, &local);
    }
    let counts = CountsDrop(dropped.clone());
    let forever = set.spawn_local_on(
        async move {
            let _counts = counts;
            pending().await
        },
        &local,
    );
    assert_eq!((set.len(), set.try_join_next().is_none()), (5, true));
    runtime.block_on(local.run_until(async {
        let mut sum = 0;
        for _ in 0..4 {
            sum += set.join_next().await.expect("a task").expect("no panic");
        }
        assert_eq!((sum, dropped.get()), (6, 0));
        forever.abort();
        let error = set
            .join_next_with_id()
            .await
            .expect("a task")
            .expect_err("an error");
        assert!(error.is_cancelled() && error.id() == forever.id());
        assert_eq!(dropped.get(), 1);
    }));
}

#[test]
fn local_tasks_aborted_before_their_local_set_runs() {
    let runtime = current();
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    let dropped = Rc::new(Cell::new(0));
    let counts = CountsDrop(dropped.clone());
    set.spawn_local_on(async move { drop(counts) }, &local);
    drop(set);
    runtime.block_on(local.run_until(async {
        while dropped.get() == 0 {
            yield_now().await;
        }
    }));
}

#[test]
#[should_panic(expected = "`spawn_local` called from outside of a `task::LocalSet`")]
fn spawn_local_panics_outside_of_everything() {
    JoinSet::new().spawn_local(async {});
}

#[test]
#[should_panic(expected = "`spawn_local` called from outside of a `task::LocalSet`")]
fn spawn_local_panics_on_many_threads() {
    multi(1).block_on(async {
        JoinSet::new().spawn_local(async {});
    });
}

#[test]
#[should_panic(expected = "there is no reactor running")]
fn spawn_panics_outside_of_a_runtime() {
    JoinSet::new().spawn(async {});
}

#[test]
#[should_panic(expected = "there is no reactor running")]
fn spawn_blocking_panics_outside_of_a_runtime() {
    JoinSet::new().spawn_blocking(|| {});
}

/// Polled beyond its budget the set is pending, wakes the task and loses nothing.
#[test]
fn the_budget_is_kept() {
    current().block_on(async {
        let mut set = JoinSet::new();
        for n in 0..1_000 {
            set.spawn(async move { n });
        }
        until_listed(&set, 1_000).await;
        let (wakes, waker) = Wakes::new();
        let (mut joined, mut denied) = (0, 0);
        while joined < 1_000 {
            match set.poll_join_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => {
                    result.expect("a task").expect("no panic");
                    joined += 1;
                }
                Poll::Pending => {
                    denied += 1;
                    assert!(denied < 100, "the denial must end with the poll");
                    yield_now().await;
                    assert!(wakes.count() >= denied);
                }
            }
        }
        assert!(denied >= 5, "{denied}");
    });
}

#[test]
fn an_empty_set_and_nothing_finished_cost_no_budget() {
    current().block_on(async {
        let mut empty = JoinSet::<()>::new();
        let mut waiting = JoinSet::new();
        waiting.spawn(endless().0);
        for _ in 0..1_000 {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(empty.poll_join_next(&mut cx).is_ready());
            assert!(waiting.poll_join_next(&mut cx).is_pending());
        }
        assert!(coop::has_budget_remaining());
        let mut consume = pin!(consume_budget());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(consume.as_mut().poll(&mut cx).is_ready());
    });
}

#[test]
fn only_the_last_waker_is_woken() {
    let runtime = multi(1);
    let mut set = JoinSet::new();
    let (opener, opened) = gate();
    set.spawn_on(opened, runtime.handle());
    let (old, old_waker) = Wakes::new();
    let (new, new_waker) = Wakes::new();
    assert!(
        set.poll_join_next(&mut Context::from_waker(&old_waker))
            .is_pending()
    );
    assert!(
        set.poll_join_next(&mut Context::from_waker(&new_waker))
            .is_pending()
    );
    opener.open();
    while new.count() == 0 {
        thread::yield_now();
    }
    assert!(
        set.poll_join_next(&mut Context::from_waker(&new_waker))
            .is_ready()
    );
    assert_eq!((old.count(), new.count()), (0, 1));
}

/// A waker whose drop uses the runtime: it must not be dropped under the set's lock.
#[test]
fn wakers_are_dropped_outside_of_the_lock() {
    struct Drives(Watched);
    impl Wake for Drives {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Drives {
        fn drop(&mut self) {
            self.0.block_on(yield_now());
        }
    }
    let runtime = current();
    let mut set = JoinSet::new();
    set.spawn_on(ready(42), runtime.handle());
    let waker = Waker::from(Arc::new(Drives(runtime)));
    assert!(
        set.poll_join_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    // This drops the last reference to the waker; its drop runs the task, which lists its ticket.
    let mut cx = Context::from_waker(Waker::noop());
    assert!(set.poll_join_next(&mut cx).is_pending());
    assert_eq!(set.try_join_next().expect("a task").expect("no panic"), 42);
}

/// A49: the task whose completion wakes it, and the worker, live on.
#[test]
fn a_waker_that_panics_does_no_harm() {
    struct Panics(Arc<Wakes>);
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.0.fetch_add(1, Ordering::SeqCst);
            panic!("of a waker");
        }
    }
    let runtime = multi(1);
    let mut set = JoinSet::new();
    let (opener, opened) = gate();
    set.spawn_on(opened, runtime.handle());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::new(Panics(wakes.clone())));
    assert!(
        set.poll_join_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    opener.open();
    while wakes.count() == 0 {
        thread::yield_now();
    }
    runtime.block_on(async {
        set.join_next().await.expect("a task").expect("no panic");
        spawn(async {}).await.expect("no panic");
    });
}

#[test]
fn a_finished_list_is_found_without_polling_the_others() {
    current().block_on(async {
        let mut set = JoinSet::new();
        for _ in 0..10_000 {
            set.spawn(pending());
        }
        set.spawn(async { 5 });
        until_listed(&set, 1).await;
        assert_eq!(listed(&set), 1);
        assert_eq!(set.join_next().await.expect("a task").expect("no panic"), 5);
    });
}

/// A ticket of the set, for a member that is there or not.
fn ticket(finished: &Arc<Finished>, key: usize, serial: u64) -> Arc<Ticket> {
    Arc::new(Ticket {
        key,
        serial,
        listed: AtomicBool::new(false),
        finished: finished.clone(),
    })
}

#[test]
fn a_ticket_of_a_former_tenant_is_ignored() {
    let runtime = current();
    let mut set = JoinSet::new();
    set.spawn_on(pending::<()>(), runtime.handle());
    let finished = set.inner.as_ref().expect("made").finished.clone();
    let (wakes, waker) = Wakes::new();
    let mut cx = Context::from_waker(&waker);
    assert!(set.poll_join_next(&mut cx).is_pending());
    // The slot is right and the number is not; then there is no such slot.
    ArcWake::wake(ticket(&finished, 0, 77));
    assert_eq!(wakes.count(), 1);
    assert!(set.poll_join_next(&mut cx).is_pending());
    ArcWake::wake(ticket(&finished, 5, 0));
    assert!(set.try_join_next().is_none());
    // The right one, woken although the task has not completed.
    ArcWake::wake(ticket(&finished, 0, 0));
    assert!(set.poll_join_next(&mut cx).is_pending());
    assert_eq!(set.len(), 1);
}

#[test]
fn a_ticket_is_listed_once_however_often_it_is_woken() {
    let finished = Arc::new(Finished::new());
    let ticket = ticket(&finished, 0, 0);
    for _ in 0..3 {
        ArcWake::wake_by_ref(&ticket);
    }
    assert!(
        finished
            .pop()
            .is_some_and(|popped| Arc::ptr_eq(&popped, &ticket))
    );
    assert!(finished.pop().is_none());
    // Taken, it can be listed again.
    ArcWake::wake_by_ref(&ticket);
    assert!(finished.pop_or_wait(Waker::noop()).is_some());
    assert!(finished.pop_or_wait(Waker::noop()).is_none());
}

#[test]
fn a_ticket_listed_while_the_waker_is_cloned_is_found() {
    thread_local! {
        static LATE: Cell<Option<Arc<Ticket>>> = const { Cell::new(None) };
    }
    // A waker that lists the ticket when it is cloned.
    const LATE_WAKER: std::task::RawWakerVTable = std::task::RawWakerVTable::new(
        |data| {
            if let Some(ticket) = LATE.take() {
                ArcWake::wake(ticket);
            }
            std::task::RawWaker::new(data, &LATE_WAKER)
        },
        |_| {},
        |_| {},
        |_| {},
    );
    let finished = Arc::new(Finished::new());
    LATE.set(Some(ticket(&finished, 0, 0)));
    // SAFETY: the functions of the table do nothing with the pointer.
    let waker = unsafe { Waker::new(std::ptr::null(), &LATE_WAKER) };
    assert!(finished.pop_or_wait(&waker).is_some());
}

#[test]
fn a_closed_list_keeps_nothing() {
    let finished = Arc::new(Finished::new());
    let (wakes, waker) = Wakes::new();
    let (early, late) = (ticket(&finished, 0, 0), ticket(&finished, 1, 1));
    assert!(finished.pop_or_wait(&waker).is_none());
    drop(waker);
    ArcWake::wake_by_ref(&early);
    finished.close();
    ArcWake::wake_by_ref(&late);
    assert!(finished.pop().is_none());
    assert_eq!(
        (Arc::strong_count(&early), Arc::strong_count(&late)),
        (1, 1)
    );
    assert_eq!((wakes.count(), Arc::strong_count(&wakes)), (1, 1));
}

/// Tickets hold the list and the list holds tickets: neither may outlive the set and its tasks.
#[test]
fn nothing_leaks() {
    let runtime = multi(2);
    let mut lists: Vec<Weak<Finished>> = Vec::new();
    for way in 0..3 {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for n in 0..10 {
                set.spawn(async move {
                    if n % 2 == 0 {
                        pending::<()>().await;
                    }
                });
            }
            lists.push(Arc::downgrade(&set.inner.as_ref().expect("made").finished));
            yield_now().await;
            match way {
                0 => drop(set),
                1 => set.detach_all(),
                _ => {
                    set.join_next().await;
                    set.shutdown().await;
                }
            }
        });
    }
    drop(runtime);
    assert!(lists.iter().all(|list| list.strong_count() == 0));
}

#[test]
fn outputs_that_nobody_joined_are_dropped_with_the_set() {
    current().block_on(async {
        let (send, receive) = mpsc::channel();
        let mut set = JoinSet::new();
        for _ in 0..3 {
            let send = send.clone();
            set.spawn(async move { Tells(send) });
        }
        until_listed(&set, 3).await;
        assert!(receive.try_recv().is_err());
        drop(set);
        assert_eq!(receive.try_iter().count(), 3);
    });
}

#[test]
fn a_join_that_is_given_up_loses_no_task() {
    everywhere(|| async {
        let mut set = JoinSet::new();
        let (opener, opened) = gate();
        set.spawn(opened);
        {
            let mut joining = pin!(set.join_next());
            let mut cx = Context::from_waker(Waker::noop());
            assert!(joining.as_mut().poll(&mut cx).is_pending());
        }
        opener.open();
        assert_eq!(set.len(), 1);
        assert!(set.join_next().await.is_some());
    });
}

#[test]
fn many_tasks_on_many_threads() {
    let runtime = multi(4);
    let sum = runtime.block_on(async {
        let mut set = JoinSet::new();
        let mut sum = 0_u64;
        for n in 0..20_000_u64 {
            set.spawn(async move {
                if n % 7 == 0 {
                    yield_now().await;
                }
                n
            });
            if n % 3 == 0 {
                sum += set.join_next().await.expect("a task").expect("no panic");
            }
        }
        while let Some(result) = set.join_next().await {
            sum += result.expect("no panic");
        }
        sum
    });
    assert_eq!(sum, 19_999 * 10_000);
}

#[test]
fn a_panic_of_an_outputs_drop_does_not_stop_the_set() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic!("in the drop");
            }
        }
    }
    current().block_on(async {
        let mut set = JoinSet::new();
        set.spawn(async { Panics });
        let (task, news) = endless();
        set.spawn(async {
            task.await;
            Panics
        });
        until_listed(&set, 1).await;
        let _ = catch_unwind(AssertUnwindSafe(|| drop(set)));
        while news.try_recv().is_err() {
            yield_now().await;
        }
    });
}

#[test]
fn debug_and_size() {
    assert_eq!(format!("{:?}", JoinSet::<u8>::new()), "JoinSet { len: 0 }");
    assert_eq!(size_of::<JoinSet<[u8; 64]>>(), size_of::<usize>());
}

#[test]
fn auto_traits_are_those_of_the_output() {
    trait Ambiguous<A> {
        fn check() {}
    }
    struct Both;
    impl<T: ?Sized> Ambiguous<()> for T {}
    impl<T: ?Sized + Send> Ambiguous<Both> for T {}
    struct OnlySync;
    impl<T: ?Sized + Sync> Ambiguous<OnlySync> for T {}
    fn is_send_sync_unpin<T: Send + Sync + Unpin>() {}
    is_send_sync_unpin::<JoinSet<u8>>();
    // By reference the set gives no output away.
    is_send_sync_unpin::<JoinSet<Cell<u8>>>();
    // Would be ambiguous if it were `Send` or `Sync`.
    <JoinSet<Rc<u8>> as Ambiguous<_>>::check();
}
