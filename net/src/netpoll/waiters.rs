//! A source's readiness together with those who wait for it.
//!
//! The usual waiter is a task in `poll_read` or `poll_write`: there is one slot a direction for it,
//! and the last one to poll has it. Futures of `readable()`, `ready(interest)` and the like may be
//! many: they stand in a list.
//!
//! Nobody misses an event, because both sides go through the lock:
//!
//! 1. A waiter stores its waker under the lock, then (still under it) looks at the readiness again.
//! 2. An event sets the readiness first, then takes the wakers under the lock.
//!
//! If the event's turn of the lock comes first, the waiter's second look sees the readiness, which
//! was set before; else the event finds the waker. `shutdown` goes the event's way.
//!
//! No waker is cloned, dropped or woken under the lock: they belong to whoever made them.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[cfg(gmp_loom)]
use gmp_executor::loom::{Mutex, MutexGuard};
#[cfg(not(gmp_loom))]
use parking_lot::{Mutex, MutexGuard};
use slab::Slab;

use super::readiness::{Readiness, ReadyEvent};
use crate::interest::Interest;
use crate::ready::Ready;

/// One of the two streams of readiness that `poll_` functions wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// What satisfies a waiter of this direction.
    pub(crate) const fn mask(self) -> Ready {
        match self {
            Direction::Read => Ready::READ,
            Direction::Write => Ready::WRITE,
        }
    }
}

#[derive(Debug, Default)]
struct Waiters {
    reader: Option<Waker>,
    writer: Option<Waker>,
    list: Slab<Waiter>,
}

/// A future in the list. Its waker is taken by the event that satisfies it.
#[derive(Debug)]
struct Waiter {
    interest: Ready,
    waker: Option<Waker>,
}

/// Readiness and waiters.
#[derive(Debug)]
pub(super) struct Watched {
    readiness: Readiness,
    waiters: Mutex<Waiters>,
}

impl Watched {
    pub(super) fn new() -> Watched {
        Watched {
            readiness: Readiness::new(),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        let waiters = self.waiters.lock();
        #[cfg(gmp_loom)]
        let waiters = waiters.expect("nothing panics under this lock");
        waiters
    }

    /// Whether the source is ready in this direction or gone; if it is neither, the waker is kept
    /// for the next event.
    pub(super) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<ReadyEvent> {
        let event = self.readiness.snapshot(direction.mask());
        if is_over(event) {
            return Poll::Ready(event);
        }
        let new = cx.waker().clone();
        let (event, old) = {
            let mut waiters = self.lock();
            let slot = match direction {
                Direction::Read => &mut waiters.reader,
                Direction::Write => &mut waiters.writer,
            };
            let old = slot.replace(new);
            (self.readiness.snapshot(direction.mask()), old)
        };
        drop(old);
        if is_over(event) {
            return Poll::Ready(event);
        }
        Poll::Pending
    }

    /// An event: sets the readiness, and moves the wakers of those whom it satisfies to `wakers`.
    pub(super) fn deliver(&self, ready: Ready, wakers: &mut Vec<Waker>) {
        self.readiness.set(ready);
        self.take_wakers(ready, wakers);
    }

    /// The runtime goes: everybody is to be woken and will see it.
    pub(super) fn shutdown(&self, wakers: &mut Vec<Waker>) {
        self.readiness.set_shutdown();
        self.take_wakers(Ready::ALL, wakers);
    }

    fn take_wakers(&self, ready: Ready, wakers: &mut Vec<Waker>) {
        let mut waiters = self.lock();
        if ready.intersects(Ready::READ) {
            wakers.extend(waiters.reader.take());
        }
        if ready.intersects(Ready::WRITE) {
            wakers.extend(waiters.writer.take());
        }
        for (_, waiter) in &mut waiters.list {
            if ready.intersects(waiter.interest) {
                wakers.extend(waiter.waker.take());
            }
        }
    }

    /// Forgets the wakers of the two slots: the source is closed, and nobody polls it again.
    pub(super) fn forget_slots(&self) {
        let (reader, writer) = {
            let mut waiters = self.lock();
            (waiters.reader.take(), waiters.writer.take())
        };
        drop((reader, writer));
    }

    /// A future that is ready when the source is ready for some of `interest`, or gone.
    pub(super) fn ready_for(&self, interest: Interest) -> ReadyFor<'_> {
        ReadyFor {
            watched: self,
            interest: Ready::of_interest(interest),
            key: None,
        }
    }
}

fn is_over(event: ReadyEvent) -> bool {
    !event.ready.is_empty() || event.is_shutdown()
}

/// Future of [`Watched::ready_for`]: a waiter in the list.
#[derive(Debug)]
pub(super) struct ReadyFor<'a> {
    watched: &'a Watched,
    interest: Ready,
    /// Its place in the list, while it is there.
    key: Option<usize>,
}

impl ReadyFor<'_> {
    /// Takes the place in the list, or the news that an event has satisfied the waiter.
    fn enter(&mut self, new: Waker) -> (Poll<ReadyEvent>, Option<Waker>) {
        let mut waiters = self.watched.lock();
        let event = self.watched.readiness.snapshot(self.interest);
        let old = match self.key {
            Some(key) => waiters.list[key].waker.replace(new),
            None => {
                self.key = Some(waiters.list.insert(Waiter {
                    interest: self.interest,
                    waker: Some(new),
                }));
                None
            }
        };
        if is_over(event) {
            (Poll::Ready(event), old)
        } else {
            (Poll::Pending, old)
        }
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            let waiter = {
                let mut waiters = self.watched.lock();
                waiters.list.remove(key)
            };
            drop(waiter);
        }
    }

    /// Whether an event has satisfied the waiter, though its readiness may be cleared by now.
    fn was_woken(&self) -> bool {
        self.key
            .is_some_and(|key| self.watched.lock().list[key].waker.is_none())
    }
}

