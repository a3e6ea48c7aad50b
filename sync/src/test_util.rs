//! What the tests of this crate poll futures with.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(not(gmp_loom))]
pub(crate) use counting::*;
#[cfg(gmp_loom)]
pub(crate) use modelled::*;

#[cfg(not(gmp_loom))]
mod counting {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// Counts how often it was woken.
    #[derive(Debug, Default)]
    pub(crate) struct Count(AtomicUsize);

    impl Count {
        pub(crate) fn new() -> (Arc<Count>, Waker) {
            let count = Arc::new(Count::default());
            (count.clone(), Waker::from(count))
        }

        pub(crate) fn get(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A future with a waker that counts, polled by hand.
    pub(crate) struct Polled<F> {
        future: Pin<Box<F>>,
        count: Arc<Count>,
        waker: Waker,
    }

    pub(crate) fn polled<F: Future>(future: F) -> Polled<F> {
        let (count, waker) = Count::new();
        Polled {
            future: Box::pin(future),
            count,
            waker,
        }
    }

    impl<F: Future> Polled<F> {
        pub(crate) fn poll(&mut self) -> Poll<F::Output> {
            self.future
                .as_mut()
                .poll(&mut Context::from_waker(&self.waker))
        }

        /// Polls with another waker than before.
        pub(crate) fn poll_as_another(&mut self) -> Poll<F::Output> {
            let (count, waker) = Count::new();
            self.count = count;
            self.waker = waker;
            self.poll()
        }

        #[track_caller]
        pub(crate) fn pending(&mut self) {
            assert!(self.poll().is_pending(), "the future was ready");
        }

        #[track_caller]
        pub(crate) fn ready(&mut self) -> F::Output {
            match self.poll() {
                Poll::Ready(output) => output,
                Poll::Pending => panic!("the future was pending"),
            }
        }

        pub(crate) fn woken(&self) -> usize {
            self.count.get()
        }

        pub(crate) fn count(&self) -> Arc<Count> {
            self.count.clone()
        }

        pub(crate) fn as_mut(&mut self) -> Pin<&mut F> {
            self.future.as_mut()
        }
    }

    /// A waker that panics when it is woken.
    pub(crate) fn panicking_waker() -> Waker {
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("the waker panics");
            }
        }
        Waker::from(Arc::new(Panics))
    }

    /// Waits for a condition, within a bound far above need.
    #[track_caller]
    pub(crate) fn wait_until(condition: impl Fn() -> bool) {
        let start = std::time::Instant::now();
        while !condition() {
            let waited = start.elapsed();
            assert!(waited.as_secs() < 600, "waited for {waited:?} in vain");
            std::thread::yield_now();
        }
    }

    /// Runs something that must refuse to block, on a thread that drives tasks.
    #[track_caller]
    pub(crate) fn must_not_block(blocks: impl FnOnce()) {
        use std::panic::{AssertUnwindSafe, catch_unwind};

        use gmp_executor::{Config, Flavor, Runtime};

        let runtime = Runtime::new(Config::new(Flavor::CurrentThread, 1)).expect("a runtime");
        let refused = runtime.block_on(async { catch_unwind(AssertUnwindSafe(blocks)) });
        let payload = refused.expect_err("it must not block here");
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
        let message = message.expect("the panic has a message");
        assert!(message.starts_with("Cannot block the current thread from within a runtime"));
    }
}

#[cfg(gmp_loom)]
mod modelled {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use loom::sync::{Condvar, Mutex};

    use super::*;

    /// loom's own park forgets an unpark that comes while the thread waits for a mutex.
    struct Parker {
        woken: Mutex<bool>,
        condvar: Condvar,
    }

    impl Wake for Parker {
        fn wake(self: Arc<Self>) {
            *self.woken.lock().unwrap() = true;
            self.condvar.notify_one();
        }
    }

    impl Parker {
        fn park(&self) {
            let mut woken = self.woken.lock().unwrap();
            while !*woken {
                woken = self.condvar.wait(woken).unwrap();
            }
            *woken = false;
        }
    }

    /// Drives a future on a thread of the model.
    pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        let parker = Arc::new(Parker {
            woken: Mutex::new(false),
            condvar: Condvar::new(),
        });
        let waker = Waker::from(parker.clone());
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => parker.park(),
            }
        }
    }

    /// Polls once; nobody is woken later.
    pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }
}
