//! [`Interest`]: what a waiter wants to do with a descriptor.

use std::fmt;
use std::ops;

const READABLE: u8 = 1;
const WRITABLE: u8 = 1 << 1;
const PRIORITY: u8 = 1 << 2;
const ERROR: u8 = 1 << 3;

/// The readiness that a waiter is interested in: one or several of reading, writing, priority and
/// errors.
///
/// As `tokio::io::Interest`. An `Interest` is never empty. Hang-ups are part of [`READABLE`] and
/// [`WRITABLE`].
///
/// [`READABLE`]: Interest::READABLE
/// [`WRITABLE`]: Interest::WRITABLE
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// Reading: data, a connection to accept, or the end of the stream.
    pub const READABLE: Interest = Interest(READABLE);

    /// Writing: space in the send buffer, or nobody who could still read.
    pub const WRITABLE: Interest = Interest(WRITABLE);

    /// Errors, such as an entry in the error queue of a socket.
    pub const ERROR: Interest = Interest(ERROR);

    /// Priority data, such as the urgent data of TCP.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Interest = Interest(PRIORITY);

    /// What a socket is registered for.
    pub(crate) const SOCKET: Interest = Interest(READABLE | WRITABLE | PRIORITY);

    /// Whether reading is part of it.
    pub const fn is_readable(self) -> bool {
        self.0 & READABLE != 0
    }

    /// Whether writing is part of it.
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Whether errors are part of it.
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// Whether priority data is part of it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const fn is_priority(self) -> bool {
        self.has_priority()
    }

    pub(crate) const fn has_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// The union of two interests; `|` in constants.
    #[must_use = "this returns the result of the operation, without modifying the original"]
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// The interest without what `other` names, or `None` when nothing is left.
    #[must_use = "this returns the result of the operation, without modifying the original"]
    pub fn remove(self, other: Interest) -> Option<Interest> {
        match self.0 & !other.0 {
            0 => None,
            left => Some(Interest(left)),
        }
    }
}

impl ops::BitOr for Interest {
    type Output = Interest;

    #[inline]
    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl ops::BitOrAssign for Interest {
    #[inline]
    fn bitor_assign(&mut self, other: Interest) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.is_readable(), "READABLE"),
            (self.is_writable(), "WRITABLE"),
            (self.has_priority(), "PRIORITY"),
            (self.is_error(), "ERROR"),
        ];
        let mut separator = "";
        for (_, name) in names.into_iter().filter(|(set, _)| *set) {
            write!(f, "{separator}{name}")?;
            separator = " | ";
        }
        Ok(())
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn union_and_difference() {
        let both = Interest::READABLE | Interest::WRITABLE;
        assert!(both.is_readable() && both.is_writable());
        assert!(!both.is_error() && !both.is_priority());
        assert_eq!(both.remove(Interest::WRITABLE), Some(Interest::READABLE));
        assert_eq!(both.remove(both), None);
        assert_eq!(both.remove(Interest::ERROR), Some(both));
        let mut grown = Interest::PRIORITY;
        grown |= Interest::ERROR;
        assert!(grown.is_priority() && grown.is_error() && !grown.is_readable());
    }

    #[test]
    fn debug_names_each_part() {
        assert_eq!(format!("{:?}", Interest::READABLE), "READABLE");
        let all = Interest::SOCKET | Interest::ERROR;
        assert_eq!(format!("{all:?}"), "READABLE | WRITABLE | PRIORITY | ERROR");
    }
}
