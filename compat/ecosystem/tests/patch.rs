//! The patch took: there is one tokio in the tree, it is gmp, and no manifest can tell from its features.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use serde_json::Value;

const WORKSPACE: &str = env!("CARGO_MANIFEST_DIR");

/// The platform that this was built for. What other platforms need has not been downloaded.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("the name of the platform").to_owned()
}

/// The packages named tokio in the tree of a manifest.
fn tokios(manifest: &str, options: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--manifest-path",
            manifest,
            "--filter-platform",
            &host(),
        ])
        .args(options)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .filter(|package| package["name"] == "tokio")
        .cloned()
        .collect()
}

/// Each feature with those of its own package that it switches on; `dep:` and what belongs to other packages
/// is left out.
fn features(package: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let features = package["features"].as_object().unwrap();
    let own = |name: &str| features.contains_key(name);
    let mut relations = BTreeMap::new();
    for (name, enables) in features {
        let enables = enables
            .as_array()
            .unwrap()
            .iter()
            .map(|enabled| enabled.as_str().unwrap());
        let enables = enables
            .filter(|enabled| !enabled.starts_with("dep:"))
            .map(|enabled| enabled.split('/').next().unwrap())
            .filter(|&enabled| own(enabled));
        relations.insert(name.as_str(), enables.collect());
    }
    relations
}

#[test]
fn there_is_one_tokio_and_it_is_the_path() {
    let tokios = tokios(&format!("{WORKSPACE}/Cargo.toml"), &["--offline"]);
    assert_eq!(tokios.len(), 1, "{tokios:#?}");
    assert_eq!(tokios[0]["version"], "1.999.0");
    assert_eq!(tokios[0]["source"], Value::Null, "from a registry");
}

#[test]
fn what_libraries_call_tokio_is_gmp() {
    assert!(type_name::<tokio::net::TcpStream>().starts_with("gmp"));
    assert!(type_name::<hyper_util::rt::TokioIo<tokio::net::TcpStream>>().contains("<gmp"));
}

/// gmp's own workspace has the registry's tokio among its benchmarks.
#[test]
fn features_are_named_and_related_as_those_of_tokio() {
    let ours = tokios(&format!("{WORKSPACE}/../tokio/Cargo.toml"), &[]);
    let theirs = tokios(&format!("{WORKSPACE}/../../Cargo.toml"), &[]);
    assert_eq!((ours.len(), theirs.len()), (1, 1));
    assert!(theirs[0]["source"].is_string(), "not from a registry");
    assert_eq!(features(&ours[0]), features(&theirs[0]));
}

/// What one cannot have on tokio: all workers are blocked, and a timer fires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_fires_while_every_worker_is_blocked() {
    let fired = Arc::new(Barrier::new(3));
    let (blocks, mut blocked) = tokio::sync::mpsc::channel(2);
    for _ in 0..2 {
        let (fired, blocks) = (fired.clone(), blocks.clone());
        tokio::spawn(async move {
            blocks.try_send(()).unwrap();
            fired.wait();
        });
    }
    for _ in 0..2 {
        blocked.recv().await.unwrap();
    }
    let timer = tokio::spawn(async { tokio::time::sleep(Duration::from_millis(1)).await });
    timer.await.unwrap();
    fired.wait();
}
