//! What `RwLock` promises, a test for each sentence; then random programs against a simple model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::test_util::{must_not_block, polled, wait_until};

#[path = "tests/random.rs"]
mod random;

#[test]
fn many_readers_or_one_writer() {
    let lock = RwLock::new(5);
    let first = polled(lock.read()).ready();
    let second = polled(lock.read()).ready();
    assert_eq!(*first + *second, 10);
    let mut writer = polled(lock.write());
    assert!(writer.poll().is_pending());
    drop(first);
    assert_eq!(writer.woken(), 0);
    drop(second);
    assert_eq!(writer.woken(), 1);
    let mut guard = writer.ready();
    *guard += 1;
    let mut reader = polled(lock.read());
    assert!(reader.poll().is_pending());
    drop(guard);
    assert_eq!(*reader.ready(), 6);
}

#[test]
fn a_waiting_writer_keeps_later_readers_out() {
    let lock = RwLock::new(());
    let held = polled(lock.read()).ready();
    let mut writer = polled(lock.write());
    let mut reader = polled(lock.read());
    assert!(writer.poll().is_pending() && reader.poll().is_pending());
    assert!(lock.try_read().is_err());
    drop(held);
    assert_eq!((writer.woken(), reader.woken()), (1, 0));
    drop(writer.ready());
    drop(reader.ready());
}

#[test]
fn readers_in_a_row_come_in_together() {
    let lock = RwLock::new(());
    let held = lock.try_write().unwrap();
    let mut readers = [(); 3].map(|()| polled(lock.read()));
    assert!(readers.iter_mut().all(|reader| reader.poll().is_pending()));
    let mut writer = polled(lock.write());
    assert!(writer.poll().is_pending());
    let mut last = polled(lock.read());
    assert!(last.poll().is_pending());
    drop(held);
    assert!(readers.iter().all(|reader| reader.woken() == 1));
    assert_eq!((writer.woken(), last.woken()), (0, 0));
    let guards = readers.each_mut().map(|reader| reader.ready());
    drop(guards);
    assert_eq!((writer.woken(), last.woken()), (1, 0));
    drop(writer);
    assert_eq!(last.woken(), 1);
}

#[test]
fn cancelling_a_writer_lets_the_readers_behind_it_in() {
    let lock = RwLock::new(());
    let held = lock.try_read().unwrap();
    let mut writer = polled(lock.write());
    let mut reader = polled(lock.read());
    assert!(writer.poll().is_pending() && reader.poll().is_pending());
    drop(writer);
    drop(reader.ready());
    drop(held);
    assert!(lock.try_write().is_ok());
}

#[test]
fn at_most_so_many_readers() {
    let lock = RwLock::with_max_readers(1, 2);
    let first = lock.try_read().unwrap();
    let second = lock.try_read().unwrap();
    assert!(lock.try_read().is_err());
    let mut third = polled(lock.read());
    assert!(third.poll().is_pending());
    drop(first);
    let third = third.ready();
    drop((second, third));
    assert!(lock.try_write().is_ok());
}

#[test]
fn the_number_of_readers_has_limits() {
    let zero = "a RwLock may not be created with 0 readers";
    for make in [RwLock::with_max_readers, RwLock::const_with_max_readers] {
        assert_eq!(make(7, u32::MAX >> 3).into_inner(), 7);
        let panicked = catch_unwind(|| make(7, 0)).unwrap_err();
        let message = panicked.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panicked.downcast_ref::<&str>().copied());
        assert!(message.unwrap().contains(zero));
        assert!(catch_unwind(|| make(7, (u32::MAX >> 3) + 1)).is_err());
    }
}

#[test]
fn trying_does_not_wait() {
    let lock = Arc::new(RwLock::new(1));
    {
        let reader = lock.try_read().unwrap();
        assert!(lock.try_read().is_ok());
        assert!(lock.try_write().is_err());
        assert!(lock.clone().try_write_owned().is_err());
        assert_eq!(*reader, *lock.clone().try_read_owned().unwrap());
    }
    {
        let _writer = lock.clone().try_write_owned().unwrap();
        assert!(lock.try_read().is_err());
        assert!(lock.try_write().is_err());
        assert!(lock.clone().try_read_owned().is_err());
    }
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn owned_guards_keep_the_lock_alive() {
    let lock = Arc::new(RwLock::new(vec![1]));
    let mut writer = polled(lock.clone().write_owned()).ready();
    assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&writer), &lock));
    writer.push(2);
    let mut reader = polled(lock.clone().read_owned());
    assert!(reader.poll().is_pending());
    drop(writer);
    let reader = reader.ready();
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&reader), &lock));
    let weak = Arc::downgrade(&lock);
    drop(lock);
    assert_eq!(*reader, [1, 2]);
    drop(reader);
    assert!(weak.upgrade().is_none());
}

