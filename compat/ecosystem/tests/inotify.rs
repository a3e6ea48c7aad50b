//! Changes of files: inotify, whose stream is an `AsyncFd`, and notify, which calls from a thread of its own.

use std::collections::BTreeSet;
use std::ffi::OsString;

use futures::StreamExt;
use inotify::{EventMask, Inotify, WatchMask};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::fs;
use tokio::sync::mpsc;

const FILES: usize = 200;

fn names() -> impl Iterator<Item = String> {
    (0..FILES).map(|number| format!("file {number:03}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inotify_streams_what_happens_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let inotify = Inotify::init().unwrap();
    inotify
        .watches()
        .add(directory.path(), WatchMask::CREATE | WatchMask::DELETE)
        .unwrap();
    let events = inotify.into_event_stream(vec![0; 4096]).unwrap();
    let path = directory.path().to_owned();
    let writer = tokio::spawn(async move {
        for name in names() {
            fs::write(path.join(&name), name.as_bytes()).await.unwrap();
            fs::remove_file(path.join(&name)).await.unwrap();
        }
    });
    let seen: Vec<_> = events.take(2 * FILES).map(Result::unwrap).collect().await;
    let expected = names()
        .flat_map(|name| [EventMask::CREATE, EventMask::DELETE].map(|mask| (mask, name.clone())));
    for (event, (mask, name)) in seen.into_iter().zip(expected) {
        assert_eq!((event.mask, event.name), (mask, Some(OsString::from(name))));
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn notify_reports_from_its_thread() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, mut events) = mpsc::channel(1);
    let mut watcher: RecommendedWatcher = notify::recommended_watcher(move |event| {
        let _ = sender.blocking_send(event);
    })
    .unwrap();
    watcher
        .watch(directory.path(), RecursiveMode::NonRecursive)
        .unwrap();
    let path = directory.path().to_owned();
    let writer = tokio::spawn(async move {
        for name in names() {
            fs::write(path.join(name), "").await.unwrap();
        }
    });
    let mut missing: BTreeSet<_> = names().map(|name| directory.path().join(name)).collect();
    while !missing.is_empty() {
        let event: notify::Result<Event> = events.recv().await.unwrap();
        let event = event.unwrap();
        if let EventKind::Create(_) = event.kind {
            assert!(missing.remove(&event.paths[0]), "{event:?}");
        }
    }
    writer.await.unwrap();
}
