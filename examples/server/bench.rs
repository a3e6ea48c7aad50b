//! `--bench`: the server under its own load, over loopback.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gmp::io::{AsyncReadExt, AsyncWriteExt};
use gmp::net::{TcpListener, TcpStream};
use gmp::sync::SetOnce;
use gmp::task::JoinSet;

use super::connection::Limits;
use super::histogram::Histogram;
use super::serve::serve;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n";

/// Runs `connections` clients for `time`, each with one request on its way at a time, and returns what
/// there is to print.
pub(crate) async fn bench(connections: usize, time: Duration) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let stop = Arc::new(SetOnce::new());
    let server = gmp::spawn(serve(listener, Limits::default(), stop.clone()));

    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for stream in streams {
        clients.spawn(client(stream, start + time));
    }
    let mut latencies = Histogram::default();
    while let Some(client) = clients.join_next().await {
        latencies.add_all(&client.expect("a client panicked")?);
    }
    let elapsed = start.elapsed();
    stop.set(()).expect("set once");
    server.await.expect("the server panicked");

    let requests = latencies.count();
    Ok(format!(
        "{connections} connections, {:.1} s: {requests} requests, {:.0} requests/s\n\
         latency: p50 {:.1?}, p90 {:.1?}, p99 {:.1?}, max {:.1?}\n",
        elapsed.as_secs_f64(),
        requests as f64 / elapsed.as_secs_f64(),
        latencies.quantile(0.5),
        latencies.quantile(0.9),
        latencies.quantile(0.99),
        latencies.max(),
    ))
}

async fn client(mut stream: TcpStream, end: Instant) -> io::Result<Histogram> {
    let mut latencies = Histogram::default();
    let mut input = Vec::with_capacity(4096);
    let mut before = Instant::now();
    while before < end {
        stream.write_all(REQUEST).await?;
        input.clear();
        while !is_whole(&input)? {
            if stream.read_buf(&mut input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let now = Instant::now();
        latencies.add(now - before);
        before = now;
    }
    Ok(latencies)
}

/// Whether `response` has all of its body.
fn is_whole(response: &[u8]) -> io::Result<bool> {
    let Some(end) = super::request::head_end(response, 0) else {
        return Ok(false);
    };
    let (head, body) = response.split_at(end);
    let head = String::from_utf8_lossy(head);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    match length {
        Some(length) if head.starts_with("HTTP/1.1 200 ") => Ok(body.len() >= length),
        _ => Err(io::Error::other(format!(
            "the server answered {}",
            head.lines().next().unwrap_or("")
        ))),
    }
}
