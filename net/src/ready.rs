//! [`Ready`]: what a descriptor is ready for.

use std::fmt;
use std::ops;

use crate::interest::Interest;

const READABLE: usize = 1;
const WRITABLE: usize = 1 << 1;
const READ_CLOSED: usize = 1 << 2;
const WRITE_CLOSED: usize = 1 << 3;
const PRIORITY: usize = 1 << 4;
const ERROR: usize = 1 << 5;

/// What a descriptor is ready for.
///
/// As `tokio::io::Ready`. Readiness is a hint: an operation may still find that it would block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(usize);

impl Ready {
    /// Nothing.
    pub const EMPTY: Ready = Ready(0);

    /// Reading.
    pub const READABLE: Ready = Ready(READABLE);

    /// Writing.
    pub const WRITABLE: Ready = Ready(WRITABLE);

    /// The other side sends nothing more.
    pub const READ_CLOSED: Ready = Ready(READ_CLOSED);

    /// The other side takes nothing more.
    pub const WRITE_CLOSED: Ready = Ready(WRITE_CLOSED);

    /// Priority data.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Ready = Ready(PRIORITY);

    /// An error.
    pub const ERROR: Ready = Ready(ERROR);

    /// Everything.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const ALL: Ready =
        Ready(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | PRIORITY | ERROR);

    /// Everything.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub const ALL: Ready = Ready(READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | ERROR);

    /// The two that tell of an end, which a clear by somebody's word alone leaves standing.
    pub(crate) const CLOSED: Ready = Ready(READ_CLOSED | WRITE_CLOSED);

    /// What a reader waits for.
    pub(crate) const READ: Ready = Ready(READABLE | READ_CLOSED);

    /// What a writer waits for.
    pub(crate) const WRITE: Ready = Ready(WRITABLE | WRITE_CLOSED);

    /// Whether it is ready for nothing.
    pub fn is_empty(self) -> bool {
        self == Ready::EMPTY
    }

    /// Whether a read would not block: there is something to read, or the stream has ended.
    pub fn is_readable(self) -> bool {
        self.intersects(Ready::READ)
    }

    /// Whether a write would not block: there is space, or nobody reads any more.
    pub fn is_writable(self) -> bool {
        self.intersects(Ready::WRITE)
    }

    /// Whether the other side sends nothing more.
    pub fn is_read_closed(self) -> bool {
        self.intersects(Ready::READ_CLOSED)
    }

    /// Whether the other side takes nothing more.
    pub fn is_write_closed(self) -> bool {
        self.intersects(Ready::WRITE_CLOSED)
    }

    /// Whether there is priority data.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn is_priority(self) -> bool {
        self.has_priority()
    }

    /// Whether there is an error.
    pub fn is_error(self) -> bool {
        self.intersects(Ready::ERROR)
    }

    fn has_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    pub(crate) fn intersects(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits, which fit in a `u8`.
    pub(crate) const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// The readiness with these bits; bits it does not know are dropped.
    pub(crate) const fn from_bits(bits: u64) -> Ready {
        Ready(bits as usize & Ready::ALL.0)
    }

    /// What satisfies somebody with this interest.
    ///
    /// The end of the stream satisfies those who wait for priority data too, as in tokio: none will come.
    pub(crate) const fn of_interest(interest: Interest) -> Ready {
        let mut ready = 0;
        if interest.is_readable() {
            ready |= READABLE | READ_CLOSED;
        }
        if interest.is_writable() {
            ready |= WRITABLE | WRITE_CLOSED;
        }
        if interest.has_priority() {
            ready |= PRIORITY | READ_CLOSED;
        }
        if interest.is_error() {
            ready |= ERROR;
        }
        Ready(ready)
    }
}

impl ops::BitOr for Ready {
    type Output = Ready;

    #[inline]
    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl ops::BitOrAssign for Ready {
    #[inline]
    fn bitor_assign(&mut self, other: Ready) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for Ready {
    type Output = Ready;

    #[inline]
    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl ops::Sub for Ready {
    type Output = Ready;

    #[inline]
    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("is_readable", &self.is_readable())
            .field("is_writable", &self.is_writable())
            .field("is_read_closed", &self.is_read_closed())
            .field("is_write_closed", &self.is_write_closed())
            .field("is_error", &self.is_error())
            .field("is_priority", &self.has_priority())
            .finish()
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_end_counts_as_ready() {
        assert!(Ready::READ_CLOSED.is_readable());
        assert!(!Ready::READ_CLOSED.is_writable());
        assert!(Ready::WRITE_CLOSED.is_writable());
        assert!(!Ready::WRITE_CLOSED.is_readable());
        assert!(!Ready::ERROR.is_readable());
        assert!(Ready::EMPTY.is_empty());
        assert!(!Ready::READABLE.is_empty());
    }

    #[test]
    fn set_operations() {
        let mut ready = Ready::READABLE | Ready::ERROR;
        ready |= Ready::PRIORITY;
        assert!(ready.is_priority() && ready.is_error());
        assert_eq!(ready - Ready::ERROR - Ready::PRIORITY, Ready::READABLE);
        assert_eq!(ready & Ready::ERROR, Ready::ERROR);
        assert_eq!(Ready::from_bits(Ready::ALL.bits()), Ready::ALL);
        assert_eq!(Ready::from_bits(u64::MAX), Ready::ALL);
    }

    #[test]
    fn interests_cover_their_ends() {
        assert_eq!(Ready::of_interest(Interest::READABLE), Ready::READ);
        assert_eq!(Ready::of_interest(Interest::WRITABLE), Ready::WRITE);
        assert_eq!(Ready::of_interest(Interest::ERROR), Ready::ERROR);
        assert_eq!(
            Ready::of_interest(Interest::PRIORITY),
            Ready::PRIORITY | Ready::READ_CLOSED
        );
        assert_eq!(
            Ready::of_interest(Interest::READABLE | Interest::WRITABLE),
            Ready::READ | Ready::WRITE
        );
    }

    #[test]
    fn debug_lists_all() {
        let text = format!("{:?}", Ready::READ_CLOSED | Ready::ERROR);
        assert!(text.contains("is_readable: true"));
        assert!(text.contains("is_writable: false"));
        assert!(text.contains("is_read_closed: true"));
        assert!(text.contains("is_error: true"));
        assert!(text.contains("is_priority: false"));
    }
}
