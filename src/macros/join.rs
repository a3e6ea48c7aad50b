//! `join!` and `try_join!`.
//!
//! The futures stand in a tuple in the caller's own future; nothing is boxed or moved once polled.
//! `number!` gives each its index there, whatever their number. Each poll begins with another
//! future than the last one did: the budget of a task is shared by all of them, and a future that
//! always spends it would keep those behind it from ever being polled with some left.

/// Awaits several futures at once in one task, and gives all their outputs as a tuple.
///
/// ```text
/// join!(future, …)
/// join!(biased; future, …)
/// ```
///
/// The futures run concurrently, but not in parallel: while one of them computes, the others wait.
/// Spawn them as tasks and join the handles to run them in parallel. They may be anything that
/// implements `IntoFuture`. Only usable where `.await` is. As `tokio::join!`.
///
/// # Fairness
///
/// Each poll starts with the next future in turn, so that one that always has something to do does
/// not use up the task's budget for all. With `biased;` each poll starts with the first, which is a little
/// cheaper; then it is up to you that the futures leave each other some budget.
///
/// ```
/// # use std::future::Future;
/// async fn first() -> u32 {
///     1
/// }
/// async fn second() -> &'static str {
///     "two"
/// }
///
/// async fn both() {
///     assert_eq!(gmp::join!(first(), second()), (1, "two"));
/// }
/// # let future = std::pin::pin!(both());
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.poll(&mut cx).is_ready());
/// ```
///
/// # Cancel safety
///
/// Dropping the future that contains the `join!` drops all of its futures, and the outputs of those
/// that had completed.
#[macro_export]
macro_rules! join {
    (biased; $($future:expr),+ $(,)?) => {
        $crate::macros::support::number! { $crate::__join! { InOrder } $([$future])+ }
    };
    ($($future:expr),+ $(,)?) => {
        $crate::macros::support::number! { $crate::__join! { Rotating } $([$future])+ }
    };
    ($(biased;)?) => {
        async {}.await
    };
}

/// Awaits several fallible futures at once in one task, until all have succeeded or one has failed.
///
/// ```text
/// try_join!(future, …)
/// try_join!(biased; future, …)
/// ```
///
/// Gives `Ok` with a tuple of all values, or the first `Err`; then the other futures are dropped.
/// All must have the same type of error. Otherwise like [`join!`](crate::join). As
/// `tokio::try_join!`.
///
/// ```
/// # use std::future::Future;
/// async fn number(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// async fn both() {
///     assert_eq!(gmp::try_join!(number("1"), number("2")), Ok((1, 2)));
///     assert!(gmp::try_join!(number("1"), number("two")).is_err());
/// }
/// # let future = std::pin::pin!(both());
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.poll(&mut cx).is_ready());
/// ```
///
/// # Cancel safety
///
/// Dropping the future that contains the `try_join!` drops all of its futures, and the outputs of
/// those that had completed.
#[macro_export]
macro_rules! try_join {
    (biased; $($future:expr),+ $(,)?) => {
        $crate::macros::support::number! { $crate::__try_join! { InOrder } $([$future])+ }
    };
    ($($future:expr),+ $(,)?) => {
        $crate::macros::support::number! { $crate::__try_join! { Rotating } $([$future])+ }
    };
    ($(biased;)?) => {
        async { $crate::macros::support::Ok(()) }.await
    };
}

/// What `join!` makes: see there.
#[doc(hidden)]
#[macro_export]
macro_rules! __join {
    ($order:ident $count:tt $([$index:tt $future:expr])+) => {{
        let mut futures = ($($crate::macros::support::maybe_done($future),)+);
        // The closure below borrows the futures: a closure that owned them could be moved.
        let futures = &mut futures;
        let mut order = $crate::macros::support::$order::default();
        $crate::macros::support::poll_fn(move |cx| {
            let first = order.first($count);
            let mut pending = false;
            // The futures from `first` on, then those before it.
            let mut wrapped = false;
            loop {
                $(
                    if ($index < first) == wrapped {
                        // SAFETY: the tuple is a local variable of the future being polled, which
                        // is pinned, and it is used through pins alone.
                        let future = unsafe {
                            $crate::macros::support::Pin::new_unchecked(&mut futures.$index)
                        };
                        if future.poll_done(cx).is_pending() {
                            pending = true;
                        }
                    }
                )+
                if wrapped {
                    break;
                }
                wrapped = true;
            }
            if pending {
                return $crate::macros::support::Poll::Pending;
            }
            // An output may have no values; then this is never reached.
            #[allow(unreachable_code)]
            $crate::macros::support::Poll::Ready(($(
                // SAFETY: as above.
                unsafe { $crate::macros::support::Pin::new_unchecked(&mut futures.$index) }
                    .take_output(),
            )+))
        })
        .await
    }};
}

/// What `try_join!` makes: see `__join!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __try_join {
    ($order:ident $count:tt $([$index:tt $future:expr])+) => {{
        let mut futures = ($($crate::macros::support::maybe_failed($future),)+);
        let futures = &mut futures;
        let mut order = $crate::macros::support::$order::default();
        $crate::macros::support::poll_fn(move |cx| {
            let first = order.first($count);
            let mut pending = false;
            let mut wrapped = false;
            loop {
                $(
                    if ($index < first) == wrapped {
                        // SAFETY: the tuple is a local variable of the future being polled, which
                        // is pinned, and it is used through pins alone.
                        let mut future = unsafe {
                            $crate::macros::support::Pin::new_unchecked(&mut futures.$index)
                        };
                        if future.as_mut().poll_done(cx).is_pending() {
                            pending = true;
                        } else if let $crate::macros::support::Some(failed) = future.take_error() {
                            return $crate::macros::support::Poll::Ready(failed);
                        }
                    }
                )+
                if wrapped {
                    break;
                }
                wrapped = true;
            }
            if pending {
                return $crate::macros::support::Poll::Pending;
            }
            #[allow(unreachable_code)]
            $crate::macros::support::Poll::Ready($crate::macros::support::Ok(($(
                // SAFETY: as above.
                unsafe { $crate::macros::support::Pin::new_unchecked(&mut futures.$index) }
                    .take_value(),
            )+)))
        })
        .await
    }};
}
