//! What the documentation promises, sentence by sentence: what a future that is given up loses and what it does
//! not, who comes first, and what is dropped when.
//!
//! To give up is to be polled, to wait, and to be dropped, as by `select!` when another branch is ready.
//! Often the future has been woken in between: it must not take with it what it was woken for.

use std::cell::RefCell;
use std::future::{Future, pending, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, poll};
use gmp::sync::mpsc::error::{TryRecvError, TrySendError};
use gmp::sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch,
};
use gmp::task::{self, JoinSet, LocalSet};
use gmp::time::{self, Instant, MissedTickBehavior};

const MS: Duration = Duration::from_millis(1);

/// Polls it once, as the first branch of a `select!` of which the second is ready.
async fn give_up<F: Future>(future: F) {
    gmp::select! {
        biased;
        _ = future => panic!("it has not had to wait"),
        () = ready(()) => {}
    }
}

/// Asserts that it waits, without dropping it.
macro_rules! waits {
    ($future:ident) => {
        assert!(poll!($future.as_mut()).is_pending())
    };
}

/// What it gives, which must be there.
macro_rules! gives {
    ($future:ident) => {
        $future.as_mut().now_or_never().expect("it is ready")
    };
}

#[gmp::test]
async fn recv_given_up_takes_no_message() {
    let (sender, mut receiver) = mpsc::channel(4);
    let (unbounded, mut unbounded_receiver) = mpsc::unbounded_channel();
    give_up(receiver.recv()).await;
    {
        let mut recv = pin!(receiver.recv());
        let mut unbounded_recv = pin!(unbounded_receiver.recv());
        waits!(recv);
        waits!(unbounded_recv);
        sender.send(1).await.unwrap();
        unbounded.send(1).unwrap();
    }
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(unbounded_receiver.try_recv(), Ok(1));
}

#[gmp::test]
async fn recv_many_given_up_takes_no_message() {
    let (sender, mut receiver) = mpsc::channel(4);
    let mut buffer = vec![0];
    {
        let mut recv = pin!(receiver.recv_many(&mut buffer, 4));
        waits!(recv);
        sender.send(1).await.unwrap();
        sender.send(2).await.unwrap();
    }
    assert_eq!(buffer, [0]);
    assert_eq!(receiver.recv_many(&mut buffer, 4).await, 2);
    assert_eq!(buffer, [0, 1, 2]);
}

#[gmp::test]
async fn send_given_up_sends_nothing_and_drops_the_message() {
    let (sender, mut receiver) = mpsc::channel(1);
    let message = Arc::new(());
    sender.send(message.clone()).await.unwrap();
    {
        let mut send = pin!(sender.send(message.clone()));
        waits!(send);
        // Served, and given up all the same.
        drop(receiver.recv().await);
    }
    assert_eq!(Arc::strong_count(&message), 1);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.capacity(), 1);
}

#[gmp::test]
async fn sends_and_reserves_complete_in_the_order_they_were_asked_for() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.send(0).await.unwrap();
    let mut first = pin!(sender.send(1));
    let mut second = pin!(sender.reserve());
    let mut third = pin!(sender.send(3));
    waits!(first);
    waits!(second);
    waits!(third);
    assert_eq!(receiver.recv().await, Some(0));
    waits!(third);
    waits!(second);
    gives!(first).unwrap();
    assert_eq!(receiver.recv().await, Some(1));
    waits!(third);
    assert!(matches!(sender.try_send(9), Err(TrySendError::Full(9))));
    gives!(second).unwrap().send(2);
    assert_eq!(receiver.recv().await, Some(2));
    gives!(third).unwrap();
    assert_eq!(receiver.recv().await, Some(3));
}

