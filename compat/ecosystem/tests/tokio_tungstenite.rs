//! WebSockets: an echo, and a room in which everybody hears everybody.

use std::net::SocketAddr;

use futures::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, client_async};

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_all_sizes_come_back() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        while let Some(message) = socket.next().await {
            // Pings and the close are answered by the library.
            let message = message.unwrap();
            if message.is_text() || message.is_binary() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = client_async("ws://localhost/", stream).await.unwrap();
    for size in (0..20).map(|bits| 1 << bits) {
        let message = Message::binary(vec![size as u8; size]);
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();
    assert_eq!(
        socket.next().await.unwrap().unwrap(),
        Message::Pong("are you there".into())
    );
    socket.close(None).await.unwrap();
    while socket.next().await.is_some() {}
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_in_a_room_hears_everybody() {
    const GUESTS: usize = 20;
    let (listener, address) = listen().await;
    let (room, _) = broadcast::channel(GUESTS);
    let (entered, mut all_in) = tokio::sync::mpsc::channel(GUESTS);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (room, mut heard, entered) = (room.clone(), room.subscribe(), entered.clone());
            tokio::spawn(async move {
                let (mut sink, mut stream) = accept_async(stream).await.unwrap().split();
                entered.send(()).await.unwrap();
                loop {
                    tokio::select! {
                        said = stream.next() => match said {
                            Some(Ok(message)) if message.is_text() => {
                                room.send(message).unwrap();
                            }
                            _ => break,
                        },
                        message = heard.recv() => {
                            if sink.send(message.unwrap()).await.is_err() {
                                break;
                            }
                        }
                    }
                }
            });
        }
    });
    let mut sockets = Vec::new();
    for _ in 0..GUESTS {
        let stream = TcpStream::connect(address).await.unwrap();
        sockets.push(client_async("ws://localhost/", stream).await.unwrap().0);
        all_in.recv().await.unwrap();
    }
    let mut guests = JoinSet::new();
    for (guest, mut socket) in sockets.into_iter().enumerate() {
        guests.spawn(async move {
            socket.send(Message::text(guest.to_string())).await.unwrap();
            let mut heard = Vec::new();
            while heard.len() < GUESTS {
                let message = socket.next().await.unwrap().unwrap();
                heard.push(message.to_text().unwrap().parse::<usize>().unwrap());
            }
            heard.sort();
            heard
        });
    }
    for heard in guests.join_all().await {
        assert!(heard.into_iter().eq(0..GUESTS));
    }
}
