//! The redis crate and a redis-server.

use ecosystem::port;
use futures::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncTypedCommands, Client, RedisError};
use tokio::task::JoinSet;

fn client() -> Client {
    Client::open(format!("redis://127.0.0.1:{}/", port("REDIS_PORT"))).unwrap()
}

async fn connect() -> MultiplexedConnection {
    client().get_multiplexed_async_connection().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_connection() {
    let mut connection = connect().await;
    connection.del("counter").await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..1000 {
        let mut connection = connection.clone();
        tasks.spawn(async move { connection.incr("counter", 1).await.unwrap() });
    }
    let mut seen = tasks.join_all().await;
    seen.sort();
    assert!(seen.into_iter().eq(1..=1000));
}

#[tokio::test]
async fn a_pipeline_answers_in_order() {
    let mut connection = connect().await;
    let mut pipeline = redis::pipe();
    pipeline.atomic().del("list").ignore();
    for number in 0..100 {
        pipeline.rpush("list", number);
    }
    let lengths: Vec<usize> = pipeline.query_async(&mut connection).await.unwrap();
    assert!(lengths.into_iter().eq(1..=100));
    let large = "x".repeat(1 << 20);
    connection.set("large", &large).await.unwrap();
    assert!(connection.get("large").await.unwrap().unwrap() == large);
}

#[tokio::test]
async fn an_error_of_the_server_is_one_here() {
    let mut connection = connect().await;
    connection.set("text", "no number").await.unwrap();
    let error: RedisError = connection.incr("text", 1).await.unwrap_err();
    assert!(error.to_string().contains("not an integer"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_list_gets_what_is_pushed() {
    let mut waiting = connect().await;
    let waiter = tokio::spawn(async move {
        let mut received = Vec::new();
        while received.len() < 100 {
            received.push(waiting.blpop("queue", 0.0).await.unwrap().unwrap()[1].clone());
        }
        received
    });
    let mut connection = connect().await;
    for number in 0..100 {
        connection.rpush("queue", number).await.unwrap();
    }
    let received = waiter.await.unwrap();
    assert!(
        received
            .into_iter()
            .eq((0..100).map(|number| number.to_string()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_published_reaches_who_subscribed() {
    let (mut sink, mut messages) = client().get_async_pubsub().await.unwrap().split();
    sink.subscribe("news").await.unwrap();
    let mut connection = connect().await;
    for number in 0..100 {
        assert_eq!(connection.publish("news", number).await.unwrap(), 1);
        let message = messages.next().await.unwrap();
        assert_eq!(message.get_payload::<u32>().unwrap(), number);
    }
}
