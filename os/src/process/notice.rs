//! [`Notice`]: how one learns that a child may have ended.
//!
//! On Linux each child has a pidfd, which becomes readable when the child ends: one descriptor, one
//! wake-up, nobody else's business. Without pidfds (other systems, kernels before 5.10, and
//! sandboxes that forbid the call) there is `SIGCHLD`, which says that *some* child ended.
//!
//! There is one case in which a pidfd is readable and the child still cannot be reaped: a debugger
//! that is not its parent has attached to it, and has not let go of the corpse yet. The kernel sends
//! `SIGCHLD` when it does; so that is what one waits for then.

use std::io;
use std::os::fd::OwnedFd;

use gmp_executor::Handle;
use gmp_net::AsyncFd;

use crate::delivery::{self, Listener};
use crate::watch;

#[derive(Debug)]
pub(super) enum Notice {
    Pidfd(AsyncFd<OwnedFd>),
    Sigchld(Listener),
}

impl Notice {
    /// A notice for a child that has not been reaped, in the runtime behind `handle`, which has to be
    /// the current one.
    ///
    /// # Errors
    ///
    /// What registering the pidfd said, or installing the handler of `SIGCHLD`.
    pub(super) fn new(pid: u32, handle: &Handle) -> io::Result<Notice> {
        match open_pidfd(pid) {
            Some(fd) => watch::register(fd).map(Notice::Pidfd),
            None => Notice::sigchld(handle),
        }
    }

    /// The notice that needs no pidfd.
    ///
    /// # Errors
    ///
    /// The handler of `SIGCHLD` could not be installed, or the runtime is shut down.
    pub(super) fn sigchld(handle: &Handle) -> io::Result<Notice> {
        delivery::listen(libc::SIGCHLD, handle).map(Notice::Sigchld)
    }
}

/// A pidfd of a child that has not been reaped, if the kernel has such a thing.
#[cfg(target_os = "linux")]
pub(super) fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    // Relaxed: it only saves a system call.
    static UNSUPPORTED: AtomicBool = AtomicBool::new(false);
    if UNSUPPORTED.load(Ordering::Relaxed) {
        return None;
    }
    let pid = Pid::from_raw(pid.try_into().ok()?)?;
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(fd) => Some(fd),
        Err(error) => {
            if error == rustix::io::Errno::NOSYS {
                UNSUPPORTED.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_pidfd(_: u32) -> Option<OwnedFd> {
    None
}

/// Whether the kernel says that the child has ended, rather than our memory of what it said.
pub(super) fn has_ended(pidfd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let now = Timespec::default();
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
