//! `pin!` in both forms.

use std::future::{Future, poll_fn};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::Poll;

use futures::executor::block_on;

async fn number(n: u32) -> u32 {
    n
}

#[test]
fn variables_are_pinned_under_their_names() {
    block_on(async {
        let (first, second) = (number(1), number(2));
        gmp::pin!(first, second);
        assert_eq!((&mut first).await, 1);
        assert_eq!(second.await, 2);
    });
}

#[test]
fn a_comma_at_the_end_and_no_variable_at_all() {
    let future = number(3);
    gmp::pin!(future,);
    gmp::pin!();
    gmp::pin! {}
    assert_eq!(block_on(future), 3);
}

#[test]
fn declarations_are_pinned() {
    block_on(async {
        gmp::pin! {
            let first = number(1);
            let second = async { number(2).await + 1 };
        }
        assert_eq!((&mut first).await + second.await, 4);
    });
}

#[test]
fn the_place_does_not_change() {
    struct Fixed(u8, PhantomPinned);
    impl Fixed {
        fn address(self: Pin<&mut Self>) -> *const u8 {
            &self.0
        }
    }
    let fixed = Fixed(1, PhantomPinned);
    gmp::pin!(fixed);
    assert_eq!(fixed.as_mut().address(), fixed.as_mut().address());
}

#[test]
fn the_value_is_owned_and_dropped_at_the_end_of_the_scope() {
    let dropped = std::cell::Cell::new(false);
    struct Sets<'a>(&'a std::cell::Cell<bool>);
    impl Drop for Sets<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    {
        let value = Sets(&dropped);
        gmp::pin!(value);
        let _ = &value;
        assert!(!dropped.get());
    }
    assert!(dropped.get());
}

#[test]
fn a_pinned_future_can_be_held_across_an_await() {
    let future = async {
        let inner = number(5);
        gmp::pin!(inner);
        let mut turn = false;
        poll_fn(|cx| {
            if !std::mem::replace(&mut turn, true) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            inner.as_mut().poll(cx)
        })
        .await
    };
    assert_eq!(block_on(future), 5);
}

#[test]
#[deny(warnings)]
fn no_warnings() {
    let unused_mutability = number(1);
    gmp::pin!(unused_mutability);
    assert_eq!(block_on(unused_mutability), 1);
}
