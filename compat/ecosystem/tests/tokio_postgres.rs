//! tokio-postgres and a PostgreSQL server.

use std::pin::pin;

use bytes::Bytes;
use ecosystem::port;
use futures::{SinkExt, StreamExt, TryStreamExt, future, stream};
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

fn config() -> Config {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(port("POSTGRES_PORT"))
        .user("postgres");
    config
}

async fn connect() -> Client {
    let (client, connection) = config().connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_pipelined() {
    let client = connect().await;
    let square = client.prepare("select $1::int8 * $1").await.unwrap();
    let queries = (0..500_i64).map(|number| {
        let (client, square) = (&client, &square);
        async move {
            client
                .query_one(square, &[&number])
                .await
                .unwrap()
                .get::<_, i64>(0)
        }
    });
    let squares = future::join_all(queries).await;
    assert!(
        squares
            .into_iter()
            .eq((0..500).map(|number| number * number))
    );
}

#[tokio::test]
async fn a_transaction_that_is_dropped_never_was() {
    let mut client = connect().await;
    client
        .batch_execute("create temp table t (n int primary key)")
        .await
        .unwrap();
    for keep in [true, false] {
        let transaction = client.transaction().await.unwrap();
        let number = i32::from(keep);
        transaction
            .execute("insert into t values ($1)", &[&number])
            .await
            .unwrap();
        if keep {
            transaction.commit().await.unwrap();
        }
    }
    let rows = client.query("select n from t", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1]);
    let twice = client
        .execute("insert into t values (1)", &[])
        .await
        .unwrap_err();
    assert_eq!(twice.code(), Some(&SqlState::UNIQUE_VIOLATION));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_stream_in_and_out() {
    let client = connect().await;
    client
        .batch_execute("create temp table t (n int)")
        .await
        .unwrap();
    let mut sink = pin!(client.copy_in("copy t from stdin").await.unwrap());
    let mut lines = stream::iter(0..50_000).map(|number| Ok(Bytes::from(format!("{number}\n"))));
    sink.send_all(&mut lines).await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), 50_000);

    let rows = client
        .query_raw("select n from t order by n", [0; 0])
        .await
        .unwrap();
    let mut rows = pin!(rows);
    let mut expected = 0..50_000;
    while let Some(row) = rows.try_next().await.unwrap() {
        assert_eq!(Some(row.get::<_, i32>(0)), expected.next());
    }
    assert_eq!(expected.next(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_arrive() {
    let (listener, mut connection): (_, Connection<Socket, _>) =
        config().connect(NoTls).await.unwrap();
    let (sender, mut received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(message) = future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message.unwrap() {
                sender.send(notification.payload().to_owned()).unwrap();
            }
        }
    });
    listener.batch_execute("listen news").await.unwrap();
    let client = connect().await;
    for number in 0..100 {
        client
            .batch_execute(&format!("notify news, '{number}'"))
            .await
            .unwrap();
        assert_eq!(received.recv().await.unwrap(), number.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_cancelled() {
    let client = connect().await;
    let pid: i32 = client
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let cancel = client.cancel_token();
    let sleeper = tokio::spawn(async move { client.batch_execute("select pg_sleep(600)").await });

    let observer = connect().await;
    let running = "select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'";
    while observer.query(running, &[&pid]).await.unwrap().is_empty() {}
    cancel.cancel_query(NoTls).await.unwrap();
    let error = sleeper.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
}
