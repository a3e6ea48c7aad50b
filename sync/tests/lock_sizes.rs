//! Nothing is more than a quarter larger than tokio's: the constants are what tokio 1.54 takes on a
//! 64-bit Linux, with its `parking_lot` feature.

#![cfg(all(not(gmp_loom), target_pointer_width = "64"))]

use std::mem::{size_of, size_of_val};
use std::sync::Arc;

use gmp_sync::futures::{Notified, OwnedNotified};
use gmp_sync::{
    AcquireError, Barrier, BarrierWaitResult, MappedMutexGuard, Mutex, MutexGuard, Notify,
    OnceCell, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedRwLockMappedWriteGuard,
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
    SetError, SetOnce, SetOnceError, TryAcquireError, TryLockError,
};

#[track_caller]
fn fits(what: &str, size: usize, tokio: usize) {
    assert!(
        size * 4 <= tokio * 5,
        "{what} takes {size} bytes, tokio's {tokio}"
    );
}

macro_rules! types_fit {
    ($($kind:ty: $tokio:literal,)*) => {
        $(fits(stringify!($kind), size_of::<$kind>(), $tokio);)*
    };
}

macro_rules! futures_fit {
    ($($future:expr => $tokio:literal,)*) => {
        $(fits(stringify!($future), size_of_val(&$future), $tokio);)*
    };
}

#[test]
fn primitives() {
    types_fit! {
        Semaphore: 40,
        Mutex<()>: 40,
        Mutex<u64>: 48,
        RwLock<()>: 48,
        RwLock<u64>: 56,
        Notify: 32,
        Barrier: 56,
        OnceCell<()>: 48,
        OnceCell<u64>: 56,
        SetOnce<()>: 40,
        SetOnce<u64>: 48,
    }
}

#[test]
fn guards_and_errors() {
    types_fit! {
        SemaphorePermit<'static>: 16,
        OwnedSemaphorePermit: 16,
        MutexGuard<'static, u64>: 8,
        OwnedMutexGuard<u64>: 8,
        MappedMutexGuard<'static, u64>: 16,
        OwnedMappedMutexGuard<u64, u8>: 16,
        RwLockReadGuard<'static, u64>: 16,
        RwLockWriteGuard<'static, u64>: 24,
        RwLockMappedWriteGuard<'static, u64>: 24,
        OwnedRwLockReadGuard<u64, u8>: 16,
        OwnedRwLockWriteGuard<u64>: 24,
        OwnedRwLockMappedWriteGuard<u64, u8>: 24,
        BarrierWaitResult: 1,
        AcquireError: 0,
        TryAcquireError: 1,
        TryLockError: 0,
        SetError<u64>: 16,
        SetOnceError<u64>: 8,
    }
}

#[test]
fn futures() {
    types_fit! {
        Notified<'static>: 64,
        OwnedNotified: 64,
    }
    let semaphore = Arc::new(Semaphore::new(1));
    let mutex = Arc::new(Mutex::new(0u64));
    let lock = Arc::new(RwLock::new(0u64));
    let barrier = Barrier::new(1);
    let once = OnceCell::<u64>::new();
    let set = SetOnce::<u64>::new();
    futures_fit! {
        semaphore.acquire() => 88,
        semaphore.acquire_many(2) => 96,
        semaphore.clone().acquire_owned() => 88,
        semaphore.clone().acquire_many_owned(2) => 96,
        mutex.lock() => 120,
        mutex.clone().lock_owned() => 120,
        lock.read() => 96,
        lock.write() => 96,
        lock.clone().read_owned() => 96,
        lock.clone().write_owned() => 96,
        barrier.wait() => 184,
        once.get_or_init(|| async { 1u64 }) => 128,
        once.get_or_try_init(|| async { Ok::<u64, ()>(1u64) }) => 128,
        set.wait() => 112,
    }
}
