//! One connection: reads requests, answers them in order, and ends cleanly.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gmp::io::{AsyncReadExt, AsyncWriteExt};
use gmp::net::TcpStream;
use gmp::sync::SetOnce;
use gmp::time::{Instant, sleep, timeout, timeout_at};

use super::request::{self, Chunked, Framing, Request};
use super::response::{Refusal, Response, Status};
use super::routes::{Action, route};

/// Responses to pipelined requests are collected up to here before they are written.
const OUTPUT_MAX: usize = 64 * 1024;
/// How long a client may take to notice that the server has closed the connection.
const LINGER: Duration = Duration::from_secs(1);

/// What a client may ask of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a request's head.
    pub(crate) head: usize,
    /// Bytes of a request's body.
    pub(crate) body: usize,
    /// How long a connection may stay open between requests.
    pub(crate) idle: Duration,
    /// How long a head, a body or the reading of a response may take.
    pub(crate) patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: 16 * 1024,
            body: 1024 * 1024,
            idle: Duration::from_secs(60),
            patience: Duration::from_secs(30),
        }
    }
}

/// A client's connection.
pub(crate) struct Connection {
    stream: TcpStream,
    limits: Limits,
    /// Set when the server is to stop.
    stop: Arc<SetOnce<()>>,
    /// Bytes that came and are not used yet.
    input: Vec<u8>,
    /// Responses that are not written yet.
    output: Vec<u8>,
}

/// Why a connection ends before its last response.
enum End {
    /// The client has left, or nobody wants anything any more.
    Gone,
    /// What the client sent makes no sense; where the next request starts, nobody knows.
    Refused(Refusal),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Gone
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> End {
        End::Refused(refusal)
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, limits: Limits, stop: Arc<SetOnce<()>>) -> Connection {
        Connection {
            stream,
            limits,
            stop,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Serves the client until it leaves, misbehaves, or the server stops.
    pub(crate) async fn run(mut self) {
        match self.requests().await {
            Ok(()) => {}
            Err(End::Gone) => return,
            Err(End::Refused(refusal)) => {
                Response::from(refusal).write(None, true, &mut self.output);
                if self.flush().await.is_err() {
                    return;
                }
            }
        }
        self.linger().await;
    }

    /// Answers requests up to the one that is the last, by the client's will or the server's.
    async fn requests(&mut self) -> Result<(), End> {
        loop {
            let request = self.head().await?;
            let body = self.body(&request).await?;
            let response = match route(&request, body) {
                Action::Reply(response) => response,
                Action::Sleep(time) => {
                    self.flush().await?;
                    sleep(time).await;
                    Response::ok(format!("slept {} ms\n", time.as_millis()).into_bytes())
                }
                Action::Block(time) => {
                    self.flush().await?;
                    // On purpose: a server should never do this, and gmp goes on when one does.
                    std::thread::sleep(time);
                    Response::ok(format!("blocked {} ms\n", time.as_millis()).into_bytes())
                }
            };
            // What has come before the stop is served, pipelined requests too.
            let stopping = self.stop.initialized() && self.input.is_empty();
            let last = stopping || !request.keep_alive;
            response.write(Some(&request), last, &mut self.output);
            if last {
                return self.flush().await;
            }
            if self.output.len() > OUTPUT_MAX {
                self.flush().await?;
            }
        }
    }

    /// Reads the head of the next request.
    async fn head(&mut self) -> Result<Request, End> {
        let mut deadline = None;
        let mut seen = 0;
        loop {
            if seen == 0 {
                self.skip_empty_lines();
            }
            if let Some(end) = request::head_end(&self.input, seen) {
                if end > self.limits.head {
                    return Err(request::head_too_large().into());
                }
                let request = Request::parse(&self.input[..end])?;
                self.input.drain(..end);
                return Ok(request);
            }
            request::check_beginning(&self.input, self.limits.head)?;
            seen = self.input.len();
            self.flush().await?;
            if seen == 0 {
                self.wait_for_request().await?;
            } else {
                let deadline = *deadline.get_or_insert(Instant::now() + self.limits.patience);
                self.read_until(deadline).await?;
            }
        }
    }

    /// Between requests: here the server may stop, and a client may stay away for longer.
    async fn wait_for_request(&mut self) -> Result<(), End> {
        gmp::select! {
            biased;
            read = timeout(self.limits.idle, read(&mut self.stream, &mut self.input)) => {
                read.unwrap_or(Err(End::Gone))
            }
            _ = self.stop.wait() => Err(End::Gone),
        }
    }

    /// Reads the body of `request`.
    async fn body(&mut self, request: &Request) -> Result<Vec<u8>, End> {
        if request.framing == Framing::Absent {
            return Ok(Vec::new());
        }
        if matches!(request.framing, Framing::Length(length) if length > self.limits.body as u64) {
            return Err(request::body_too_large().into());
        }
        if request.expects_continue && self.input.is_empty() {
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.flush().await?;
        let deadline = Instant::now() + self.limits.patience;
        if let Framing::Length(length) = request.framing {
            while (self.input.len() as u64) < length {
                self.read_until(deadline).await?;
            }
            return Ok(self.input.drain(..length as usize).collect());
        }
        let (mut chunked, mut body) = (Chunked::default(), Vec::new());
        loop {
            let (used, done) = chunked.decode(&self.input, &mut body, self.limits.body)?;
            self.input.drain(..used);
            if done {
                return Ok(body);
            }
            self.read_until(deadline).await?;
        }
    }

    /// Reads something of a request that must be complete by `deadline`.
    async fn read_until(&mut self, deadline: Instant) -> Result<(), End> {
        let read = timeout_at(deadline, read(&mut self.stream, &mut self.input)).await;
        read.unwrap_or(Err(Refusal(
            Status::RequestTimeout,
            "the request did not come to an end",
        )
        .into()))
    }

    /// Writes the collected responses.
    async fn flush(&mut self) -> Result<(), End> {
        if !self.output.is_empty() {
            let write = timeout(self.limits.patience, self.stream.write_all(&self.output)).await;
            write.unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
            self.output.clear();
        }
        Ok(())
    }

    /// Closes the connection so that the client can read the last response: a socket that is closed
    /// with bytes unread resets the connection, and the response may be lost.
    async fn linger(mut self) {
        if self.stream.shutdown().await.is_ok() {
            let drain = async {
                while read(&mut self.stream, &mut self.input).await.is_ok() {
                    self.input.clear();
                }
            };
            let _ = timeout(LINGER, drain).await;
        }
    }

    /// Clients of old send an empty line behind a body.
    fn skip_empty_lines(&mut self) {
        let empty = |&byte: &u8| byte != b'\r' && byte != b'\n';
        let end = self
            .input
            .iter()
            .position(empty)
            .unwrap_or(self.input.len());
        self.input.drain(..end);
    }
}

/// Appends what has come to `input`; the end of the stream is an error.
async fn read(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<(), End> {
    input.reserve(4096);
    match stream.read_buf(input).await? {
        0 => Err(End::Gone),
        _ => Ok(()),
    }
}
