//! Unix sockets that become streams, listeners and datagram sockets.
#![cfg(not(gmp_loom))]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd};

use futures::future::try_join;
use gmp_net::{UnixDatagram, UnixSocket, UnixStream};
use support::*;

mod support;

#[test]
fn a_bound_stream_connects_to_a_listener() {
    run(|| async {
        let dir = Dir::new();
        let (path, client_path) = (dir.path("server"), dir.path("client"));
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(1024).unwrap();

        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&client_path).unwrap();
        let (mut client, (mut server, from)) = try_join(socket.connect(&path), listener.accept())
            .await
            .unwrap();
        assert_eq!(from.as_pathname(), Some(&*client_path));
        assert_eq!(
            server.peer_addr().unwrap().as_pathname(),
            Some(&*client_path)
        );
        assert_eq!(
            client.local_addr().unwrap().as_pathname(),
            Some(&*client_path)
        );
        write_all(&mut client, b"hello").await.unwrap();
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"hello");
    });
}

#[test]
fn a_bound_client_in_the_abstract_namespace_has_its_name() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("server");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(8).unwrap();
        let socket = UnixSocket::new_stream().unwrap();
        let name = format!("gmp-net-client-{}", std::process::id());
        socket.bind(format!("\0{name}")).unwrap();
        let (_client, (_server, from)) = try_join(socket.connect(&path), listener.accept())
            .await
            .unwrap();
        assert_eq!(from.as_abstract_name(), Some(name.as_bytes()));
    });
}

/// Linux lets a client bind to a path that fills its address up. It is served like others.
#[test]
fn a_client_with_the_longest_path_is_accepted() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("server");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(8).unwrap();
        for len in [107, 108] {
            let mut client_path = dir.path("c").into_os_string();
            client_path.push("c".repeat(len - client_path.len()));
            let client = UnixSocket::new_stream().unwrap();
            let addr = rustix::net::SocketAddrUnix::new(&*client_path).unwrap();
            rustix::net::bind(&client, &addr).unwrap();
            let (_client, (server, from)) = try_join(client.connect(&path), listener.accept())
                .await
                .unwrap();
            assert_eq!(from.is_unnamed(), len == 108);
            server.try_write(b"x").unwrap();
        }
    });
}

#[test]
fn datagram_sockets_talk() {
    run(|| async {
        let dir = Dir::new();
        let (path, client_path) = (dir.path("server"), dir.path("client"));
        let bound = |path| -> UnixDatagram {
            let socket = UnixSocket::new_datagram().unwrap();
            socket.bind(path).unwrap();
            socket.datagram().unwrap()
        };
        let server = bound(&path);
        let client = bound(&client_path);
        client.connect(&path).unwrap();
        client.send(b"ECHO").await.unwrap();
        let mut buf = [0; 16];
        let (n, from) = server.recv_from(&mut buf).await.unwrap();
        server
            .send_to(&buf[..n], from.as_pathname().unwrap())
            .await
            .unwrap();
        assert_eq!(client.recv(&mut buf).await.unwrap(), 4);
    });
}

#[test]
fn each_kind_becomes_its_own_only() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let datagram = UnixSocket::new_datagram().unwrap();
        let error = datagram.connect(&path).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "connect cannot be called on a datagram socket"
        );
        let datagram = UnixSocket::new_datagram().unwrap();
        let error = datagram.listen(1024).unwrap_err();
        assert_eq!(
            error.to_string(),
            "listen cannot be called on a datagram socket"
        );
        let stream = UnixSocket::new_stream().unwrap();
        let error = stream.datagram().unwrap_err();
        assert_eq!(
            error.to_string(),
            "datagram cannot be called on a stream socket"
        );
    });
}

#[test]
fn errors_are_the_systems() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let socket = UnixSocket::new_stream().unwrap();
        let error = socket.connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let other = UnixSocket::new_stream().unwrap();
        let error = other.bind(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let error = other.bind("x".repeat(200)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = other.connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_backlog_of_any_size() {
    run(|| async {
        let dir = Dir::new();
        let path = dir.path("socket");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(u32::MAX).unwrap();
        try_join(UnixStream::connect(&path), listener.accept())
            .await
            .unwrap();
    });
}

#[test]
fn descriptors_go_in_and_out() {
    let socket = UnixSocket::new_stream().unwrap();
    let fd = socket.as_raw_fd();
    assert_eq!(socket.as_fd().as_raw_fd(), fd);
    assert!(format!("{socket:?}").starts_with("UnixSocket"));
    let flags = rustix::fs::fcntl_getfl(&socket).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    let flags = rustix::io::fcntl_getfd(&socket).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    assert_eq!(socket.into_raw_fd(), fd);
    // SAFETY: the descriptor is open, and `into_raw_fd` has given it to us.
    let socket = unsafe { UnixSocket::from_raw_fd(fd) };
    assert_eq!(socket.as_raw_fd(), fd);
}

/// Making and binding one needs no runtime; the rest does.
#[test]
fn only_the_last_step_needs_a_runtime() {
    let dir = Dir::new();
    let socket = UnixSocket::new_stream().unwrap();
    socket.bind(dir.path("socket")).unwrap();
    let text = panic_of(std::panic::AssertUnwindSafe(|| drop(socket.listen(1)))).unwrap();
    assert!(text.contains("there is no reactor running"), "{text}");
}
