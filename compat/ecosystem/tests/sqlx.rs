//! sqlx: pools of connections to PostgreSQL, and SQLite on threads of its own.

use std::time::Duration;

use ecosystem::port;
use futures::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool};
use tempfile::TempDir;
use tokio::task::JoinSet;

async fn postgres(connections: u32) -> PgPool {
    let server = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(port("POSTGRES_PORT"))
        .username("postgres")
        .database("postgres");
    PgPoolOptions::new()
        .max_connections(connections)
        .connect_with(server)
        .await
        .unwrap()
}

async fn sqlite(directory: &TempDir) -> SqlitePool {
    let file = SqliteConnectOptions::new()
        .filename(directory.path().join("test.db"))
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(600))
        .create_if_missing(true);
    SqlitePool::connect_with(file).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_small_pool() {
    let pool = postgres(4).await;
    sqlx::raw_sql("drop table if exists account; create table account (balance int8 not null)")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("insert into account values (0)")
        .execute(&pool)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for number in 0..100_i64 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut transaction = pool.begin().await.unwrap();
            let update = sqlx::query("update account set balance = balance + $1").bind(number);
            update.execute(&mut *transaction).await.unwrap();
            if number % 2 == 0 {
                transaction.commit().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let balance: i64 = sqlx::query_scalar("select balance from account")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(balance, (0..100).step_by(2).sum::<i64>());
    pool.close().await;
}

#[tokio::test]
async fn an_empty_pool_makes_callers_wait_and_gives_up_in_time() {
    let pool = postgres(1).await;
    let held = pool.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move {
            sqlx::query_scalar::<_, i32>("select 1")
                .fetch_one(&pool)
                .await
                .unwrap()
        }
    });
    tokio::task::yield_now().await;
    assert!(pool.try_acquire().is_none());
    drop(held);
    assert_eq!(waiting.await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_has_many_writers_and_readers() {
    let directory = tempfile::tempdir().unwrap();
    let pool = sqlite(&directory).await;
    sqlx::query("create table t (n integer)")
        .execute(&pool)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for number in 0..100_i64 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let insert = sqlx::query("insert into t values (?)").bind(number);
            insert.execute(&pool).await.unwrap();
            let read = sqlx::query_scalar::<_, i64>("select n from t where n = ?").bind(number);
            assert_eq!(read.fetch_one(&pool).await.unwrap(), number);
        });
    }
    tasks.join_all().await;
    let mut rows = sqlx::query_scalar::<_, i64>("select n from t order by n").fetch(&pool);
    let mut expected = 0..100;
    while let Some(number) = rows.try_next().await.unwrap() {
        assert_eq!(Some(number), expected.next());
    }
    assert_eq!(expected.next(), None);
    drop(rows);
    pool.close().await;
}
