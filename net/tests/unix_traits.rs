//! What the types are and where their panics point, as in tokio.
#![cfg(not(gmp_loom))]

use std::error::Error;
use std::fmt::Debug;
use std::hash::Hash;
use std::os::unix::net as std_net;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use gmp_net::unix::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, SocketAddr, UCred, WriteHalf, pipe,
};
use gmp_net::{ToSocketAddrs, UdpSocket, UnixDatagram, UnixListener, UnixSocket, UnixStream};
use support::*;

mod support;

fn ordinary<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
fn comparable<T: Copy + Eq + Hash>() {}
fn cloneable<T: Clone>() {}
fn error<T: Error>() {}
fn addrs<T: ToSocketAddrs + ?Sized>() {}

#[test]
fn the_types_have_tokios_traits() {
    ordinary::<UdpSocket>();
    ordinary::<UnixDatagram>();
    ordinary::<UnixListener>();
    ordinary::<UnixSocket>();
    ordinary::<UnixStream>();
    ordinary::<ReadHalf<'static>>();
    ordinary::<WriteHalf<'static>>();
    ordinary::<OwnedReadHalf>();
    ordinary::<OwnedWriteHalf>();
    ordinary::<ReuniteError>();
    ordinary::<SocketAddr>();
    ordinary::<UCred>();
    ordinary::<pipe::Sender>();
    ordinary::<pipe::Receiver>();
    ordinary::<pipe::OpenOptions>();
    comparable::<UCred>();
    cloneable::<SocketAddr>();
    cloneable::<pipe::OpenOptions>();
    error::<ReuniteError>();
    addrs::<str>();
    addrs::<&&String>();
    addrs::<(&str, u16)>();
    addrs::<(String, u16)>();
    addrs::<&[std::net::SocketAddr]>();
}

#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: T) {}
    run(|| async {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        is_send(UdpSocket::bind("localhost:0"));
        is_send(udp.connect("localhost:0"));
        is_send(udp.send_to(b"", "localhost:0"));
        is_send(udp.recv_from(&mut []));
        is_send(udp.recv_buf_from(&mut Vec::new()));
        let (a, _) = UnixDatagram::pair().unwrap();
        is_send(a.send_to(b"", "/nowhere"));
        is_send(a.recv_from(&mut []));
        let dir = Dir::new();
        let listener = UnixListener::bind(dir.path("socket")).unwrap();
        is_send(listener.accept());
        is_send(UnixStream::connect(dir.path("socket")));
        is_send(UnixSocket::new_stream().unwrap().connect("/nowhere"));
    });
}

/// The file in which `f` panics.
fn file_of_panic(f: impl FnOnce()) -> Option<String> {
    // The hook belongs to the process.
    static HOOK: Mutex<()> = Mutex::new(());
    let _alone = HOOK.lock().unwrap();
    let file = Arc::new(Mutex::new(None));
    let seen = file.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        *seen.lock().unwrap() = info.location().map(|place| place.file().to_owned());
    }));
    let _ = catch_unwind(AssertUnwindSafe(f));
    std::panic::set_hook(before);
    file.lock().unwrap().take()
}

#[test]
fn panics_point_to_the_caller() {
    let dir = Dir::new();
    let nonblocking_udp = || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let std_pair = || {
        let (a, b) = std_net::UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        (a, b)
    };
    let std_datagram = || {
        let socket = std_net::UnixDatagram::unbound().unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let std_listener = |name: &str| {
        let listener = std_net::UnixListener::bind(dir.path(name)).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let runtime = rt::without_io();
    let _entered = runtime.enter();
    let cases: [(&str, &dyn Fn()); 9] = [
        ("UdpSocket::from_std", &|| {
            drop(UdpSocket::from_std(nonblocking_udp()))
        }),
        ("UnixStream::from_std", &|| {
            drop(UnixStream::from_std(std_pair().0))
        }),
        ("UnixStream::pair", &|| drop(UnixStream::pair())),
        ("UnixListener::bind", &|| {
            drop(UnixListener::bind(dir.path("a")))
        }),
        ("UnixListener::from_std", &|| {
            drop(UnixListener::from_std(std_listener("b")))
        }),
        ("UnixDatagram::bind", &|| {
            drop(UnixDatagram::bind(dir.path("c")))
        }),
        ("UnixDatagram::from_std", &|| {
            drop(UnixDatagram::from_std(std_datagram()))
        }),
        ("UnixDatagram::unbound", &|| drop(UnixDatagram::unbound())),
        ("pipe", &|| drop(pipe::pipe())),
    ];
    for (name, case) in cases {
        assert_eq!(file_of_panic(case).as_deref(), Some(file!()), "{name}");
    }
}
