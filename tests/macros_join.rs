//! `join!` and `try_join!`: outputs, order of polls, drops, sizes.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures::FutureExt;
use futures::channel::oneshot;
use futures::executor::block_on;

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn ok<T>(value: T) -> Result<T, ()> {
    Ok(value)
}

/// Notes its number at each poll and is ready at the n-th.
fn noting(
    number: usize,
    polls: usize,
    order: &RefCell<Vec<usize>>,
) -> impl Future<Output = usize> + '_ {
    let mut left = polls;
    poll_fn(move |_| {
        order.borrow_mut().push(number);
        left -= 1;
        if left == 0 {
            Poll::Ready(number)
        } else {
            Poll::Pending
        }
    })
}

struct Count<'a>(&'a Cell<u32>);

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn every_form() {
    block_on(async {
        assert_eq!(gmp::join!(async { 1 }), (1,));
        assert_eq!(gmp::join!(async { 1 },), (1,));
        assert_eq!(gmp::join!(async { 1 }, async { "2" }), (1, "2"));
        assert_eq!(gmp::join!(async { 1 }, async { "2" },), (1, "2"));
        assert_eq!(gmp::join!(biased; async { 1 }), (1,));
        assert_eq!(gmp::join!(biased; async { 1 }, async { 2 },), (1, 2));
        assert_eq!(gmp::try_join!(async { ok(1) }), Ok((1,)));
        assert_eq!(gmp::try_join!(async { ok(1) },), Ok((1,)));
        assert_eq!(
            gmp::try_join!(async { ok(1) }, async { ok("2") }),
            Ok((1, "2"))
        );
        assert_eq!(
            gmp::try_join!(biased; async { ok(1) }, async { ok(2) },),
            Ok((1, 2))
        );
        // A variable of that name is a future like any other.
        let biased = async { 3 };
        assert_eq!(gmp::join!(biased), (3,));
    });
}

#[test]
#[allow(clippy::let_unit_value)]
fn no_future_at_all() {
    block_on(async {
        let () = gmp::join!();
        let () = gmp::join!(biased;);
        let nothing: Result<(), u8> = gmp::try_join!();
        assert_eq!(nothing, Ok(()));
        let nothing: Result<(), u8> = gmp::try_join!(biased;);
        assert_eq!(nothing, Ok(()));
    });
}

#[test]
fn any_expression_is_one_future() {
    block_on(async {
        let flag = true;
        let outputs = gmp::join!(
            if flag { ready(1) } else { ready(2) },
            match flag {
                true => ready("a"),
                false => ready("b"),
            },
            { ready(()) },
            async { gmp::join!(ready(3), ready(4)) },
            Box::pin(async { 5 }),
        );
        assert_eq!(outputs, (1, "a", (), (3, 4), 5));
    });
}

#[test]
fn all_are_waited_for() {
    let (first, receive_first) = oneshot::channel::<&str>();
    let (second, receive_second) = oneshot::channel::<u32>();
    let mut both = pin!(async { gmp::join!(receive_first, receive_second) });
    assert!(poll_once(both.as_mut()).is_pending());
    second.send(5).unwrap();
    assert!(poll_once(both.as_mut()).is_pending());
    first.send("x").unwrap();
    assert_eq!(poll_once(both.as_mut()), Poll::Ready((Ok("x"), Ok(5))));
}

#[test]
fn a_complete_future_is_not_polled_again() {
    let order = RefCell::new(Vec::new());
    let mut joined = pin!(async { gmp::join!(biased; noting(0, 1, &order), noting(1, 3, &order)) });
    assert!(poll_once(joined.as_mut()).is_pending());
    assert!(poll_once(joined.as_mut()).is_pending());
    assert_eq!(poll_once(joined.as_mut()), Poll::Ready((0, 1)));
    assert_eq!(*order.borrow(), [0, 1, 1, 1]);
}

#[test]
fn each_poll_begins_with_the_next_one() {
    let order = RefCell::new(Vec::new());
    let note = |number| noting(number, 4, &order);
    let mut joined = pin!(async { gmp::join!(note(1), note(2), note(3)) });
    for _ in 0..3 {
        assert!(poll_once(joined.as_mut()).is_pending());
    }
    assert!(poll_once(joined.as_mut()).is_ready());
    assert_eq!(*order.borrow(), [1, 2, 3, 2, 3, 1, 3, 1, 2, 1, 2, 3]);

    order.borrow_mut().clear();
    let note = |number| noting(number, 4, &order).map(ok);
    let mut joined = pin!(async { gmp::try_join!(note(1), note(2), note(3)) });
    for _ in 0..3 {
        assert!(poll_once(joined.as_mut()).is_pending());
    }
    assert!(poll_once(joined.as_mut()).is_ready());
    assert_eq!(*order.borrow(), [1, 2, 3, 2, 3, 1, 3, 1, 2, 1, 2, 3]);
}

