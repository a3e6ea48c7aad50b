//! What protocol modules import their atomics from: std's, or loom's under `--cfg gmp_loom`.
//!
//! Only modules that have a model use this facade; everything else uses `std` directly.

#![allow(unused_imports, unreachable_pub, missing_docs)]

#[cfg(not(gmp_loom))]
mod imp {
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        compiler_fence, fence,
    };
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::{hint, thread};

    /// `UnsafeCell` with loom's closure interface.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(gmp_loom)]
mod imp {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::{hint, thread};

    /// The models stand in for the asymmetric barrier with a full fence on both sides.
    pub fn compiler_fence(_: Ordering) {
        fence(Ordering::SeqCst);
    }
}

pub use imp::*;
