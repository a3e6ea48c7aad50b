//! [`Mark`]: a signal that has arrived and has not been published.
//!
//! The handler *sets* the mark, then writes a byte to the self-pipe. A receiver drains the pipe, then
//! *takes* the mark. The other way round in the receiver a signal could be lost: not marked yet when
//! the mark is looked at, and its byte drained after that. The other way round in the handler too.

use gmp_executor::loom::{AtomicBool, Ordering};

pub(super) struct Mark(AtomicBool);

impl Mark {
    pub(super) fn new() -> Mark {
        Mark(AtomicBool::new(false))
    }

    /// By the handler: all that it does is a store.
    pub(super) fn set(&self) {
        // Release: pairs with the swap in `take`.
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was set since it was last taken; by one of any number of receivers.
    pub(super) fn take(&self) -> bool {
        // Relaxed: most signals are not pending. The kernel orders this load behind the handler's
        // store when the drain found its byte; else the byte will bring another look.
        //
        // Acquire: pairs with the store in `set`, so that what was written before the signal was
        // raised is visible to whoever is woken for it.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Acquire)
    }
}

/// Fails when a receiver takes the mark before it drains, and when a handler writes before it marks.
#[cfg(all(test, gmp_loom))]
mod model {
    use std::mem;

    use gmp_executor::loom::{Arc, AtomicUsize, Mutex, thread};

    use super::*;

    struct Process {
        mark: Mark,
        /// Whether there is a byte in the pipe, under the lock that the kernel takes.
        byte: Mutex<bool>,
        published: AtomicUsize,
        data: AtomicUsize,
    }

    impl Process {
        fn handle(&self) {
            self.data.fetch_add(1, Ordering::Relaxed);
            self.mark.set();
            *self.byte.lock().unwrap() = true;
        }

        /// A look, if netpoll says that there is something to see.
        fn receive(&self) {
            let drained = mem::take(&mut *self.byte.lock().unwrap());
            if drained && self.mark.take() {
                assert!(self.data.load(Ordering::Relaxed) > 0);
                self.published.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn no_signal_is_lost_between_two_receivers() {
        loom::model(|| {
            let process = Arc::new(Process {
                mark: Mark::new(),
                byte: Mutex::new(false),
                published: AtomicUsize::new(0),
                data: AtomicUsize::new(0),
            });
            let handler = thread::spawn({
                let process = process.clone();
                move || {
                    process.handle();
                    process.handle();
                }
            });
            let receiver = thread::spawn({
                let process = process.clone();
                move || process.receive()
            });
            process.receive();
            handler.join().unwrap();
            receiver.join().unwrap();
            // Whoever is told of the edge that is left.
            process.receive();
            assert!(!process.mark.take(), "a signal was never published");
            let published = process.published.load(Ordering::Relaxed);
            assert!((1..=2).contains(&published));
        });
    }
}
