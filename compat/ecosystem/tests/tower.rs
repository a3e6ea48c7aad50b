//! tower's layers around a service that asks a TCP server.

use std::future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Error, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::retry::Policy;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

/// What the server does with a line.
#[derive(Clone, Default)]
struct Server {
    requests: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

impl Server {
    /// Answers "echo …" with the rest, hangs up on every "flaky …" but the third, and never answers "silence".
    async fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.clone().answer(stream));
            }
        });
        address
    }

    async fn answer(self, stream: TcpStream) -> Result<()> {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_open.fetch_max(open, Ordering::Relaxed);
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = match line.split_once(' ').unwrap_or((line.trim_end(), "")) {
            ("echo", rest) => Some(rest),
            ("flaky", rest) => (number == 3).then_some(rest),
            _ => future::pending().await,
        };
        // Before the answer, which lets the client send the next.
        self.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(answer) = answer {
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    }
}

async fn ask(address: SocketAddr, line: String) -> Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    let mut answer = String::new();
    match stream.read_line(&mut answer).await? {
        0 => Err(Error::other("hung up")),
        _ => Ok(answer.trim_end().to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_and_a_buffer_serve_many_callers_few_at_a_time() {
    let server = Server::default();
    let address = server.clone().start().await;
    let service = ServiceBuilder::new()
        .buffer(16)
        .concurrency_limit(3)
        .service(service_fn(move |line| ask(address, line)));
    let mut callers = JoinSet::new();
    for number in 0..100 {
        let service = service.clone();
        callers.spawn(async move {
            let answer = service.oneshot(format!("echo {number}")).await.unwrap();
            assert_eq!(answer, number.to_string());
        });
    }
    callers.join_all().await;
    assert_eq!(server.requests.load(Ordering::Relaxed), 100);
    assert!(server.most_open.load(Ordering::Relaxed) <= 3);
}

#[tokio::test]
async fn a_timeout_gives_up_on_silence() {
    let address = Server::default().start().await;
    let mut service = ServiceBuilder::new()
        .timeout(Duration::from_millis(50))
        .service(service_fn(move |line| ask(address, line)));
    let silence = service.ready().await.unwrap().call("silence".to_owned());
    let error: BoxError = silence.await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_lets_so_many_through_a_second() {
    let mut service = ServiceBuilder::new()
        .rate_limit(2, Duration::from_secs(1))
        .service(service_fn(|()| {
            future::ready(Ok::<_, BoxError>(tokio::time::Instant::now()))
        }));
    let start = tokio::time::Instant::now();
    for number in 0..10 {
        let called = service.ready().await.unwrap().call(()).await.unwrap() - start;
        assert_eq!(called.as_secs(), number / 2);
    }
}

#[derive(Clone)]
struct Attempts(usize);

impl Policy<String, String, Error> for Attempts {
    type Future = future::Ready<()>;

    fn retry(&mut self, _: &mut String, result: &mut Result<String>) -> Option<Self::Future> {
        if result.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(future::ready(()))
    }

    fn clone_request(&mut self, request: &String) -> Option<String> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn a_retry_asks_until_it_is_answered_or_has_had_enough() {
    for (attempts, answer) in [(2, Some("at last")), (1, None)] {
        let server = Server::default();
        let address = server.clone().start().await;
        let service = ServiceBuilder::new()
            .retry(Attempts(attempts))
            .service(service_fn(move |line| ask(address, line)));
        let result = service.oneshot("flaky at last".to_owned()).await;
        assert_eq!(result.ok().as_deref(), answer);
        assert_eq!(server.requests.load(Ordering::Relaxed), attempts + 1);
    }
}
