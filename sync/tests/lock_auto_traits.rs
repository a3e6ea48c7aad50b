//! `Send`, `Sync`, `Unpin` and the unwind traits as tokio has them, the absent ones too.

#![cfg(not(gmp_loom))]

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use gmp_sync::futures::{Notified, OwnedNotified};
use gmp_sync::{
    AcquireError, Barrier, BarrierWaitResult, MappedMutexGuard, Mutex, MutexGuard, Notify,
    OnceCell, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedRwLockMappedWriteGuard,
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
    SetError, SetOnce, SetOnceError, TryAcquireError, TryLockError,
};

/// Sent and shared.
type Yy = u32;
/// Sent, not shared.
type Yn = Cell<u32>;
/// Neither.
type Nn = Rc<u32>;
/// Shared, not sent.
type Ny = std::sync::MutexGuard<'static, u32>;

/// Asks whether a type has a trait: the inherent method wins if its bound holds, else the trait's.
struct Has<T: ?Sized>(PhantomData<fn() -> Box<T>>);

trait HasNot {
    fn send(&self) -> bool {
        false
    }
    fn sync(&self) -> bool {
        false
    }
    fn unpin(&self) -> bool {
        false
    }
    fn unwind_safe(&self) -> bool {
        false
    }
    fn ref_unwind_safe(&self) -> bool {
        false
    }
}

impl<T: ?Sized> HasNot for &Has<T> {}

impl<T: ?Sized + Send> Has<T> {
    fn send(&self) -> bool {
        true
    }
}
impl<T: ?Sized + Sync> Has<T> {
    fn sync(&self) -> bool {
        true
    }
}
impl<T: ?Sized + Unpin> Has<T> {
    fn unpin(&self) -> bool {
        true
    }
}
impl<T: ?Sized + UnwindSafe> Has<T> {
    fn unwind_safe(&self) -> bool {
        true
    }
}
impl<T: ?Sized + RefUnwindSafe> Has<T> {
    fn ref_unwind_safe(&self) -> bool {
        true
    }
}

macro_rules! traits {
    ($has:expr) => {{
        let has = $has;
        let has = &has;
        let marks = [
            (has.send(), 'S'),
            (has.sync(), 'Y'),
            (has.unpin(), 'U'),
            (has.unwind_safe(), 'W'),
            (has.ref_unwind_safe(), 'R'),
        ];
        let letters = marks.map(|(has, letter)| if has { letter } else { '-' });
        String::from_iter(letters)
    }};
}

macro_rules! assert_types {
    ($($kind:ty: $traits:literal,)*) => {
        $(assert_eq!(traits!(Has::<$kind>(PhantomData)), $traits, "{}", stringify!($kind));)*
    };
}

/// The traits of a future whose type has no name.
fn of<T>(_: &T) -> Has<T> {
    Has(PhantomData)
}

macro_rules! assert_futures {
    ($($future:expr => $traits:literal,)*) => {
        $(assert_eq!(traits!(of(&$future))[..3], $traits[..], "{}", stringify!($future));)*
    };
}

#[test]
fn without_a_value() {
    assert_types! {
        Semaphore: "SYU--",
        SemaphorePermit<'static>: "SYU--",
        OwnedSemaphorePermit: "SYU--",
        Notify: "SYUWR",
        Notified<'static>: "SY---",
        OwnedNotified: "SY---",
        // tokio's is not `UnwindSafe`, for no reason that holds here.
        Barrier: "SYUW-",
        BarrierWaitResult: "SYUWR",
        AcquireError: "SYUWR",
        TryAcquireError: "SYUWR",
        TryLockError: "SYUWR",
        SetError<Yy>: "SYUWR",
        SetOnceError<Yy>: "SYUWR",
    }
}

