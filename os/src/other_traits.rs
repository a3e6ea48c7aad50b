//! The traits of `futures` and of the registry's tokio for the types of this crate, if the features
//! `futures-io` and `tokio-io` of `gmp-io` are on.

use gmp_io::impl_other_traits;

#[cfg(feature = "fs")]
impl_other_traits! {
    read: crate::fs::File;
    write: crate::fs::File;
    seek: crate::fs::File;
}

#[cfg(feature = "process")]
impl_other_traits! {
    write: crate::process::ChildStdin;
    read: crate::process::ChildStdout;
    read: crate::process::ChildStderr;
}

#[cfg(feature = "io-std")]
impl_other_traits! {
    read: crate::stdio::Stdin;
    write: crate::stdio::Stdout;
    write: crate::stdio::Stderr;
}
