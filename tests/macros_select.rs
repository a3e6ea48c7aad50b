//! `select!`: its grammar, which branch wins, when futures are polled and dropped, and what the
//! handlers may do.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures::channel::{mpsc, oneshot};
use futures::executor::block_on;
use futures::{FutureExt, StreamExt};

/// Polls once, with a waker that does nothing.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

async fn one() -> usize {
    1
}

async fn never() -> ! {
    pending().await
}

/// A future that counts its polls and is ready at the n-th.
fn ready_at(n: u32, polls: &Cell<u32>) -> impl Future<Output = u32> + Unpin {
    poll_fn(move |_| {
        polls.set(polls.get() + 1);
        if polls.get() >= n {
            Poll::Ready(polls.get())
        } else {
            Poll::Pending
        }
    })
}

/// Tells when it is dropped.
struct Tell<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[test]
fn every_form_of_a_handler() {
    block_on(async {
        assert_eq!(gmp::select! { x = one() => x }, 1);
        assert_eq!(gmp::select! { x = one() => x, }, 1);
        assert_eq!(gmp::select! { x = one() => { x } }, 1);
        assert_eq!(gmp::select! { x = one() => { x }, }, 1);
        assert_eq!(gmp::select! { x = one() => x + 1, }, 2);
        assert_eq!(
            gmp::select! { x = one() => match x { 1 => "one", _ => "more" } },
            "one"
        );
        assert_eq!(gmp::select! { x = one() => if x == 1 { 5 } else { 6 }, }, 5);
        assert_eq!(gmp::select!(x = one() => vec![x; 2]), vec![1, 1]);
        let nothing: () = gmp::select! { _ = one() => {} };
        assert_eq!(nothing, ());
    });
}

#[test]
fn every_mixture_of_branches() {
    block_on(async {
        let x_is_off = false;
        // Blocks with and without commas, preconditions, `else` at the end with and without comma.
        let x = gmp::select! {
            _ = pending::<()>() => { 1 }
            _ = pending::<()>(), if true => { 2 }
            _ = pending::<()>(), if false => 3,
            _ = pending::<()>() => { 4 },
            x = ready(5), if !x_is_off => x,
            else => 6
        };
        assert_eq!(x, 5);
        let x = gmp::select! {
            biased;
            _ = pending::<()>(), if false => 1,
            else => { 2 },
        };
        assert_eq!(x, 2);
    });
}

#[test]
fn else_alone() {
    block_on(async {
        assert_eq!(gmp::select! { else => 1 }, 1);
        assert_eq!(gmp::select! { else => { 2 }, }, 2);
        assert_eq!(gmp::select! { biased; else => 3, }, 3);
    });
}

#[test]
fn one_of_two_runs() {
    let runs = Cell::new(0);
    let branch = |n| {
        runs.set(runs.get() + 1);
        n
    };
    let won = block_on(async {
        gmp::select! {
            n = async { branch(1) } => n,
            n = async { branch(2) } => n,
        }
    });
    assert!(won == 1 || won == 2);
    assert_eq!(runs.get(), 1, "the other future was not polled behind it");
}

#[test]
fn pending_until_a_branch_is_ready() {
    let (send, receive) = oneshot::channel::<u32>();
    let (_keep, other) = oneshot::channel::<u32>();
    let mut select = pin!(async {
        gmp::select! {
            n = receive => n.unwrap(),
            _ = other => unreachable!("it is never sent to"),
        }
    });
    assert_eq!(poll_once(select.as_mut()), Poll::Pending);
    assert_eq!(poll_once(select.as_mut()), Poll::Pending);
    send.send(7).unwrap();
    assert_eq!(poll_once(select.as_mut()), Poll::Ready(7));
}

