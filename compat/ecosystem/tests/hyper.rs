//! hyper's own server and client, without anything between it and the sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const STREAMS: usize = 2000;

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => *response.body_mut() = Full::from("hello"),
        (&Method::POST, "/echo") => match request.collect().await {
            Ok(body) => *response.body_mut() = Full::new(body.to_bytes()),
            Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
        },
        _ => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

async fn serve_http1() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection = server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(echo));
            tokio::spawn(connection);
        }
    });
    address
}

/// Answers no request before `STREAMS` of them are there.
async fn serve_http2() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let everyone = Arc::new(Barrier::new(STREAMS));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let everyone = everyone.clone();
            let service = service_fn(move |request| {
                let everyone = everyone.clone();
                async move {
                    everyone.wait().await;
                    echo(request).await
                }
            });
            let connection = server::conn::http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS as u32)
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    address
}

fn request(method: Method, address: SocketAddr, path: &str, body: Bytes) -> Request<Full<Bytes>> {
    let builder = Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"));
    builder
        .header("host", address.to_string())
        .body(Full::new(body))
        .unwrap()
}

async fn body(response: Response<Incoming>) -> Bytes {
    assert_eq!(response.status(), StatusCode::OK);
    response.collect().await.unwrap().to_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_keeps_its_connections_alive() {
    let address = serve_http1().await;
    let mut clients = JoinSet::new();
    for _ in 0..32 {
        clients.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .unwrap();
            tokio::spawn(connection);
            for size in 0..100 {
                let sent = Bytes::from(vec![b'x'; size * 100]);
                sender.ready().await.unwrap();
                let response = sender
                    .send_request(request(Method::POST, address, "/echo", sent.clone()))
                    .await
                    .unwrap();
                assert_eq!(body(response).await, sent);
            }
        });
    }
    clients.join_all().await;
}

#[tokio::test]
async fn a_pool_of_connections_serves_and_answers_404() {
    let address = serve_http1().await;
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .build_http();
    for _ in 0..10 {
        let get = client.request(request(Method::GET, address, "/", Bytes::new()));
        assert_eq!(body(get.await.unwrap()).await, "hello");
    }
    let nowhere = client.request(request(Method::GET, address, "/nowhere", Bytes::new()));
    assert_eq!(nowhere.await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_has_thousands_of_streams_open_on_one_connection() {
    let address = serve_http2().await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        let mut sender = sender.clone();
        streams.spawn(async move {
            let sent = Bytes::from(format!("stream {number}").repeat(100));
            sender.ready().await.unwrap();
            let post = request(Method::POST, address, "/echo", sent.clone());
            assert_eq!(body(sender.send_request(post).await.unwrap()).await, sent);
        });
    }
    streams.join_all().await;
}
