//! The server in this process, over real sockets.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gmp::io::{AsyncReadExt, AsyncWriteExt};
use gmp::net::{TcpListener, TcpStream};
use gmp::sync::SetOnce;
use gmp::task::JoinHandle;
use gmp::time::timeout;

use super::bench::bench;
use super::connection::Limits;
use super::serve::serve;

/// Longer than anything here takes on the slowest machine.
const FOREVER: Duration = Duration::from_secs(180);

struct Server {
    addr: SocketAddr,
    stop: Arc<SetOnce<()>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Server {
        Server::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = Arc::new(SetOnce::new());
        let task = gmp::spawn(serve(listener, limits, stop.clone()));
        Server { addr, stop, task }
    }

    async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        Client {
            stream,
            input: Vec::new(),
        }
    }

    /// What the server answers to `input` until it closes the connection.
    async fn answer(&self, input: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.send(input).await;
        client.rest().await
    }

    async fn end(self) {
        self.stop.set(()).unwrap();
        within(self.task).await.unwrap();
    }
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    async fn send(&mut self, input: impl AsRef<[u8]>) {
        within(self.stream.write_all(input.as_ref())).await.unwrap();
    }

    /// Sends a request without a body for `line`, and returns the response.
    async fn ask(&mut self, line: &str) -> (String, String) {
        self.send(format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n"))
            .await;
        self.response().await
    }

    /// The head and the body of the next response.
    async fn response(&mut self) -> (String, String) {
        let head = loop {
            if let Some(end) = super::request::head_end(&self.input, 0) {
                break String::from_utf8(self.input.drain(..end).collect()).unwrap();
            }
            self.read().await;
        };
        let mut lines = head.lines();
        let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        while self.input.len() < length {
            self.read().await;
        }
        (
            head,
            String::from_utf8(self.input.drain(..length).collect()).unwrap(),
        )
    }

    async fn read(&mut self) {
        let read = within(self.stream.read_buf(&mut self.input)).await.unwrap();
        assert_ne!(
            read,
            0,
            "the server closed after {:?}",
            String::from_utf8_lossy(&self.input)
        );
    }

    /// Whether nothing has come that was not read.
    fn has_nothing(&self) -> bool {
        let nothing = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        self.input.is_empty() && self.stream.try_read(&mut [0]).is_err_and(nothing)
    }

    /// Everything up to the end of the connection.
    async fn rest(&mut self) -> String {
        within(self.stream.read_to_end(&mut self.input))
            .await
            .unwrap();
        String::from_utf8(std::mem::take(&mut self.input)).unwrap()
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(FOREVER, future).await.expect("stuck")
}

#[track_caller]
fn status(response: &str) -> u16 {
    let code = response
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    code.unwrap_or_else(|| panic!("no status in {response:?}"))
        .parse()
        .unwrap()
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_serves_request_after_request() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (head, body) = client.ask("GET /").await;
    assert_eq!((status(&head), body.as_str()), (200, "Hello from gmp!\n"));
    assert!(
        !head.contains("Connection:") && head.contains("\r\nDate: ") && head.contains(" GMT\r\n"),
        "{head}"
    );

    client
        .send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
        .await;
    assert_eq!(client.response().await.1, "hello");

    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n again\r\n0\r\n\r\n").await;
    assert_eq!(client.response().await.1, "hello again");

    assert_eq!(client.ask("GET /sleep?ms=1").await.1, "slept 1 ms\n");
    assert_eq!(client.ask("GET /block?ms=1").await.1, "blocked 1 ms\n");
    assert_eq!(status(&client.ask("GET /nowhere").await.0), 404);
    let (head, _) = client.ask("DELETE /").await;
    assert!(
        status(&head) == 405 && head.contains("Allow: GET, HEAD\r\n"),
        "{head}"
    );
    assert_eq!(status(&client.ask("POST /echo").await.0), 411);

    client
        .send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    let rest = client.rest().await;
    assert!(rest.contains("Connection: close\r\n"), "{rest}");
    server.end().await;
}

#[gmp::test]
async fn head_is_get_without_the_body() {
    let server = Server::start().await;
    let close = " / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let get = server.answer(format!("GET{close}")).await;
    let head = server.answer(format!("HEAD{close}")).await;
    let without_date = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with("Date"))
            .map(String::from)
            .collect()
    };
    assert_eq!(
        without_date(&get),
        without_date(&format!("{head}Hello from gmp!\n"))
    );
    server.end().await;
}