#[test]
fn the_waker_of_the_task_reaches_every_branch() {
    let (first, receive_first) = oneshot::channel::<u32>();
    let (second, receive_second) = oneshot::channel::<u32>();
    let task = async {
        gmp::select! {
            n = receive_first => n.unwrap(),
            n = receive_second => n.unwrap(),
        }
    };
    let sender = std::thread::spawn(move || {
        second.send(2).unwrap();
        first
    });
    assert_eq!(block_on(task), 2);
    drop(sender.join().unwrap());
}

#[test]
fn outputs_that_do_not_match_disable_their_branch() {
    let polls = Cell::new(0);
    let (send, receive) = oneshot::channel::<u32>();
    let mut select = pin!(async {
        gmp::select! {
            1000 = ready_at(1, &polls) => unreachable!("it does not match"),
            n = receive => n.unwrap(),
        }
    });
    assert_eq!(poll_once(select.as_mut()), Poll::Pending);
    assert_eq!(poll_once(select.as_mut()), Poll::Pending);
    assert_eq!(
        polls.get(),
        1,
        "a future that is complete is not polled again"
    );
    send.send(3).unwrap();
    assert_eq!(poll_once(select.as_mut()), Poll::Ready(3));
}

#[test]
fn else_runs_when_no_output_matched() {
    block_on(async {
        let x = gmp::select! {
            Some(x) = ready(None::<u32>) => x,
            Ok(x) = ready(Err::<u32, ()>(())) => x,
            else => 9,
        };
        assert_eq!(x, 9);
    });
}

#[test]
fn streams_are_drained() {
    let (first, mut from_first) = mpsc::unbounded::<u32>();
    let (second, mut from_second) = mpsc::unbounded::<u32>();
    for n in 0..5 {
        first.unbounded_send(n).unwrap();
        second.unbounded_send(n + 10).unwrap();
    }
    drop((first, second));
    let mut all = block_on(async {
        let mut all = Vec::new();
        loop {
            gmp::select! {
                Some(n) = from_first.next() => all.push(n),
                Some(n) = from_second.next() => all.push(n),
                else => break all,
            }
        }
    });
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
}

#[test]
#[should_panic(expected = "all branches are disabled and there is no else branch")]
fn without_else_it_panics_when_all_are_disabled() {
    block_on(async {
        gmp::select! {
            Some(_) = ready(None::<u32>) => {}
            _ = one(), if false => {}
        }
    });
}

#[test]
fn a_disabled_branch_is_evaluated_but_not_polled() {
    let evaluated = Cell::new(false);
    let future = || {
        evaluated.set(true);
        poll_fn(|_| -> Poll<()> { unreachable!("it is disabled") })
    };
    block_on(async {
        gmp::select! {
            _ = future(), if false => unreachable!("it is disabled"),
            n = one() => assert_eq!(n, 1),
        }
    });
    assert!(evaluated.get());
}

#[test]
fn preconditions_come_before_futures() {
    let order = RefCell::new(Vec::new());
    let note = |what| order.borrow_mut().push(what);
    block_on(async {
        gmp::select! {
            biased;
            _ = { note("future 0"); ready(()) }, if { note("if 0"); false } => note("handler 0"),
            _ = { note("future 1"); async { note("poll 1") } }, if { note("if 1"); true } => {
                note("handler 1");
            }
            _ = { note("future 2"); pending::<()>() } => note("handler 2"),
        }
    });
    let expected = [
        "if 0",
        "if 1",
        "future 0",
        "future 1",
        "future 2",
        "poll 1",
        "handler 1",
    ];
    assert_eq!(*order.borrow(), expected);
}

#[test]
fn preconditions_are_evaluated_once() {
    let count = Cell::new(0);
    let (send, receive) = oneshot::channel::<()>();
    let mut select = pin!(async {
        gmp::select! {
            _ = receive, if { count.set(count.get() + 1); true } => {}
        }
    });
    for _ in 0..3 {
        assert!(poll_once(select.as_mut()).is_pending());
    }
    send.send(()).unwrap();
    assert!(poll_once(select.as_mut()).is_ready());
    assert_eq!(count.get(), 1);
}

