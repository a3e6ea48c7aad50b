//! Who is at the other end of a Unix socket.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use super::{gid_t, pid_t, uid_t};

/// Credentials of a process: user, group and, where the system tells it, the process itself.
///
/// Returned by [`UnixStream::peer_cred`](crate::UnixStream::peer_cred).
/// As `tokio::net::unix::UCred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred {
    pid: Option<pid_t>,
    uid: uid_t,
    gid: gid_t,
}

impl UCred {
    /// The user ID of the process.
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    /// The group ID of the process.
    pub fn gid(&self) -> gid_t {
        self.gid
    }

    /// The process ID; always known on Linux, and 0 for a process outside our PID namespace.
    pub fn pid(&self) -> Option<pid_t> {
        self.pid
    }
}

/// The credentials that the peer of `socket` had when it called `connect`, `listen` or `socketpair`.
pub(super) fn peer_cred(socket: impl AsFd) -> io::Result<UCred> {
    let mut cred = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` lives, and `cred` has room for the
    // `len` bytes that the kernel may write.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            cred.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a `ucred` is three integers: zeros were one, and what the kernel wrote is another.
    let cred = unsafe { cred.assume_init() };
    Ok(UCred {
        pid: Some(cred.pid),
        uid: cred.uid,
        gid: cred.gid,
    })
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (a, b) = UnixStream::pair().unwrap();
        let cred = peer_cred(&a).unwrap();
        assert_eq!(cred, peer_cred(&b).unwrap());
        assert_eq!(cred.pid(), Some(std::process::id() as pid_t));
        assert_eq!(cred.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(cred.gid(), rustix::process::getegid().as_raw());
        assert_eq!(HashSet::from([cred, cred]).len(), 1);
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let error = peer_cred(&file).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTSOCK));
    }
}
