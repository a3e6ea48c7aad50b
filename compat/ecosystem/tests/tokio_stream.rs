//! tokio-stream: sockets, channels, timers and signals as streams.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, interval};
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::wrappers::{
    BroadcastStream, IntervalStream, LinesStream, ReceiverStream, TcpListenerStream, WatchStream,
};
use tokio_stream::{StreamExt, StreamMap};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_and_their_lines_are_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for client in 0..10 {
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            for line in 0..100 {
                stream
                    .write_all(format!("{client} {line}\n").as_bytes())
                    .await
                    .unwrap();
            }
        });
    }
    let mut clients = StreamMap::new();
    let mut connections = TcpListenerStream::new(listener).take(10);
    while let Some(stream) = connections.next().await {
        let lines = BufReader::new(stream.unwrap()).lines();
        clients.insert(clients.len(), LinesStream::new(lines));
    }
    let mut seen = [0; 10];
    while let Some((number, line)) = clients.next().await {
        let line = line.unwrap();
        assert_eq!(line.split_once(' ').unwrap().1, seen[number].to_string());
        seen[number] += 1;
    }
    assert_eq!(seen, [100; 10]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_channels_lose_nothing() {
    let mut receivers = [(); 2].map(|()| {
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            for number in 1..=1000 {
                sender.send(number).await.unwrap();
            }
        });
        Some(ReceiverStream::new(receiver))
    });
    let [left, right] = receivers
        .each_mut()
        .map(|receiver| receiver.take().unwrap());
    let sum = left.merge(right).fold(0, |sum, number| sum + number).await;
    assert_eq!(sum, 1000 * 1001);
}

#[tokio::test(start_paused = true)]
async fn an_interval_ticks_and_a_throttle_holds_back() {
    let start = Instant::now();
    let ticks = IntervalStream::new(interval(Duration::from_millis(10))).take(5);
    let at: Vec<_> = ticks.map(|tick| (tick - start).as_millis()).collect().await;
    assert_eq!(at, [0, 10, 20, 30, 40]);

    let start = Instant::now();
    let mut throttled = Box::pin(tokio_stream::iter(0..5).throttle(Duration::from_millis(7)));
    while throttled.next().await.is_some() {}
    assert_eq!(start.elapsed().as_millis(), 35);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_says_so_and_the_stream_goes_on() {
    let (sender, receiver) = mpsc::channel(1);
    let stream = ReceiverStream::new(receiver).timeout_repeating(interval(Duration::from_secs(1)));
    let mut stream = Box::pin(stream);
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.unwrap().is_err());
    sender.send(1).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(1)));
}

#[tokio::test(start_paused = true)]
async fn chunks_are_full_or_late() {
    let (sender, receiver) = mpsc::channel(10);
    let chunks = ReceiverStream::new(receiver).chunks_timeout(3, Duration::from_secs(1));
    let mut chunks = Box::pin(chunks);
    for number in 0..4 {
        sender.send(number).await.unwrap();
    }
    assert_eq!(chunks.next().await, Some(vec![0, 1, 2]));
    assert_eq!(chunks.next().await, Some(vec![3]));
    drop(sender);
    assert_eq!(chunks.next().await, None);
}

#[tokio::test]
async fn a_broadcast_tells_what_was_missed_and_a_watch_shows_the_last() {
    let (sender, receiver) = broadcast::channel(2);
    let mut stream = BroadcastStream::new(receiver);
    for number in 0..5 {
        sender.send(number).unwrap();
    }
    drop(sender);
    assert_eq!(
        stream.next().await,
        Some(Err(BroadcastStreamRecvError::Lagged(3)))
    );
    assert_eq!(stream.next().await, Some(Ok(3)));
    assert_eq!(stream.next().await, Some(Ok(4)));
    assert_eq!(stream.next().await, None);

    let (sender, receiver) = watch::channel(0);
    let mut stream = WatchStream::new(receiver);
    assert_eq!(stream.next().await, Some(0));
    for number in 1..5 {
        sender.send(number).unwrap();
    }
    assert_eq!(stream.next().await, Some(4));
    drop(sender);
    assert_eq!(stream.next().await, None);
}
