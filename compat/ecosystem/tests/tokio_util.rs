//! tokio-util: codecs over TCP, cancellation, trackers, delay queues, and blocking I/O on a socket.

use std::io::{BufRead, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::codec::{Framed, LengthDelimitedCodec, LinesCodec, LinesCodecError};
use tokio_util::io::SyncIoBridge;
use tokio_util::sync::{CancellationToken, PollSemaphore};
use tokio_util::task::TaskTracker;
use tokio_util::time::DelayQueue;

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = TcpStream::connect(listener.local_addr().unwrap());
    let (client, (server, _)) = tokio::try_join!(connect, listener.accept()).unwrap();
    (client, server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_keep_their_bounds() {
    let (client, server) = connected().await;
    let sender = tokio::spawn(async move {
        let mut frames = Framed::new(client, LengthDelimitedCodec::new());
        for size in 0..2000 {
            frames
                .feed(Bytes::from(vec![size as u8; size]))
                .await
                .unwrap();
        }
        SinkExt::<Bytes>::close(&mut frames).await.unwrap();
    });
    let mut frames = Framed::new(server, LengthDelimitedCodec::new());
    for size in 0..2000 {
        let frame = frames.next().await.unwrap().unwrap();
        assert!(frame.len() == size && frame.iter().all(|&byte| byte == size as u8));
    }
    assert!(frames.next().await.is_none());
    sender.await.unwrap();
}

#[tokio::test]
async fn a_line_that_is_too_long_is_an_error_and_the_next_is_read() {
    let (client, server) = connected().await;
    let mut sender = Framed::new(client, LinesCodec::new());
    for line in ["short", &"long ".repeat(100), "short again"] {
        sender.send(line).await.unwrap();
    }
    drop(sender);
    let mut lines = Framed::new(server, LinesCodec::new_with_max_length(20));
    assert_eq!(lines.next().await.unwrap().unwrap(), "short");
    let error = lines.next().await.unwrap().unwrap_err();
    assert!(matches!(error, LinesCodecError::MaxLineLengthExceeded));
    // The stream says that it pauses after an error, and goes on.
    assert!(lines.next().await.is_none());
    assert_eq!(lines.next().await.unwrap().unwrap(), "short again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_cancels_its_children_and_the_tracker_sees_them_end() {
    const TASKS: usize = 1000;
    let token = CancellationToken::new();
    let tracker = TaskTracker::new();
    let started = Arc::new(Barrier::new(TASKS + 1));
    let cancelled = Arc::new(AtomicUsize::new(0));
    for _ in 0..TASKS {
        let (token, started) = (token.child_token(), started.clone());
        let cancelled = cancelled.clone();
        tracker.spawn(async move {
            started.wait().await;
            token.cancelled().await;
            cancelled.fetch_add(1, Ordering::Relaxed);
        });
    }
    started.wait().await;
    assert_eq!(
        (tracker.len(), cancelled.load(Ordering::Relaxed)),
        (TASKS, 0)
    );
    let mut wait = pin!(tracker.wait());
    assert!(futures::poll!(&mut wait).is_pending());
    token.cancel();
    tracker.close();
    wait.await;
    assert_eq!(cancelled.load(Ordering::Relaxed), TASKS);
}

#[tokio::test(start_paused = true)]
async fn a_delay_queue_gives_out_in_order_of_deadlines() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    let late = queue.insert("late", Duration::from_secs(3600));
    let removed = queue.insert("removed", Duration::from_millis(20));
    queue.insert("early", Duration::from_millis(30));
    queue.insert("first", Duration::from_millis(10));
    queue.remove(&removed);
    queue.reset(&late, Duration::from_secs(60));
    for (name, after) in [("first", 10), ("early", 30), ("late", 60_000)] {
        let expired = queue.next().await.unwrap();
        assert_eq!(
            (*expired.get_ref(), start.elapsed().as_millis()),
            (name, after)
        );
    }
    assert!(queue.next().await.is_none());
}

#[tokio::test]
async fn blocking_code_reads_and_writes_a_socket() {
    let (client, server) = connected().await;
    let blocking = spawn_blocking(move || {
        let mut stream = std::io::BufReader::new(SyncIoBridge::new(server));
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 0 {
            stream
                .get_mut()
                .write_all(line.to_uppercase().as_bytes())
                .unwrap();
            line.clear();
        }
    });
    let mut lines = Framed::new(client, LinesCodec::new());
    for number in 0..100 {
        lines.send(format!("line {number}")).await.unwrap();
        assert_eq!(
            lines.next().await.unwrap().unwrap(),
            format!("LINE {number}")
        );
    }
    drop(lines);
    blocking.await.unwrap();
}

#[tokio::test]
async fn a_semaphore_can_be_polled() {
    let semaphore = Arc::new(Semaphore::new(1));
    let mut permits = PollSemaphore::new(semaphore.clone());
    let permit = permits.next().await.unwrap();
    assert!(futures::poll!(permits.next()).is_pending());
    drop(permit);
    assert!(permits.next().await.is_some());
    semaphore.close();
    assert!(permits.next().await.is_none());
}
