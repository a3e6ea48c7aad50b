//! TLS over TCP, with a certificate made on the spot.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use ecosystem::Identity;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// An echo server.
async fn serve(identity: &Identity) -> SocketAddr {
    let acceptor = TlsAcceptor::from(Arc::new(identity.server()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let (mut reader, mut writer) = split(acceptor.accept(stream).await?);
                copy(&mut reader, &mut writer).await?;
                writer.shutdown().await
            });
        }
    });
    address
}

async fn connect(
    identity: &Identity,
    address: SocketAddr,
    name: &'static str,
) -> Result<TlsStream<TcpStream>, Error> {
    let connector = TlsConnector::from(Arc::new(identity.client()));
    let stream = TcpStream::connect(address).await?;
    connector
        .connect(ServerName::try_from(name).unwrap(), stream)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_comes_back_to_each_of_many_clients() {
    let identity = Arc::new(Identity::generate());
    let address = serve(&identity).await;
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let identity = identity.clone();
        clients.spawn(async move {
            let (mut reader, mut writer) =
                split(connect(&identity, address, "localhost").await.unwrap());
            let sent: Vec<u8> = (0..1 << 20).map(|index| (index * client) as u8).collect();
            let expected = sent.clone();
            let sender = tokio::spawn(async move {
                writer.write_all(&sent).await.unwrap();
                writer.shutdown().await.unwrap();
            });
            let mut received = Vec::new();
            reader.read_to_end(&mut received).await.unwrap();
            assert!(received == expected);
            sender.await.unwrap();
        });
    }
    clients.join_all().await;
}

#[tokio::test]
async fn a_stranger_is_not_trusted() {
    let address = serve(&Identity::generate()).await;
    let error = connect(&Identity::generate(), address, "localhost")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[tokio::test]
async fn the_name_has_to_be_that_of_the_certificate() {
    let identity = Identity::generate();
    let address = serve(&identity).await;
    assert!(connect(&identity, address, "localhost").await.is_ok());
    let error = connect(&identity, address, "elsewhere").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}
