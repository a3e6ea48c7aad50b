//! Addresses a user may give: a socket address, or a name that has to be resolved first.
//!
//! What is an address already costs nothing: its future is ready and holds it. A string is parsed
//! first, and only a real host name goes to the blocking pool, where the operating system's resolver
//! (`getaddrinfo`) may take as long as it likes without holding a P.
//!
//! [`ToSocketAddrs`] is sealed, as tokio's is: the functions of its private half may change.

use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use gmp_executor::Handle;

use self::sealed::{Internal, OneOrMore, Resolution, ToSocketAddrsPriv};

/// Whatever can be turned into one or more socket addresses.
///
/// It is implemented for socket addresses, for an IP address with a port, for slices of addresses,
/// and for strings: `"host:port"`, `("host", port)` and their owned forms. A string that is no
/// literal address is looked up by the operating system's resolver on the blocking pool.
///
/// The trait is sealed and serves as a bound of gmp's functions only; to resolve a name yourself,
/// call [`lookup_host`]. As `tokio::net::ToSocketAddrs`.
pub trait ToSocketAddrs: ToSocketAddrsPriv {}

/// Resolves a name into socket addresses.
///
/// The iterator may turn out to be empty. The order is the resolver's. For anything beyond asking
/// the operating system (record types, caching, servers of one's own) use a DNS crate.
/// As `tokio::net::lookup_host`.
///
/// # Errors
///
/// What the resolver said; [`InvalidInput`](io::ErrorKind::InvalidInput) for a string without a port.
///
/// # Panics
///
/// When the name is no literal address and there is no runtime to resolve it in.
///
/// # Cancel safety
///
/// Nothing is lost when the future is dropped; a lookup that already runs goes on in the pool until
/// the resolver answers.
///
/// # Examples
///
/// ```
/// # #[gmp::main]
/// # async fn main() -> std::io::Result<()> {
/// for addr in gmp::net::lookup_host("localhost:3000").await? {
///     println!("{addr}");
/// }
/// # Ok(())
/// # }
/// ```
pub async fn lookup_host<T>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>>
where
    T: ToSocketAddrs,
{
    to_socket_addrs(host).await
}

/// Starts the resolution of `addr`; what the socket types call.
pub(crate) fn to_socket_addrs<T: ToSocketAddrs>(addr: T) -> T::Future {
    addr.to_socket_addrs(Internal)
}

/// Calls `attempt` with each address that `addr` stands for until one succeeds.
///
/// The error is that of the last attempt.
pub(crate) async fn each_addr<T, R>(
    addr: T,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R>
where
    T: ToSocketAddrs,
{
    let mut last_error = None;
    for addr in to_socket_addrs(addr).await? {
        match attempt(addr) {
            Ok(done) => return Ok(done),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(no_address))
}

/// The error of an attempt to use a name that resolved to nothing.
pub(crate) fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "could not resolve to any address",
    )
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: ToSocketAddrsPriv + ?Sized> ToSocketAddrsPriv for &T {
    type Iter = T::Iter;
    type Future = T::Future;

    fn to_socket_addrs(&self, internal: Internal) -> Self::Future {
        (**self).to_socket_addrs(internal)
    }
}

/// The types that are one address already.
macro_rules! one_address {
    ($($ty:ty),* $(,)?) => {$(
        impl ToSocketAddrs for $ty {}

        impl ToSocketAddrsPriv for $ty {
            type Iter = std::option::IntoIter<SocketAddr>;
            type Future = Ready<io::Result<Self::Iter>>;

            fn to_socket_addrs(&self, _: Internal) -> Self::Future {
                ready(Ok(Some(SocketAddr::from(*self)).into_iter()))
            }
        }
    )*};
}

one_address!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
);

impl ToSocketAddrs for &[SocketAddr] {}

impl ToSocketAddrsPriv for &[SocketAddr] {
    type Iter = std::vec::IntoIter<SocketAddr>;
    type Future = Ready<io::Result<Self::Iter>>;