#[gmp::test]
async fn a_reserve_given_up_loses_its_place_and_nothing_else() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.send(0).await.unwrap();
    let mut second = pin!(sender.reserve());
    {
        let mut first = pin!(sender.reserve());
        waits!(first);
        waits!(second);
        receiver.recv().await;
        waits!(second);
    }
    // What the first one had been given is the second one's.
    drop(gives!(second).unwrap());
    // Asked for again, it comes last.
    sender.send(0).await.unwrap();
    give_up(sender.reserve()).await;
    let mut second = pin!(sender.reserve());
    waits!(second);
    let mut again = pin!(sender.reserve());
    waits!(again);
    receiver.recv().await;
    waits!(again);
    gives!(second).unwrap();
}

#[gmp::test]
async fn permits_that_are_not_used_give_the_capacity_back() {
    let (sender, mut receiver) = mpsc::channel(3);
    let mut permits = sender.reserve_many(3).await.unwrap();
    assert_eq!(sender.capacity(), 0);
    permits.next().unwrap().send(1);
    drop(permits.next());
    assert_eq!(sender.capacity(), 1);
    drop(permits);
    assert_eq!(sender.capacity(), 2);
    drop(sender.clone().reserve_owned().await.unwrap());
    assert_eq!(sender.capacity(), 2);
    assert_eq!(receiver.recv().await, Some(1));
}

#[gmp::test]
async fn a_closed_channel_is_drained_first_permits_included() {
    let (sender, mut receiver) = mpsc::channel(2);
    let permit = sender.reserve().await.unwrap();
    sender.send(1).await.unwrap();
    receiver.close();
    assert!(sender.send(3).await.is_err());
    assert_eq!(receiver.recv().await, Some(1));
    give_up(receiver.recv()).await;
    permit.send(2);
    assert_eq!(receiver.recv().await, Some(2));
    assert_eq!(receiver.recv().await, None);
}

#[gmp::test]
async fn once_a_channel_is_closed_closed_returns_at_once() {
    let (sender, receiver) = mpsc::channel::<()>(1);
    let (unbounded, unbounded_receiver) = mpsc::unbounded_channel::<()>();
    let (mut one, one_receiver) = oneshot::channel::<()>();
    let (broadcast, broadcast_receiver) = broadcast::channel::<()>(1);
    let (watch, watch_receiver) = watch::channel(());
    give_up(sender.closed()).await;
    give_up(unbounded.closed()).await;
    give_up(one.closed()).await;
    give_up(broadcast.closed()).await;
    give_up(watch.closed()).await;
    drop((receiver, unbounded_receiver, one_receiver));
    drop((broadcast_receiver, watch_receiver));
    for _ in 0..2 {
        sender.closed().now_or_never().unwrap();
        unbounded.closed().now_or_never().unwrap();
        one.closed().now_or_never().unwrap();
        broadcast.closed().now_or_never().unwrap();
        watch.closed().now_or_never().unwrap();
    }
}

#[gmp::test]
async fn a_oneshot_awaited_by_reference_loses_nothing() {
    let (sender, mut receiver) = oneshot::channel();
    give_up(&mut receiver).await;
    {
        let mut recv = pin!(&mut receiver);
        waits!(recv);
        sender.send(1).unwrap();
    }
    assert_eq!(receiver.await, Ok(1));
}

#[gmp::test]
async fn a_broadcast_recv_given_up_takes_no_message() {
    let (sender, mut receiver) = broadcast::channel(2);
    {
        let mut recv = pin!(receiver.recv());
        waits!(recv);
        sender.send(1).unwrap();
    }
    assert_eq!(receiver.recv().await, Ok(1));
}

#[gmp::test]
async fn changed_given_up_marks_nothing_as_seen() {
    let (sender, mut receiver) = watch::channel(0);
    {
        let mut changed = pin!(receiver.changed());
        waits!(changed);
        sender.send(1).unwrap();
    }
    assert!(receiver.has_changed().unwrap());
    receiver.changed().await.unwrap();
}

