//! What `Mutex` promises, a test for each sentence; then random programs against a simple model.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::test_util::{Polled, must_not_block, panicking_waker, polled, wait_until};

#[test]
fn one_at_a_time() {
    let mutex = Mutex::new(1);
    let mut first = polled(mutex.lock()).ready();
    let mut second = polled(mutex.lock());
    second.pending();
    *first = 2;
    assert_eq!(second.woken(), 0);
    drop(first);
    assert_eq!(second.woken(), 1);
    assert_eq!(*second.ready(), 2);
}

#[test]
fn the_lock_is_given_in_the_order_asked_for() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut waiters: Vec<_> = (0..5).map(|_| polled(mutex.lock())).collect();
    waiters.iter_mut().for_each(|waiter| {
        assert!(waiter.poll().is_pending());
    });
    drop(guard);
    for at in 0..5 {
        let woken: Vec<_> = waiters.iter().map(Polled::woken).collect();
        assert_eq!(woken.iter().sum::<usize>(), at + 1);
        let guard = waiters[at].ready();
        // Who unlocks and locks again goes to the end.
        let mut again = polled(mutex.lock());
        assert!(again.poll().is_pending());
        drop(guard);
        drop(again);
    }
}

#[test]
fn an_unlocked_mutex_with_a_served_waiter_is_taken() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut waiter = polled(mutex.lock());
    assert!(waiter.poll().is_pending());
    drop(guard);
    assert!(mutex.try_lock().is_err());
    drop(waiter);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn cancelling_gives_up_the_place() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut first = polled(mutex.lock());
    let mut second = polled(mutex.lock());
    assert!(first.poll().is_pending() && second.poll().is_pending());
    drop(first);
    drop(guard);
    drop(second.ready());
}

#[test]
fn trying_does_not_wait() {
    let mutex = Arc::new(Mutex::new(1));
    {
        let _guard = mutex.try_lock().unwrap();
        let error = mutex.try_lock().unwrap_err();
        assert_eq!(error.to_string(), "operation would block");
        assert!(mutex.clone().try_lock_owned().is_err());
    }
    assert_eq!(*mutex.clone().try_lock_owned().unwrap(), 1);
    assert_eq!(Arc::strong_count(&mutex), 1);
}

#[test]
fn an_owned_guard_keeps_the_mutex_alive() {
    let mutex = Arc::new(Mutex::new(vec![1]));
    let mut guard = polled(mutex.clone().lock_owned()).ready();
    let weak = Arc::downgrade(&mutex);
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    drop(mutex);
    guard.push(2);
    assert_eq!(*guard, [1, 2]);
    drop(guard);
    assert!(weak.upgrade().is_none());
}

#[test]
fn no_poison() {
    let mutex = Mutex::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.try_lock().unwrap();
        *guard = 2;
        panic!("while the mutex is locked");
    }));
    assert!(panicked.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn blocking_waits_on_the_thread() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.try_lock().unwrap();
    let other = mutex.clone();
    let thread = std::thread::spawn(move || {
        *other.blocking_lock() += 1;
        *other.blocking_lock_owned() += 1;
    });
    drop(guard);
    wait_until(|| thread.is_finished());
    thread.join().unwrap();
    assert_eq!(*mutex.blocking_lock(), 2);
}

