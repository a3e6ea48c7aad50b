//! Futures polled by hand, and what the model knows of their wakers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that counts, and how often the model says that it was woken.
pub(crate) struct Waking {
    count: Arc<Count>,
    waker: Waker,
    /// Whether the next event has to wake it.
    is_registered: bool,
    expected: usize,
}

impl Waking {
    pub(crate) fn new() -> Waking {
        let count = Arc::new(Count::default());
        Waking {
            waker: Waker::from(count.clone()),
            count,
            is_registered: false,
            expected: 0,
        }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// It was polled with this waker, and is pending.
    pub(crate) fn register(&mut self) {
        self.is_registered = true;
    }

    /// Another waker took its place, or it is ready.
    pub(crate) fn forget(&mut self) {
        self.is_registered = false;
    }

    /// Something happened that whoever is registered is told of once.
    pub(crate) fn wake(&mut self) {
        self.expected += usize::from(std::mem::take(&mut self.is_registered));
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        assert_eq!(self.count.get(), self.expected, "wakes");
    }
}

/// A future with such a waker.
pub(crate) struct Waiting<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    pub(crate) waking: Waking,
}

impl<T> Waiting<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Waiting<T> {
        Waiting {
            future: Box::pin(future),
            waking: Waking::new(),
        }
    }

    /// Polls, and tells the model's waker what came of it.
    pub(crate) fn poll(&mut self) -> Poll<T> {
        let mut cx = Context::from_waker(self.waking.waker());
        let polled = self.future.as_mut().poll(&mut cx);
        match polled {
            Poll::Pending => self.waking.register(),
            Poll::Ready(_) => self.waking.forget(),
        }
        polled
    }

    /// Polls with another waker than before.
    pub(crate) fn poll_as_another(&mut self) -> Poll<T> {
        self.waking.check();
        self.waking = Waking::new();
        self.poll()
    }
}

/// The number of one of `count` things, if there are any.
pub(crate) fn pick(number: usize, count: usize) -> Option<usize> {
    (count > 0).then(|| number % count)
}

/// How many programs each test runs.
pub(crate) fn cases() -> proptest::prelude::ProptestConfig {
    proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::with_cases(400)
    }
}
