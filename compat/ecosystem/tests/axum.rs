//! An axum server, and reqwest and tungstenite as its clients.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::{self, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures::{SinkExt, StreamExt};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tokio_tungstenite::tungstenite::Message;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Order {
    item: String,
    count: u32,
}

/// Serves until the test's runtime ends; what it returns is where, without a scheme.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address.to_string()
}

async fn double(Json(mut order): Json<Order>) -> Json<Order> {
    order.count *= 2;
    Json(order)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_goes_there_and_back_for_many_clients() {
    let address = serve(Router::new().route("/double", post(double))).await;
    let mut clients = JoinSet::new();
    for number in 0..64 {
        let url = format!("http://{address}/double");
        clients.spawn(async move {
            let client = Client::new();
            for round in 0..20 {
                let order = Order {
                    item: format!("item {number}"),
                    count: round,
                };
                let reply: Order = client
                    .post(&url)
                    .json(&order)
                    .send()
                    .await
                    .unwrap()
                    .json()
                    .await
                    .unwrap();
                assert_eq!(
                    reply,
                    Order {
                        count: 2 * round,
                        ..order
                    }
                );
            }
        });
    }
    clients.join_all().await;
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    let address = serve(Router::new().route("/double", post(double))).await;
    let request = Client::new().post(format!("http://{address}/double"));
    let request = request.header("content-type", "application/json").body("{");
    assert_eq!(request.send().await.unwrap().status(), 400);
}

type Chunks = mpsc::Receiver<Result<Bytes, std::io::Error>>;

/// Each chunk is sent when the one before has arrived: none is held back for the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_streams_to_the_client() {
    async fn stream(State(chunks): State<Arc<Mutex<Option<Chunks>>>>) -> Body {
        Body::from_stream(ReceiverStream::new(chunks.lock().await.take().unwrap()))
    }
    let (sender, chunks) = mpsc::channel(1);
    let state = Arc::new(Mutex::new(Some(chunks)));
    let address = serve(Router::new().route("/", get(stream)).with_state(state)).await;

    let response = reqwest::get(format!("http://{address}/")).await.unwrap();
    let mut body = response.bytes_stream();
    for number in 0..100 {
        let chunk = Bytes::from(format!("chunk {number}"));
        sender.send(Ok(chunk.clone())).await.unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), chunk);
    }
    drop(sender);
    assert!(body.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_streams_to_the_server() {
    async fn count(body: Body, seen: mpsc::Sender<usize>) -> String {
        let mut body = body.into_data_stream();
        let mut total = 0;
        while let Some(chunk) = body.next().await {
            total += chunk.unwrap().len();
            seen.send(total).await.unwrap();
        }
        total.to_string()
    }
    let (seen, mut progress) = mpsc::channel(1);
    let router = Router::new().route("/", post(move |body| count(body, seen.clone())));
    let address = serve(router).await;

    let (sender, chunks): (_, Chunks) = mpsc::channel(1);
    let body = reqwest::Body::wrap_stream(ReceiverStream::new(chunks));
    let request = tokio::spawn(
        Client::new()
            .post(format!("http://{address}/"))
            .body(body)
            .send(),
    );
    for number in 1..=50 {
        sender
            .send(Ok(Bytes::from_static(&[0; 1000])))
            .await
            .unwrap();
        while progress.recv().await.unwrap() < 1000 * number {}
    }
    drop(sender);
    let response = request.await.unwrap().unwrap();
    assert_eq!(response.text().await.unwrap(), "50000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_becomes_a_web_socket() {
    async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
        upgrade.on_upgrade(echo)
    }
    async fn echo(mut socket: WebSocket) {
        while let Some(Ok(message)) = socket.recv().await {
            // A close is answered by the library, when it is asked for what comes after.
            if !matches!(message, ws::Message::Close(_)) {
                socket.send(message).await.unwrap();
            }
        }
    }
    let address = serve(Router::new().route("/ws", any(upgrade))).await;
    let (mut socket, response) = tokio_tungstenite::connect_async(format!("ws://{address}/ws"))
        .await
        .unwrap();
    assert_eq!(response.status(), 101);
    for number in 0..100 {
        let message = Message::text(format!("message {number}"));
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket.close(None).await.unwrap();
    while let Some(message) = socket.next().await {
        assert!(message.unwrap().is_close());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graceful_shutdown_finishes_what_is_in_flight() {
    let started = Arc::new(Notify::new());
    let finish = Arc::new(Notify::new());
    let handler = {
        let (started, finish) = (started.clone(), finish.clone());
        move || async move {
            started.notify_one();
            finish.notified().await;
            "finished"
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (shut_down, shutdown) = oneshot::channel::<()>();
    let server = axum::serve(listener, Router::new().route("/", get(handler)))
        .with_graceful_shutdown(async { shutdown.await.unwrap() });
    let server = tokio::spawn(async move { server.await.unwrap() });

    let in_flight = tokio::spawn(reqwest::get(format!("http://{address}/")));
    started.notified().await;
    shut_down.send(()).unwrap();
    // Once the listener is gone nobody is let in any more.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!server.is_finished());
    finish.notify_one();
    assert_eq!(
        in_flight.await.unwrap().unwrap().text().await.unwrap(),
        "finished"
    );
    server.await.unwrap();
}