#[test]
fn blocking_panics_where_tasks_are_driven() {
    let mutex = Arc::new(Mutex::new(0));
    must_not_block(|| drop(mutex.blocking_lock()));
    must_not_block(|| drop(mutex.clone().blocking_lock_owned()));
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn value_without_locking() {
    static MUTEX: Mutex<u32> = Mutex::const_new(3);
    assert_eq!(*MUTEX.try_lock().unwrap(), 3);
    let mut mutex = Mutex::from(String::from("a"));
    mutex.get_mut().push('b');
    assert_eq!(mutex.into_inner(), "ab");
    assert_eq!(Mutex::<u32>::default().into_inner(), 0);
}

#[test]
fn unsized_values() {
    let mutex: Arc<Mutex<[u32]>> = Arc::new(Mutex::new([1, 2, 3]));
    mutex.try_lock().unwrap()[0] = 9;
    let guard = mutex.try_lock_owned().unwrap();
    let rest = OwnedMutexGuard::map(guard, |all| &mut all[..2]);
    assert_eq!(*rest, [9, 2]);
}

#[test]
fn mapped_guards_hold_the_lock() {
    let mutex = Mutex::new(((1, 2), "x"));
    let guard = mutex.try_lock().unwrap();
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    let mut pair = MutexGuard::map(guard, |value| &mut value.0);
    pair.0 = 5;
    let mut second = MappedMutexGuard::map(pair, |pair| &mut pair.1);
    *second = 6;
    assert!(mutex.try_lock().is_err());
    drop(second);
    assert_eq!(mutex.try_lock().unwrap().0, (5, 6));
}

#[test]
fn a_part_that_is_not_found_gives_the_guard_back() {
    let mutex = Mutex::new((Some(1), None::<u32>));
    let guard = mutex.try_lock().unwrap();
    let guard = MutexGuard::try_map(guard, |pair| pair.1.as_mut()).unwrap_err();
    let mut one = MutexGuard::try_map(guard, |pair| pair.0.as_mut()).unwrap();
    *one = 2;
    let mut one = MappedMutexGuard::try_map(one, |_| None::<&mut u32>).unwrap_err();
    *one += 1;
    let one = MappedMutexGuard::try_map(one, |one| Some(one)).unwrap();
    assert_eq!((*one, mutex.try_lock().is_err()), (3, true));
    drop(one);
    assert_eq!(mutex.try_lock().unwrap().0, Some(3));
}

#[test]
fn owned_guards_map_too() {
    let mutex = Arc::new(Mutex::new((Some(1), None::<u32>)));
    let guard = mutex.clone().try_lock_owned().unwrap();
    let guard = OwnedMutexGuard::try_map(guard, |pair| pair.1.as_mut()).unwrap_err();
    let one = OwnedMutexGuard::try_map(guard, |pair| pair.0.as_mut()).unwrap();
    let one = OwnedMappedMutexGuard::try_map(one, |_| None::<&mut u32>).unwrap_err();
    let mut one = OwnedMappedMutexGuard::try_map(one, |one| Some(one)).unwrap();
    *one = 4;
    let one = OwnedMappedMutexGuard::map(one, |one| one);
    assert_eq!((*one, mutex.try_lock().is_err()), (4, true));
    assert_eq!(Arc::strong_count(&mutex), 2);
    drop(one);
    assert_eq!(Arc::strong_count(&mutex), 1);
    let guard = mutex.clone().try_lock_owned().unwrap();
    drop(OwnedMutexGuard::map(guard, |pair| &mut pair.0));
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_panic_while_mapping_unlocks() {
    let mutex = Arc::new(Mutex::new(1));
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        let guard = mutex.try_lock().unwrap();
        drop(MutexGuard::map(guard, |_| -> &mut u32 { panic!("no") }));
    }));
    assert!(mapped.is_err());
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        let guard = mutex.clone().try_lock_owned().unwrap();
        let guard = OwnedMutexGuard::map(guard, |value| value);
        drop(OwnedMappedMutexGuard::map(guard, |_| -> &mut u32 {
            panic!("no")
        }));
    }));
    assert!(mapped.is_err());
    assert!(mutex.try_lock().is_ok());
    assert_eq!(Arc::strong_count(&mutex), 1);
}

/// The waker of the next in line panics: the lock is unlocked and handed over all the same.
#[test]
fn a_panicking_waker_loses_no_lock() {
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut waiter = Box::pin(mutex.lock());
    let waker = panicking_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(waiter.as_mut().poll(&mut cx).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(guard))).is_err());
    assert!(mutex.try_lock().is_err());
    drop(waiter);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn debug_and_display() {
    let mutex = Arc::new(Mutex::new(5));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 5 }");
    let guard = mutex.try_lock().unwrap();
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
    assert_eq!(format!("{guard:?} {guard}"), "5 5");
    let guard = MutexGuard::map(guard, |value| value);
    assert_eq!(format!("{guard:?} {guard}"), "5 5");
    drop(guard);
    let guard = mutex.clone().try_lock_owned().unwrap();
    assert_eq!(format!("{guard:?} {guard}"), "5 5");
    let guard = OwnedMutexGuard::map(guard, |value| value);
    assert_eq!(format!("{guard:?} {guard}"), "5 5");
    assert_eq!(format!("{:?}", TryLockError(())), "TryLockError(())");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Make a future and poll it.
    Lock,
    Poll(usize),
    Cancel(usize),
    Unlock,
    Try,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Lock),
        2 => (0..4usize).prop_map(Step::Poll),
        2 => (0..4usize).prop_map(Step::Cancel),
        3 => Just(Step::Unlock),
        1 => Just(Step::Try),
    ]
}

/// The model is a queue of numbers: the first of them has the lock, or has been woken for it.
fn run(steps: &[Step]) {
    let mutex = Mutex::new(());
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut guard: Option<(usize, MutexGuard<'_, ()>)> = None;
    let mut waiting: Vec<(usize, Polled<_>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Lock => {
                let mut future = polled(mutex.lock());
                queue.push_back(number);
                match future.poll() {
                    std::task::Poll::Ready(locked) => guard = Some((number, locked)),
                    std::task::Poll::Pending => waiting.push((number, future)),
                }
            }
            Step::Poll(at) if at < waiting.len() => {
                let (number, future) = &mut waiting[at];
                if let std::task::Poll::Ready(locked) = future.poll() {
                    guard = Some((*number, locked));
                    waiting.remove(at);
                }
            }
            Step::Cancel(at) if at < waiting.len() => {
                let (number, _future) = waiting.remove(at);
                queue.retain(|queued| *queued != number);
            }
            Step::Unlock => {
                if let Some((number, _guard)) = guard.take() {
                    assert_eq!(queue.pop_front(), Some(number));
                }
            }
            Step::Try => assert_eq!(mutex.try_lock().is_ok(), queue.is_empty()),
            Step::Poll(_) | Step::Cancel(_) => {}
        }
        if let Some((number, _)) = &guard {
            assert_eq!(queue.front(), Some(number));
        }
        for (number, future) in &waiting {
            assert_eq!(future.woken() == 1, queue.front() == Some(number));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn random_programs(steps in prop::collection::vec(step(), 0..80)) {
        run(&steps);
    }
}