#[test]
fn mutex() {
    assert_types! {
        Mutex<Yy>: "SYU--",
        Mutex<Yn>: "SYU--",
        Mutex<Nn>: "--U--",
        Mutex<dyn Send>: "SY---",
        MutexGuard<'static, Yy>: "SYU--",
        MutexGuard<'static, Yn>: "S-U--",
        MutexGuard<'static, Nn>: "--U--",
        OwnedMutexGuard<Yy>: "SYU--",
        OwnedMutexGuard<Yn>: "S-U--",
        OwnedMutexGuard<Nn>: "--U--",
        MappedMutexGuard<'static, Yy>: "SYU--",
        MappedMutexGuard<'static, Yn>: "S-U--",
        MappedMutexGuard<'static, Ny>: "-YU--",
        MappedMutexGuard<'static, Nn>: "--U--",
        OwnedMappedMutexGuard<Yy, Yy>: "SYU--",
        OwnedMappedMutexGuard<Yy, Yn>: "S-U--",
        OwnedMappedMutexGuard<Yn, Yy>: "S-U--",
        OwnedMappedMutexGuard<Nn, Yy>: "--U--",
        OwnedMappedMutexGuard<Yy, Nn>: "--U--",
    }
}

#[test]
fn rwlock() {
    assert_types! {
        RwLock<Yy>: "SYU--",
        RwLock<Yn>: "S-U--",
        RwLock<Nn>: "--U--",
        RwLockReadGuard<'static, Yy>: "SYU--",
        RwLockReadGuard<'static, Ny>: "S-U--",
        RwLockReadGuard<'static, Yn>: "--U--",
        RwLockWriteGuard<'static, Yy>: "SYU--",
        RwLockWriteGuard<'static, Yn>: "--U--",
        RwLockMappedWriteGuard<'static, Yy>: "SYU--",
        RwLockMappedWriteGuard<'static, Yn>: "--U--",
        OwnedRwLockReadGuard<Yy, Yy>: "SYU--",
        OwnedRwLockReadGuard<Yy, Ny>: "S-U--",
        OwnedRwLockReadGuard<Yy, Yn>: "--U--",
        OwnedRwLockReadGuard<Yn, Yy>: "--U--",
        OwnedRwLockWriteGuard<Yy>: "SYU--",
        OwnedRwLockWriteGuard<Yn>: "--U--",
        OwnedRwLockMappedWriteGuard<Yy, Yy>: "SYU--",
        OwnedRwLockMappedWriteGuard<Yy, Yn>: "--U--",
        OwnedRwLockMappedWriteGuard<Yn, Yy>: "--U--",
    }
}

#[test]
fn cells() {
    assert_types! {
        OnceCell<Yy>: "SYU--",
        OnceCell<Yn>: "S-U--",
        OnceCell<Nn>: "--U--",
        SetOnce<Yy>: "SYUW-",
        SetOnce<Yn>: "S-UW-",
        SetOnce<Nn>: "--UW-",
    }
}

#[test]
fn futures() {
    let semaphore = Arc::new(Semaphore::new(9));
    let mutex = Arc::new(Mutex::new(Yy::default()));
    let cell_mutex = Arc::new(Mutex::new(Yn::default()));
    let lock = Arc::new(RwLock::new(Yy::default()));
    let barrier = Barrier::new(2);
    let once = OnceCell::<Yy>::new();
    let cell_once = OnceCell::<Yn>::new();
    let set = SetOnce::<Yy>::new();
    assert_futures! {
        semaphore.acquire() => "SY-",
        semaphore.acquire_many(1) => "SY-",
        semaphore.clone().acquire_owned() => "SY-",
        semaphore.clone().acquire_many_owned(1) => "SY-",
        mutex.lock() => "SY-",
        mutex.clone().lock_owned() => "SY-",
        cell_mutex.lock() => "SY-",
        lock.read() => "SY-",
        lock.clone().read_owned() => "SY-",
        lock.write() => "SY-",
        lock.clone().write_owned() => "SY-",
        barrier.wait() => "SY-",
        once.get_or_init(|| async { 1 }) => "SY-",
        cell_once.get_or_init(|| async { Cell::new(1) }) => "---",
        once.get_or_try_init(|| async { Ok::<_, Rc<u32>>(1) }) => "SY-",
        set.wait() => "SY-",
    }
}
