//! What `OnceCell` promises.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::test_util::{Polled, polled, wait_until};

#[test]
fn the_first_value_stays() {
    let cell = OnceCell::new();
    assert!(!cell.initialized() && cell.get().is_none());
    assert_eq!(*polled(cell.get_or_init(|| async { 1 })).ready(), 1);
    assert_eq!(*polled(cell.get_or_init(|| async { 2 })).ready(), 1);
    assert_eq!(cell.get(), Some(&1));
    assert!(cell.initialized());
    let again = polled(cell.get_or_try_init(|| async { Err("never called") })).ready();
    assert_eq!(again, Ok(&1));
}

#[test]
fn those_who_come_later_wait_for_the_attempt() {
    let cell = OnceCell::new();
    let (send, receive) = futures::channel::oneshot::channel();
    let mut first = polled(cell.get_or_init(|| async { receive.await.unwrap() }));
    assert!(first.poll().is_pending());
    let mut waiters: Vec<_> = (0..40)
        .map(|_| polled(cell.get_or_init(|| async { panic!("not called") })))
        .collect();
    assert!(waiters.iter_mut().all(|waiter| waiter.poll().is_pending()));
    assert_eq!(cell.set(9), Err(SetError::InitializingError(9)));
    send.send(7).unwrap();
    assert_eq!(*first.ready(), 7);
    assert!(waiters.iter().all(|waiter| waiter.woken() == 1));
    assert!(waiters.iter_mut().all(|waiter| *waiter.ready() == 7));
}

#[test]
fn a_cancelled_attempt_is_taken_over() {
    let cell = OnceCell::new();
    let mut first = polled(cell.get_or_init(pending::<u32>));
    let mut second = polled(cell.get_or_init(|| ready(2)));
    let mut third = polled(cell.get_or_init(|| ready(3)));
    assert!(first.poll().is_pending() && second.poll().is_pending() && third.poll().is_pending());
    drop(first);
    assert_eq!((second.woken(), third.woken()), (1, 0));
    assert_eq!(*second.ready(), 2);
    assert_eq!(*third.ready(), 2);
}

#[test]
fn a_panicking_attempt_is_taken_over() {
    let cell = OnceCell::new();
    let mut first = polled(cell.get_or_init(|| async { panic!("the attempt fails") }));
    let attempt = catch_unwind(AssertUnwindSafe(|| *first.ready()));
    assert!(attempt.is_err());
    drop(first);
    assert_eq!(*polled(cell.get_or_init(|| ready(2))).ready(), 2);
}

#[test]
fn a_failed_attempt_is_taken_over() {
    let cell = OnceCell::new();
    let (send, receive) = futures::channel::oneshot::channel::<()>();
    let mut first = polled(cell.get_or_try_init(|| async {
        receive.await.unwrap();
        Err("the attempt fails")
    }));
    let mut second = polled(cell.get_or_try_init(|| async { Ok::<_, &str>(2) }));
    assert!(first.poll().is_pending() && second.poll().is_pending());
    send.send(()).unwrap();
    assert_eq!(first.ready(), Err("the attempt fails"));
    assert_eq!(second.woken(), 1);
    assert_eq!(second.ready(), Ok(&2));
}

#[test]
fn one_attempt_among_threads() {
    static CELL: OnceCell<usize> = OnceCell::const_new();
    static ATTEMPTS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || {
                *futures::executor::block_on(CELL.get_or_init(|| async move {
                    ATTEMPTS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    thread
                }))
            })
        })
        .collect();
    wait_until(|| threads.iter().all(|thread| thread.is_finished()));
    let values: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert!(values.iter().all(|value| Some(value) == CELL.get()));
    assert_eq!(ATTEMPTS.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[test]
fn set_fills_once() {
    let cell = OnceCell::new();
    assert_eq!(cell.set(1), Ok(()));
    let error = cell.set(2).unwrap_err();
    assert_eq!(error, SetError::AlreadyInitializedError(2));
    assert!(error.is_already_init_err() && !error.is_initializing_err());
    assert_eq!(error.to_string(), "AlreadyInitializedError");
    let error = SetError::InitializingError(());
    assert!(error.is_initializing_err() && !error.is_already_init_err());
    assert_eq!(error.to_string(), "InitializingError");
}

#[test]
fn a_value_from_the_start() {
    static CELL: OnceCell<u32> = OnceCell::const_new_with(5);
    assert_eq!(CELL.get(), Some(&5));
    assert_eq!(OnceCell::new_with(Some(5)), OnceCell::from(5));
    assert_eq!(OnceCell::<u32>::new_with(None), OnceCell::default());
    assert!(CELL.set(6).unwrap_err().is_already_init_err());
    assert_eq!(*polled(CELL.get_or_init(|| ready(6))).ready(), 5);
}

#[test]
fn taking_the_value_out() {
    let mut cell = OnceCell::new();
    assert_eq!(cell.get_mut(), None);
    assert_eq!(cell.take(), None);
    cell.set(String::from("a")).unwrap();
    cell.get_mut().unwrap().push('b');
    assert_eq!(cell.take().as_deref(), Some("ab"));
    assert!(!cell.initialized());
    cell.set(String::from("c")).unwrap();
    assert_eq!(cell.clone().into_inner(), cell.into_inner());
    assert_eq!(OnceCell::<u32>::new().into_inner(), None);
}

#[test]
fn the_value_is_dropped_with_the_cell() {
    let counted = std::sync::Arc::new(());
    let cell = OnceCell::new();
    cell.set(counted.clone()).unwrap();
    assert!(cell.set(counted.clone()).is_err());
    assert_eq!(std::sync::Arc::strong_count(&counted), 2);
    drop(cell);
    assert_eq!(std::sync::Arc::strong_count(&counted), 1);
}

#[test]
fn debug() {
    assert_eq!(
        format!("{:?}", OnceCell::<u32>::new()),
        "OnceCell { value: None }"
    );
    assert_eq!(
        format!("{:?}", OnceCell::from(3)),
        "OnceCell { value: Some(3) }"
    );
}

#[test]
fn a_waiter_may_give_up() {
    let cell = OnceCell::new();
    let mut first = polled(cell.get_or_init(pending::<u32>));
    let mut waiters = [(); 2].map(|()| polled(cell.get_or_init(|| ready(2))));
    assert!(first.poll().is_pending());
    assert!(waiters.iter_mut().all(|waiter| waiter.poll().is_pending()));
    let [second, mut third] = waiters;
    drop(first);
    assert_eq!(Polled::woken(&second), 1);
    drop(second);
    assert_eq!(*third.ready(), 2);
}
