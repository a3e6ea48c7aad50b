//! Breaking a wait: who writes to a poller's eventfd, and when.
//!
//! The eventfd is registered edge-triggered and never read, so that being woken costs the waiter no
//! system call. The price: whoever polls the poller may be handed the edge, also a thief that polls
//! without waiting, while the one it was meant for sleeps on. Two flags settle that:
//!
//! * `notified`: somebody wants the waiter, or the next one, to return. Set by [`Wakeup::notify`],
//!   taken back only by a poll that waits or would have.
//! * `waiting`: somebody is about to wait, or waits, or has just stopped.
//!
//! The protocol:
//!
//! ```text
//! waiter                                notifier                      any poll that got the edge
//! W1 waiting = true                     N1 if notified.swap(true)     E1 if notified
//! W2 if notified.swap(false)               is false                   E2 and waiting:
//!       do not wait                     N2 and waiting:               E3    write to the eventfd
//! W3 else wait in the poller            N3    write to the eventfd
//! W4 waiting = false
//! W5 notified = false
//! ```
//!
//! *A notified waiter returns.* W1/W2 and N1/N2 are a store and a load of the other's variable on
//! each side, all sequentially consistent: either N2 sees `waiting` and writes, or W2 sees
//! `notified`. A notifier that finds `notified` set relies on whoever set it, by the same argument.
//! When a poll that does not wait has got the edge, E1/E2 ask the same question once more: if E2
//! does not see `waiting`, the waiter has not passed W1 yet and will see `notified` at W2 (the flag
//! was set before E1 saw it, and only a waiter takes it back); else the edge is made anew.
//!
//! *What the notifier did before is seen.* W2 and W5 are swaps that read what N1 wrote, so what the
//! notifier published is visible to the waiter when its poll returns, also when it returned for
//! another reason and the edge is left over: then the next wait returns early, once, for nothing.
//!
//! *No system call without need.* Notifying a poller nobody waits in, or a second time, writes
//! nothing.

use gmp_executor::loom::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct Wakeup {
    notified: AtomicBool,
    waiting: AtomicBool,
}

/// Proof of W1, until W4.
#[derive(Debug)]
pub(super) struct Waiting<'a>(&'a Wakeup);

impl Wakeup {
    pub(super) fn new() -> Wakeup {
        Wakeup {
            notified: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
        }
    }

    /// N1 and N2: says whether the eventfd has to be written to.
    #[must_use]
    pub(super) fn notify(&self) -> bool {
        // SeqCst: store of `notified`, load of `waiting`; the pair is W1 and W2.
        !self.notified.swap(true, Ordering::SeqCst) && self.waiting.load(Ordering::SeqCst)
    }

    /// W1 and W2: `None` when the wait is over before it began.
    #[must_use]
    pub(super) fn begin_wait(&self) -> Option<Waiting<'_>> {
        // SeqCst: store of `waiting`, load of `notified`; the pair is N1 and N2.
        self.waiting.store(true, Ordering::SeqCst);
        let waiting = Waiting(self);
        if self.notified.swap(false, Ordering::SeqCst) {
            return None;
        }
        Some(waiting)
    }

    /// E1 and E2: whether a poll that does not wait, and has got the edge, has to make it anew.
    #[must_use]
    pub(super) fn took_edge(&self) -> bool {
        // SeqCst: see W1 and W2.
        self.notified.load(Ordering::SeqCst) && self.waiting.load(Ordering::SeqCst)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // W4. Relaxed: an edge for a waiter that has just stopped makes one wait return early.
        self.0.waiting.store(false, Ordering::Relaxed);
        // W5. Acquire: pairs with the swap in `notify`.
        self.0.notified.swap(false, Ordering::Acquire);
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_poller_nobody_waits_in_is_not_written_to() {
        let wakeup = Wakeup::new();
        assert!(!wakeup.notify());
        assert!(
            wakeup.begin_wait().is_none(),
            "the next wait is over at once"
        );
        let waiting = wakeup.begin_wait().expect("and the one after it is not");
        assert!(wakeup.notify(), "a waiter is woken");
        assert!(!wakeup.notify(), "once");
        drop(waiting);
        assert!(
            wakeup.begin_wait().is_some(),
            "the wait took the notice back"
        );
    }

    #[test]
    fn a_stolen_edge_is_made_anew_only_for_a_waiter() {
        let wakeup = Wakeup::new();
        assert!(!wakeup.took_edge());
        let _ = wakeup.notify();
        assert!(!wakeup.took_edge(), "nobody waits");
        let _ = wakeup.begin_wait();
        let waiting = wakeup.begin_wait();
        assert!(!wakeup.took_edge(), "nobody has notified");
        assert!(wakeup.notify());
        assert!(wakeup.took_edge());
        drop(waiting);
        assert!(!wakeup.took_edge());
    }
}

