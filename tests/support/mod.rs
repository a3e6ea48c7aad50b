//! What the tests of the scheduler share: a bound against hanging, a view of the process's threads, and
//! a child process for what concerns a process as a whole.

// Each test binary uses a part.
#![allow(dead_code)]

pub(crate) mod child;
#[cfg(target_os = "linux")]
pub(crate) mod syscalls;
pub(crate) mod threads;

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::task::Wake;
use std::thread;
use std::time::{Duration, Instant};

use gmp::runtime::{Builder, Runtime};

/// How long a test may take: far more than it needs on a loaded machine.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(180);

/// How often to try what the machine's other work may disturb.
pub(crate) const ROUNDS: usize = 10;

/// Runs rounds until what one gives `holds`, which is enough: where the promise is broken, it is so in each of them,
/// and what the machine's other work disturbs is some of them.
///
/// This is for what a clock on the wall shows, of which other work may spoil most. Counts and CPU times are for
/// [`in_rounds`].
#[track_caller]
pub(crate) fn in_some_round<T: Debug>(
    mut round: impl FnMut() -> T,
    holds: impl Fn(&T) -> bool,
) -> T {
    let mut seen = Vec::new();
    while seen.len() < ROUNDS {
        let given = round();
        if holds(&given) {
            return given;
        }
        seen.push(given);
    }
    panic!("in none of the rounds: {seen:?}")
}

/// Runs rounds until what `least` of them gave `holds`: a promise that is broken most of the time does hold in one.
#[track_caller]
pub(crate) fn in_rounds<T: Debug>(
    least: usize,
    mut round: impl FnMut() -> T,
    holds: impl Fn(&T) -> bool,
) {
    let (mut held, mut seen) = (0, Vec::new());
    while held < least {
        let left = ROUNDS - seen.len();
        assert!(
            held + left >= least,
            "in {held} of the rounds, and not in {least}: {seen:?}"
        );
        let given = round();
        held += usize::from(holds(&given));
        seen.push(given);
    }
}

/// Runs a test's body on a thread of its own, and fails when it does not come to an end.
#[track_caller]
pub(crate) fn bounded<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = channel();
    thread::Builder::new()
        .name("test-body".into())
        .spawn(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(body)));
        })
        .expect("a thread for the test");
    match result.recv_timeout(STUCK_AFTER) {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(RecvTimeoutError::Timeout) => {
            panic!("stuck after {STUCK_AFTER:?}\n{}", threads::describe())
        }
        Err(RecvTimeoutError::Disconnected) => unreachable!("the body sends before it ends"),
    }
}

/// Waits until `holds`, looking again and again.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > STUCK_AFTER {
            panic!("never: {what}\n{}", threads::describe());
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A builder of a runtime with `ps` Ps and everything enabled.
pub(crate) fn builder(ps: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(ps).enable_all();
    builder
}

/// A runtime with `ps` Ps.
pub(crate) fn runtime(ps: usize) -> Runtime {
    builder(ps).build().expect("a runtime")
}

/// A runtime of one P that is never taken away, so that one thread runs all tasks.
pub(crate) fn one_thread() -> Runtime {
    builder(1).retake_after(None).build().expect("a runtime")
}

/// A runtime that the thread in `block_on` drives.
pub(crate) fn current_thread() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// Ends a runtime whose Ps must never have been idle beside queued work.
#[track_caller]
pub(crate) fn finish(runtime: Runtime) {
    assert_eq!(runtime.metrics().rescue_count(), 0, "the monitor rescued");
    drop(runtime);
}

/// Runs `future` as a task and waits for it, since the future of `block_on` is none.
#[track_caller]
pub(crate) fn run_task<F>(runtime: &Runtime, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let handle = runtime.spawn(future);
    match runtime.block_on(handle) {
        Ok(output) => output,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => panic!("{error}"),
    }
}

/// A pipe whose ends block: `read(2)` and `write(2)` on it are what a runtime cannot see.
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    pub(crate) fn new() -> Pipe {
        let mut ends = [0; 2];
        // SAFETY: the pointer is to an array of two, as pipe2 wants.
        let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        // SAFETY: pipe2 has just made the descriptor, and nobody else knows it.
        let reader = unsafe { OwnedFd::from_raw_fd(ends[0]) };
        // SAFETY: as above.
        let writer = unsafe { OwnedFd::from_raw_fd(ends[1]) };
        Pipe { reader, writer }
    }

    /// Blocks the thread until a byte is there.
    pub(crate) fn read(&self) {
        let mut byte = 0u8;
        loop {
            // SAFETY: the buffer is one byte long, and so is what is read.
            let n = unsafe { libc::read(self.reader.as_raw_fd(), (&raw mut byte).cast(), 1) };
            match n {
                1 => return,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                n => panic!("read: {n}, {}", io::Error::last_os_error()),
            }
        }
    }

    /// Lets `count` readers go on.
    pub(crate) fn write(&self, count: usize) {
        for _ in 0..count {
            // SAFETY: the buffer is one byte long, and so is what is written.
            let n = unsafe { libc::write(self.writer.as_raw_fd(), [1u8].as_ptr().cast(), 1) };
            assert_eq!(n, 1, "{}", io::Error::last_os_error());
        }
    }
}

/// The CPU time that the calling thread has used.
pub(crate) fn cpu_time() -> Duration {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of this function's.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long something takes beside tasks that always have work. While the machine runs other processes instead of
/// this one, the watch stands.
#[derive(Clone, Copy)]
pub(crate) struct BusyWatch {
    start: Instant,
    cpu_start: Duration,
}

impl BusyWatch {
    pub(crate) fn start() -> BusyWatch {
        BusyWatch {
            start: Instant::now(),
            cpu_start: read_clock(libc::CLOCK_PROCESS_CPUTIME_ID),
        }
    }

    /// The time since the start, or the CPU time of the process if that is less.
    pub(crate) fn elapsed(&self) -> Duration {
        let cpu = read_clock(libc::CLOCK_PROCESS_CPUTIME_ID) - self.cpu_start;
        self.start.elapsed().min(cpu)
    }
}

/// Computes for `long` of this thread's CPU time, or until `stop`; returns what it has used.
pub(crate) fn compute(long: Duration, mut stop: impl FnMut() -> bool) -> Duration {
    let start = cpu_time();
    loop {
        let used = cpu_time() - start;
        if used >= long || stop() {
            return used;
        }
        for i in 0..200u32 {
            std::hint::black_box(i);
        }
    }
}

/// A waker that panics.
pub(crate) struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: std::sync::Arc<Self>) {
        panic!("a waker that panics");
    }
}

/// The text of a panic.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".into())
}

/// Runs `f`, which must panic; returns the text.
#[track_caller]
pub(crate) fn panics(f: impl FnOnce()) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(()) => panic!("no panic"),
        Err(panic) => message(&*panic),
    }
}
