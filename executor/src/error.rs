//! The error of operations whose runtime is gone.

use std::error::Error;
use std::fmt;
use std::io;

#[derive(Debug)]
struct RuntimeGone;

impl fmt::Display for RuntimeGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("A Tokio 1.x context was found, but it is being shutdown.")
    }
}

impl Error for RuntimeGone {}

/// What an operation says whose runtime is being shut down, or is gone.
#[doc(hidden)]
pub fn shutdown_error() -> io::Error {
    io::Error::other(RuntimeGone)
}

/// Whether an I/O error says that the operation's runtime is being shut down, or is gone.
///
/// As `tokio::runtime::is_rt_shutdown_err`.
pub fn is_rt_shutdown_err(err: &io::Error) -> bool {
    err.get_ref().is_some_and(|inner| inner.is::<RuntimeGone>())
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_shutdown_error_is_one() {
        assert!(is_rt_shutdown_err(&shutdown_error()));
        assert!(!is_rt_shutdown_err(&io::Error::other(
            shutdown_error().to_string()
        )));
    }
}