#[test]
fn no_poison() {
    let lock = RwLock::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        *lock.try_write().unwrap() = 2;
        let _reader = lock.try_read().unwrap();
        panic!("while the lock is held");
    }));
    assert!(panicked.is_err());
    assert_eq!(*lock.try_write().unwrap(), 2);
}

#[test]
fn downgrading_lets_readers_in_and_no_writer() {
    let lock = RwLock::new(1);
    let writer = lock.try_write().unwrap();
    let mut first = polled(lock.read());
    let mut next = polled(lock.write());
    let mut behind = polled(lock.read());
    assert!(first.poll().is_pending() && next.poll().is_pending() && behind.poll().is_pending());
    let guard = writer.downgrade();
    assert_eq!((first.woken(), next.woken(), behind.woken()), (1, 0, 0));
    drop(first.ready());
    assert!(next.poll().is_pending());
    drop(guard);
    *next.ready() = 2;
    assert_eq!(*behind.ready(), 2);
}

#[test]
fn downgrading_an_owned_guard() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let guard = lock.clone().try_write_owned().unwrap().downgrade();
    assert!(lock.try_write().is_err());
    assert_eq!(*guard, *lock.try_read().unwrap());
    drop(guard);
    let writer = lock.clone().try_write_owned().unwrap();
    let part = OwnedRwLockWriteGuard::downgrade_map(writer, |pair| &pair.1);
    assert_eq!((*part, lock.try_read().unwrap().1), (2, 2));
    drop(part);
    let writer = lock.clone().try_write_owned().unwrap();
    let writer = OwnedRwLockWriteGuard::try_downgrade_map(writer, |_| None::<&u32>).unwrap_err();
    assert!(lock.try_read().is_err());
    let part = OwnedRwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.0)).unwrap();
    assert_eq!((*part, lock.try_read().is_ok()), (1, true));
    drop(part);
    assert!(lock.try_write().is_ok());
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn downgrading_to_a_part() {
    let lock = RwLock::new((1, 2));
    let writer = lock.try_write().unwrap();
    let part = RwLockWriteGuard::downgrade_map(writer, |pair| &pair.1);
    assert_eq!((*part, lock.try_read().unwrap().1), (2, 2));
    assert!(lock.try_write().is_err());
    drop(part);
    let writer = lock.try_write().unwrap();
    let writer = RwLockWriteGuard::try_downgrade_map(writer, |_| None::<&u32>).unwrap_err();
    assert!(lock.try_read().is_err());
    let part = RwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.0)).unwrap();
    assert_eq!((*part, lock.try_read().is_ok()), (1, true));
}

#[test]
fn mapped_read_guards() {
    let lock = Arc::new(RwLock::new(((1, 2), "x")));
    let pair = RwLockReadGuard::map(lock.try_read().unwrap(), |value| &value.0);
    let pair = RwLockReadGuard::try_map(pair, |_| None::<&u32>).unwrap_err();
    let one = RwLockReadGuard::try_map(pair, |pair| Some(&pair.0)).unwrap();
    assert_eq!((*one, lock.try_write().is_err()), (1, true));
    drop(one);
    let owned = lock.clone().try_read_owned().unwrap();
    let pair = OwnedRwLockReadGuard::map(owned, |value| &value.0);
    let pair = OwnedRwLockReadGuard::try_map(pair, |_| None::<&u32>).unwrap_err();
    let two = OwnedRwLockReadGuard::try_map(pair, |pair| Some(&pair.1)).unwrap();
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&two), &lock));
    assert_eq!((*two, lock.try_write().is_err()), (2, true));
    drop(two);
    assert!(lock.try_write().is_ok());
}