#[gmp::test]
async fn after_wait_for_given_up_the_value_seen_last_was_refused() {
    let (sender, mut receiver) = watch::channel(0);
    sender.send(1).unwrap();
    {
        let mut wait = pin!(receiver.wait_for(|value| *value > 5));
        waits!(wait);
        sender.send(7).unwrap();
    }
    // It has seen 1 and not 7.
    assert!(receiver.has_changed().unwrap());
    sender.send(2).unwrap();
    give_up(receiver.wait_for(|value| *value > 5)).await;
    assert!(!receiver.has_changed().unwrap());
}

#[gmp::test]
async fn a_mutex_is_given_in_the_order_asked_for_and_giving_up_loses_the_place() {
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock().await;
    let mut second = pin!(mutex.clone().lock_owned());
    {
        let mut first = pin!(mutex.lock());
        waits!(first);
        waits!(second);
        let mut third = pin!(mutex.lock());
        waits!(third);
        drop(guard);
        waits!(third);
        waits!(second);
        assert!(mutex.try_lock().is_err(), "it is the first one's");
    }
    drop(gives!(second));
    assert!(mutex.try_lock().is_ok());
}

#[gmp::test]
async fn readers_do_not_overtake_a_writer_that_waits() {
    let lock = RwLock::new(());
    let reading = lock.read().await;
    let mut late = pin!(lock.read());
    {
        let mut writer = pin!(lock.write());
        waits!(writer);
        waits!(late);
        assert!(lock.try_read().is_err());
    }
    // The writer has given up its place.
    drop(gives!(late));
    let mut writer = pin!(lock.write());
    waits!(writer);
    drop(reading);
    drop(gives!(writer));
}

#[gmp::test]
async fn permits_are_given_in_the_order_asked_for_whatever_the_number() {
    let semaphore = Semaphore::new(2);
    let mut one = pin!(semaphore.acquire());
    {
        let mut many = pin!(semaphore.acquire_many(3));
        waits!(many);
        // There would be enough for it, but the other was first.
        waits!(one);
        assert!(semaphore.try_acquire().is_err());
    }
    drop(gives!(one).unwrap());
    assert_eq!(semaphore.available_permits(), 2);
}

#[gmp::test]
async fn a_notification_that_nobody_has_seen_goes_on_to_the_next() {
    let notify = Notify::new();
    let mut second = pin!(notify.notified());
    {
        let mut first = pin!(notify.notified());
        waits!(first);
        waits!(second);
        notify.notify_one();
        waits!(second);
    }
    gives!(second);
    // The last one leaves it for who comes next.
    {
        let mut only = pin!(notify.notified());
        waits!(only);
        notify.notify_one();
    }
    notify.notified().now_or_never().unwrap();
}

#[gmp::test]
async fn notify_waiters_reaches_who_exists_and_leaves_nothing_behind() {
    let notify = Notify::new();
    let mut made = pin!(notify.notified());
    let mut polled = pin!(notify.notified());
    waits!(polled);
    notify.notify_waiters();
    gives!(made);
    gives!(polled);
    give_up(notify.notified()).await;
    // Many notifications are one permit.
    notify.notify_one();
    notify.notify_one();
    notify.notified().await;
    give_up(notify.notified()).await;
}

#[gmp::test]
async fn who_gives_up_at_a_barrier_has_arrived() {
    let barrier = Barrier::new(2);
    give_up(barrier.wait()).await;
    assert!(barrier.wait().now_or_never().unwrap().is_leader());
}

#[gmp::test]
async fn an_initialisation_given_up_is_begun_anew_by_the_next() {
    let cell = OnceCell::new();
    let mut second = pin!(cell.get_or_init(|| ready(2)));
    {
        let mut first = pin!(cell.get_or_init(pending));
        waits!(first);
        waits!(second);
    }
    assert_eq!(*gives!(second), 2);
    // An error is no value.
    let cell = OnceCell::new();
    assert_eq!(cell.get_or_try_init(|| ready(Err(1))).await, Err(1));
    assert_eq!(cell.get_or_try_init(|| ready(Ok::<_, u8>(2))).await, Ok(&2));
    let set = SetOnce::new();
    give_up(set.wait()).await;
    set.set(3).unwrap();
    assert_eq!(*set.wait().await, 3);
}

