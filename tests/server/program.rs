//! The program itself, as a process: options, signals, descriptors that run out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::options::HELP;

/// The example's binary. `cargo test` builds it beside the tests; `cargo test --test server` does not.
fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(find_binary).clone()
}

fn find_binary() -> PathBuf {
    let tests = std::env::current_exe().expect("the test's path");
    let profile = tests.parent().and_then(Path::parent);
    let profile = profile.expect("target/PROFILE/deps");
    let binary = profile.join("examples").join("server");
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/server");
    let sources = std::fs::read_dir(sources).expect("the example's sources");
    let newest = sources
        .filter_map(|file| modified(&file.ok()?.path()))
        .max();
    if modified(&binary) < newest {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--example", "server", "--manifest-path"]);
        build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        build
            .arg("--target-dir")
            .arg(profile.parent().expect("target"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(
            build.status().is_ok_and(|status| status.success()),
            "cannot build the example"
        );
    }
    binary
}

fn output(args: &[&str]) -> Output {
    Command::new(binary())
        .args(args)
        .output()
        .expect("the program starts")
}

/// A running server, killed at the end.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    addr: String,
}

impl Server {
    fn start() -> Server {
        Server::from(Command::new(binary()).args(["--addr", "127.0.0.1:0"]))
    }

    fn from(command: &mut Command) -> Server {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let addr = line.trim_end().strip_prefix("listening on http://");
        let addr = addr
            .unwrap_or_else(|| panic!("it said {line:?}"))
            .to_owned();
        Server {
            child,
            stdout,
            addr,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.addr).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(180)))
            .unwrap();
        stream
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call touches no memory of ours. The child has not been waited for, so the number is its own.
        let sent = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(sent, 0, "{}", std::io::Error::last_os_error());
    }

    /// What it prints until it ends, and its exit code.
    fn end(&mut self) -> (String, Option<i32>) {
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        (said, self.child.wait().unwrap().code())
    }

    fn stderr(&mut self) -> String {
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut said)
            .unwrap();
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(stream: &mut TcpStream, line: &str) {
    write!(stream, "{line} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
}

fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Reads one response to `GET /`.
fn hello(stream: &mut TcpStream) {
    let mut text = Vec::new();
    while !text.ends_with(b"Hello from gmp!\n") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).unwrap();
        assert_ne!(read, 0);
        text.extend_from_slice(&piece[..read]);
    }
}

#[test]
fn help_is_printed() {
    let output = output(&["--help"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), HELP);
}

#[test]
fn unknown_arguments_are_errors() {
    for args in [
        &["--port", "1"][..],
        &["x"],
        &["--addr"],
        &["--bench", "--seconds", "soon"],
    ] {
        let output = output(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.starts_with("server: ") && said.contains("--help") && said.lines().count() == 1,
            "{said}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_port_in_use_and_an_address_that_is_none_are_errors() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for addr in [
        taken.local_addr().unwrap().to_string(),
        "nowhere".into(),
        "127.0.0.1:99999".into(),
    ] {
        let output = output(&["--addr", &addr]);
        assert_eq!(output.status.code(), Some(1), "{addr}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.starts_with(&format!("server: cannot listen on {addr}: "))
                && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn bench_prints_figures() {
    let output = output(&["--bench", "--connections", "2", "--seconds", "1"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("requests/s") && said.contains("p99 "),
        "{said}"
    );
}

#[test]
fn signals_stop_it_when_its_work_is_done() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // Where the machine is busy, the request may be answered before the signal comes.
        let answer = |_| is_stopped(signal);
        let last = (0..10).map(answer).find(|last| last.contains("close"));
        assert!(last.is_some(), "nothing was in flight");
    }
}

/// Stops a server with a request in flight; returns the answer to that.
fn is_stopped(signal: libc::c_int) -> String {
    let mut server = Server::start();
    let mut idle = server.connect();
    send(&mut idle, "GET /");
    hello(&mut idle);
    let mut busy = server.connect();
    send(&mut busy, "GET /");
    send(&mut busy, "GET /sleep?ms=300");
    hello(&mut busy);
    server.signal(signal);
    assert_eq!(rest(&mut idle), "");
    let last = rest(&mut busy);
    assert!(last.ends_with("slept 300 ms\n"), "{last}");
    drop((idle, busy));
    let (said, code) = server.end();
    assert!(said.ends_with("stopped\n"), "{said}");
    assert_eq!(
        (code, server.stderr()),
        (Some(0), String::new()),
        "{signal}"
    );
    last
}

#[test]
fn a_second_signal_stops_it_at_once() {
    let mut server = Server::start();
    let mut busy = server.connect();
    send(&mut busy, "GET /");
    send(&mut busy, "GET /sleep?ms=60000");
    hello(&mut busy);
    server.signal(libc::SIGINT);
    let mut line = String::new();
    server.stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("stopping "), "{line}");
    server.signal(libc::SIGINT);
    // Not "stopped", as when the minute is over.
    assert_eq!(server.end(), (String::new(), Some(130)));
}

#[test]
fn it_says_once_that_descriptors_have_run_out_and_recovers() {
    // A shell sets the limit, as a user would.
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 40 && exec \"$0\" --addr 127.0.0.1:0"])
        .arg(binary());
    let mut server = Server::from(&mut command);
    // More than fit: the kernel accepts for the server until it does.
    let mut clients: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    for client in &mut clients {
        send(client, "GET /");
    }
    // One more than fits at the moment gets its turn when the first leave.
    for mut client in clients {
        hello(&mut client);
    }
    let mut late = server.connect();
    send(&mut late, "GET /");
    hello(&mut late);
    server.signal(libc::SIGINT);
    assert_eq!(server.end().1, Some(0));
    let said = server.stderr();
    assert!(
        said.contains("cannot accept connections for now") && said.lines().count() == 1,
        "{said}"
    );
}
