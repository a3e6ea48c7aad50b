//! The address of a Unix socket.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::path::Path;

#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;

use rustix::net::SocketAddrUnix;
use socket2::SockAddr;

/// The address of a Unix socket: a path, a name in Linux's abstract namespace, or nothing.
///
/// It converts to and from the standard library's [`SocketAddr`](net::SocketAddr).
/// As `tokio::net::unix::SocketAddr`.
#[derive(Clone)]
pub struct SocketAddr(pub(super) net::SocketAddr);

impl SocketAddr {
    /// Whether the socket has no address, as the ends of a pair and clients usually have none.
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// The path, if the socket is bound to one.
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// The name in the abstract namespace, without the leading zero byte, if the socket has one.
    ///
    /// The abstract namespace exists on Linux only.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        self.0.as_abstract_name()
    }

    /// The address that a path given by the user means.
    ///
    /// On Linux a path that begins with a zero byte is a name in the abstract namespace.
    pub(super) fn from_path(path: &Path) -> io::Result<SocketAddr> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            return net::SocketAddr::from_abstract_name(name).map(SocketAddr);
        }
        net::SocketAddr::from_pathname(path).map(SocketAddr)
    }

    /// The address the kernel told; it tells none for a socket without a name.
    pub(super) fn from_kernel(addr: &SockAddr) -> SocketAddr {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = addr.as_abstract_namespace()
            && let Ok(addr) = net::SocketAddr::from_abstract_name(name)
        {
            return SocketAddr(addr);
        }
        // Linux lets a socket be bound to a path that leaves no room for a terminator, and the
        // standard library has no such address: the socket passes for unnamed then.
        let path = addr.as_pathname().unwrap_or(Path::new(""));
        let addr = net::SocketAddr::from_pathname(path)
            .or_else(|_| net::SocketAddr::from_pathname(""))
            .expect("the empty path is the address of an unnamed socket");
        SocketAddr(addr)
    }

    /// The address as a system call wants it.
    pub(super) fn to_kernel(&self) -> io::Result<SocketAddrUnix> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = self.as_abstract_name() {
            return Ok(SocketAddrUnix::new_abstract_name(name)?);
        }
        match self.as_pathname() {
            Some(path) => Ok(SocketAddrUnix::new(path)?),
            None => Ok(SocketAddrUnix::new_unnamed()),
        }
    }
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<net::SocketAddr> for SocketAddr {
    fn from(addr: net::SocketAddr) -> SocketAddr {
        SocketAddr(addr)
    }
}

impl From<SocketAddr> for net::SocketAddr {
    fn from(addr: SocketAddr) -> net::SocketAddr {
        addr.0
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use crate::sys::nonblocking_socket;
    use socket2::{Domain, Type};
    use std::path::PathBuf;

    /// Binds a socket to the address and asks the kernel for it.
    fn round_trip(addr: &SocketAddr) -> SocketAddr {
        let socket = nonblocking_socket(Domain::UNIX, Type::DGRAM).unwrap();
        rustix::net::bind(&socket, &addr.to_kernel().unwrap()).unwrap();
        let back = SocketAddr::from_kernel(&socket.local_addr().unwrap());
        if let Some(path) = back.as_pathname() {
            std::fs::remove_file(path).unwrap();
        }
        back
    }

    /// A path of `len` bytes that nothing exists at.
    fn free_path(len: usize) -> PathBuf {
        let mut path = std::env::temp_dir();
        path.push(format!("gmp-net-addr-{}-{len}-", std::process::id()));
        let missing = len - path.as_os_str().len();
        path.as_mut_os_string().push("p".repeat(missing));
        path
    }

    #[test]
    fn a_path_survives_the_kernel() {
        let path = free_path(60);
        let addr = SocketAddr::from_path(&path).unwrap();
        assert_eq!(addr.as_pathname(), Some(&*path));
        assert_eq!(addr.as_abstract_name(), None);
        assert!(!addr.is_unnamed());
        assert_eq!(round_trip(&addr).as_pathname(), Some(&*path));
        assert_eq!(format!("{addr:?}"), format!("{path:?} (pathname)"));
    }

    #[test]
    fn the_longest_path_survives_the_kernel() {
        // `sun_path` has 108 bytes; one is the terminator.
        let path = free_path(107);
        let addr = SocketAddr::from_path(&path).unwrap();
        assert_eq!(round_trip(&addr).as_pathname(), Some(&*path));
        let error = SocketAddr::from_path(&free_path(108)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_path_without_room_for_a_terminator_passes_for_unnamed() {
        let path = free_path(108);
        let socket = nonblocking_socket(Domain::UNIX, Type::DGRAM).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&*path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(SocketAddr::from_kernel(&socket.local_addr().unwrap()).is_unnamed());
    }

    #[test]
    fn a_leading_zero_means_the_abstract_namespace() {
        let name = format!("gmp-net\0{}", std::process::id());
        let addr = SocketAddr::from_path(Path::new(&format!("\0{name}"))).unwrap();
        assert_eq!(addr.as_abstract_name(), Some(name.as_bytes()));
        let back = round_trip(&addr);
        assert_eq!(back.as_abstract_name(), Some(name.as_bytes()));
        assert_eq!(back.as_pathname(), None);
        assert!(!back.is_unnamed());
    }

    #[test]
    fn no_address_is_an_unnamed_one() {
        let socket = nonblocking_socket(Domain::UNIX, Type::DGRAM).unwrap();
        let addr = SocketAddr::from_kernel(&socket.local_addr().unwrap());
        assert!(addr.is_unnamed());
        assert_eq!(addr.as_pathname(), None);
        assert_eq!(addr.as_abstract_name(), None);
    }

    #[test]
    fn binding_to_no_address_lets_linux_choose_an_abstract_one() {
        let unnamed = SocketAddr(net::SocketAddr::from_pathname("").unwrap());
        assert!(round_trip(&unnamed).as_abstract_name().is_some());
    }

    #[test]
    fn a_zero_byte_inside_a_path_is_refused() {
        let error = SocketAddr::from_path(Path::new("a\0b")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn the_standard_address_goes_in_and_out() {
        let std = net::SocketAddr::from_pathname("/tmp/b.sock").unwrap();
        let addr = SocketAddr::from(std);
        let std = net::SocketAddr::from(addr.clone());
        assert_eq!(std.as_pathname(), addr.as_pathname());
    }
}
