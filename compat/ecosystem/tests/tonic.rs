//! gRPC: the four kinds of calls, a deadline, and a cancellation.

use std::future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status, Streaming};

mod service {
    #![allow(clippy::all)]
    tonic::include_proto!("ecosystem.Calculator");
}

use service::calculator_client::CalculatorClient;
use service::calculator_server::{self, CalculatorServer};

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(int64, tag = "1")]
    value: i64,
}

#[derive(Default)]
struct Calculator {
    /// Of an answer: the call was dropped, or its stream.
    dropped: Arc<Notify>,
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

type NumberStream = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;

#[tonic::async_trait]
impl calculator_server::Calculator for Calculator {
    async fn square(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let value = request.into_inner().value;
        let value = value
            .checked_mul(value)
            .ok_or(Status::out_of_range("too large"))?;
        Ok(Response::new(Number { value }))
    }

    type CountStream = NumberStream;

    async fn count(&self, request: Request<Number>) -> Result<Response<NumberStream>, Status> {
        let guard = NotifyOnDrop(self.dropped.clone());
        let numbers = (1..=request.into_inner().value).map(move |value| {
            let _ = &guard;
            Ok(Number { value })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(numbers))))
    }

    async fn sum(&self, request: Request<Streaming<Number>>) -> Result<Response<Number>, Status> {
        let mut numbers = request.into_inner();
        let mut value = 0;
        while let Some(number) = numbers.message().await? {
            value += number.value;
        }
        Ok(Response::new(Number { value }))
    }

    type RunningSumStream = NumberStream;

    async fn running_sum(
        &self,
        request: Request<Streaming<Number>>,
    ) -> Result<Response<NumberStream>, Status> {
        let mut value = 0;
        let sums = request.into_inner().map(move |number| {
            value += number?.value;
            Ok(Number { value })
        });
        Ok(Response::new(Box::pin(sums)))
    }

    async fn never(&self, _: Request<Number>) -> Result<Response<Number>, Status> {
        let _guard = NotifyOnDrop(self.dropped.clone());
        future::pending().await
    }
}

/// A client, and what is notified when the server drops a call or its stream.
async fn start() -> (CalculatorClient<Channel>, Arc<Notify>) {
    let calculator = Calculator::default();
    let dropped = calculator.dropped.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(CalculatorServer::new(calculator));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let client = CalculatorClient::connect(format!("http://{address}"))
        .await
        .unwrap();
    (client, dropped)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unary_calls_share_a_connection() {
    let (client, _) = start().await;
    let mut calls = JoinSet::new();
    for value in 0..500 {
        let mut client = client.clone();
        calls.spawn(async move {
            let square = client.square(Number { value }).await.unwrap();
            assert_eq!(square.into_inner().value, value * value);
        });
    }
    calls.join_all().await;
}

#[tokio::test]
async fn a_status_reaches_the_client() {
    let (mut client, _) = start().await;
    let status = client.square(Number { value: i64::MAX }).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::OutOfRange, "too large")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_streams() {
    let (mut client, _) = start().await;
    let mut numbers = client
        .count(Number { value: 10_000 })
        .await
        .unwrap()
        .into_inner();
    let mut expected = 1..=10_000;
    while let Some(number) = numbers.message().await.unwrap() {
        assert_eq!(Some(number.value), expected.next());
    }
    assert_eq!(expected.next(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_streams() {
    let (mut client, _) = start().await;
    let numbers = tokio_stream::iter((1..=10_000).map(|value| Number { value }));
    assert_eq!(
        client.sum(numbers).await.unwrap().into_inner().value,
        50_005_000
    );
}

/// In lock step: a number goes out when the sum of those before has come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_stream() {
    let (mut client, _) = start().await;
    let (sender, numbers) = mpsc::channel(1);
    let sums = client
        .running_sum(ReceiverStream::new(numbers))
        .await
        .unwrap();
    let mut sums = sums.into_inner();
    for value in 1..=1000 {
        sender.send(Number { value }).await.unwrap();
        let sum = sums.message().await.unwrap().unwrap();
        assert_eq!(sum.value, value * (value + 1) / 2);
    }
    drop(sender);
    assert_eq!(sums.message().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_a_call_on_both_sides() {
    let (mut client, dropped) = start().await;
    let mut timeout = Duration::from_millis(50);
    let on_time = loop {
        let mut request = Request::new(Number { value: 1 });
        request.set_timeout(timeout);
        let status = client.never(request).await.unwrap_err();
        assert!(
            matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded),
            "{status}"
        );
        // On a slow machine the deadline may come before the call, of which the server then never hears.
        let ended = dropped.notified();
        if tokio::time::timeout(10 * timeout, ended).await.is_ok() {
            break timeout;
        }
        timeout *= 2;
    };
    assert!(on_time < Duration::from_secs(30), "the server goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_ends_at_the_server() {
    let (mut client, dropped) = start().await;
    let mut numbers = client
        .count(Number { value: i64::MAX })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(numbers.message().await.unwrap(), Some(Number { value: 1 }));
    drop(numbers);
    dropped.notified().await;
    // The connection is as good as before.
    assert_eq!(
        client
            .square(Number { value: 3 })
            .await
            .unwrap()
            .into_inner()
            .value,
        9
    );
}