impl Future for ReadyFor<'_> {
    type Output = ReadyEvent;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReadyEvent> {
        let event = self.watched.readiness.snapshot(self.interest);
        // A waiter that was woken is done even when somebody else took the readiness meanwhile, as
        // in tokio: readiness is a hint.
        if is_over(event) || self.was_woken() {
            self.leave();
            return Poll::Ready(self.watched.readiness.snapshot(self.interest));
        }
        let (polled, old) = self.enter(cx.waker().clone());
        drop(old);
        if polled.is_ready() {
            self.leave();
        }
        polled
    }
}

impl Drop for ReadyFor<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Keeps the wakers of a batch of events for later, in one allocation.
#[derive(Debug, Default)]
pub(super) struct WakerBatch(Vec<Waker>);

impl WakerBatch {
    pub(super) fn as_mut(&mut self) -> &mut Vec<Waker> {
        &mut self.0
    }

    /// Wakes them all, outside of every lock, and returns how many there were.
    pub(super) fn wake(&mut self) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        // What is woken may poll a netpoll itself; it finds this batch empty.
        let mut wakers = mem::take(&mut self.0);
        let woken = gmp_executor::seam::wake_all(wakers.drain(..));
        self.0 = wakers;
        woken
    }
}

/// The bug the models look for: a waiter that is neither ready when it looks nor woken afterwards.
#[cfg(all(test, gmp_loom))]
mod model {
    use std::sync::Arc as StdArc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use gmp_executor::loom::{Arc, thread};

    use super::*;

    /// Not part of what is modelled: it is only ever set.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: StdArc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn deliver(watched: &Arc<Watched>, ready: Ready) -> thread::JoinHandle<()> {
        let watched = watched.clone();
        thread::spawn(move || {
            let mut wakers = Vec::new();
            watched.deliver(ready, &mut wakers);
            wakers.into_iter().for_each(Waker::wake);
        })
    }

    fn shut(watched: &Arc<Watched>) -> thread::JoinHandle<()> {
        let watched = watched.clone();
        thread::spawn(move || {
            let mut wakers = Vec::new();
            watched.shutdown(&mut wakers);
            wakers.into_iter().for_each(Waker::wake);
        })
    }

    #[test]
    fn model_a_poll_meets_an_event() {
        loom::model(|| {
            let watched = Arc::new(Watched::new());
            let poller = deliver(&watched, Ready::READABLE);
            let woken = StdArc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let polled = watched.poll_ready(&mut Context::from_waker(&waker), Direction::Read);
            poller.join().unwrap();
            assert!(polled.is_ready() || woken.0.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn model_a_poll_meets_the_shutdown() {
        loom::model(|| {
            let watched = Arc::new(Watched::new());
            let closer = shut(&watched);
            let woken = StdArc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let polled = watched.poll_ready(&mut Context::from_waker(&waker), Direction::Write);
            closer.join().unwrap();
            match polled {
                Poll::Ready(event) => assert!(event.is_shutdown()),
                Poll::Pending => assert!(woken.0.load(Ordering::SeqCst)),
            }
        });
    }

    #[test]
    fn model_a_future_meets_an_event() {
        loom::model(|| {
            let watched = Arc::new(Watched::new());
            let poller = deliver(&watched, Ready::WRITABLE);
            let woken = StdArc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let cx = &mut Context::from_waker(&waker);
            let mut future = watched.ready_for(Interest::WRITABLE);
            let polled = Pin::new(&mut future).poll(cx);
            poller.join().unwrap();
            assert!(polled.is_ready() || woken.0.load(Ordering::SeqCst));
            assert!(polled.is_ready() || Pin::new(&mut future).poll(cx).is_ready());
        });
    }

    /// A future that is dropped beside the event that would wake it takes nobody's wake-up along.
    #[test]
    fn model_a_dropped_future_meets_an_event() {
        loom::model(|| {
            let watched = Arc::new(Watched::new());
            let woken = StdArc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let cx = &mut Context::from_waker(&waker);
            let mut stays = watched.ready_for(Interest::READABLE);
            assert!(Pin::new(&mut stays).poll(cx).is_pending());
            let poller = deliver(&watched, Ready::READABLE);
            let mut leaves = watched.ready_for(Interest::READABLE);
            let _ = Pin::new(&mut leaves).poll(&mut Context::from_waker(Waker::noop()));
            drop(leaves);
            poller.join().unwrap();
            assert!(woken.0.load(Ordering::SeqCst));
        });
    }

    /// A reader reads, finds nothing, clears and waits, while data and its event arrive.
    #[test]
    fn model_the_whole_round() {
        loom::model(|| {
            let watched = Arc::new(Watched::new());
            let data = StdArc::new(AtomicBool::new(false));
            watched.readiness().set(Ready::READABLE);
            let poller = {
                let (watched, data) = (watched.clone(), data.clone());
                thread::spawn(move || {
                    data.store(true, Ordering::SeqCst);
                    let mut wakers = Vec::new();
                    watched.deliver(Ready::READABLE, &mut wakers);
                    wakers.into_iter().for_each(Waker::wake);
                })
            };
            let woken = StdArc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let cx = &mut Context::from_waker(&waker);
            let mut read = false;
            while let Poll::Ready(event) = watched.poll_ready(cx, Direction::Read) {
                loom::thread::yield_now();
                if data.load(Ordering::SeqCst) {
                    read = true;
                    break;
                }
                watched.readiness().clear(event);
            }
            poller.join().unwrap();
            assert!(
                read || woken.0.load(Ordering::SeqCst),
                "data and nobody told"
            );
        });
    }
}
