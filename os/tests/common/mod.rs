//! What the tests share: runtimes, a watchdog, waiting for conditions, temporary directories, and
//! running a part of a test in a process of its own.
#![allow(dead_code)] // Each test file uses a part of it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use gmp_executor::{Config, Flavor, Runtime};

/// Far above what anything here needs.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn multi_thread() -> Runtime {
    build(Flavor::MultiThread, 2)
}

pub(crate) fn current_thread() -> Runtime {
    build(Flavor::CurrentThread, 1)
}

pub(crate) fn without_io() -> Runtime {
    Runtime::new(Config::new(Flavor::CurrentThread, 1)).unwrap()
}

fn build(flavor: Flavor, procs: usize) -> Runtime {
    let mut config = Config::new(flavor, procs);
    config.netpoll = Some(Arc::new(gmp_net::Netpoll::new(procs).unwrap()));
    Runtime::new(config).unwrap()
}

/// Runs a test on a thread of its own and ends the process when it hangs.
pub(crate) fn watched<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, over) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = test();
        let _ = done.send(());
        result
    });
    if over.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!("a test hangs");
        std::process::abort();
    }
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs an asynchronous test on a multi-threaded runtime, then on a current-thread one.
pub(crate) fn run<F: Future<Output = ()>>(test: impl Fn() -> F + Send + 'static) {
    watched(move || {
        multi_thread().block_on(test());
        current_thread().block_on(test());
    });
}

/// Waits for a condition, and lets the runtime run meanwhile.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "the condition never came true");
        std::thread::sleep(Duration::from_micros(200));
        gmp_executor::task::yield_now().await;
    }
}

/// Waits for a condition on a thread that is in no runtime.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "the condition never came true");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Polls a future once with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Whether the process exists and has not been reaped.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The letter of a process's state, such as `S` or `Z`; `None` when it is gone.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name between the parentheses may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// How many descriptors this process has open.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A directory that is removed with its contents at the end.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> TempDir {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "gmp-os-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in the directory with these contents.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HELPER: &str = "GMP_OS_TEST_HELPER";
const BEGIN: &str = "\n--- the helper begins ---\n";

/// A command that runs this test program's test `helper` as a process of its own, to be done there
/// what `role` names.
pub(crate) fn helper(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "helper", "--nocapture", "--test-threads=1"])
        .env(HELPER, role)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// What this process is to do if it is a helper; what it prints from now on is its own.
pub(crate) fn role() -> Option<String> {
    let role = std::env::var(HELPER).ok()?;
    print!("{BEGIN}");
    std::io::Write::flush(&mut std::io::stdout()).unwrap();
    Some(role)
}

/// The part of a helper's output that is its own.
pub(crate) fn own_output(stdout: &[u8]) -> &[u8] {
    let begin = BEGIN.as_bytes();
    let at = stdout
        .windows(begin.len())
        .position(|window| window == begin)
        .expect("the helper has begun");
    &stdout[at + begin.len()..]
}

/// Reads until the output that is the helper's own begins.
pub(crate) fn await_begin(stdout: &mut impl std::io::Read) {
    let mut seen = Vec::new();
    while !seen.ends_with(BEGIN.as_bytes()) {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
}
