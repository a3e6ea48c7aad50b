//! What the code made by the macros calls. Not for anything else: it may change at any time.

#[cfg(feature = "macros")]
pub use self::branches::{
    InOrder, MaybeDone, Rotating, all_disabled, bit, first, maybe_done, maybe_failed,
    poll_budget_available, thread_rng_n,
};
#[cfg(feature = "rt")]
pub use gmp_executor::task::LocalKey;
#[cfg(feature = "macros")]
pub use gmp_macros::{match_only, number};
pub use std::future::{Future, IntoFuture, poll_fn};
pub use std::option::Option::{None, Some};
pub use std::pin::{Pin, pin};
pub use std::result::Result::{self, Ok};
pub use std::task::{Poll, ready};
pub use std::{compile_error, thread_local, unreachable};

/// What a `LocalKey` keeps in its thread-local.
pub type Slot<T> = std::cell::RefCell<Option<T>>;

#[cfg(feature = "macros")]
mod branches {
    //! The branches of `select!`, `join!` and `try_join!`.

    use std::cell::Cell;
    use std::fmt;
    use std::future::{Future, IntoFuture};
    use std::hash::{BuildHasher, RandomState};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use gmp_executor::coop;

    /// A number below `n`, which must not be 0: with which branch `select!` begins.
    ///
    /// Cheap and of no great quality: an xorshift generator a thread.
    pub fn thread_rng_n(n: u32) -> u32 {
        thread_local! {
            // Zero stands for: not seeded. The generator never gets there.
            static STATE: Cell<u64> = const { Cell::new(0) };
        }
        let bits = STATE.with(|state| {
            let mut x = state.get();
            if x == 0 {
                x = seed();
            }
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            x
        });
        // The upper half, scaled to the range: no division, and the upper bits are the better ones.
        (((bits >> 32) * u64::from(n)) >> 32) as u32
    }

    #[cold]
    fn seed() -> u64 {
        RandomState::new().hash_one(0) | 1
    }

    /// With which branch a `select!` that is `biased` begins.
    #[inline]
    pub const fn first(_: u32) -> u32 {
        0
    }

    /// The bit of a branch in the set of those that are disabled.
    #[inline]
    pub const fn bit(branch: u32) -> u64 {
        1 << branch
    }

    /// Whether the task may go on. If its budget is spent, the branches are not polled at all: those
    /// that know of the budget would not get on, and those that do not must not keep the task from
    /// yielding. Takes none of the budget.
    #[inline]
    pub fn poll_budget_available(cx: &mut Context<'_>) -> Poll<()> {
        // Gives back what it took.
        coop::poll_proceed(cx).map(drop)
    }

    /// The end of a `select!` whose branches are all disabled and that has no `else`.
    #[cold]
    #[track_caller]
    pub fn all_disabled() -> ! {
        panic!("all branches are disabled and there is no else branch")
    }

    /// The order of polls of `join!`: each time the next branch is the first.
    #[derive(Debug, Default)]
    pub struct Rotating(u32);

    impl Rotating {
        /// The branch to begin with.
        #[inline]
        pub fn first(&mut self, branches: u32) -> u32 {
            let first = self.0;
            self.0 = if first + 1 == branches { 0 } else { first + 1 };
            first
        }
    }

    /// The order of polls of a `join!` that is `biased`.
    #[derive(Debug, Default)]
    pub struct InOrder;

    impl InOrder {
        /// The branch to begin with.
        #[inline]
        pub fn first(&mut self, _: u32) -> u32 {
            0
        }
    }

    /// A branch of `join!`: a future or its output.
    ///
    /// The layout is C's so that the variant is never told by bits inside of the future: those
    /// belong to the future as long as it is pinned and not complete.
    #[repr(C)]
    pub enum MaybeDone<F: Future> {
        /// Not complete. Structurally pinned: not moved until it is dropped.
        Future(F),
        /// Complete; the output waits for the others. Not pinned.
        Done(F::Output),
        /// The output was taken.
        Taken,
    }

    impl<F: Future> fmt::Debug for MaybeDone<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                MaybeDone::Future(_) => "Future",
                MaybeDone::Done(_) => "Done",
                MaybeDone::Taken => "Taken",
            })
        }
    }

    /// A branch that has not been polled.
    pub fn maybe_done<F: IntoFuture>(future: F) -> MaybeDone<F::IntoFuture> {
        MaybeDone::Future(future.into_future())
    }

    /// A branch that has not been polled, of `try_join!`.
    pub fn maybe_failed<F, T, E>(future: F) -> MaybeDone<F::IntoFuture>
    where
        F: IntoFuture<Output = Result<T, E>>,
    {
        maybe_done(future)
    }

    impl<F: Future> MaybeDone<F> {
        /// Polls the future unless it is complete, and says whether it is.
        pub fn poll_done(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            // SAFETY: nothing is moved out of the reference: the only field reached through it is
            // the future, which is pinned again below.
            let this = unsafe { self.as_mut().get_unchecked_mut() };
            let MaybeDone::Future(future) = this else {
                return Poll::Ready(());
            };
            // SAFETY: the future is structurally pinned: it lies in `self`, which is pinned, leaves
            // it only by being dropped in place, in `Pin::set` below or with the whole, and
            // `MaybeDone` is `Unpin` only if it is.
            let future = unsafe { Pin::new_unchecked(future) };
            let output = ready!(future.poll(cx));
            self.set(MaybeDone::Done(output));
            Poll::Ready(())
        }

        fn output(self: Pin<&mut Self>) -> Option<&mut F::Output> {
            // SAFETY: the reference to the future inside is not used; the output is not pinned.
            match unsafe { self.get_unchecked_mut() } {
                MaybeDone::Done(output) => Some(output),
                MaybeDone::Future(_) | MaybeDone::Taken => None,
            }
        }

        /// The output of a branch that is complete.
        pub fn take_output(mut self: Pin<&mut Self>) -> F::Output {
            if self.as_mut().output().is_some() {
                // SAFETY: it holds no future, so there is nothing in it that is pinned.
                let this = unsafe { self.get_unchecked_mut() };
                if let MaybeDone::Done(output) = std::mem::replace(this, MaybeDone::Taken) {
                    return output;
                }
            }
            unreachable!("the output of a branch is taken once, when all are complete")
        }
    }

    impl<T, E, F: Future<Output = Result<T, E>>> MaybeDone<F> {
        /// The error of a branch that has failed, as the result of the whole `try_join!`.
        ///
        /// Never as a plain `E`: where that type has no values, the compiler would warn of the code
        /// behind it in the user's crate.
        pub fn take_error<All>(mut self: Pin<&mut Self>) -> Option<Result<All, E>> {
            if matches!(self.as_mut().output(), Some(Err(_))) {
                return self.take_output().err().map(Err);
            }
            None
        }

        /// The value of a branch that has succeeded.
        pub fn take_value(self: Pin<&mut Self>) -> T {
            match self.take_output() {
                Ok(value) => value,
                Err(_) => unreachable!("an error ends the `try_join!` when it comes"),
            }
        }
    }
}