#[gmp::test(start_paused = true)]
async fn a_sleep_awaited_by_reference_goes_on_from_where_it_was() {
    let start = Instant::now();
    let mut sleep = pin!(time::sleep(100 * MS));
    gmp::select! {
        () = &mut sleep => panic!("too early"),
        () = time::sleep(60 * MS) => {}
    }
    sleep.await;
    assert_eq!(start.elapsed(), 100 * MS);
}

#[gmp::test(start_paused = true)]
async fn a_tick_given_up_is_not_consumed() {
    let start = Instant::now();
    let mut interval = time::interval_at(start + 10 * MS, 10 * MS);
    interval.set_missed_tick_behavior(MissedTickBehavior::Burst);
    {
        let mut tick = pin!(interval.tick());
        waits!(tick);
        time::advance(10 * MS).await;
    }
    assert_eq!(interval.tick().await, start + 10 * MS);
    assert_eq!(interval.tick().await, start + 20 * MS);
}

#[gmp::test(start_paused = true)]
async fn a_future_that_is_timed_out_is_dropped_with_the_timeout() {
    let (sender, receiver) = oneshot::channel::<()>();
    let mut timeout = Box::pin(time::timeout(MS, async move {
        let _sender = sender;
        pending::<()>().await;
    }));
    assert!(timeout.as_mut().await.is_err());
    let mut receiver = pin!(receiver);
    waits!(receiver);
    drop(timeout);
    assert!(gives!(receiver).is_err());
}

#[gmp::test]
async fn a_handle_awaited_by_reference_loses_no_output() {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let mut handle = gmp::spawn(async move {
        opened.notified().await;
        7
    });
    give_up(&mut handle).await;
    {
        let mut join = pin!(&mut handle);
        waits!(join);
        gate.notify_one();
        while !join.is_finished() {
            task::yield_now().await;
        }
    }
    assert_eq!(handle.await.unwrap(), 7);
}

#[gmp::test]
async fn a_task_whose_handles_are_dropped_goes_on() {
    let (sender, receiver) = oneshot::channel();
    let handle = gmp::spawn(async move {
        task::yield_now().await;
        sender.send(7).unwrap();
    });
    drop(handle.abort_handle());
    drop(handle);
    assert_eq!(receiver.await, Ok(7));
}

#[gmp::test]
async fn a_blocking_job_that_has_begun_is_not_aborted() {
    let (begun, has_begun) = oneshot::channel();
    let (end, ends) = std::sync::mpsc::channel::<u8>();
    let job = task::spawn_blocking(move || {
        begun.send(()).unwrap();
        ends.recv().unwrap()
    });
    has_begun.await.unwrap();
    job.abort();
    end.send(7).unwrap();
    assert_eq!(job.await.unwrap(), 7);
}

#[gmp::test]
async fn join_next_given_up_takes_no_task() {
    let mut set = JoinSet::new();
    let (sender, receiver) = oneshot::channel();
    let task = set.spawn(async move { receiver.await.unwrap() });
    give_up(set.join_next()).await;
    {
        let mut join = pin!(set.join_next());
        waits!(join);
        sender.send(7).unwrap();
        while !task.is_finished() {
            task::yield_now().await;
        }
    }
    assert_eq!(set.len(), 1);
    assert_eq!(set.join_next().await.unwrap().unwrap(), 7);
    assert!(set.join_next().await.is_none());
}

#[gmp::test]
async fn a_set_aborts_its_tasks_when_it_is_dropped_unless_they_are_detached() {
    let (alive, mut dropped) = mpsc::channel::<()>(1);
    let mut set = JoinSet::new();
    for _ in 0..3 {
        let alive = alive.clone();
        set.spawn(async move {
            let _alive = alive;
            pending::<()>().await;
        });
    }
    drop(alive);
    give_up(dropped.recv()).await;
    drop(set);
    assert_eq!(dropped.recv().await, None);
    let (sender, receiver) = oneshot::channel();
    let mut set = JoinSet::new();
    set.spawn(async move {
        task::yield_now().await;
        sender.send(7).unwrap();
    });
    set.detach_all();
    drop(set);
    assert_eq!(receiver.await, Ok(7));
}