    fn to_socket_addrs(&self, _: Internal) -> Self::Future {
        // The iterator outlives the slice, so it needs a copy.
        let addrs: Vec<SocketAddr> = self.to_vec();
        ready(Ok(addrs.into_iter()))
    }
}

impl ToSocketAddrs for str {}

impl ToSocketAddrsPriv for str {
    type Iter = OneOrMore;
    type Future = Resolution;

    fn to_socket_addrs(&self, _: Internal) -> Self::Future {
        match self.parse() {
            Ok(addr) => Resolution::known(addr),
            Err(_) => resolve(self.to_owned()),
        }
    }
}

impl ToSocketAddrs for String {}

impl ToSocketAddrsPriv for String {
    type Iter = OneOrMore;
    type Future = Resolution;

    fn to_socket_addrs(&self, internal: Internal) -> Self::Future {
        self.as_str().to_socket_addrs(internal)
    }
}

impl ToSocketAddrs for (&str, u16) {}

impl ToSocketAddrsPriv for (&str, u16) {
    type Iter = OneOrMore;
    type Future = Resolution;

    fn to_socket_addrs(&self, _: Internal) -> Self::Future {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => Resolution::known(SocketAddr::new(ip, port)),
            Err(_) => resolve((host.to_owned(), port)),
        }
    }
}

impl ToSocketAddrs for (String, u16) {}

impl ToSocketAddrsPriv for (String, u16) {
    type Iter = OneOrMore;
    type Future = Resolution;

    fn to_socket_addrs(&self, internal: Internal) -> Self::Future {
        (self.0.as_str(), self.1).to_socket_addrs(internal)
    }
}

/// Asks the operating system on the blocking pool.
fn resolve<N>(name: N) -> Resolution
where
    N: std::net::ToSocketAddrs<Iter = std::vec::IntoIter<SocketAddr>> + Send + 'static,
{
    Resolution::running(Handle::current().spawn_blocking(move || name.to_socket_addrs()))
}

pub(crate) mod sealed {
    //! The private half of [`ToSocketAddrs`](super::ToSocketAddrs).

    use std::future::Future;
    use std::io;
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use gmp_executor::task::JoinHandle;

    /// What a type that implements [`ToSocketAddrs`](super::ToSocketAddrs) can do.
    #[doc(hidden)]
    pub trait ToSocketAddrsPriv {
        type Iter: Iterator<Item = SocketAddr> + Send + 'static;
        type Future: Future<Output = io::Result<Self::Iter>> + Send + 'static;

        fn to_socket_addrs(&self, internal: Internal) -> Self::Future;
    }

    /// Only this crate can make one, so only this crate can call the trait's function.
    #[doc(hidden)]
    #[allow(missing_debug_implementations)]
    pub struct Internal;

    type Addrs = std::vec::IntoIter<SocketAddr>;

    /// Future of the addresses that a string stands for.
    #[doc(hidden)]
    #[derive(Debug)]
    pub struct Resolution(State);

    #[derive(Debug)]
    enum State {
        /// The string was an address.
        Known(SocketAddr),
        /// The resolver is at work on a thread of the blocking pool.
        Running(JoinHandle<io::Result<Addrs>>),
    }

    impl Resolution {
        pub(super) fn known(addr: SocketAddr) -> Resolution {
            Resolution(State::Known(addr))
        }

        pub(super) fn running(job: JoinHandle<io::Result<Addrs>>) -> Resolution {
            Resolution(State::Running(job))
        }
    }