#[test]
fn futures_are_dropped_before_the_handler_runs() {
    let order = RefCell::new(Vec::new());
    let holding = |name, wait| {
        let tell = Tell(name, &order);
        async move {
            let _tell = tell;
            if wait {
                pending::<()>().await;
            }
        }
    };
    block_on(async {
        gmp::select! {
            biased;
            () = holding("a", true) => unreachable!("it waits for ever"),
            () = holding("b", false) => order.borrow_mut().push("handler"),
            () = holding("c", false) => unreachable!("it is behind b"),
        }
    });
    // b drops what it holds when it completes; then the futures go in their order.
    assert_eq!(*order.borrow(), ["b", "a", "c", "handler"]);
}

#[test]
fn futures_are_dropped_before_else_runs() {
    let order = RefCell::new(Vec::new());
    let tell = Tell("future", &order);
    block_on(async {
        gmp::select! {
            Some(()) = { let tell = tell; poll_fn(move |_| { let _ = &tell; Poll::Ready(None) }) } => {}
            else => order.borrow_mut().push("else"),
        }
    });
    assert_eq!(*order.borrow(), ["future", "else"]);
}

#[test]
fn dropping_the_task_drops_the_futures() {
    let order = RefCell::new(Vec::new());
    {
        let task = async {
            let tell = Tell("held", &order);
            let held = async move {
                let _tell = tell;
                pending::<()>().await;
            };
            gmp::select! {
                () = held => {}
                _ = pending::<()>() => {}
            }
        };
        let mut task = pin!(task);
        assert!(poll_once(task.as_mut()).is_pending());
    }
    assert_eq!(*order.borrow(), ["held"]);
}

