//! `task_local!`.

/// Declares task-locals: statics of the type [`LocalKey`](crate::task::LocalKey).
///
/// Any number of declarations, each with its attributes and visibility. A task-local has no initial
/// value: `LocalKey::scope` gives it one. As `tokio::task_local!`.
///
/// ```
/// gmp::task_local! {
///     /// The request that is being handled.
///     pub static REQUEST: u64;
///
///     static USER: String;
/// }
///
/// let seen = REQUEST.sync_scope(7, || REQUEST.get());
/// assert_eq!(seen, 7);
/// assert!(USER.try_with(|_| ()).is_err());
/// ```
#[macro_export]
macro_rules! task_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $value:ty);* $(;)?) => {$(
        $(#[$attribute])*
        $visibility static $name: $crate::macros::support::LocalKey<$value> = {
            $crate::macros::support::thread_local! {
                static __SLOT: $crate::macros::support::Slot<$value> =
                    const { $crate::macros::support::Slot::new($crate::macros::support::None) };
            }
            $crate::macros::support::LocalKey::over(__SLOT)
        };
    )*};
}
