//! The rules of the counting semaphore, one test each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use super::*;
use crate::test_util::{Count, Polled, panicking_waker, polled};

fn acquire(semaphore: &Semaphore, permits: usize) -> Polled<Acquire<'_>> {
    polled(semaphore.acquire(permits, WaitReason::SemaphoreAcquire))
}

#[test]
fn takes_what_is_free() {
    let semaphore = Semaphore::new(5);
    acquire(&semaphore, 2).ready().unwrap();
    assert_eq!(semaphore.available_permits(), 3);
    semaphore.try_acquire(3).unwrap();
    assert_eq!(semaphore.try_acquire(1), Err(TryAcquireError::NoPermits));
    semaphore.release(4);
    assert_eq!(semaphore.available_permits(), 4);
}

#[test]
fn zero_permits_never_wait() {
    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 1);
    waiter.pending();
    semaphore.try_acquire(0).unwrap();
    acquire(&semaphore, 0).ready().unwrap();
    semaphore.release(0);
    waiter.pending();
}

#[test]
fn a_waiter_takes_what_there_is_and_waits_for_the_rest() {
    let semaphore = Semaphore::new(3);
    let mut waiter = acquire(&semaphore, 5);
    waiter.pending();
    assert_eq!(semaphore.available_permits(), 0);
    semaphore.release(1);
    assert_eq!(waiter.woken(), 0);
    waiter.pending();
    semaphore.release(1);
    assert_eq!(waiter.woken(), 1);
    waiter.ready().unwrap();
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn first_come_first_served() {
    let semaphore = Semaphore::new(0);
    let mut large = acquire(&semaphore, 3);
    let mut small = acquire(&semaphore, 1);
    large.pending();
    small.pending();
    semaphore.release(2);
    assert_eq!((large.woken(), small.woken()), (0, 0));
    semaphore.release(2);
    assert_eq!((large.woken(), small.woken()), (1, 1));
    small.ready().unwrap();
    large.ready().unwrap();
}

#[test]
fn nobody_overtakes_a_served_waiter() {
    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 1);
    waiter.pending();
    semaphore.release(1);
    assert_eq!(semaphore.try_acquire(1), Err(TryAcquireError::NoPermits));
    acquire(&semaphore, 1).pending();
    waiter.ready().unwrap();
}

#[test]
fn a_release_serves_many_and_keeps_the_rest() {
    let semaphore = Semaphore::new(0);
    let mut waiters: Vec<_> = (0..100).map(|_| acquire(&semaphore, 2)).collect();
    waiters.iter_mut().for_each(Polled::pending);
    semaphore.release(207);
    assert!(waiters.iter().all(|waiter| waiter.woken() == 1));
    assert_eq!(semaphore.available_permits(), 7);
    waiters
        .iter_mut()
        .for_each(|waiter| waiter.ready().unwrap());
}

