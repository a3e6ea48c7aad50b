//! [`Event`]: something that happens again and again, and whoever listens for it.
//!
//! A listener remembers which happening it saw last. What happened since then, however often, is
//! one happening for it.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use gmp_executor::coop;
use gmp_executor::seam::wake_all;
use parking_lot::Mutex;
use slab::Slab;

#[derive(Clone, Default)]
pub(super) struct Event(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// How often it happened.
    count: u64,
    /// One entry a listener: its waker, while it waits.
    wakers: Slab<Option<Waker>>,
}

/// A share in an [`Event`]. Sees what happens after it was made.
pub(crate) struct Listener {
    event: Event,
    seen: u64,
    key: usize,
}

impl Event {
    pub(super) fn listen(&self) -> Listener {
        let mut state = self.0.lock();
        Listener {
            event: self.clone(),
            seen: state.count,
            key: state.wakers.insert(None),
        }
    }

    /// Lets it happen: wakes everybody who waits.
    pub(super) fn publish(&self) {
        let wakers: Vec<Waker> = {
            let mut state = self.0.lock();
            state.count += 1;
            state
                .wakers
                .iter_mut()
                .filter_map(|(_, waker)| waker.take())
                .collect()
        };
        wake_all(wakers);
    }
}

impl Listener {
    /// Whether it happened since the last time this said yes.
    #[cfg(all(test, not(gmp_loom)))]
    pub(crate) fn try_take(&mut self) -> bool {
        let count = self.event.0.lock().count;
        std::mem::replace(&mut self.seen, count) != count
    }

    /// Waits until it happens. Costs a unit of budget.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let coop = ready!(coop::poll_proceed(cx));
        let replaced = {
            let mut state = self.event.0.lock();
            if state.count != self.seen {
                self.seen = state.count;
                coop.made_progress();
                return Poll::Ready(());
            }
            let waker = &mut state.wakers[self.key];
            match waker {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => waker.replace(cx.waker().clone()),
            }
        };
        // A waker's drop is somebody else's code: not under the lock.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let waker = self.event.0.lock().wakers.remove(self.key);
        drop(waker);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn get(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn poll(listener: &mut Listener, count: &Arc<Count>) -> Poll<()> {
        listener.poll_take(&mut Context::from_waker(&count.clone().into()))
    }

    #[test]
    fn what_happened_before_is_not_seen() {
        let event = Event::default();
        event.publish();
        let mut listener = event.listen();
        assert!(!listener.try_take());
        assert!(poll(&mut listener, &Arc::default()).is_pending());
    }

    #[test]
    fn happenings_between_two_looks_are_one() {
        let event = Event::default();
        let mut listener = event.listen();
        for _ in 0..1000 {
            event.publish();
        }
        let count = Arc::default();
        assert!(poll(&mut listener, &count).is_ready());
        assert!(poll(&mut listener, &count).is_pending());
        event.publish();
        assert!(poll(&mut listener, &count).is_ready());
    }

    #[test]
    fn everybody_who_waits_is_woken_once() {
        let event = Event::default();
        let mut listeners: Vec<_> = (0..10)
            .map(|_| (event.listen(), Arc::<Count>::default()))
            .collect();
        for (listener, count) in &mut listeners {
            assert!(poll(listener, count).is_pending());
            assert!(poll(listener, count).is_pending());
        }
        event.publish();
        event.publish();
        for (listener, count) in &mut listeners {
            assert_eq!(count.get(), 1);
            assert!(poll(listener, count).is_ready());
        }
    }

    #[test]
    fn the_last_waker_counts() {
        let event = Event::default();
        let mut listener = event.listen();
        let (first, second) = (Arc::default(), Arc::default());
        assert!(poll(&mut listener, &first).is_pending());
        assert!(poll(&mut listener, &second).is_pending());
        event.publish();
        assert_eq!((first.get(), second.get()), (0, 1));
    }

    #[test]
    fn a_dropped_listener_is_forgotten() {
        let event = Event::default();
        let count = Arc::default();
        let mut listener = event.listen();
        assert!(poll(&mut listener, &count).is_pending());
        drop(listener);
        assert_eq!(Arc::strong_count(&count), 1);
        event.publish();
        assert_eq!(count.get(), 0);
        assert!(event.0.lock().wakers.is_empty());
    }

    #[test]
    fn wakers_may_publish_listen_and_panic() {
        struct Busy(Event);
        impl Wake for Busy {
            fn wake(self: Arc<Self>) {
                self.0.publish();
                drop(self.0.listen());
                panic!("a waker's own business");
            }
        }
        let event = Event::default();
        let mut busy = event.listen();
        let waker = Waker::from(Arc::new(Busy(event.clone())));
        assert!(
            busy.poll_take(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let mut behind = event.listen();
        let count = Arc::default();
        assert!(poll(&mut behind, &count).is_pending());
        event.publish();
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn no_wake_up_is_lost_between_threads() {
        let event = Event::default();
        let mut listener = event.listen();
        let publisher = std::thread::spawn({
            let event = event.clone();
            move || (0..1000).for_each(|_| event.publish())
        });
        let mut seen = 0;
        while seen < 1000 {
            futures::executor::block_on(std::future::poll_fn(|cx| listener.poll_take(cx)));
            seen = listener.seen;
        }
        publisher.join().unwrap();
        assert!(!listener.try_take());
    }
}