#[gmp::test]
async fn http_1_0_closes_unless_asked_to_keep_the_connection() {
    let server = Server::start().await;
    let answer = server.answer("GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.contains("Connection: close\r\n"), "{answer}");
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        .await;
    let (head, _) = client.response().await;
    assert!(head.contains("Connection: keep-alive\r\n"), "{head}");
    assert_eq!(client.ask("GET /").await.1, "Hello from gmp!\n");
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut requests = String::new();
    for number in 0..1000 {
        let body = number.to_string();
        requests += &format!(
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
    }
    let mut client = server.connect().await;
    client.send(requests).await;
    for number in 0..1000 {
        assert_eq!(client.response().await.1, number.to_string());
    }
    server.end().await;
}

#[gmp::test]
async fn a_pipelined_answer_does_not_wait_for_the_next_request() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /sleep?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    assert_eq!(client.response().await.1, "Hello from gmp!\n");
    // The minute is not waited for: the runtime drops the server's tasks.
}

#[gmp::test]
async fn requests_may_come_byte_by_byte_and_with_line_feeds_only() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let text = "\r\n\nPOST /echo HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\r\nhi\r\n0\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for byte in text.as_bytes() {
        client.send([*byte]).await;
        gmp::task::yield_now().await;
    }
    assert_eq!(client.response().await.1, "hi");
    assert_eq!(client.response().await.1, "Hello from gmp!\n");
    server.end().await;
}

#[gmp::test]
async fn a_client_that_has_sent_everything_is_answered() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("GET /sleep?ms=10 HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    client.stream.shutdown().await.unwrap();
    assert!(client.rest().await.ends_with("slept 10 ms\n"));
    server.end().await;
}