/// The bug the models look for: a waiter that sleeps although it was notified. The kernel's part is
/// an edge in a mutex with a condition variable; loom reports a waiter that never wakes as a deadlock.
#[cfg(all(test, gmp_loom))]
mod model {
    use gmp_executor::loom::{Arc, AtomicUsize, Condvar, Mutex, thread};

    use super::*;

    struct Poller {
        wakeup: Wakeup,
        edge: Mutex<bool>,
        changed: Condvar,
        work: AtomicUsize,
    }

    impl Poller {
        fn new() -> Arc<Poller> {
            Arc::new(Poller {
                wakeup: Wakeup::new(),
                edge: Mutex::new(false),
                changed: Condvar::new(),
                work: AtomicUsize::new(0),
            })
        }

        fn write(&self) {
            *self.edge.lock().unwrap() = true;
            self.changed.notify_all();
        }

        fn notify(&self) {
            // Relaxed: the protocol itself has to make it visible.
            self.work.fetch_add(1, Ordering::Relaxed);
            if self.wakeup.notify() {
                self.write();
            }
        }

        fn wait(&self) {
            let Some(_waiting) = self.wakeup.begin_wait() else {
                return;
            };
            let mut edge = self.edge.lock().unwrap();
            while !*edge {
                edge = self.changed.wait(edge).unwrap();
            }
            *edge = false;
        }

        /// A thief's poll.
        fn steal(&self) {
            let got = std::mem::take(&mut *self.edge.lock().unwrap());
            if got && self.wakeup.took_edge() {
                self.write();
            }
        }
    }

    #[test]
    fn model_a_notified_waiter_returns_and_sees() {
        loom::model(|| {
            let poller = Poller::new();
            let notifier = {
                let poller = poller.clone();
                thread::spawn(move || poller.notify())
            };
            poller.wait();
            // An early return for a left-over edge is allowed in general, but there is none here.
            assert_eq!(poller.work.load(Ordering::Relaxed), 1);
            notifier.join().unwrap();
        });
    }

    /// With at most three preemptions: without a bound it takes hours.
    #[test]
    fn model_two_notifiers() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let poller = Poller::new();
            let notifiers: Vec<_> = (0..2)
                .map(|_| {
                    let poller = poller.clone();
                    thread::spawn(move || poller.notify())
                })
                .collect();
            while poller.work.load(Ordering::Relaxed) < 2 {
                poller.wait();
            }
            for notifier in notifiers {
                notifier.join().unwrap();
            }
        });
    }

    #[test]
    fn model_a_thief_takes_the_edge() {
        loom::model(|| {
            let poller = Poller::new();
            let notifier = {
                let poller = poller.clone();
                thread::spawn(move || poller.notify())
            };
            let thief = {
                let poller = poller.clone();
                thread::spawn(move || poller.steal())
            };
            poller.wait();
            assert_eq!(poller.work.load(Ordering::Relaxed), 1);
            notifier.join().unwrap();
            thief.join().unwrap();
        });
    }
}
