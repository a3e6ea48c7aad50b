//! Exhaustive models. Each says which bug it would find.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::task::{Context, Waker};

use gmp_executor::loom::{Arc, thread};

use super::*;
use crate::test_util::block_on;

/// Would find: a value read before it is written; two attempts at a time; a waiter not told.
#[test]
fn model_two_attempts() {
    loom::model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread = thread::spawn(move || *block_on(other.get_or_init(|| ready(1))));
        let here = *block_on(cell.get_or_init(|| ready(2)));
        assert_eq!(thread.join().unwrap(), here);
        assert_eq!(cell.get(), Some(&here));
    });
}

/// Would find: an attempt that is dropped and that nobody takes over.
#[test]
fn model_cancel_against_get_or_init() {
    loom::model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread = thread::spawn(move || {
            let mut attempt = pin!(other.get_or_init(pending::<u32>));
            let mut cx = Context::from_waker(Waker::noop());
            let _ = attempt.as_mut().poll(&mut cx);
        });
        assert_eq!(*block_on(cell.get_or_init(|| ready(2))), 2);
        thread.join().unwrap();
    });
}

/// Would find: a `set` that does not see who else fills the cell.
#[test]
fn model_set_against_get_or_init() {
    loom::model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread = thread::spawn(move || other.set(1).is_ok());
        let value = *block_on(cell.get_or_init(|| ready(2)));
        assert_eq!(thread.join().unwrap(), value == 1);
    });
}
