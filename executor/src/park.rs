//! A thread that sleeps until a waker wakes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use crate::pool;

/// Parks the thread that made it. A wake-up before the park is not lost: it is kept in a flag, which
/// `std::thread`'s own token (that anybody may spend) cannot take away.
pub(crate) struct ThreadParker {
    inner: Arc<Inner>,
}

struct Inner {
    woken: AtomicBool,
    thread: Thread,
}

impl ThreadParker {
    pub(crate) fn new() -> ThreadParker {
        ThreadParker {
            inner: Arc::new(Inner {
                woken: AtomicBool::new(false),
                thread: thread::current(),
            }),
        }
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(self.inner.clone())
    }

    /// Sleeps until the waker has been woken since the last call.
    pub(crate) fn park(&self) {
        // Acquire: pairs with the Release in `wake_by_ref`.
        pool::park_until(|| self.inner.woken.swap(false, Ordering::Acquire));
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: pairs with the Acquire in `park`.
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}
