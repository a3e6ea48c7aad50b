//! What the protocols of this crate are made of: atomics, cells and short locks, or loom's under
//! `--cfg gmp_loom`; and the budget and the wait reason of the task being polled.

pub(crate) use gmp_executor::loom::{AtomicBool, AtomicU8, AtomicUsize, Ordering, UnsafeCell};

#[cfg(not(gmp_loom))]
mod imp {
    pub(crate) use gmp_executor::coop::poll_proceed;
    pub(crate) use gmp_executor::wait::record;
    pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
}

#[cfg(gmp_loom)]
mod imp {
    use std::task::{Context, Poll};

    use gmp_executor::wait::WaitReason;
    pub(crate) use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// loom's mutex, without the poison that parking_lot's does not have either.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic under a lock of this crate")
        }
    }

    /// The same for the lock of readers and writers.
    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            RwLock(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic under a lock of this crate")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under a lock of this crate")
        }
    }

    /// The models have no tasks, hence no budget.
    pub(crate) struct Unlimited;

    impl Unlimited {
        pub(crate) fn made_progress(&self) {}
    }

    pub(crate) fn poll_proceed(_: &mut Context<'_>) -> Poll<Unlimited> {
        Poll::Ready(Unlimited)
    }

    pub(crate) fn record(_: WaitReason) {}
}

/// Spends a unit of the task's budget, when there is one: for what may be ready without having waited.
pub(crate) async fn proceed() {
    std::future::poll_fn(|cx| poll_proceed(cx).map(|coop| coop.made_progress())).await;
}

#[allow(unused_imports)] // The channels need less of it than the locks.
pub(crate) use imp::*;