#[gmp::test]
async fn run_until_given_up_keeps_the_tasks_of_the_set() {
    let set = LocalSet::new();
    let steps = Rc::new(RefCell::new(Vec::new()));
    let done = steps.clone();
    let handle = set.spawn_local(async move {
        for step in 0..3 {
            done.borrow_mut().push(step);
            task::yield_now().await;
        }
    });
    {
        let mut run = pin!(set.run_until(pending::<()>()));
        waits!(run);
    }
    set.run_until(handle).await.unwrap();
    assert_eq!(*steps.borrow(), [0, 1, 2]);
}

#[gmp::test]
async fn awaiting_a_set_waits_for_all_its_tasks() {
    let set = LocalSet::new();
    let done = Rc::new(RefCell::new(0));
    for _ in 0..3 {
        let done = done.clone();
        drop(set.spawn_local(async move {
            task::yield_now().await;
            *done.borrow_mut() += 1;
            let done = done.clone();
            drop(task::spawn_local(async move { *done.borrow_mut() += 10 }));
        }));
    }
    set.await;
    assert_eq!(*done.borrow(), 33);
}

#[gmp::test]
async fn a_set_that_is_dropped_drops_its_tasks_at_once() {
    let alive = Rc::new(());
    let set = LocalSet::new();
    let handles: Vec<_> = (0..3)
        .map(|_| {
            let alive = alive.clone();
            set.spawn_local(async move {
                let _alive = alive;
                pending::<()>().await;
            })
        })
        .collect();
    give_up(set.run_until(pending::<()>())).await;
    drop(set);
    assert_eq!(Rc::strong_count(&alive), 1);
    for handle in handles {
        assert!(handle.await.unwrap_err().is_cancelled());
    }
}

/// Notes when it is dropped.
struct Noted(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[gmp::test]
async fn select_drops_every_future_before_the_handler_runs() {
    let notes = Rc::new(RefCell::new(Vec::new()));
    let noted = |name| Noted(name, notes.clone());
    let (first, second, third) = (noted("first"), noted("second"), noted("third"));
    gmp::select! {
        biased;
        () = async { let _first = first; pending().await } => unreachable!(),
        () = async { let _second = second; } => notes.borrow_mut().push("handler"),
        () = async { let _third = third; pending().await } => unreachable!(),
    }
    let mut notes = notes.borrow().clone();
    assert_eq!(notes.pop(), Some("handler"));
    notes.sort_unstable();
    assert_eq!(notes, ["first", "second", "third"]);
}

#[gmp::test]
async fn join_keeps_outputs_until_all_are_there_and_drops_futures_when_they_are_done() {
    let notes = Rc::new(RefCell::new(Vec::new()));
    let noted = |name| Noted(name, notes.clone());
    let (inside, output) = (noted("future"), noted("output"));
    let seen = notes.clone();
    let (output, seen) = gmp::join!(
        async move {
            let _inside = inside;
            output
        },
        async move {
            task::yield_now().await;
            seen.borrow().clone()
        }
    );
    assert_eq!(seen, ["future"]);
    drop(output);
    assert_eq!(*notes.borrow(), ["future", "output"]);
}

#[gmp::test]
async fn try_join_drops_the_others_when_one_fails() {
    let notes = Rc::new(RefCell::new(Vec::new()));
    let other = Noted("other", notes.clone());
    let result = gmp::try_join!(
        async move {
            let _other = other;
            pending::<Result<(), u8>>().await
        },
        async { Err::<(), u8>(7) }
    );
    assert_eq!(result, Err(7));
    assert_eq!(*notes.borrow(), ["other"]);
}
