//! gmp under the name tokio by renaming it in the manifest. The macros find it.

use std::time::Duration;

use tokio::sync::mpsc;

tokio::task_local! {
    static REQUEST: u32;
}

async fn current_request() -> u32 {
    tokio::task::yield_now().await;
    REQUEST.get()
}

#[tokio::main]
async fn main() {
    let (sender, mut receiver) = mpsc::channel(1);
    for request in 0..10 {
        let sender = sender.clone();
        tokio::spawn(REQUEST.scope(request, async move {
            sender.send(current_request().await).await.unwrap();
        }));
    }
    drop(sender);
    let mut sum = 0;
    loop {
        tokio::select! {
            received = receiver.recv() => match received {
                Some(request) => sum += request,
                None => break,
            },
            () = tokio::time::sleep(Duration::from_secs(600)) => panic!("{sum} so far"),
        }
    }
    assert_eq!(sum, 45);
}

#[tokio::test]
async fn a_test_runs_on_gmp() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let (sent, received) = tokio::join!(async { sender.send(1) }, receiver);
    assert_eq!((sent, received), (Ok(()), Ok(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_ends_try_join() {
    let late = async {
        std::future::pending::<()>().await;
        Ok(())
    };
    let early = async { "failed".parse::<u32>() };
    assert!(tokio::try_join!(late, early).is_err());
}

#[test]
fn main_runs_on_gmp() {
    main();
}
