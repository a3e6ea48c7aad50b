//! Procedural macros of gmp: the attributes [`main`] and [`test`](macro@test), and two helpers of the
//! macros in `gmp::macros`.
//!
//! Use them through the facade: `#[gmp::main]`, `#[gmp::test]`, `gmp::select!`, `gmp::join!`. The
//! facade re-exports the variant of each attribute that fits the features it was built with, under
//! one name; the crate that stands in for `tokio` re-exports the `tokio_*` ones, which speak of
//! `tokio` in their messages and look for that name in the user's manifest first.
//!
//! The logic lives in functions over `proc_macro2`, so that plain unit tests reach it:
//!
//! * `entry`: the attributes; `entry::args` reads their arguments, `entry::item` the function,
//!   `entry::facade` finds out what the user's manifest calls the crate;
//! * `pattern`: turns a binding pattern into one that only tests whether a value matches;
//! * `number`: gives each of a list of items its index.

use proc_macro::TokenStream;

mod entry;
mod number;
mod pattern;

use entry::{Face, Kind, Runtimes};

/// Declares the variants of one attribute that differ in the facade's name and its features.
macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $face:ident, $kind:ident, $runtimes:ident;)*) => {$(
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $name(args: TokenStream, item: TokenStream) -> TokenStream {
            entry::expand(
                Face::$face,
                Kind::$kind,
                Runtimes::$runtimes,
                args.into(),
                item.into(),
            )
            .into()
        }
    )*};
}

attributes! {
    /// Runs an `async fn` on a runtime made for it: the usual way to write `main`.
    ///
    /// The function becomes an ordinary one that builds a runtime with everything enabled, runs
    /// the body with `block_on` and returns what it returns. It may have any name, arguments,
    /// generics and return type; only `main` itself takes no arguments. As `tokio::main`.
    ///
    /// # Arguments
    ///
    /// * `flavor = "multi_thread"` (the default), `"current_thread"` or `"local"`: which runtime;
    /// * `worker_threads = 4`: how many Ps, for `multi_thread` only; by default as many as
    ///   `runtime::Builder` chooses;
    /// * `start_paused = true`: time stands still at the start, not for `multi_thread`; needs the
    ///   feature `test-util`;
    /// * `name = "server"`: the name of the runtime;
    /// * `crate = "path"`: where the crate is found. By default the macro asks the manifest of the
    ///   package being compiled under which name it depends on gmp.
    ///
    /// ```ignore
    /// #[gmp::main(flavor = "current_thread")]
    /// async fn main() {
    ///     println!("on the runtime");
    /// }
    /// ```
    ///
    /// is short for
    ///
    /// ```ignore
    /// fn main() {
    ///     gmp::runtime::Builder::new_current_thread()
    ///         .enable_all()
    ///         .build()
    ///         .unwrap()
    ///         .block_on(async {
    ///             println!("on the runtime");
    ///         })
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// The function panics when the runtime cannot be built, or when it is called from inside one.
    main: Gmp, Main, All;

    /// Makes a test of an `async fn`, which runs on a runtime of its own.
    ///
    /// Takes the arguments of [`main`], but the default is a `current_thread` runtime: the test
    /// and all it spawns share one thread. `worker_threads` wants `flavor = "multi_thread"` beside
    /// it. Other attributes (`#[should_panic]`, `#[ignore]`) go on as usual. As `tokio::test`.
    ///
    /// ```ignore
    /// #[gmp::test(flavor = "multi_thread", worker_threads = 2)]
    /// async fn two_tasks() {
    ///     assert_eq!(gmp::spawn(async { 1 }).await.unwrap(), 1);
    /// }
    /// ```
    test: Gmp, Test, All;

    /// [`main`] of a facade that was built without `rt-multi-thread`.
    #[doc(hidden)]
    main_current_thread: Gmp, Main, CurrentThread;

    /// [`test`](macro@test) of a facade that was built without `rt-multi-thread`.
    #[doc(hidden)]
    test_current_thread: Gmp, Test, CurrentThread;

    /// [`main`] of a facade that was built without `rt`: an error that says so.
    #[doc(hidden)]
    main_without_rt: Gmp, Main, None;

    /// [`test`](macro@test) of a facade that was built without `rt`: an error that says so.
    #[doc(hidden)]
    test_without_rt: Gmp, Test, None;

    /// [`main`] for the crate that stands in for `tokio`.
    #[doc(hidden)]
    tokio_main: Tokio, Main, All;

    /// [`test`](macro@test) for the crate that stands in for `tokio`.
    #[doc(hidden)]
    tokio_test: Tokio, Test, All;

    /// [`main`] for the crate that stands in for `tokio`, without `rt-multi-thread`.
    #[doc(hidden)]
    tokio_main_current_thread: Tokio, Main, CurrentThread;

    /// [`test`](macro@test) for the crate that stands in for `tokio`, without `rt-multi-thread`.
    #[doc(hidden)]
    tokio_test_current_thread: Tokio, Test, CurrentThread;

    /// [`main`] for the crate that stands in for `tokio`, without `rt`.
    #[doc(hidden)]
    tokio_main_without_rt: Tokio, Main, None;

    /// [`test`](macro@test) for the crate that stands in for `tokio`, without `rt`.
    #[doc(hidden)]
    tokio_test_without_rt: Tokio, Test, None;
}

/// Helper of `select!`: the pattern of a branch without `ref` and `mut`.
///
/// Stands where a pattern stands. `select!` looks at an output through a shared reference before
/// it decides to finish, and there a binding that moves or borrows mutably would not compile.
#[doc(hidden)]
#[proc_macro]
pub fn match_only(pattern: TokenStream) -> TokenStream {
    pattern::match_only(pattern.into()).into()
}

/// Helper of `join!` and `try_join!`: calls a macro again with a number beside each item.
///
/// `number!(path!{ head } [a] [b])` becomes `path!{ head 2 [0 a] [1 b] }`.
#[doc(hidden)]
#[proc_macro]
pub fn number(input: TokenStream) -> TokenStream {
    number::number(input.into()).into()
}