#[test]
fn biased_polls_in_order() {
    let order = RefCell::new(Vec::new());
    let waits = |n| {
        let order = &order;
        poll_fn(move |_| {
            order.borrow_mut().push(n);
            Poll::<()>::Pending
        })
    };
    let mut select = pin!(async {
        gmp::select! {
            biased;
            _ = waits(0) => {}
            _ = waits(1) => {}
            _ = waits(2) => {}
        }
    });
    for _ in 0..3 {
        assert!(poll_once(select.as_mut()).is_pending());
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn biased_takes_the_first_that_is_ready() {
    for _ in 0..100 {
        let first = block_on(async {
            gmp::select! {
                biased;
                _ = pending::<()>() => 0,
                _ = ready(()) => 1,
                _ = ready(()) => 2,
            }
        });
        assert_eq!(first, 1);
    }
}

#[test]
fn without_biased_every_branch_comes_first_some_time() {
    let mut wins = [0_u32; 4];
    for _ in 0..4_000 {
        let won: usize = block_on(async {
            gmp::select! {
                n = ready(0) => n,
                n = ready(1) => n,
                n = ready(2) => n,
                n = ready(3) => n,
            }
        });
        wins[won] += 1;
    }
    // A thousand each; the chance that one is off by 200 is below one in 10^12.
    assert!(wins.iter().all(|&n| (800..1_200).contains(&n)), "{wins:?}");
}

#[test]
fn each_poll_rolls_a_new_start_and_wraps_around() {
    let order = RefCell::new(Vec::new());
    let waits = |n| {
        let order = &order;
        poll_fn(move |_| {
            order.borrow_mut().push(n);
            Poll::<()>::Pending
        })
    };
    let mut select = pin!(async {
        gmp::select! {
            _ = waits(0) => {}
            _ = waits(1) => {}
            _ = waits(2) => {}
        }
    });
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        assert!(poll_once(select.as_mut()).is_pending());
        seen.insert(order.borrow_mut().drain(..).collect::<Vec<i32>>());
    }
    let expected = [vec![0, 1, 2], vec![1, 2, 0], vec![2, 0, 1]];
    assert_eq!(seen, expected.into_iter().collect());
}

#[test]
fn patterns_bind_by_value_by_reference_and_mutably() {
    block_on(async {
        let text = || ready(Some(String::from("a")));
        let x = gmp::select! { Some(x) = text() => x };
        assert_eq!(x, "a");
        let x = gmp::select! { Some(mut x) = text() => { x.push('b'); x } };
        assert_eq!(x, "ab");
        let x = gmp::select! { Some(ref x) = text() => x.len() };
        assert_eq!(x, 1);
        let x = gmp::select! { Some(ref mut x) = text() => { x.push('c'); x.clone() } };
        assert_eq!(x, "ac");
        let x = gmp::select! { mut x = one() => { x += 1; x } };
        assert_eq!(x, 2);
    });
}

#[test]
fn patterns_of_every_kind() {
    struct Point {
        x: i32,
        y: i32,
    }
    const LIMIT: &i32 = &5;
    block_on(async {
        let sum =
            gmp::select! { Point { x, mut y } = ready(Point { x: 1, y: 2 }) => { y += x; y } };
        assert_eq!(sum, 3);
        let sum = gmp::select! { (a, [b, .., c]) = ready((1, [2, 3, 4])) => a + b + c };
        assert_eq!(sum, 7);
        let x = gmp::select! { x @ 1..=9 = ready(4) => x, else => 0 };
        assert_eq!(x, 4);
        let x = gmp::select! { (LIMIT, x) = ready((&5, 1)) => x, else => 0 };
        assert_eq!(x, 1);
        let x =
            gmp::select! { Ok(mut x) | Err(mut x) = ready(Err::<i32, i32>(1)) => { x *= 2; x } };
        assert_eq!(x, 2);
        let x = gmp::select! { None = ready(None::<i32>) => "none", else => "some" };
        assert_eq!(x, "none");
        let mut value = 3;
        let x = gmp::select! { &mut x = ready(&mut value) => x };
        assert_eq!(x, 3);
        let x = gmp::select! { Some(&mut x) = ready(Some(&mut value)) => x, else => 0 };
        assert_eq!(x, 3);
        let x = gmp::select! { (&2, &x) = ready((&2, &4)) => x, else => 0 };
        assert_eq!(x, 4);
        let x = gmp::select! { () = async {} => 1 };
        assert_eq!(x, 1);
    });
}

#[test]
fn outputs_need_not_be_copy_or_clone() {
    struct Once(Box<u32>);
    let won = block_on(async {
        gmp::select! {
            Once(n) = async { Once(Box::new(4)) } => *n,
            Once(n) = pending() => *n,
        }
    });
    assert_eq!(won, 4);
}

#[test]
fn handlers_may_await_break_continue_and_return() {
    #[allow(clippy::needless_return)]
    async fn returns() -> u32 {
        gmp::select! {
            n = one() => return one().await as u32 + n as u32,
        }
    }
    async fn question_mark() -> Result<u32, String> {
        gmp::select! {
            n = ready("7".parse::<u32>()) => Ok(n.map_err(|error| error.to_string())?),
        }
    }
    block_on(async {
        assert_eq!(returns().await, 2);
        assert_eq!(question_mark().await, Ok(7));
        let mut rounds = 0;
        'outer: loop {
            rounds += 1;
            gmp::select! {
                _ = one() => if rounds < 3 { continue 'outer } else { break 'outer },
            }
        }
        assert_eq!(rounds, 3);
    });
}

#[test]
fn futures_by_reference_go_on_where_they_were() {
    let mut left = pin!(async {
        let mut turns = 0;
        for _ in 0..3 {
            futures::pending!();
            turns += 1;
        }
        turns
    });
    let ticks = Cell::new(0);
    let mut task = pin!(async {
        loop {
            let tick = ready_at(2, &ticks);
            gmp::select! {
                biased;
                turns = &mut left => break turns,
                _ = tick => ticks.set(0),
            }
        }
    });
    let mut polls = 0;
    let turns = loop {
        polls += 1;
        assert!(polls < 100);
        if let Poll::Ready(turns) = poll_once(task.as_mut()) {
            break turns;
        }
    };
    assert_eq!(turns, 3);
}

