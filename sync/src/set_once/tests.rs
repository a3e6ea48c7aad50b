//! What `SetOnce` promises.

use super::*;
use crate::test_util::{polled, wait_until};
use gmp_executor::coop::with_full_budget;
use std::sync::Arc;

#[test]
fn set_wakes_everybody_who_waits() {
    let cell = SetOnce::new();
    assert!(!cell.initialized() && cell.get().is_none());
    let mut waiters: Vec<_> = (0..40).map(|_| polled(cell.wait())).collect();
    assert!(waiters.iter_mut().all(|waiter| waiter.poll().is_pending()));
    cell.set(1).unwrap();
    assert!(waiters.iter().all(|waiter| waiter.woken() == 1));
    assert!(waiters.iter_mut().all(|waiter| *waiter.ready() == 1));
    assert_eq!(cell.get(), Some(&1));
    assert!(cell.initialized());
}

#[test]
fn wait_is_over_at_once_when_it_is_set() {
    let cell = SetOnce::new();
    let mut early = polled(cell.wait());
    cell.set(1).unwrap();
    assert_eq!(*early.ready(), 1);
    assert_eq!(*polled(cell.wait()).ready(), 1);
}

#[test]
fn the_first_value_stays() {
    let cell = SetOnce::new();
    cell.set(1).unwrap();
    let error = cell.set(2).unwrap_err();
    assert_eq!(error, SetOnceError(2));
    assert_eq!(error.to_string(), "SetOnceError");
    assert_eq!(cell.get(), Some(&1));
}

#[test]
fn cancelling_a_wait_loses_nothing() {
    let cell = SetOnce::new();
    let mut dropped = polled(cell.wait());
    let mut kept = polled(cell.wait());
    assert!(dropped.poll().is_pending() && kept.poll().is_pending());
    drop(dropped);
    cell.set(1).unwrap();
    assert_eq!(*kept.ready(), 1);
}

#[test]
fn one_of_the_threads_sets_it() {
    for _ in 0..200 {
        let cell = Arc::new(SetOnce::new());
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let cell = cell.clone();
                std::thread::spawn(move || {
                    let set = cell.set(thread).is_ok();
                    // Who is refused finds the value.
                    let value = *cell.get().unwrap();
                    assert_eq!(set, value == thread);
                    assert_eq!(*futures::executor::block_on(cell.wait()), value);
                    set
                })
            })
            .collect();
        wait_until(|| threads.iter().all(|thread| thread.is_finished()));
        let sets = threads.into_iter().filter_map(|thread| thread.join().ok());
        assert_eq!(sets.filter(|set| *set).count(), 1);
    }
}

#[test]
fn a_value_from_the_start() {
    static CELL: SetOnce<u32> = SetOnce::const_new_with(5);
    static EMPTY: SetOnce<u32> = SetOnce::const_new();
    assert_eq!(CELL.get(), Some(&5));
    assert_eq!(EMPTY.get(), None);
    assert_eq!(SetOnce::new_with(Some(5)), SetOnce::from(5));
    assert_eq!(SetOnce::<u32>::new_with(None), SetOnce::default());
    assert_eq!(*polled(CELL.wait()).ready(), 5);
    let cell = SetOnce::from(String::from("a"));
    assert_eq!(cell.clone().into_inner(), cell.into_inner());
    assert_eq!(SetOnce::<u32>::new().into_inner(), None);
}

#[test]
fn the_value_is_dropped_with_the_cell() {
    let counted = Arc::new(());
    let cell = SetOnce::new();
    cell.set(counted.clone()).unwrap();
    assert!(cell.set(counted.clone()).is_err());
    assert_eq!(Arc::strong_count(&counted), 2);
    drop(cell);
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn debug() {
    assert_eq!(
        format!("{:?}", SetOnce::<u32>::new()),
        "SetOnce { value: None }"
    );
    assert_eq!(
        format!("{:?}", SetOnce::from(3)),
        "SetOnce { value: Some(3) }"
    );
}

#[test]
fn it_consumes_budget_when_it_is_set() {
    let cell = SetOnce::new_with(Some(7));
    with_full_budget(|| {
        for _ in 0..128 {
            assert_eq!(polled(cell.wait()).ready(), &7);
        }
        let mut late = polled(cell.wait());
        late.pending();
        assert_eq!(with_full_budget(|| late.ready()), &7);
    });
}
