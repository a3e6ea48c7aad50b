//! Random programs, step by step against a model in plain words.

use std::task::Poll;

use proptest::prelude::*;

use crate::test_util::{Polled, polled};
use crate::{RwLock, RwLockReadGuard, RwLockWriteGuard};

#[derive(Clone, Copy, Debug)]
enum Step {
    Read,
    Write,
    Poll(usize),
    Cancel(usize),
    /// Unlock, by dropping a guard.
    Unlock(usize),
    Downgrade,
    TryRead,
    TryWrite,
}

enum Guard<'a> {
    Read(#[allow(dead_code)] RwLockReadGuard<'a, ()>),
    Write(RwLockWriteGuard<'a, ()>),
}

/// Everybody who asked and has not unlocked, in the order they asked, and whether for writing.
/// Who has the lock, or was woken for it: the first if it writes, else the readers up to the first
/// writer, at most as many as may.
#[derive(Default)]
struct Model {
    queue: Vec<(usize, bool)>,
    max_readers: usize,
}

impl Model {
    fn admitted(&self) -> Vec<usize> {
        match self.queue.first() {
            Some(&(number, true)) => vec![number],
            _ => {
                let readers = self.queue.iter().take_while(|(_, writes)| !writes);
                let readers = readers.take(self.max_readers);
                readers.map(|(number, _)| *number).collect()
            }
        }
    }

    fn leave(&mut self, leaver: usize) {
        self.queue.retain(|(number, _)| *number != leaver);
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Read),
        2 => Just(Step::Write),
        4 => (0..4usize).prop_map(Step::Poll),
        2 => (0..4usize).prop_map(Step::Cancel),
        5 => (0..4usize).prop_map(Step::Unlock),
        1 => Just(Step::Downgrade),
        1 => Just(Step::TryRead),
        1 => Just(Step::TryWrite),
    ]
}

fn run(max_readers: u32, steps: &[Step]) {
    let lock = RwLock::with_max_readers((), max_readers);
    let lock = &lock;
    let mut model = Model {
        max_readers: max_readers as usize,
        ..Model::default()
    };
    let mut guards: Vec<(usize, Guard<'_>)> = Vec::new();
    let mut waiting: Vec<(usize, Polled<_>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Read | Step::Write => {
                let writes = matches!(step, Step::Write);
                let mut future = polled(async move {
                    match writes {
                        true => Guard::Write(lock.write().await),
                        false => Guard::Read(lock.read().await),
                    }
                });
                model.queue.push((number, writes));
                match future.poll() {
                    Poll::Ready(guard) => guards.push((number, guard)),
                    Poll::Pending => waiting.push((number, future)),
                }
            }
            Step::Poll(at) if at < waiting.len() => {
                let (number, future) = &mut waiting[at];
                if let Poll::Ready(guard) = future.poll() {
                    guards.push((*number, guard));
                    waiting.remove(at);
                }
            }
            Step::Cancel(at) if at < waiting.len() => {
                let (number, _future) = waiting.remove(at);
                model.leave(number);
            }
            Step::Unlock(at) if at < guards.len() => {
                let (number, _guard) = guards.remove(at);
                model.leave(number);
            }
            Step::Downgrade => {
                if let Some((number, Guard::Write(_))) = guards.first() {
                    let number = *number;
                    let (_, Guard::Write(guard)) = guards.remove(0) else {
                        continue;
                    };
                    model.queue[0] = (number, false);
                    guards.push((number, Guard::Read(guard.downgrade())));
                }
            }
            Step::TryRead => {
                let all_read = model.queue.iter().all(|(_, writes)| !writes);
                let free = all_read && model.queue.len() < max_readers as usize;
                assert_eq!(lock.try_read().is_ok(), free);
            }
            Step::TryWrite => assert_eq!(lock.try_write().is_ok(), model.queue.is_empty()),
            Step::Poll(_) | Step::Cancel(_) | Step::Unlock(_) => {}
        }
        let admitted = model.admitted();
        for (number, _) in &guards {
            assert!(admitted.contains(number));
        }
        for (number, future) in &waiting {
            assert_eq!(future.woken() == 1, admitted.contains(number));
        }
        assert_eq!(
            admitted.len(),
            guards.len()
                + waiting
                    .iter()
                    .filter(|(_, future)| future.woken() == 1)
                    .count()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn random_programs(max_readers in 1..5u32, steps in prop::collection::vec(step(), 0..100)) {
        run(max_readers, &steps);
    }
}
