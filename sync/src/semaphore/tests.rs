//! What `Semaphore` promises beyond the counting semaphore that it stands on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::test_util::{must_not_block, polled, wait_until};

#[test]
fn a_permit_gives_itself_back() {
    let semaphore = Semaphore::new(3);
    let one = polled(semaphore.acquire()).ready().unwrap();
    let two = polled(semaphore.acquire_many(2)).ready().unwrap();
    assert_eq!((one.num_permits(), two.num_permits()), (1, 2));
    assert_eq!(semaphore.available_permits(), 0);
    assert!(std::ptr::eq(one.semaphore(), &semaphore));
    drop(two);
    assert_eq!(semaphore.available_permits(), 2);
    drop(one);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn an_owned_permit_gives_itself_back() {
    let semaphore = Arc::new(Semaphore::new(3));
    let one = polled(semaphore.clone().acquire_owned()).ready().unwrap();
    let two = polled(semaphore.clone().acquire_many_owned(2))
        .ready()
        .unwrap();
    assert!(Arc::ptr_eq(one.semaphore(), &semaphore));
    assert_eq!((one.num_permits(), two.num_permits()), (1, 2));
    assert_eq!(semaphore.available_permits(), 0);
    drop((one, two));
    assert_eq!(semaphore.available_permits(), 3);
    assert_eq!(Arc::strong_count(&semaphore), 1);
}

#[test]
fn trying_does_not_wait() {
    let semaphore = Arc::new(Semaphore::new(2));
    let held = semaphore.try_acquire().unwrap();
    let too_many = semaphore.try_acquire_many(2).unwrap_err();
    assert_eq!(too_many, TryAcquireError::NoPermits);
    let owned = semaphore.clone().try_acquire_owned().unwrap();
    let none = semaphore.clone().try_acquire_many_owned(1).unwrap_err();
    assert_eq!(none, TryAcquireError::NoPermits);
    drop((held, owned));
    assert_eq!(semaphore.try_acquire_many(2).unwrap().num_permits(), 2);
    let both = semaphore.clone().try_acquire_many_owned(2).unwrap();
    assert_eq!(both.num_permits(), 2);
}

#[test]
fn permits_are_given_in_the_order_asked_for() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    let mut many = polled(semaphore.acquire_many(2));
    let mut one = polled(semaphore.acquire());
    many.pending();
    one.pending();
    drop(held);
    // There would be one for the second, but it is not its turn.
    one.pending();
    semaphore.add_permits(1);
    let held = many.ready().unwrap();
    one.pending();
    drop(held);
    one.ready().unwrap().forget();
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn cancelling_gives_up_the_place() {
    let semaphore = Semaphore::new(0);
    let mut first = polled(semaphore.acquire());
    let mut second = polled(semaphore.acquire());
    first.pending();
    second.pending();
    drop(first);
    let mut again = polled(semaphore.acquire());
    again.pending();
    semaphore.add_permits(1);
    assert_eq!((second.woken(), again.woken()), (1, 0));
    second.ready().unwrap().forget();
}

#[test]
fn forget_takes_permits_away() {
    let semaphore = Arc::new(Semaphore::new(4));
    semaphore.try_acquire().unwrap().forget();
    semaphore
        .clone()
        .try_acquire_many_owned(2)
        .unwrap()
        .forget();
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(Arc::strong_count(&semaphore), 1);
    semaphore.add_permits(9);
    assert_eq!(semaphore.forget_permits(3), 3);
    assert_eq!(semaphore.forget_permits(30), 7);
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn merge_and_split() {
    let semaphore = Arc::new(Semaphore::new(10));
    let mut permit = semaphore.try_acquire_many(5).unwrap();
    permit.merge(semaphore.try_acquire().unwrap());
    assert_eq!(permit.num_permits(), 6);
    assert!(permit.split(7).is_none());
    let two = permit.split(2).unwrap();
    let none = permit.split(0).unwrap();
    assert_eq!((permit.num_permits(), two.num_permits()), (4, 2));
    drop((two, none));
    assert_eq!(semaphore.available_permits(), 6);
    drop(permit);

    let mut owned = semaphore.clone().try_acquire_many_owned(5).unwrap();
    owned.merge(semaphore.clone().try_acquire_owned().unwrap());
    assert!(owned.split(7).is_none());
    let all = owned.split(6).unwrap();
    assert_eq!((owned.num_permits(), all.num_permits()), (0, 6));
    drop(owned);
    assert_eq!(semaphore.available_permits(), 4);
    drop(all);
    assert_eq!(semaphore.available_permits(), 10);
}

#[test]
fn permits_of_different_semaphores_do_not_merge() {
    let [first, second] = [(); 2].map(|()| Arc::new(Semaphore::new(1)));
    let merged = catch_unwind(AssertUnwindSafe(|| {
        let mut permit = first.try_acquire().unwrap();
        permit.merge(second.try_acquire().unwrap());
    }));
    assert!(merged.is_err());
    let merged = catch_unwind(AssertUnwindSafe(|| {
        let mut permit = first.clone().try_acquire_owned().unwrap();
        permit.merge(second.clone().try_acquire_owned().unwrap());
    }));
    assert!(merged.is_err());
    // Nothing was lost on the way.
    assert_eq!(first.available_permits(), 1);
    assert_eq!(second.available_permits(), 1);
}

#[test]
fn close_refuses_everybody_but_those_who_hold() {
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.try_acquire().unwrap();
    let mut waiting = polled(semaphore.acquire());
    let mut waiting_owned = polled(semaphore.clone().acquire_many_owned(2));
    waiting.pending();
    waiting_owned.pending();
    assert!(!semaphore.is_closed());
    semaphore.close();
    assert!(semaphore.is_closed());
    assert!(waiting.ready().is_err());
    assert!(waiting_owned.ready().is_err());
    let refused = semaphore.try_acquire().unwrap_err();
    assert_eq!(refused, TryAcquireError::Closed);
    assert!(semaphore.blocking_acquire().is_err());
    drop(held);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn blocking_waits_on_the_thread() {
    let semaphore = Arc::new(Semaphore::new(0));
    let other = semaphore.clone();
    let thread = std::thread::spawn(move || {
        let one = other.blocking_acquire().unwrap().num_permits();
        let two = other.blocking_acquire_many(2).unwrap().num_permits();
        let owned = other.clone().blocking_acquire_owned().unwrap();
        let two_owned = other.clone().blocking_acquire_many_owned(2).unwrap();
        (one, two, owned.num_permits(), two_owned.num_permits())
    });
    semaphore.add_permits(1);
    // The same permit again and again, and two more.
    semaphore.add_permits(2);
    wait_until(|| thread.is_finished());
    assert_eq!(thread.join().unwrap(), (1, 2, 1, 2));
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn blocking_panics_where_tasks_are_driven() {
    let semaphore = Arc::new(Semaphore::new(5));
    must_not_block(|| drop(semaphore.blocking_acquire()));
    must_not_block(|| drop(semaphore.blocking_acquire_many(1)));
    must_not_block(|| drop(semaphore.clone().blocking_acquire_owned()));
    must_not_block(|| drop(semaphore.clone().blocking_acquire_many_owned(1)));
    assert_eq!(semaphore.available_permits(), 5);
}

#[test]
fn a_permit_carries_what_was_done_before() {
    let semaphore = Arc::new(Semaphore::new(0));
    let data = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (other, written) = (semaphore.clone(), data.clone());
    let thread = std::thread::spawn(move || {
        written.store(7, std::sync::atomic::Ordering::Relaxed);
        other.add_permits(1);
    });
    let _permit = semaphore.blocking_acquire().unwrap();
    assert_eq!(data.load(std::sync::atomic::Ordering::Relaxed), 7);
    wait_until(|| thread.is_finished());
}

#[test]
fn limits() {
    assert_eq!(Semaphore::MAX_PERMITS, usize::MAX >> 3);
    let full = Semaphore::new(Semaphore::MAX_PERMITS);
    assert!(catch_unwind(AssertUnwindSafe(|| full.add_permits(1))).is_err());
    assert!(catch_unwind(|| Semaphore::new(Semaphore::MAX_PERMITS + 1)).is_err());
    static LIMIT: Semaphore = Semaphore::const_new(2);
    assert_eq!(LIMIT.available_permits(), 2);
}

#[test]
fn debug() {
    let semaphore = Arc::new(Semaphore::new(3));
    let permit = format!("{:?}", semaphore.try_acquire().unwrap());
    assert!(permit.starts_with("SemaphorePermit {") && permit.contains("permits: 1"));
    let owned = format!("{:?}", semaphore.clone().try_acquire_owned().unwrap());
    assert!(owned.starts_with("OwnedSemaphorePermit {"));
}
