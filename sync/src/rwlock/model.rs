//! Exhaustive models. Each says which bug it would find.

use gmp_executor::loom::{Arc, thread};

use super::*;
use crate::primitives::UnsafeCell;
use crate::test_util::block_on;

/// A value that loom watches: many may read it at a time, or one write it.
struct Watched(UnsafeCell<u32>);

// SAFETY: it is reached through the lock only; the models check that the lock is enough.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn read(&self) -> u32 {
        self.0.with(|value| {
            // SAFETY: the caller has the lock for reading.
            unsafe { *value }
        })
    }

    fn add_one(&self) {
        self.0.with_mut(|value| {
            // SAFETY: the caller has the lock for writing.
            unsafe { *value += 1 }
        });
    }
}

fn lock(readers: u32) -> Arc<RwLock<Watched>> {
    Arc::new(RwLock::with_max_readers(
        Watched(UnsafeCell::new(0)),
        readers,
    ))
}

/// Would find: a reader and a writer at the same time; a write not seen by whoever comes next.
#[test]
fn model_readers_and_a_writer() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let lock = lock(2);
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || block_on(lock.write()).add_one())
        };
        let reader = {
            let lock = lock.clone();
            thread::spawn(move || block_on(lock.read()).read())
        };
        let here = block_on(lock.read()).read();
        let there = reader.join().unwrap();
        writer.join().unwrap();
        assert!(here <= 1 && there <= 1);
        assert_eq!(block_on(lock.read()).read(), 1);
    });
}

/// Would find: a writer that comes in while a write guard turns into a read guard.
#[test]
fn model_downgrade() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let lock = lock(3);
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || block_on(lock.write()).add_one())
        };
        let guard = block_on(lock.write());
        let before = guard.read();
        let guard = guard.downgrade();
        assert_eq!(guard.read(), before);
        let _second = before == 1 && lock.try_read().is_ok();
        drop(guard);
        writer.join().unwrap();
        assert_eq!(block_on(lock.read()).read(), 1);
    });
}