#[test]
fn biased_begins_with_the_first_each_time() {
    let order = RefCell::new(Vec::new());
    let note = |number| noting(number, 3, &order);
    let mut joined = pin!(async { gmp::join!(biased; note(1), note(2), note(3)) });
    while poll_once(joined.as_mut()).is_pending() {}
    assert_eq!(*order.borrow(), [1, 2, 3, 1, 2, 3, 1, 2, 3]);

    order.borrow_mut().clear();
    let note = |number| noting(number, 3, &order).map(ok);
    let mut joined = pin!(async { gmp::try_join!(biased; note(1), note(2), note(3)) });
    while poll_once(joined.as_mut()).is_pending() {}
    assert_eq!(*order.borrow(), [1, 2, 3, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn the_first_error_ends_it() {
    let (first, receive_first) = oneshot::channel::<u32>();
    let (_second, receive_second) = oneshot::channel::<u32>();
    let drops = Cell::new(0);
    let mut joined = pin!(async {
        let count = Count(&drops);
        let third = async move {
            let _count = count;
            pending::<Result<u32, oneshot::Canceled>>().await
        };
        gmp::try_join!(receive_first, receive_second, third)
    });
    assert!(poll_once(joined.as_mut()).is_pending());
    drop(first);
    assert_eq!(drops.get(), 0);
    assert_eq!(
        poll_once(joined.as_mut()),
        Poll::Ready(Err(oneshot::Canceled))
    );
    assert_eq!(drops.get(), 1);
}

#[test]
fn an_error_keeps_those_behind_it_from_being_polled() {
    let polled = Cell::new(false);
    let result = block_on(async {
        gmp::try_join!(async { ok(1) }, async { Err::<u8, ()>(()) }, async {
            polled.set(true);
            ok(2)
        },)
    });
    assert_eq!(result, Err(()));
    assert!(!polled.get());
}

#[test]
fn values_that_wait_are_dropped_with_an_error() {
    let drops = Cell::new(0);
    let result = block_on(async {
        gmp::try_join!(async { Ok(Count(&drops)) }, async { Err::<(), u8>(3) }).map(|_| ())
    });
    assert_eq!((result, drops.get()), (Err(3), 1));
}

#[test]
fn outputs_that_wait_are_dropped_with_the_task() {
    let drops = Cell::new(0);
    {
        let mut joined = pin!(async {
            gmp::join!(async { Count(&drops) }, pending::<()>());
        });
        assert!(poll_once(joined.as_mut()).is_pending());
        assert_eq!(drops.get(), 0);
    }
    assert_eq!(drops.get(), 1);
}

#[test]
fn every_output_is_moved_out_once() {
    let drops = Cell::new(0);
    let outputs = block_on(async {
        gmp::join!(async { Count(&drops) }, async { Count(&drops) }, async {
            Box::new(1)
        })
    });
    assert_eq!(drops.get(), 0);
    drop(outputs);
    assert_eq!(drops.get(), 2);
}

#[test]
fn futures_that_borrow_from_themselves_stay_in_place() {
    async fn borrows() -> usize {
        let text = String::from("some text");
        let part = &text[5..];
        futures::pending!();
        part.len()
    }
    let mut joined = pin!(async { gmp::join!(borrows(), borrows()) });
    assert!(poll_once(joined.as_mut()).is_pending());
    assert_eq!(poll_once(joined.as_mut()), Poll::Ready((4, 4)));
}

#[test]
fn more_futures_than_a_tuple_can_print() {
    let sum = block_on(async {
        let joined = gmp::join!(
            ready(0),
            ready(1),
            ready(2),
            ready(3),
            ready(4),
            ready(5),
            ready(6),
            ready(7),
            ready(8),
            ready(9),
            ready(10),
            ready(11),
            ready(12),
            ready(13),
            ready(14),
            ready(15),
        );
        joined.0 + joined.15
    });
    assert_eq!(sum, 15);
}

#[test]
fn more_futures_than_the_recursion_limit() {
    macro_rules! ten {
        ($m:ident $($x:tt)*) => {
            $m!($($x)* $($x)* $($x)* $($x)* $($x)* $($x)* $($x)* $($x)* $($x)* $($x)*)
        };
    }
    macro_rules! hundreds {
        ($($x:tt)*) => { ten!(join $($x)*) };
    }
    macro_rules! join {
        ($($x:tt)*) => { gmp::join!($(ready($x)),*) };
    }
    let joined = block_on(async { ten!(hundreds 1 2) });
    assert_eq!((joined.0, joined.1, joined.198, joined.199), (1, 2, 1, 2));
}

#[test]
fn into_future_is_enough() {
    struct NotAFuture;
    impl IntoFuture for NotAFuture {
        type Output = Result<u8, ()>;
        type IntoFuture = std::future::Ready<Result<u8, ()>>;
        fn into_future(self) -> Self::IntoFuture {
            ready(Ok(5))
        }
    }
    assert_eq!(block_on(async { gmp::join!(NotAFuture) }), (Ok(5),));
    assert_eq!(block_on(async { gmp::try_join!(NotAFuture) }), Ok((5,)));
}

#[test]
fn the_names_of_the_caller_are_not_taken() {
    const COUNT: u32 = 9;
    let (futures, order, first, pending, wrapped, future) = (1, 2, 3, 4, 5, 6);
    let joined = block_on(async {
        gmp::join!(
            async { futures + order + first + pending + wrapped + future + COUNT },
            async { COUNT },
        )
    });
    assert_eq!(joined, (30, 9));
}

#[test]
#[deny(warnings)]
fn outputs_without_values_give_no_warnings() {
    let mut joined = pin!(async { gmp::join!(pending::<Infallible>(), async { 1 }) });
    assert!(poll_once(joined.as_mut()).is_pending());
    let mut joined = pin!(async { gmp::join!(biased; async { 1 }, pending::<Infallible>()) });
    assert!(poll_once(joined.as_mut()).is_pending());

    let result =
        block_on(async { gmp::try_join!(async { Err::<Infallible, _>(1) }, async { Ok(2) }) });
    assert_eq!(result, Err(1));
    let result = block_on(async {
        gmp::try_join!(biased; async { Ok::<_, Infallible>(1) }, async { Ok(2) })
    });
    assert_eq!(result, Ok((1, 2)));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn the_futures_are_as_small_as_tokios() {
    macro_rules! size {
        ($join:ident, $value:expr, $($mode:tt)*) => {(
            size_of_val(&async {
                let a = ready($value);
                let _ = gmp::$join!($($mode)* a);
            }),
            size_of_val(&async {
                let (a, b) = (ready($value), ready($value));
                let _ = gmp::$join!($($mode)* a, b);
            }),
        )};
    }
    assert_eq!(size!(join, 0_i32,), (32, 48));
    assert_eq!(size!(join, 0_i32, biased;), (24, 40));
    assert_eq!(size!(try_join, ok(0_i32),), (32, 48));
    assert_eq!(size!(try_join, ok(0_i32), biased;), (24, 40));
}

#[test]
fn the_future_is_send_if_its_parts_are() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&async { gmp::join!(ready(String::new()), pending::<u8>()) });
    is_send(&async { gmp::try_join!(ready(ok(String::new())), pending::<Result<u8, ()>>()) });
}

/// The rest needs a runtime: the budget is a task's.
mod on_the_runtime {
    use gmp::task::consume_budget;

    /// A46: what one branch spends of the budget must not keep the others from getting on.
    #[gmp::test]
    async fn a_greedy_branch_does_not_starve_the_others() {
        async fn greedy() -> usize {
            let mut spent = 0;
            for _ in 0..5 {
                for _ in 0..128 {
                    consume_budget().await;
                }
                spent += 1;
            }
            spent
        }
        async fn modest() -> usize {
            let mut runs = 0;
            for _ in 0..5 {
                consume_budget().await;
                runs += 1;
            }
            runs
        }
        assert_eq!(gmp::join!(greedy(), modest()), (5, 5));
        let fallible = gmp::try_join!(async { Ok::<_, ()>(greedy().await) }, async {
            Ok(modest().await)
        },);
        assert_eq!(fallible, Ok((5, 5)));
    }

    /// The same with a branch that never ends: the other must.
    #[gmp::test]
    async fn an_endless_branch_does_not_hold_up_the_others() {
        async fn endless() -> Result<(), &'static str> {
            loop {
                consume_budget().await;
            }
        }
        async fn ends() -> Result<(), &'static str> {
            for _ in 0..1_000 {
                consume_budget().await;
            }
            Err("ended")
        }
        assert_eq!(gmp::try_join!(endless(), ends()), Err("ended"));
    }
}
