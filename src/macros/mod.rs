//! The macros of the crate root: [`select!`](crate::select), [`join!`](crate::join),
//! [`try_join!`](crate::try_join), [`pin!`](crate::pin) and [`task_local!`](crate::task_local).
//!
//! Each macro that users call holds the grammar. What it makes of it stands in a hidden macro beside
//! it, and what of that needs no macro in [`support`], the only thing here that is a public path, as
//! the code made by the macros lives in other crates.
//!
//! Names in that code: local variables and labels of a macro cannot be seen by the user's
//! expressions, nor see theirs. Items can; so there are none, but for one enum with a name that
//! nobody uses.

#![doc(hidden)]

#[cfg(feature = "macros")]
mod join;
mod pin;
#[cfg(feature = "macros")]
mod select;
pub mod support;
#[cfg(feature = "rt")]
mod task_local;

/// `main` and `test` for the crate that stands in for `tokio`, which re-exports them beside all else:
/// they look for the package `tokio` first, and call themselves so in their messages.
#[cfg(feature = "macros")]
pub mod under_tokio {
    #[cfg(feature = "rt-multi-thread")]
    pub use gmp_macros::{tokio_main as main, tokio_test as test};
    #[cfg(all(feature = "rt", not(feature = "rt-multi-thread")))]
    pub use gmp_macros::{tokio_main_current_thread as main, tokio_test_current_thread as test};
    #[cfg(not(feature = "rt"))]
    pub use gmp_macros::{tokio_main_without_rt as main, tokio_test_without_rt as test};
}