#[test]
fn both_of_two_with_preconditions() {
    let (first, mut receive_first) = oneshot::channel::<u32>();
    let (second, mut receive_second) = oneshot::channel::<u32>();
    let mut both = pin!(async {
        let (mut a, mut b) = (None, None);
        while a.is_none() || b.is_none() {
            gmp::select! {
                n = &mut receive_first, if a.is_none() => a = Some(n.unwrap()),
                n = &mut receive_second, if b.is_none() => b = Some(n.unwrap()),
            }
        }
        (a.unwrap(), b.unwrap())
    });
    assert!(poll_once(both.as_mut()).is_pending());
    second.send(2).unwrap();
    assert!(poll_once(both.as_mut()).is_pending());
    first.send(1).unwrap();
    assert_eq!(poll_once(both.as_mut()), Poll::Ready((1, 2)));
}

#[test]
fn a_handler_may_borrow_what_a_future_had_borrowed() {
    async fn takes(_: &mut i32) {
        pending::<()>().await;
    }
    let mut value = 1;
    block_on(async {
        gmp::select! {
            _ = takes(&mut value) => {}
            _ = ready(()) => value += 1,
            else => value += 10,
        }
    });
    assert_eq!(value, 2);
}

#[test]
fn a_future_may_consume_what_the_handlers_do_not_need() {
    let text = String::from("x");
    let length = block_on(async {
        gmp::select! {
            n = async { one().await; let n = text.len(); drop(text); n } => n,
        }
    });
    assert_eq!(length, 1);
}

#[test]
fn into_future_is_enough() {
    struct NotAFuture;
    impl IntoFuture for NotAFuture {
        type Output = u8;
        type IntoFuture = std::future::Ready<u8>;
        fn into_future(self) -> Self::IntoFuture {
            ready(5)
        }
    }
    assert_eq!(
        block_on(async {
            gmp::select! { n = NotAFuture => n }
        }),
        5
    );
}

#[test]
fn temporaries_of_the_expressions_live_as_long_as_the_futures() {
    block_on(async {
        gmp::select! {
            () = &mut ready(()) => {}
            () = &mut pending::<()>() => {}
        }
    });
}

#[test]
fn nested_in_handlers_futures_and_conditions() {
    let x = block_on(async {
        gmp::select! {
            x = async { gmp::select! { x = one() => x + 1 } } => {
                gmp::select! {
                    y = one(), if gmp::select! { z = one() => z == 1 } => x + y,
                }
            }
        }
    });
    assert_eq!(x, 3);
}

#[test]
#[deny(warnings)]
fn branches_that_never_complete_give_no_warnings() {
    let x = block_on(async {
        gmp::select! {
            _ = never() => 0,
            x = one() => x,
        }
    });
    assert_eq!(x, 1);
    let x = block_on(async {
        gmp::select! {
            biased;
            impossible = never() => impossible,
            x = one() => x,
        }
    });
    assert_eq!(x, 1);
}

#[test]
fn the_names_of_the_caller_are_not_taken() {
    // Whatever the macro calls its own variables, constants and types, these are the caller's.
    const BRANCHES: u32 = 77;
    struct Out;
    struct B0;
    let (disabled, start, pending, wrapped, futures, output, bit, cx) = (1, 2, 3, 4, 5, 6, 7, 8);
    let sum = block_on(async {
        gmp::select! {
            x = async { disabled + start + pending + wrapped + futures + output + bit + cx },
                if start == 2 && disabled == 1 =>
            {
                let _: (Out, B0) = (Out, B0);
                x + BRANCHES + futures + output + pending
            }
        }
    });
    assert_eq!(sum, 36 + 77 + 14);
}

