//! Options of a UDP socket.
//!
//! Each is one system call, which fails with what the operating system says.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use socket2::SockRef;

use super::UdpSocket;

/// Options.
impl UdpSocket {
    fn options(&self) -> SockRef<'_> {
        SockRef::from(self)
    }

    /// The pending error of the socket (`SO_ERROR`), which is cleared by that.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Whether the socket may send to a broadcast address (`SO_BROADCAST`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.io.broadcast()
    }

    /// Sets whether the socket may send to a broadcast address (`SO_BROADCAST`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.io.set_broadcast(on)
    }

    /// Whether multicast packets over IPv4 come back to this host (`IP_MULTICAST_LOOP`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.io.multicast_loop_v4()
    }

    /// Sets whether multicast packets over IPv4 come back to this host (`IP_MULTICAST_LOOP`).
    ///
    /// May have no effect on an IPv6 socket.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        self.io.set_multicast_loop_v4(on)
    }

    /// How many hops multicast packets over IPv4 may take (`IP_MULTICAST_TTL`); 1 unless set.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.io.multicast_ttl_v4()
    }

    /// Sets how many hops multicast packets over IPv4 may take (`IP_MULTICAST_TTL`).
    ///
    /// May have no effect on an IPv6 socket.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.io.set_multicast_ttl_v4(ttl)
    }

    /// Whether the socket sees the multicast packets over IPv6 that it sends itself
    /// (`IPV6_MULTICAST_LOOP`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.io.multicast_loop_v6()
    }

    /// Sets whether the socket sees the multicast packets over IPv6 that it sends itself
    /// (`IPV6_MULTICAST_LOOP`).
    ///
    /// May have no effect on an IPv4 socket.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        self.io.set_multicast_loop_v6(on)
    }

    /// The traffic class of packets over IPv6 (`IPV6_TCLASS`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.options().tclass_v6()
    }

    /// Sets the traffic class of packets over IPv6 (`IPV6_TCLASS`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.options().set_tclass_v6(tclass)
    }

    /// How many hops packets over IPv4 may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets how many hops packets over IPv4 may take (`IP_TTL`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }

    /// The type-of-service field of packets over IPv4 (`IP_TOS`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn tos_v4(&self) -> io::Result<u32> {
        self.options().tos_v4()
    }

    /// Sets the type-of-service field of packets over IPv4 (`IP_TOS`).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.options().set_tos_v4(tos)
    }

    /// The older name of [`tos_v4`](UdpSocket::tos_v4).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    #[deprecated(note = "it concerns IPv4 only, so it is called `tos_v4` now")]
    #[doc(hidden)]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// The older name of [`set_tos_v4`](UdpSocket::set_tos_v4).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    #[deprecated(note = "it concerns IPv4 only, so it is called `set_tos_v4` now")]
    #[doc(hidden)]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }

    /// The interface that the socket is bound to (`SO_BINDTODEVICE`), if it is bound to one.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.options().device()
    }

    /// Binds the socket to an interface by name (`SO_BINDTODEVICE`), or to none any more.
    ///
    /// Packets go through that interface only, and only those that come through it are received.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.options().bind_device(interface)
    }

    /// Joins the IPv4 multicast group `multiaddr` on the interface that has the address `interface`
    /// (`IP_ADD_MEMBERSHIP`); the unspecified address lets the system choose one.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.join_multicast_v4(&multiaddr, &interface)
    }

    /// Joins the IPv6 multicast group `multiaddr` on the interface with the index `interface`
    /// (`IPV6_ADD_MEMBERSHIP`); 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.join_multicast_v6(multiaddr, interface)
    }

    /// Leaves a group that was joined with [`join_multicast_v4`](UdpSocket::join_multicast_v4).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.leave_multicast_v4(&multiaddr, &interface)
    }

    /// Leaves a group that was joined with [`join_multicast_v6`](UdpSocket::join_multicast_v6).
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.leave_multicast_v6(multiaddr, interface)
    }
}
