//! The model of a `OnceCell`: the value, who is making it, and who waits in which order to make it if that
//! fails.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use gmp_sync::{OnceCell, SetError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Waiting, cases, pick};

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Poll(usize),
    Drop(usize),
    /// Lets the making of a value end, when it is polled next.
    End(usize, Result<u32, ()>),
    Set(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    prop_oneof![
        20 => Just(Step::Start),
        20 => at().prop_map(Step::Poll),
        8 => at().prop_map(Step::Drop),
        12 => at().prop_map(|at| Step::End(at, Err(()))),
        2 => (at(), any::<u32>()).prop_map(|(at, value)| Step::End(at, Ok(value))),
        1 => any::<u32>().prop_map(Step::Set),
    ]
}

/// What a future that makes a value, once it may, is to end with.
type Ending = Rc<Cell<Option<Result<u32, ()>>>>;

struct Maker {
    future: Waiting<Result<u32, ()>>,
    ending: Ending,
}

fn make(cell: &Arc<OnceCell<u32>>) -> Maker {
    let ending = Ending::default();
    let (cell, ends) = (cell.clone(), ending.clone());
    let init = move || std::future::poll_fn(move |_| ends.get().map_or(Poll::Pending, Poll::Ready));
    Maker {
        future: Waiting::new(async move { cell.get_or_try_init(init).await.copied() }),
        ending,
    }
}

#[derive(Default)]
struct World {
    cell: Arc<OnceCell<u32>>,
    value: Option<u32>,
    /// The first makes the value, or has been woken to; the others wait. Nobody does if there is a value.
    queue: Vec<Maker>,
    /// Those who waited when the value came.
    told: Vec<Maker>,
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Start => {
                let mut maker = make(&self.cell);
                let expected = self
                    .value
                    .map_or(Poll::Pending, |value| Poll::Ready(Ok(value)));
                assert_eq!(maker.future.poll(), expected);
                if expected.is_pending() {
                    // Whoever makes the value waits for something else than the cell.
                    if self.queue.is_empty() {
                        maker.future.waking.forget();
                    }
                    self.queue.push(maker);
                }
            }
            Step::Poll(number) => self.poll(number),
            Step::Drop(number) => {
                if let Some(at) = pick(number, self.queue.len()) {
                    drop(self.queue.remove(at));
                    self.next(at);
                }
            }
            Step::End(number, result) => {
                if let Some(at) = pick(number, self.queue.len()) {
                    self.queue[at].ending.set(Some(result));
                }
            }
            Step::Set(value) => {
                let expected = match self.value {
                    Some(_) => Err(SetError::AlreadyInitializedError(value)),
                    None if !self.queue.is_empty() => Err(SetError::InitializingError(value)),
                    None => Ok(()),
                };
                assert_eq!(self.cell.set(value), expected);
                if expected.is_ok() {
                    self.value = Some(value);
                }
            }
        }
        assert_eq!(self.cell.get().copied(), self.value);
        for maker in self.queue.iter().chain(&self.told) {
            maker.future.waking.check();
        }
    }

    /// One has left the queue: if it was the first, the next one's turn has come.
    fn next(&mut self, left: usize) {
        if let (0, Some(first)) = (left, self.queue.first_mut()) {
            first.future.waking.wake();
        }
    }

    fn poll(&mut self, number: usize) {
        if let Some(value) = self.value {
            if let Some(at) = pick(number, self.told.len()) {
                let mut maker = self.told.remove(at);
                assert_eq!(maker.future.poll(), Poll::Ready(Ok(value)));
            }
            return;
        }
        let Some(at) = pick(number, self.queue.len()) else {
            return;
        };
        let maker = &mut self.queue[at];
        let polled = maker.future.poll();
        let result = maker.ending.get().filter(|_| at == 0);
        assert_eq!(polled, result.map_or(Poll::Pending, Poll::Ready));
        if at == 0 {
            maker.future.waking.forget();
        }
        match result {
            None => {}
            Some(Err(())) => {
                self.queue.remove(at);
                self.next(at);
            }
            Some(Ok(value)) => {
                self.value = Some(value);
                self.queue.remove(at);
                self.told = std::mem::take(&mut self.queue);
                self.told
                    .iter_mut()
                    .for_each(|maker| maker.future.waking.wake());
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_cell_is_made_by_one_at_a_time(steps in vec(step(), 0..100)) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
        }
    }
}
