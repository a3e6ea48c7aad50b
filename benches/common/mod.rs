//! What the benchmarks share: rounds that interleave the peers, and a table of medians and ratios.
//!
//! Every workload is written once, as a macro over the runtime's name; tokio's API makes that possible.
//! One *sample* builds a runtime, warms it up, runs the work and gives the time per operation. Samples of
//! the peers alternate, so that a drift of the machine hits all of them; medians are compared.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_executor::Executor;

/// A peer's sample: nanoseconds per operation, or any other figure of which less is better.
pub type Sample = Box<dyn Fn() -> f64>;

/// One line of the table.
pub struct Workload {
    pub name: &'static str,
    pub unit: &'static str,
    /// gmp first, then the peers that can do it.
    pub peers: Vec<(&'static str, Sample)>,
}

/// Whether the command line asks for this workload: `cargo bench --bench NAME -- PATTERN…`.
fn wanted(name: &str) -> bool {
    let patterns: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    patterns.is_empty()
        || patterns
            .iter()
            .any(|pattern| name.contains(pattern.as_str()))
}

/// How many rounds to run: `ROUNDS`, or 7.
pub fn rounds() -> usize {
    let rounds = std::env::var("ROUNDS").ok();
    rounds.and_then(|text| text.parse().ok()).unwrap_or(7)
}

pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Runs the workloads and prints a line for each: the medians, and gmp's speed as a multiple of each peer's.
pub fn run(workloads: Vec<Workload>) {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let rounds = rounds();
    println!(
        "medians of {rounds} interleaved rounds; less is better; (x) = how many times faster gmp is"
    );
    for workload in workloads.iter().filter(|workload| wanted(workload.name)) {
        let mut samples = vec![Vec::new(); workload.peers.len()];
        for _ in 0..rounds {
            for ((_, sample), samples) in workload.peers.iter().zip(&mut samples) {
                samples.push(sample());
            }
        }
        let medians: Vec<f64> = samples.iter_mut().map(|samples| median(samples)).collect();
        print!("{:<34} {:>4}", workload.name, workload.unit);
        for ((peer, _), figure) in workload.peers.iter().zip(&medians) {
            print!("  {peer} {figure:>9.1}");
            if figure != &medians[0] {
                print!(" ({:.2}x)", figure / medians[0]);
            }
        }
        println!();
    }
}

/// The program of `benches/go`, if there is a Go toolchain: `go` in the path, or what `GO` names.
fn go_program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let go = std::env::var("GO").unwrap_or_else(|_| "go".into());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-peer");
        let built = Command::new(go)
            .arg("build")
            .arg("-o")
            .arg(&program)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/go/main.go"))
            .status()
            .is_ok_and(|status| status.success());
        built.then_some(program)
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// The number that a program prints.
pub fn number_from(command: &mut Command) -> f64 {
    let output = command.output().expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("the program prints a number")
}

impl Workload {
    /// With the workload of `benches/go/main.go` that has this name as a peer, if Go is there. Each sample is a
    /// process of its own.
    pub fn beside_go(mut self, workload: &'static str) -> Workload {
        let Some(program) = go_program() else {
            return self;
        };
        let sample = move || number_from(Command::new(program).arg(workload));
        self.peers.push(("Go", Box::new(sample)));
        self
    }
}

/// The time of `f` in nanoseconds, divided by `operations`.
pub fn per_operation(operations: u64, f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    nanos(start.elapsed()) / operations as f64
}

pub fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// Workers of every multi-thread runtime: as many as the reference machine has cores.
pub const WORKERS: usize = 2;

/// Runs `work` with an executor of smol's that has as many threads.
pub fn with_smol(work: impl FnOnce(&Arc<Executor<'static>>)) {
    let executor = Arc::new(Executor::new());
    let (stop, stopped) = smol::channel::bounded::<()>(1);
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (executor, stopped) = (executor.clone(), stopped.clone());
            std::thread::spawn(move || {
                let _ = smol::block_on(executor.run(stopped.recv()));
            })
        })
        .collect();
    work(&executor);
    drop(stop);
    for worker in workers {
        worker.join().expect("a worker");
    }
}