#[test]
fn mapped_write_guards() {
    let lock = RwLock::new(((1, 2), "x"));
    let pair = RwLockWriteGuard::map(lock.try_write().unwrap(), |value| &mut value.0);
    let pair = RwLockMappedWriteGuard::try_map(pair, |_| None::<&mut u32>).unwrap_err();
    let mut one = RwLockMappedWriteGuard::try_map(pair, |pair| Some(&mut pair.0)).unwrap();
    *one = 5;
    let mut one = RwLockMappedWriteGuard::map(one, |one| one);
    *one += 1;
    assert!(lock.try_read().is_err());
    drop(one);
    let whole = RwLockWriteGuard::into_mapped(lock.try_write().unwrap());
    assert_eq!(whole.0, (6, 2));
    drop(whole);
    let guard = lock.try_write().unwrap();
    let guard = RwLockWriteGuard::try_map(guard, |_| None::<&mut u32>).unwrap_err();
    let part = RwLockWriteGuard::try_map(guard, |value| Some(&mut value.1)).unwrap();
    assert_eq!(*part, "x");
    drop(part);
    assert!(lock.try_write().is_ok());
}

#[test]
fn mapped_owned_write_guards() {
    let lock = Arc::new(RwLock::new(((1, 2), "x")));
    let guard = lock.clone().try_write_owned().unwrap();
    let pair = OwnedRwLockWriteGuard::map(guard, |value| &mut value.0);
    let pair = OwnedRwLockMappedWriteGuard::try_map(pair, |_| None::<&mut u32>).unwrap_err();
    let mut one = OwnedRwLockMappedWriteGuard::try_map(pair, |pair| Some(&mut pair.0)).unwrap();
    *one = 5;
    let one = OwnedRwLockMappedWriteGuard::map(one, |one| one);
    assert!(Arc::ptr_eq(
        OwnedRwLockMappedWriteGuard::rwlock(&one),
        &lock
    ));
    assert!(lock.try_read().is_err());
    drop(one);
    let guard = lock.clone().try_write_owned().unwrap();
    let guard = OwnedRwLockWriteGuard::try_map(guard, |_| None::<&mut u32>).unwrap_err();
    let part = OwnedRwLockWriteGuard::try_map(guard, |value| Some(&mut value.0)).unwrap();
    assert_eq!(*part, (5, 2));
    drop(part);
    let guard = lock.clone().try_write_owned().unwrap();
    drop(OwnedRwLockWriteGuard::into_mapped(guard));
    assert!(lock.try_write().is_ok());
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn blocking_waits_on_the_thread() {
    let lock = Arc::new(RwLock::new(0));
    let guard = lock.try_read().unwrap();
    let other = lock.clone();
    let thread = std::thread::spawn(move || {
        *other.blocking_write() += 1;
        *other.blocking_read()
    });
    drop(guard);
    wait_until(|| thread.is_finished());
    assert_eq!(thread.join().unwrap(), 1);
}

#[test]
fn blocking_panics_where_tasks_are_driven() {
    let lock = RwLock::new(0);
    must_not_block(|| drop(lock.blocking_read()));
    must_not_block(|| drop(lock.blocking_write()));
    assert!(lock.try_write().is_ok());
}

#[test]
fn value_without_locking() {
    static LOCK: RwLock<u32> = RwLock::const_new(3);
    assert_eq!(*LOCK.try_read().unwrap(), 3);
    let mut lock = RwLock::from(String::from("a"));
    lock.get_mut().push('b');
    assert_eq!(lock.into_inner(), "ab");
    assert_eq!(RwLock::<u32>::default().into_inner(), 0);
    let unsized_lock: Arc<RwLock<[u32]>> = Arc::new(RwLock::new([1, 2]));
    unsized_lock.try_write().unwrap()[0] = 9;
    assert_eq!(*unsized_lock.try_read_owned().unwrap(), [9, 2]);
}

#[test]
fn debug_and_display() {
    let lock = Arc::new(RwLock::new(5));
    {
        let reader = lock.try_read().unwrap();
        assert_eq!(
            format!("{lock:?} {reader:?} {reader}"),
            "RwLock { data: 5 } 5 5"
        );
        let owned = lock.clone().try_read_owned().unwrap();
        assert_eq!(format!("{owned:?} {owned}"), "5 5");
    }
    let writer = lock.try_write().unwrap();
    assert_eq!(
        format!("{lock:?} {writer:?} {writer}"),
        "RwLock { data: <locked> } 5 5"
    );
    let mapped = RwLockWriteGuard::into_mapped(writer);
    assert_eq!(format!("{mapped:?} {mapped}"), "5 5");
    drop(mapped);
    let writer = lock.clone().try_write_owned().unwrap();
    assert_eq!(format!("{writer:?} {writer}"), "5 5");
    let mapped = OwnedRwLockWriteGuard::into_mapped(writer);
    assert_eq!(format!("{mapped:?} {mapped}"), "5 5");
}
