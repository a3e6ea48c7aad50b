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
    SetError, SetOnce, SetOnceError, TryAcquireError, TryLockError, broadcast, mpsc, oneshot,
    watch,
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

#[test]
fn channels() {
    types_fit! {
        mpsc::Sender<u64>: 8,
        mpsc::Receiver<u64>: 8,
        mpsc::WeakSender<u64>: 8,
        mpsc::OwnedPermit<u64>: 8,
        mpsc::UnboundedSender<u64>: 8,
        mpsc::UnboundedReceiver<u64>: 8,
        oneshot::Sender<u64>: 8,
        oneshot::Receiver<u64>: 8,
        broadcast::Sender<u64>: 8,
        broadcast::Receiver<u64>: 16,
        watch::Sender<u64>: 8,
        watch::Receiver<u64>: 16,
    }
}

#[test]
fn futures_of_channels() {
    let (sender, mut receiver) = mpsc::channel::<u64>(1);
    let (unbounded, mut unbounded_receiver) = mpsc::unbounded_channel::<u64>();
    let (mut one, _one_receiver) = oneshot::channel::<u64>();
    let (broadcast, mut broadcast_receiver) = broadcast::channel::<u64>(1);
    let (watch, mut watch_receiver) = watch::channel(0u64);
    futures_fit! {
        sender.send(1) => 168,
        sender.reserve() => 136,
        sender.clone().reserve_owned() => 136,
        sender.closed() => 96,
        receiver.recv() => 24,
        unbounded.closed() => 96,
        unbounded_receiver.recv() => 24,
        one.closed() => 24,
        broadcast.closed() => 88,
        broadcast_receiver.recv() => 64,
        watch.closed() => 96,
        watch_receiver.changed() => 120,
    }
    futures_fit! {
        watch_receiver.wait_for(|_| true) => 144,
    }
}