    impl Future for Resolution {
        type Output = io::Result<OneOrMore>;

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            match &mut self.get_mut().0 {
                State::Known(addr) => Poll::Ready(Ok(OneOrMore::One(Some(*addr).into_iter()))),
                State::Running(job) => {
                    let addrs = ready!(Pin::new(job).poll(cx))?;
                    Poll::Ready(addrs.map(OneOrMore::More))
                }
            }
        }
    }

    /// The addresses that a string stands for.
    #[doc(hidden)]
    #[derive(Debug)]
    pub enum OneOrMore {
        One(std::option::IntoIter<SocketAddr>),
        More(Addrs),
    }

    impl Iterator for OneOrMore {
        type Item = SocketAddr;

        fn next(&mut self) -> Option<SocketAddr> {
            match self {
                OneOrMore::One(addrs) => addrs.next(),
                OneOrMore::More(addrs) => addrs.next(),
            }
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            match self {
                OneOrMore::One(addrs) => addrs.size_hint(),
                OneOrMore::More(addrs) => addrs.size_hint(),
            }
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;
    use futures::executor::block_on;

    fn resolved<T: ToSocketAddrs>(addr: T) -> Vec<SocketAddr> {
        block_on(lookup_host(addr)).unwrap().collect()
    }

    #[test]
    fn addresses_resolve_to_themselves_without_a_runtime() {
        let v4: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let v6: SocketAddr = "[::1]:80".parse().unwrap();
        let SocketAddr::V4(plain_v4) = v4 else {
            unreachable!()
        };
        let SocketAddr::V6(plain_v6) = v6 else {
            unreachable!()
        };
        assert_eq!(resolved(v4), [v4]);
        assert_eq!(block_on(to_socket_addrs(&&v4)).unwrap().next(), Some(v4));
        assert_eq!(resolved(plain_v4), [v4]);
        assert_eq!(resolved(plain_v6), [v6]);
        assert_eq!(resolved((v4.ip(), 80)), [v4]);
        assert_eq!(resolved((*plain_v4.ip(), 80)), [v4]);
        assert_eq!(resolved((*plain_v6.ip(), 80)), [v6]);
        assert_eq!(resolved(&[v4, v6][..]), [v4, v6]);
        assert_eq!(resolved(&[][..]), []);
    }

    #[test]
    fn literal_strings_need_no_resolver() {
        let v4: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let v6: SocketAddr = "[::1]:80".parse().unwrap();
        assert_eq!(resolved("127.0.0.1:80"), [v4]);
        assert_eq!(resolved("[::1]:80"), [v6]);
        assert_eq!(resolved(String::from("127.0.0.1:80")), [v4]);
        assert_eq!(resolved(("127.0.0.1", 80)), [v4]);
        assert_eq!(resolved(("::1", 80)), [v6]);
        assert_eq!(resolved((String::from("::1"), 80)), [v6]);
    }

    #[test]
    fn the_first_address_that_works_is_taken() {
        let addrs: Vec<SocketAddr> = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
            .iter()
            .map(|addr| addr.parse().unwrap())
            .collect();
        let mut tried = Vec::new();
        let port = block_on(each_addr(&addrs[..], |addr| {
            tried.push(addr);
            match addr.port() {
                2 => Ok(2),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        }));
        assert_eq!(port.unwrap(), 2);
        assert_eq!(tried, addrs[..2]);
    }

    #[test]
    fn the_last_error_is_reported() {
        let addrs: Vec<SocketAddr> = ["127.0.0.1:1", "127.0.0.1:2"]
            .iter()
            .map(|addr| addr.parse().unwrap())
            .collect();
        let error = block_on(each_addr(&addrs[..], |addr| {
            Err::<(), _>(io::Error::other(addr.port().to_string()))
        }))
        .unwrap_err();
        assert_eq!(error.to_string(), "2");

        let error = block_on(each_addr(&[][..], |_| Ok(()))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "could not resolve to any address");
    }

    #[test]
    fn the_future_and_the_addresses_are_send() {
        fn assert_send<T: Send + 'static>(_: T) {}
        assert_send(to_socket_addrs("127.0.0.1:80"));
        assert_send(lookup_host("127.0.0.1:80"));
        assert_send(lookup_host("127.0.0.1:80".to_owned()));
    }

    #[test]
    fn size_hints_are_exact() {
        let addr: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mut one = OneOrMore::One(Some(addr).into_iter());
        assert_eq!(one.size_hint(), (1, Some(1)));
        one.next();
        assert_eq!(one.size_hint(), (0, Some(0)));
        let more = OneOrMore::More(vec![addr, addr].into_iter());
        assert_eq!(more.size_hint(), (2, Some(2)));
    }
}