#[gmp::test]
async fn a_body_is_asked_for_when_the_client_waits() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        .await;
    assert_eq!(client.response().await.0, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hi").await;
    assert_eq!(client.response().await.1, "hi");

    // Not when the body would be refused.
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n").await;
    assert_eq!(status(&client.rest().await), 413);
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_get_a_status_and_the_end_of_the_connection() {
    let server = Server::start().await;
    let long = "x".repeat(20_000);
    let cases = [
        (400, "nonsense\r\n\r\n".to_string()),
        (400, "\x16\x03\x01\x02".to_string()),
        (400, "GET / HTTP/1.1\r\n\r\n".to_string()),
        (
            400,
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
                .to_string(),
        ),
        (
            413,
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n".to_string(),
        ),
        (
            413,
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n"
                .to_string(),
        ),
        (414, format!("GET /{long}")),
        (
            414,
            format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", &long[..9000]),
        ),
        (
            417,
            "GET / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n".to_string(),
        ),
        (
            431,
            format!("GET / HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"),
        ),
        (
            431,
            format!(
                "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
                "X: y\r\n".repeat(200)
            ),
        ),
        (501, "BREW / HTTP/1.1\r\nHost: x\r\n\r\n".to_string()),
        (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_string()),
    ];
    for (code, input) in cases {
        let answer = server.answer(&input).await;
        let start = &input[..input.len().min(70)];
        assert_eq!(status(&answer), code, "{start:?}: {answer}");
        assert!(answer.contains("Connection: close\r\n"), "{answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{start:?}: {answer}"
        );
    }
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_reaches_a_client_that_is_still_sending() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n")
        .await;
    client.send(vec![b'x'; 4_000_000]).await;
    assert_eq!(status(&client.rest().await), 413);
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_body_is_echoed() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let body: String = (0..1024 * 1024)
        .map(|at| char::from(b'a' + (at % 23) as u8))
        .collect();
    client
        .send(format!(
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert!(client.response().await.1 == body);
    server.end().await;
}

#[gmp::test]
async fn slow_clients_are_told_so_and_idle_ones_let_go() {
    let short = Duration::from_millis(20);
    let server = Server::with(Limits {
        patience: short,
        ..Limits::default()
    })
    .await;
    assert_eq!(status(&server.answer("GET / HT").await), 408);
    assert_eq!(
        status(
            &server
                .answer("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
                .await
        ),
        408
    );
    server.end().await;

    let server = Server::with(Limits {
        idle: short,
        ..Limits::default()
    })
    .await;
    assert_eq!(server.answer("").await, "");
    // Where the machine is busy, the request may come when the server has let go.
    let answer = loop {
        let mut client = server.connect().await;
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut answer = String::new();
        let asked = async {
            client.stream.write_all(request).await?;
            client.stream.read_to_string(&mut answer).await
        };
        if within(asked).await.is_ok() && !answer.is_empty() {
            break answer;
        }
    };
    assert!(answer.ends_with("Hello from gmp!\n"), "{answer}");
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_dropped() {
    let server = Server::with(Limits {
        patience: Duration::from_millis(100),
        ..Limits::default()
    })
    .await;
    let mut client = server.connect().await;
    let request = format!(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    // Until the buffers on both sides are full, and then the connection is gone.
    let error = loop {
        match within(client.stream.write_all(request.as_bytes())).await {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error.kind(),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ),
        "{error}"
    );
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_threads_do_not_stop_the_others() {
    let server = Server::start().await;
    let mut rounds = 0;
    while !ten_answers_come_before_blocked_ones(&server).await {
        // Where the machine is busy, ten answers may take two seconds.
        rounds += 1;
        assert!(rounds < 10, "they waited for the blocked threads");
    }
    server.end().await;
}

/// Whether two threads that block for two seconds were still at it when ten other requests were answered.
async fn ten_answers_come_before_blocked_ones(server: &Server) -> bool {
    // As many as there are Ps.
    let mut blocked = [server.connect().await, server.connect().await];
    for client in &mut blocked {
        client
            .send("GET /block?ms=2000 HTTP/1.1\r\nHost: x\r\n\r\n")
            .await;
    }
    let mut other = server.connect().await;
    for _ in 0..10 {
        assert_eq!(other.ask("GET /").await.1, "Hello from gmp!\n");
    }
    let before = blocked.iter().all(Client::has_nothing);
    for client in &mut blocked {
        assert_eq!(client.response().await.1, "blocked 2000 ms\n");
    }
    before
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_finishes_what_is_in_flight_and_lets_the_idle_go() {
    let mut rounds = 0;
    while !stops_in_time().await {
        rounds += 1;
        assert!(rounds < 10, "nothing was in flight");
    }
}

/// As its test says. Returns false if the machine was so busy that nothing was in flight any more.
async fn stops_in_time() -> bool {
    let server = Server::start().await;
    let mut idle = server.connect().await;
    idle.ask("GET /").await;
    let mut half = server.connect().await;
    half.ask("GET /").await;
    half.send("GET / HTTP/1.1\r\nHo").await;
    let mut busy = server.connect().await;
    // The answer to the first tells that the server is at the second, which sleeps; the third waits.
    busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /sleep?ms=300 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    busy.response().await;
    server.stop.set(()).unwrap();
    if !busy.has_nothing() {
        within(server.task).await.unwrap();
        return false;
    }
    assert_eq!(idle.rest().await, "");

    let (head, body) = busy.response().await;
    assert_eq!(body, "slept 300 ms\n");
    assert!(
        !head.contains("Connection: close"),
        "there is one more: {head}"
    );
    let last = busy.rest().await;
    assert!(
        last.contains("Connection: close\r\n") && last.ends_with("Hello from gmp!\n"),
        "{last}"
    );

    // Nobody new gets in, though a request that has begun still has its time.
    assert!(within(TcpStream::connect(server.addr)).await.is_err());
    assert!(!server.task.is_finished());
    half.send("st: x\r\n\r\n").await;
    assert!(half.rest().await.ends_with("Hello from gmp!\n"));
    drop((idle, busy, half));
    within(server.task).await.unwrap();
    true
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_in_the_middle_do_no_harm() {
    let server = Server::start().await;
    for input in [
        "",
        "GET",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /sleep?ms=1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
    ] {
        for _ in 0..20 {
            let mut client = server.connect().await;
            client.send(input).await;
        }
    }
    assert_eq!(
        server.connect().await.ask("GET /").await.1,
        "Hello from gmp!\n"
    );
    server.end().await;
}

#[gmp::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bench_counts_requests() {
    let figures = within(bench(4, Duration::from_millis(100))).await.unwrap();
    assert!(
        figures.starts_with("4 connections, ") && figures.contains(" requests/s\n"),
        "{figures}"
    );
    assert!(
        ["p50 ", "p90 ", "p99 ", "max "]
            .iter()
            .all(|name| figures.contains(name)),
        "{figures}"
    );
}
