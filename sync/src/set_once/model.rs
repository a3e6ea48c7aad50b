//! Exhaustive models. Each says which bug it would find.

use gmp_executor::loom::{Arc, thread};

use super::*;
use crate::test_util::block_on;

/// Would find: a value set between the look at the slot and the wait; a value read before it is
/// written.
#[test]
fn model_set_against_wait() {
    loom::model(|| {
        let cell = Arc::new(SetOnce::new());
        let other = cell.clone();
        let thread = thread::spawn(move || other.set(1).unwrap());
        assert_eq!(*block_on(cell.wait()), 1);
        thread.join().unwrap();
    });
}

/// Would find: two values set; a refusal before the other's value can be seen.
#[test]
fn model_set_against_set() {
    loom::model(|| {
        let cell = Arc::new(SetOnce::new());
        let other = cell.clone();
        let thread = thread::spawn(move || other.set(1).is_ok());
        let here = cell.set(2).is_ok();
        assert_eq!(cell.get(), Some(if here { &2 } else { &1 }));
        assert_ne!(thread.join().unwrap(), here);
    });
}