#[test]
fn a_dropped_waiter_gives_back_its_part() {
    let semaphore = Semaphore::new(2);
    let mut large = acquire(&semaphore, 5);
    large.pending();
    semaphore.release(1);
    drop(large);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn a_dropped_waiter_lets_those_behind_it_go_first() {
    let semaphore = Semaphore::new(2);
    let mut large = acquire(&semaphore, 5);
    let mut second = acquire(&semaphore, 1);
    let mut third = acquire(&semaphore, 1);
    let mut fourth = acquire(&semaphore, 1);
    large.pending();
    second.pending();
    third.pending();
    fourth.pending();
    drop(large);
    assert_eq!((second.woken(), third.woken(), fourth.woken()), (1, 1, 0));
    drop(third);
    assert_eq!(fourth.woken(), 1);
}

#[test]
fn a_waiter_dropped_after_it_was_served_gives_everything_back() {
    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 2);
    waiter.pending();
    semaphore.release(2);
    drop(waiter);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn a_future_never_polled_takes_nothing() {
    let semaphore = Semaphore::new(1);
    drop(acquire(&semaphore, 1));
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn waiters_leave_from_every_place() {
    for leaver in 0..4 {
        let semaphore = Semaphore::new(0);
        let mut waiters: Vec<_> = (0..4).map(|_| acquire(&semaphore, 1)).collect();
        waiters.iter_mut().for_each(Polled::pending);
        waiters.remove(leaver);
        for served in 0..3 {
            let woken: Vec<_> = waiters.iter().map(Polled::woken).collect();
            assert_eq!(
                woken,
                (0..3)
                    .map(|at| usize::from(at < served))
                    .collect::<Vec<_>>()
            );
            semaphore.release(1);
        }
        assert_eq!(semaphore.available_permits(), 0);
        waiters
            .iter_mut()
            .for_each(|waiter| waiter.ready().unwrap());
        semaphore.release(1);
        assert_eq!(semaphore.available_permits(), 1);
    }
}

#[test]
fn the_last_waker_counts() {
    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 1);
    waiter.pending();
    let old = waiter.count();
    assert!(waiter.poll_as_another().is_pending());
    semaphore.release(1);
    assert_eq!((old.get(), waiter.woken()), (0, 1));
}

#[test]
fn close_wakes_everybody_with_an_error() {
    let semaphore = Semaphore::new(0);
    let mut waiters: Vec<_> = (0..70).map(|_| acquire(&semaphore, 1)).collect();
    waiters.iter_mut().for_each(Polled::pending);
    assert!(!semaphore.is_closed());
    semaphore.close();
    semaphore.close();
    assert!(semaphore.is_closed());
    for waiter in &mut waiters {
        assert_eq!(waiter.woken(), 1);
        assert!(waiter.ready().is_err());
    }
    assert!(acquire(&semaphore, 1).ready().is_err());
    assert_eq!(semaphore.try_acquire(0), Err(TryAcquireError::Closed));
}

#[test]
fn close_beats_permits_not_yet_collected() {
    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 1);
    waiter.pending();
    semaphore.release(1);
    semaphore.close();
    assert!(waiter.ready().is_err());
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_closed_semaphore_still_counts() {
    let semaphore = Semaphore::new(1);
    let mut waiter = acquire(&semaphore, 2);
    waiter.pending();
    semaphore.close();
    drop(waiter);
    assert_eq!(semaphore.available_permits(), 1);
    semaphore.release(4);
    assert_eq!(semaphore.available_permits(), 5);
    assert_eq!(semaphore.forget_permits(2), 2);
    assert_eq!(semaphore.available_permits(), 3);
    assert!(semaphore.is_closed());
}

#[test]
fn closed_from_the_start() {
    static CLOSED: Semaphore = Semaphore::const_new_closed();
    for semaphore in [&CLOSED, &Semaphore::new_closed()] {
        assert!(semaphore.is_closed());
        assert!(acquire(semaphore, 1).ready().is_err());
    }
}

#[test]
fn forgets_at_most_what_is_free() {
    let semaphore = Semaphore::new(3);
    assert_eq!(semaphore.forget_permits(0), 0);
    assert_eq!(semaphore.forget_permits(2), 2);
    assert_eq!(semaphore.forget_permits(2), 1);
    assert_eq!(semaphore.available_permits(), 0);
    let mut waiter = acquire(&semaphore, 1);
    waiter.pending();
    assert_eq!(semaphore.forget_permits(1), 0);
    semaphore.release(1);
    waiter.ready().unwrap();
}

fn panics<R>(run: impl FnOnce() -> R) -> String {
    let panicked = catch_unwind(AssertUnwindSafe(run));
    let payload = panicked.err().expect("must panic");
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast::<&str>().expect("a message").to_string(),
    }
}

#[test]
fn too_many_permits() {
    const MAX: usize = Semaphore::MAX_PERMITS;
    let full = Semaphore::new(MAX);
    full.try_acquire(MAX).unwrap();
    full.release(MAX);
    let limit = "a semaphore may not have more than MAX_PERMITS permits";
    assert!(panics(|| Semaphore::new(MAX + 1)).starts_with(limit));
    assert!(panics(|| Semaphore::const_new(MAX + 1)).starts_with(limit));
    assert!(panics(|| full.try_acquire(MAX + 1)).starts_with(limit));
    assert!(panics(|| acquire(&full, MAX + 1)).starts_with(limit));
    assert!(panics(|| full.release(1)).contains("would overflow MAX_PERMITS"));
    assert_eq!(full.available_permits(), MAX);
    let waited_for = Semaphore::new(0);
    let mut waiter = acquire(&waited_for, 1);
    waiter.pending();
    assert!(panics(|| waited_for.release(MAX + 1)).contains("would overflow MAX_PERMITS"));
    waiter.pending();
}

/// A waker that panics must not take the wake-ups behind it with it.
#[test]
fn a_panicking_waker_in_the_middle() {
    for close in [false, true] {
        let semaphore = Semaphore::new(0);
        let mut first = acquire(&semaphore, 1);
        let mut last = acquire(&semaphore, 1);
        let mut second = pin!(semaphore.acquire(1, WaitReason::SemaphoreAcquire));
        first.pending();
        assert!(
            second
                .as_mut()
                .poll(&mut Context::from_waker(&panicking_waker()))
                .is_pending()
        );
        last.pending();
        if close {
            semaphore.close();
        } else {
            semaphore.release(4);
            assert_eq!(semaphore.available_permits(), 1);
        }
        assert_eq!((first.woken(), last.woken()), (1, 1));
        let (_, waker) = Count::new();
        let second = second.poll(&mut Context::from_waker(&waker));
        assert!(matches!(second, Poll::Ready(result) if result.is_err() == close));
    }
}

