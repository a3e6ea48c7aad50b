//! `select!`.
//!
//! [`select!`](crate::select) takes its input apart branch by branch with `__select!`, which brings
//! all branches into one form:
//!
//! ```text
//! { index Name (pattern) (future) (precondition?) (handler) }
//! ```
//!
//! A branch gets its index and its name from a list of 64 that is handed on and gets shorter; that
//! takes one level of recursion a branch, which leaves the user's recursion limit of 128 alone.
//! `__select_run!` makes the code: the enum has a variant a branch, which is what lets the handlers
//! run after the futures have been dropped.
//!
//! As in `join!`, a poll looks at the branches from a start on, then at those before the start.

/// Waits for the first of several futures to complete and runs its handler; the others are dropped.
///
/// ```text
/// select! {
///     biased;                                        // optional
///     pattern = future, if precondition => handler,  // 1 to 64 branches; the precondition is optional
///     else => handler,                               // optional
/// }
/// ```
///
/// 1. The preconditions are evaluated; a branch whose precondition is false is *disabled*.
/// 2. The future expressions are evaluated, those of disabled branches too.
/// 3. The futures of the enabled branches are polled, concurrently in this task, until one completes
///    with an output that matches the branch's pattern. One that does not match disables its branch,
///    and the others are waited for.
/// 4. All futures are dropped. The variables of the pattern are bound and the handler is run. Its
///    value is that of the `select!`.
/// 5. When all branches are disabled, the `else` handler is run.
///
/// Futures may be anything that implements `IntoFuture`; to go on with one that did not complete,
/// give a `&mut` reference to a pinned one (see [`pin!`](crate::pin)). A handler runs outside of the
/// poll: it may `.await`, `break`, `return`, use `?`, and borrow what the futures had borrowed. A
/// handler that is a block needs no comma behind it. Only usable where `.await` is. As
/// `tokio::select!`.
///
/// ```
/// # use std::future::Future;
/// async fn answer() -> Option<u32> {
///     Some(42)
/// }
///
/// async fn ask() -> u32 {
///     gmp::select! {
///         Some(number) = answer() => number,
///         _ = std::future::pending::<()>() => unreachable!("it never completes"),
///         else => 0,
///     }
/// }
/// # let future = std::pin::pin!(ask());
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.poll(&mut cx) == std::task::Poll::Ready(42));
/// ```
///
/// # Panics
///
/// When all branches are disabled and there is no `else`.
///
/// # Fairness
///
/// Each poll starts with a branch chosen at random and goes on with those behind it, so that a
/// branch that is always ready does not shut out the others. With `biased;` each poll goes from the
/// first branch to the last: cheaper and predictable, but then it is up to you that the first
/// branches leave the last ones a chance.
///
/// A `select!` shares the budget of its task ([`task::coop`](crate::task::coop)): when it is spent,
/// no branch is polled and the task yields.
///
/// # Cancel safety
///
/// Each time a `select!` completes, the futures of all other branches are dropped in whatever state
/// they are. Whether something is lost then, look up at the operation under *Cancel safety*: a
/// `recv` of a channel loses nothing, a `read_exact` what it had read. Dropping the future that
/// contains the `select!` drops them all.
#[macro_export]
macro_rules! select {
    ($(biased;)? else => $else:expr $(,)?) => {
        $else
    };
    ($(biased;)?) => {
        $crate::macros::support::compile_error!("select! requires at least one branch")
    };
    (biased; $($branches:tt)+) => {
        $crate::__select! { first [] [] $($branches)+ }
    };
    ($($branches:tt)+) => {
        $crate::__select! { thread_rng_n [] [] $($branches)+ }
    };
}

