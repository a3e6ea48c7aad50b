//! A test in a process of its own: the test binary again, with one test chosen, its environment set.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const MARK: &str = "GMP_TEST_CHILD";

/// What a child left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Fails unless the child succeeded; its output is part of the message.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Outcome {
        assert!(self.status.success(), "{self:#?}");
        self
    }
}

/// Whether this process is a child.
pub(crate) fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// In the child runs `body`, whose end is the process's; in the parent starts the child with
/// `environment`, waits for it and returns what it left. `test` is the full name of the test that calls.
#[track_caller]
pub(crate) fn in_child(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Outcome {
    if is_child() {
        run_body(body);
    }
    run(test, environment)
}

/// What this child has written to its standard error until now, so that it can wait for a report.
pub(crate) fn said() -> String {
    // Opened anew, it is read from its beginning, and its writer's place in it stays.
    let text = std::fs::read("/proc/self/fd/2").expect("a file, see `run`");
    String::from_utf8_lossy(&text).into_owned()
}

/// A file without a name, in memory.
fn nameless(name: &CStr) -> File {
    // SAFETY: the pointer is to a string that ends with a zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: memfd_create has just made the descriptor, and nobody else knows it.
    unsafe { File::from_raw_fd(fd) }
}

/// The child's part.
pub(crate) fn run_body(body: impl FnOnce()) -> ! {
    watch_over();
    body();
    std::process::exit(0)
}

/// A child that hangs says so and dies, so that the parent never waits for ever.
fn watch_over() {
    let (begins, begun) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("test-watch".into())
        .stack_size(128 * 1024)
        .spawn(move || {
            begins.send(()).expect("it is waited for");
            std::thread::sleep(super::STUCK_AFTER - Duration::from_secs(10));
            eprintln!("the child is stuck\n{}", super::threads::describe());
            std::process::abort();
        })
        .expect("a thread");
    // What it needs to begin it has, whatever the test refuses.
    begun.recv().expect("it begins");
}

/// The test binary again, to run `test` alone.
pub(crate) fn command(test: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's path"));
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .env_remove("GMPDEBUG")
        .env_remove("GMPMAXPROCS")
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

fn run(test: &str, environment: &[(&str, &str)]) -> Outcome {
    let said = nameless(c"stderr");
    let output = command(test, environment)
        .stderr(said.try_clone().expect("a descriptor"))
        .output()
        .expect("the test's own binary");
    let mut stderr = vec![0; said.metadata().expect("a file").len() as usize];
    said.read_exact_at(&mut stderr, 0).expect("what it said");
    let outcome = Outcome {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    };
    assert!(
        outcome.stdout.contains("running 1 test"),
        "no test has this name: {test}\n{outcome:#?}"
    );
    outcome
}
