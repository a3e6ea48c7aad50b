//! QUIC: streams and datagrams on one connection over UDP.

use std::sync::Arc;

use bytes::Bytes;
use ecosystem::Identity;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, ServerConfig, VarInt};
use tokio::task::JoinSet;

/// The two ends of a connection, and the endpoints, which have to live as long.
struct Pair {
    client: Connection,
    server: Connection,
    endpoints: [Endpoint; 2],
}

impl Pair {
    async fn connect() -> Self {
        let identity = Identity::generate();
        let local = "127.0.0.1:0".parse().unwrap();
        let config = QuicServerConfig::try_from(identity.server()).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(config));
        let listening = Endpoint::server(config, local).unwrap();
        let config = QuicClientConfig::try_from(identity.client()).unwrap();
        let mut connecting = Endpoint::client(local).unwrap();
        connecting.set_default_client_config(ClientConfig::new(Arc::new(config)));

        let connect = connecting
            .connect(listening.local_addr().unwrap(), "localhost")
            .unwrap();
        let accept = async { listening.accept().await.unwrap().await };
        let (client, server) = tokio::try_join!(connect, accept).unwrap();
        Self {
            client,
            server,
            endpoints: [connecting, listening],
        }
    }

    async fn close(self) {
        self.client.close(VarInt::from_u32(7), b"done");
        match self.server.closed().await {
            ConnectionError::ApplicationClosed(close) => assert_eq!(close.reason, "done"),
            error => panic!("{error}"),
        }
        for endpoint in self.endpoints {
            endpoint.wait_idle().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_echo_on_one_connection() {
    const STREAMS: usize = 200;
    let pair = Pair::connect().await;
    let server = pair.server.clone();
    tokio::spawn(async move {
        while let Ok((mut send, mut receive)) = server.accept_bi().await {
            tokio::spawn(async move {
                let received = receive.read_to_end(1 << 20).await.unwrap();
                send.write_all(&received).await.unwrap();
                send.finish().unwrap();
            });
        }
    });
    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        let client = pair.client.clone();
        streams.spawn(async move {
            let (mut send, mut receive) = client.open_bi().await.unwrap();
            let sent = vec![number as u8; 100 * number];
            send.write_all(&sent).await.unwrap();
            send.finish().unwrap();
            assert!(receive.read_to_end(1 << 20).await.unwrap() == sent);
        });
    }
    streams.join_all().await;
    pair.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_carries_megabytes() {
    let pair = Pair::connect().await;
    let client = pair.client.clone();
    let sender = tokio::spawn(async move {
        let mut send = client.open_uni().await.unwrap();
        for chunk in 0..64 {
            send.write_all(&vec![chunk; 1 << 16]).await.unwrap();
        }
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    let mut receive = pair.server.accept_uni().await.unwrap();
    let mut buffer = vec![0; 1 << 16];
    for chunk in 0..64 {
        receive.read_exact(&mut buffer).await.unwrap();
        assert!(buffer.iter().all(|&byte| byte == chunk));
    }
    assert!(receive.read(&mut buffer).await.unwrap().is_none());
    sender.await.unwrap();
    pair.close().await;
}

/// Datagrams may be lost, so that each is sent until it is answered.
#[tokio::test]
async fn datagrams_are_answered() {
    let pair = Pair::connect().await;
    let server = pair.server.clone();
    tokio::spawn(async move {
        while let Ok(datagram) = server.read_datagram().await {
            server.send_datagram(datagram).unwrap();
        }
    });
    for number in 0..50_u32 {
        let sent = Bytes::copy_from_slice(&number.to_be_bytes());
        let mut again = tokio::time::interval(std::time::Duration::from_millis(100));
        loop {
            tokio::select! {
                _ = again.tick() => pair.client.send_datagram(sent.clone()).unwrap(),
                received = pair.client.read_datagram() => {
                    if received.unwrap() == sent {
                        break;
                    }
                }
            }
        }
    }
    pair.close().await;
}
