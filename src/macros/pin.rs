//! `pin!`.

/// Pins values on the stack.
///
/// Each variable named is moved, and replaced by a `Pin<&mut _>` to it of the same name. The second
/// form declares the variables as well. As `tokio::pin!`; `std::pin::pin!` is the same as an
/// expression.
///
/// ```
/// use std::future::Future;
///
/// async fn answer() -> u32 {
///     42
/// }
///
/// async fn ask_twice() {
///     let first = answer();
///     gmp::pin!(first);
///     assert_eq!((&mut first).await, 42);
///
///     gmp::pin! {
///         let second = answer();
///         let third = answer();
///     }
///     assert_eq!(second.await + third.await, 84);
/// }
/// # let future = std::pin::pin!(ask_twice());
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.poll(&mut cx).is_ready());
/// ```
#[macro_export]
macro_rules! pin {
    ($($name:ident),* $(,)?) => {$(
        // The variable can no longer be reached, so that nothing moves out of the pin.
        #[allow(unused_mut)]
        let mut $name = $crate::macros::support::pin!($name);
    )*};
    ($(let $name:ident = $value:expr;)*) => {$(
        let $name = $value;
        $crate::pin!($name);
    )*};
}