#[test]
fn sixty_four_branches() {
    macro_rules! many {
        ($($n:literal)*) => {
            gmp::select! { biased; $(x = ready_if($n, 63) => x,)* }
        };
    }
    async fn ready_if(n: u32, which: u32) -> u32 {
        if n != which {
            pending::<()>().await;
        }
        n
    }
    let won = block_on(async {
        many!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63)
    });
    assert_eq!(won, 63);
}

#[test]
fn sixty_four_branches_of_every_form() {
    macro_rules! many {
        ($($n:literal)*) => {
            gmp::select! { $(x = ready($n), if $n == 40 => { x })* else => 99 }
        };
    }
    let won = block_on(async {
        many!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63)
    });
    assert_eq!(won, 40);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn the_future_is_as_small_as_tokios() {
    let size = |future: &dyn Future<Output = ()>| size_of_val(future);
    assert_eq!(
        size(&async {
            let a = ready(0_i32);
            gmp::select! { _ = a => {} }
        }),
        32
    );
    assert_eq!(
        size(&async {
            let (a, b) = (ready(0_i32), ready(0_i32));
            gmp::select! { _ = a => {} _ = b => {} }
        }),
        40
    );
    assert_eq!(
        size(&async {
            let (a, b, c) = (ready(0_i32), ready(0_i32), ready(0_i32));
            gmp::select! { _ = a => {} _ = b => {} _ = c => {} }
        }),
        48
    );
}

#[test]
fn the_future_is_send_if_its_parts_are() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&async {
        gmp::select! {
            x = one() => assert_eq!(x, 1),
            _ = pending::<String>() => {}
        }
    });
}

#[test]
fn a_panic_of_a_branch_drops_the_others() {
    let order = RefCell::new(Vec::new());
    let caught = block_on(
        std::panic::AssertUnwindSafe(async {
            let tell = Tell("other", &order);
            gmp::select! {
                biased;
                () = async move { let _tell = tell; pending::<()>().await } => {}
                () = async { panic!("a branch") } => {}
            }
        })
        .catch_unwind(),
    );
    assert!(caught.is_err());
    assert_eq!(*order.borrow(), ["other"]);
}

/// The rest needs a runtime: the budget is a task's.
mod on_the_runtime {
    use super::*;

    #[gmp::test]
    async fn without_budget_no_branch_is_polled() {
        let select = || {
            Box::pin(async {
                gmp::select! {
                    biased;
                    () = gmp::task::coop::consume_budget() => {}
                    () = ready(()) => {}
                }
            })
        };
        let mut completed = 0;
        while futures::poll!(select()).is_ready() {
            completed += 1;
            assert!(completed <= 128, "the budget has no end");
        }
        assert!(completed >= 100, "{completed}");
        let polled = Cell::new(false);
        let blind = Box::pin(async {
            gmp::select! {
                () = async { polled.set(true) } => {}
            }
        });
        assert!(futures::poll!(blind).is_pending());
        assert!(!polled.get());
    }

    #[gmp::test]
    async fn a_loop_over_ready_branches_yields() {
        // Such a loop would keep the only thread for itself for ever.
        let looping = gmp::spawn(async {
            loop {
                gmp::select! {
                    () = gmp::task::consume_budget() => {}
                    () = pending() => {}
                }
            }
        });
        gmp::task::yield_now().await;
        gmp::task::yield_now().await;
        looping.abort();
        assert!(looping.await.unwrap_err().is_cancelled());
    }

    #[gmp::test]
    async fn it_takes_no_budget_itself() {
        for _ in 0..1_000 {
            let select = Box::pin(async {
                gmp::select! { () = ready(()) => {} }
            });
            assert!(futures::poll!(select).is_ready());
        }
    }
}