/// A waker may use the semaphore that wakes it, drops it or clones it.
#[test]
fn wakers_run_without_the_lock() {
    use std::sync::Arc;
    use std::task::Wake;

    struct Nosy(Arc<Semaphore>);
    impl Wake for Nosy {
        fn wake(self: Arc<Self>) {
            self.0.release(1);
        }
    }
    impl Drop for Nosy {
        fn drop(&mut self) {
            self.0.release(1);
        }
    }

    let semaphore = Arc::new(Semaphore::new(0));
    let waker = || Waker::from(Arc::new(Nosy(semaphore.clone())));
    let mut waiter = pin!(semaphore.acquire(2, WaitReason::SemaphoreAcquire));
    assert!(
        waiter
            .as_mut()
            .poll(&mut Context::from_waker(&waker()))
            .is_pending()
    );
    // The old waker is dropped, and releases one.
    assert!(
        waiter
            .as_mut()
            .poll(&mut Context::from_waker(&waker()))
            .is_pending()
    );
    // The new one is woken and then dropped, which releases two.
    semaphore.release(1);
    assert!(matches!(
        waiter.poll(&mut Context::from_waker(Waker::noop())),
        Poll::Ready(Ok(()))
    ));
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn sizes_and_auto_traits() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Semaphore>();
    assert_send_sync::<Acquire<'_>>();
    // tokio 1.54 on 64 bits: 40 and 64.
    assert!(size_of::<Semaphore>() <= 24);
    assert!(size_of::<Acquire<'_>>() <= 64);
}

#[test]
fn debug_and_display() {
    assert_eq!(
        format!("{:?}", Semaphore::new(3)),
        "Semaphore { permits: 3 }"
    );
    assert_eq!(AcquireError::closed().to_string(), "semaphore closed");
    assert_eq!(TryAcquireError::Closed.to_string(), "semaphore closed");
    assert_eq!(
        TryAcquireError::NoPermits.to_string(),
        "no permits available"
    );
}

/// The budget: permits that may not be handed over yet are kept, and are given back on a drop.
#[test]
fn it_consumes_budget_once_it_has_the_permits() {
    use gmp_executor::coop::with_full_budget;

    let semaphore = Semaphore::new(200);
    let mut denied = acquire(&semaphore, 1);
    let mut dropped = acquire(&semaphore, 2);
    with_full_budget(|| {
        (0..128).for_each(|_| acquire(&semaphore, 1).ready().unwrap());
        denied.pending();
        dropped.pending();
        assert_eq!(semaphore.available_permits(), 69);
        drop(dropped);
        assert_eq!(semaphore.available_permits(), 71);
        denied.pending();
    });
    denied.ready().unwrap();
    assert_eq!(semaphore.available_permits(), 71);
}

/// Waiting costs no budget.
#[test]
fn it_consumes_no_budget_while_it_waits() {
    use gmp_executor::coop::with_full_budget;

    let semaphore = Semaphore::new(0);
    let mut waiter = acquire(&semaphore, 1);
    with_full_budget(|| {
        (0..200).for_each(|_| waiter.pending());
        semaphore.release(1);
        waiter.ready().unwrap();
    });
}

/// Threads that acquire, release and cancel at random: nobody is forgotten, no permit is lost.
#[test]
fn threads_lose_nothing() {
    use std::sync::Arc;
    use std::time::Duration;

    const PERMITS: usize = 4;
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    let (done, all_done) = std::sync::mpsc::channel();
    for thread in 0..4usize {
        let (semaphore, done) = (semaphore.clone(), done.clone());
        std::thread::spawn(move || {
            for round in 0..5_000 {
                let permits = (thread + round) % PERMITS + 1;
                if round % 3 == 0 {
                    let mut cancelled = acquire(&semaphore, permits);
                    if cancelled.poll().is_ready() {
                        semaphore.release(permits);
                    }
                    continue;
                }
                let acquired = semaphore.acquire(permits, WaitReason::SemaphoreAcquire);
                futures::executor::block_on(acquired).unwrap();
                semaphore.release(permits);
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..4 {
        let watchdog = Duration::from_secs(600);
        all_done.recv_timeout(watchdog).expect("a thread is stuck");
    }
    assert_eq!(semaphore.available_permits(), PERMITS);
}