/// Brings the branches of `select!` into one form. Arguments: where to start, the branches done, the
/// names that are left, the input that is left.
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // The names are put in here, so that they are written down once.
    ($start:ident [] [] $($rest:tt)+) => {
        $crate::__select! { $start [0] [
            [0 1 B0] [1 2 B1] [2 3 B2] [3 4 B3]
            [4 5 B4] [5 6 B5] [6 7 B6] [7 8 B7]
            [8 9 B8] [9 10 B9] [10 11 B10] [11 12 B11]
            [12 13 B12] [13 14 B13] [14 15 B14] [15 16 B15]
            [16 17 B16] [17 18 B17] [18 19 B18] [19 20 B19]
            [20 21 B20] [21 22 B21] [22 23 B22] [23 24 B23]
            [24 25 B24] [25 26 B25] [26 27 B26] [27 28 B27]
            [28 29 B28] [29 30 B29] [30 31 B30] [31 32 B31]
            [32 33 B32] [33 34 B33] [34 35 B34] [35 36 B35]
            [36 37 B36] [37 38 B37] [38 39 B38] [39 40 B39]
            [40 41 B40] [41 42 B41] [42 43 B42] [43 44 B43]
            [44 45 B44] [45 46 B45] [46 47 B46] [47 48 B47]
            [48 49 B48] [49 50 B49] [50 51 B50] [51 52 B51]
            [52 53 B52] [53 54 B53] [54 55 B54] [55 56 B55]
            [56 57 B56] [57 58 B57] [58 59 B58] [59 60 B59]
            [60 61 B60] [61 62 B61] [62 63 B62] [63 64 B63]
        ] $($rest)+ }
    };

    // The end.
    ($start:ident [$count:tt $($done:tt)+] [$($free:tt)*]) => {
        $crate::__select_run! {
            $start $count $($done)+ else ($crate::macros::support::all_disabled())
        }
    };
    ($start:ident [$count:tt $($done:tt)+] [$($free:tt)*] else => $else:expr $(,)?) => {
        $crate::__select_run! { $start $count $($done)+ else ($else) }
    };

    ($start:ident [$($done:tt)*] [$($free:tt)*] else => $else:expr, $($rest:tt)+) => {
        $crate::macros::support::compile_error!("`else` is the last branch of a select!")
    };

    // A branch whose handler is a block, with and without a comma behind it; then any other.
    (
        $start:ident [$count:tt $($done:tt)*] [[$index:tt $next:tt $name:ident] $($free:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:block, $($rest:tt)*
    ) => {
        $crate::__select! {
            $start
            [$next $($done)* { $index $name ($pattern) ($future) ($($condition)?) ($handler) }]
            [$($free)*] $($rest)*
        }
    };
    (
        $start:ident [$count:tt $($done:tt)*] [[$index:tt $next:tt $name:ident] $($free:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:block $($rest:tt)*
    ) => {
        $crate::__select! {
            $start
            [$next $($done)* { $index $name ($pattern) ($future) ($($condition)?) ($handler) }]
            [$($free)*] $($rest)*
        }
    };
    (
        $start:ident [$count:tt $($done:tt)*] [[$index:tt $next:tt $name:ident] $($free:tt)*]
        $pattern:pat = $future:expr $(, if $condition:expr)? => $handler:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__select! {
            $start
            [$next $($done)* { $index $name ($pattern) ($future) ($($condition)?) ($handler) }]
            [$($free)*] $($($rest)*)?
        }
    };

    ($start:ident [64 $($done:tt)*] [] $($rest:tt)+) => {
        $crate::macros::support::compile_error!("select! takes at most 64 branches")
    };
}

/// The code of a `select!`. The outer braces keep its variables and its enum to itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __select_run {
    (
        $start:ident $count:tt
        $({
            $index:tt $name:ident ($pattern:pat) ($future:expr) ($($condition:expr)?) ($handler:expr)
        })+
        else ($else:expr)
    ) => {{
        enum __SelectOutput<$($name),+> {
            $($name($name),)+
            AllDisabled,
        }

        let mut disabled: u64 = 0;
        $($(
            if !$condition {
                disabled |= $crate::macros::support::bit($index);
            }
        )?)+

        // The block ends the lives of the futures before a handler begins.
        #[allow(unused_mut)]
        let mut output = {
            // First the expressions as they stand, so that temporaries in them live as long.
            let futures = ($($future,)+);
            let mut futures =
                ($($crate::macros::support::IntoFuture::into_future(futures.$index),)+);
            // The closure below borrows the futures: a closure that owned them could be moved.
            let futures = &mut futures;

            $crate::macros::support::poll_fn(move |cx| {
                $crate::macros::support::ready!(
                    $crate::macros::support::poll_budget_available(cx)
                );
                let start = $crate::macros::support::$start($count);
                let mut pending = false;
                let mut wrapped = false;
                loop {
                    $(
                        // An output may have no values; then part of this is never reached.
                        #[allow(unreachable_code)]
                        'branch: {
                            let bit = $crate::macros::support::bit($index);
                            if ($index < start) != wrapped || disabled & bit != 0 {
                                break 'branch;
                            }
                            // SAFETY: the tuple is a local variable of the future being polled,
                            // which is pinned, and it is used through pins alone.
                            let future = unsafe {
                                $crate::macros::support::Pin::new_unchecked(&mut futures.$index)
                            };
                            let output = match $crate::macros::support::Future::poll(future, cx) {
                                $crate::macros::support::Poll::Ready(output) => output,
                                $crate::macros::support::Poll::Pending => {
                                    pending = true;
                                    break 'branch;
                                }
                            };
                            // Not to be polled again, whether the output matches or not.
                            disabled |= bit;
                            #[allow(unreachable_patterns, unused_variables)]
                            match &output {
                                $crate::macros::support::match_only!($pattern) => {}
                                _ => break 'branch,
                            }
                            return $crate::macros::support::Poll::Ready(
                                __SelectOutput::$name(output),
                            );
                        }
                    )+
                    if wrapped {
                        break;
                    }
                    wrapped = true;
                }
                if pending {
                    $crate::macros::support::Poll::Pending
                } else {
                    $crate::macros::support::Poll::Ready(__SelectOutput::AllDisabled)
                }
            })
            .await
        };

        #[allow(unreachable_patterns)]
        match output {
            $(__SelectOutput::$name($pattern) => $handler,)+
            __SelectOutput::AllDisabled => $else,
            _ => $crate::macros::support::unreachable!("the output matched before"),
        }
    }};
}
