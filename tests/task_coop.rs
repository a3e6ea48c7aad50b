//! `task::coop`: the types of the budget.

use std::marker::PhantomData;

use gmp::task::coop::{Coop, RestoreOnPending, cooperative};

/// Asks whether a type has a trait: the inherent method wins if its bound holds, else the trait's.
struct Has<T>(PhantomData<T>);

trait HasNot {
    fn send(&self) -> bool {
        false
    }
    fn sync(&self) -> bool {
        false
    }
}

impl<T> HasNot for &Has<T> {}

impl<T: Send> Has<T> {
    fn send(&self) -> bool {
        true
    }
}

impl<T: Sync> Has<T> {
    fn sync(&self) -> bool {
        true
    }
}

macro_rules! has {
    ($type:ty) => {{
        let has = &Has::<$type>(PhantomData);
        (has.send(), has.sync())
    }};
}

#[test]
fn a_unit_of_budget_stays_on_its_thread() {
    assert_eq!(has!(RestoreOnPending), (false, false));
}

#[test]
fn a_cooperative_future_goes_where_its_future_goes() {
    assert_eq!(has!(Coop<std::future::Ready<u8>>), (true, true));
    assert_eq!(
        has!(Coop<std::future::Ready<std::rc::Rc<u8>>>),
        (false, false)
    );
    let shown = format!("{:?}", cooperative(std::future::ready(7)));
    assert!(shown.starts_with("Coop") && shown.contains('7'), "{shown}");
}
