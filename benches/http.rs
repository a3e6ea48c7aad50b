//! A hello server under `wrk`, beside the same on tokio and on smol: requests a second, p99, CPU and context switches
//! a request. Each server is a process of its own; they are loaded in turn.
//!
//! `cargo bench --bench http`; `ROUNDS=9` for more rounds, `CONNECTIONS=256`. Needs `wrk` in the path.

#![expect(unreachable_pub, reason = "a benchmark is a program of its own")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use common::WORKERS;

const SERVER: &str = "GMP_BENCH_SERVER";
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";
const SECONDS: u32 = 3;

/// Answers every request head on a stream with the same words; the I/O traits are those of where it stands.
macro_rules! answer_all {
    ($stream:ident) => {
        let mut buf = vec![0; 4096];
        let mut used = 0;
        loop {
            match $stream.read(&mut buf[used..]).await {
                Ok(0) | Err(_) => break,
                Ok(n) => used += n,
            }
            if !buf[..used].ends_with(b"\r\n\r\n") {
                continue;
            }
            used = 0;
            if $stream.write_all(ANSWER).await.is_err() {
                break;
            }
        }
    };
}

macro_rules! tokio_like {
    ($name:ident, $rt:ident) => {
        /// Answers every request head with the same words. Ends with its standard input.
        fn $name() {
            use $rt::io::{AsyncReadExt, AsyncWriteExt};
            let runtime = $rt::runtime::Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .enable_all()
                .build()
                .expect("a runtime");
            let serve = async {
                let listener = $rt::net::TcpListener::bind("127.0.0.1:0")
                    .await
                    .expect("bind");
                println!("{}", listener.local_addr().expect("an address"));
                loop {
                    let (mut stream, _) = listener.accept().await.expect("accept");
                    stream.set_nodelay(true).expect("nodelay");
                    $rt::spawn(async move {
                        answer_all!(stream);
                    });
                }
            };
            std::thread::spawn(move || runtime.block_on(async { $rt::spawn(serve).await }));
            let _ = std::io::stdin().read(&mut [0]);
        }
    };
}

tokio_like!(serve_on_gmp, gmp);
tokio_like!(serve_on_tokio, tokio);

/// The same with smol's crates.
fn serve_on_smol() {
    use smol::io::{AsyncReadExt, AsyncWriteExt};
    common::with_smol(|executor| {
        let spawner = executor.clone();
        let serve = async move {
            let listener = smol::net::TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.expect("bind");
            println!("{}", listener.local_addr().expect("an address"));
            loop {
                let (mut stream, _) = listener.accept().await.expect("accept");
                stream.set_nodelay(true).expect("nodelay");
                let answer = async move {
                    answer_all!(stream);
                };
                spawner.spawn(answer).detach();
            }
        };
        executor.spawn(serve).detach();
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
}

/// What one round says of one server.
#[derive(Clone, Copy)]
struct Figures {
    requests_per_second: f64,
    p99_us: f64,
    cpu_us: f64,
    switches: f64,
}

/// CPU time in microseconds and context switches of a process and all its threads.
fn usage(pid: u32) -> (f64, f64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a proc file system");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    // SAFETY: the call has no preconditions.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let ticks: f64 = [11, 12]
        .map(|i: usize| fields[i].parse::<f64>().expect("ticks"))
        .iter()
        .sum();
    let mut switches = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("threads")
        .flatten()
    {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        for line in status.lines().filter(|line| line.contains("ctxt_switches")) {
            let count = line
                .split_whitespace()
                .nth(1)
                .and_then(|count| count.parse::<f64>().ok());
            switches += count.unwrap_or(0.0);
        }
    }
    (ticks / ticks_per_second * 1e6, switches)
}

/// `12.34us`, `1.23ms` or `1.2s` in microseconds.
fn micros(text: &str) -> f64 {
    let number = text.trim_end_matches(char::is_alphabetic);
    let scale = match &text[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        _ => 1e6,
    };
    number.parse::<f64>().expect("a latency") * scale
}

fn load(server: &mut Child, addr: &str) -> Figures {
    let connections = std::env::var("CONNECTIONS").unwrap_or_else(|_| "64".into());
    let before = usage(server.id());
    let output = Command::new("wrk")
        .args([
            "-t1",
            "--latency",
            &format!("-c{connections}"),
            &format!("-d{SECONDS}s"),
        ])
        .arg(format!("http://{addr}/"))
        .output()
        .expect("wrk in the path");
    let after = usage(server.id());
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |label: &str, index: usize| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in what wrk printed:\n{text}"));
        line.split_whitespace()
            .nth(index)
            .expect("a field")
            .to_owned()
    };
    let total = text
        .lines()
        .find(|line| line.contains(" requests in "))
        .expect("a total");
    let total: f64 = total
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    Figures {
        requests_per_second: field("Requests/sec:", 1).parse().expect("a rate"),
        p99_us: micros(&field("99%", 1)),
        cpu_us: (after.0 - before.0) / total,
        switches: (after.1 - before.1) / total,
    }
}

fn start(peer: &str) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .env(SERVER, peer)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process");
    let mut addr = String::new();
    let stdout = child.stdout.as_mut().expect("piped");
    BufReader::new(stdout)
        .read_line(&mut addr)
        .expect("the server's address");
    (child, addr.trim().to_owned())
}

fn median(rounds: &[Figures], of: fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    common::median(&mut values)
}

fn main() {
    match std::env::var(SERVER).as_deref() {
        Ok("gmp") => return serve_on_gmp(),
        Ok("tokio") => return serve_on_tokio(),
        Ok("smol") => return serve_on_smol(),
        _ => {}
    }
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    if Command::new("wrk").arg("-v").output().is_err() {
        println!("wrk is not in the path: nothing to load the servers with");
        return;
    }
    let mut servers = [
        ("gmp", start("gmp"), vec![]),
        ("tokio", start("tokio"), vec![]),
        ("smol", start("smol"), vec![]),
    ];
    for _ in 0..common::rounds() {
        for (_, (child, addr), rounds) in &mut servers {
            rounds.push(load(child, addr));
        }
    }
    println!(
        "medians of {} interleaved rounds of {SECONDS} s",
        common::rounds()
    );
    for (name, (child, _), rounds) in &mut servers {
        println!(
            "{name:<6} {:>8.0} requests/s   p99 {:>6.0} us   CPU {:>5.2} us a request   {:.3} context switches a request",
            median(rounds, |figures| figures.requests_per_second),
            median(rounds, |figures| figures.p99_us),
            median(rounds, |figures| figures.cpu_us),
            median(rounds, |figures| figures.switches),
        );
        drop(child.stdin.take());
        let _ = child.wait();
    }
}
