//! Random programs of operations on each primitive, step by step against a model in plain words.
//!
//! Futures are polled by hand, with wakers that count: after each step the results and the wakes
//! must be what the model says. The queues of the locks, of `Notify` and of full channels are
//! compared in the same way beside their code; here are the parts that have no queue of permits,
//! and the whole of what a user sees of a semaphore.

#![cfg(not(gmp_loom))]

mod barrier;
mod broadcast;
mod mpsc;
mod once_cell;
mod oneshot;
mod semaphore;
mod set_once;
mod support;
mod watch;
