//! The errors of timers.

use std::error;
use std::fmt;
use std::io;

/// Why a timer could not do its work.
///
/// As in tokio no function returns it: a [`Sleep`](crate::Sleep) panics instead. It is here for programs
/// that name the type.
#[derive(Clone, Copy, Debug)]
pub struct Error(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
}

impl Error {
    /// The error of a timer whose runtime was shut down.
    pub fn shutdown() -> Error {
        Error(Kind::Shutdown)
    }

    /// Whether the runtime of the timer was shut down.
    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    /// The error of a set of timers that can hold no more of them.
    pub fn at_capacity() -> Error {
        Error(Kind::AtCapacity)
    }

    /// Whether the set of timers can hold no more of them.
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    /// The error of a timer with a deadline that makes no sense.
    pub fn invalid() -> Error {
        Error(Kind::Invalid)
    }

    /// Whether the deadline makes no sense.
    pub fn is_invalid(&self) -> bool {
        self.0 == Kind::Invalid
    }
}

impl error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => "the runtime of the timer is shut down",
            Kind::AtCapacity => "there is no room for another timer",
            Kind::Invalid => "the deadline of the timer is too far in the future",
        })
    }
}

/// The future inside a [`timeout`](crate::timeout()) was not ready by the deadline.
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(crate) fn new() -> Self {
        Elapsed(())
    }
}

impl error::Error for Elapsed {}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("deadline has elapsed")
    }
}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> io::Error {
        io::ErrorKind::TimedOut.into()
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_itself_only() {
        let all = [Error::shutdown(), Error::at_capacity(), Error::invalid()];
        let is = all.map(|e| [e.is_shutdown(), e.is_at_capacity(), e.is_invalid()]);
        assert_eq!(
            is,
            [
                [true, false, false],
                [false, true, false],
                [false, false, true]
            ]
        );
        let texts = all.map(|e| e.to_string());
        assert!(texts.iter().all(|text| !text.is_empty()));
        assert_ne!(texts[0], texts[1]);
        assert_ne!(texts[1], texts[2]);
    }

    #[test]
    fn elapsed_is_a_timed_out_io_error() {
        assert_eq!(Elapsed::new().to_string(), "deadline has elapsed");
        assert_eq!(
            io::Error::from(Elapsed::new()).kind(),
            io::ErrorKind::TimedOut
        );
        assert_eq!(Elapsed::new(), Elapsed::new());
    }
}
