//! What the operating system offers: a selector with edges, and a way to break its wait.
//!
//! On Linux everything goes to the epoll descriptor directly; `polling` only makes it. Elsewhere
//! `polling` does the work.

use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(any(not(target_os = "linux"), test))]
mod portable;

#[cfg(target_os = "linux")]
pub(super) use epoll::{Events, Selector};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{Events, Selector};

/// The CPU that this thread runs on, if it can be had without a system call.
#[cfg(target_os = "linux")]
pub(super) fn current_cpu() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn current_cpu() -> Option<usize> {
    None
}

/// The CPU that processed what a socket received last: over loopback the sender's, else the one that the
/// interrupts of the network card go to.
#[cfg(target_os = "linux")]
pub(super) fn cpu_of_sender(fd: BorrowedFd<'_>) -> Option<usize> {
    let cpu = rustix::net::sockopt::socket_incoming_cpu(fd).ok()?;
    usize::try_from(cpu).ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn cpu_of_sender(_: BorrowedFd<'_>) -> Option<usize> {
    None
}

/// The most events that a poll that waited takes at once.
pub(super) const EVENTS_MAX: usize = 1024;

/// The places of a table lie below.
pub(super) const INDEX_MAX: u32 = u32::MAX / 2;

/// Names a registration to the selector: the place in the poller's table and the generation of
/// what stands there, so that an event for a former tenant is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl Token {
    /// Stands for the wake-up. It lies above every place.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    const WAKE: Token = Token {
        index: u32::MAX - 1,
        generation: u32::MAX,
    };

    const fn to_u64(self) -> u64 {
        (self.index as u64) << 32 | self.generation as u64
    }

    const fn from_u64(key: u64) -> Token {
        Token {
            index: (key >> 32) as u32,
            generation: key as u32,
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_kernel() {
        for token in [
            Token {
                index: 0,
                generation: 0,
            },
            Token {
                index: 7,
                generation: u32::MAX,
            },
            Token {
                index: u32::MAX / 2,
                generation: 1,
            },
            Token::WAKE,
        ] {
            assert_eq!(Token::from_u64(token.to_u64()), token);
        }
        // What `polling` uses for its own descriptors is none of ours.
        assert_ne!(Token::WAKE.to_u64(), usize::MAX as u64);
    }
}
