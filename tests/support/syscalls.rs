//! The system calls of a child process, counted as `strace -c -f` does.
//!
//! The child is the test binary again (see `child`), traced by the thread that asks. It says with [`mark`]
//! from when to when they are to be counted.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::{fs, io, mem, ptr, thread};

use super::child;

/// How often each system call was made.
#[derive(Debug, Default)]
pub(crate) struct Calls(BTreeMap<i64, u64>);

impl Calls {
    /// How often any of `numbers` was called.
    pub(crate) fn of(&self, numbers: &[i64]) -> u64 {
        let calls = numbers.iter().filter_map(|number| self.0.get(number));
        calls.sum()
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// What no runtime calls, with an argument that no process has: begins the counting, and ends it.
const MARK: (i64, u64) = (libc::SYS_getpgid, 0x0067_6d70);

/// In the child: from here, or until here.
pub(crate) fn mark() {
    // SAFETY: the call reads nothing of this process's memory, and fails, since there is no such process.
    unsafe { libc::syscall(MARK.0, MARK.1) };
}

/// In the child runs `body`; the parent fails unless what the child called between its marks `holds`, in one of
/// some children: where the machine is busy, an M that does not run for a while may make its runtime do more. What
/// the monitor calls does not count: it looks every few milliseconds, however little happens.
///
/// `test` is the full name of the test that calls. Says a word on standard error and nothing else where tracing is
/// forbidden, as in some containers.
#[track_caller]
pub(crate) fn expect_calls(test: &str, body: impl FnOnce(), holds: impl Fn(&Calls) -> bool) {
    if child::is_child() {
        child::run_body(body);
    }
    super::in_some_round(
        || traced_child(test),
        |calls| calls.as_ref().is_none_or(&holds),
    );
}

/// What a child calls between its marks; `None` where tracing is forbidden.
#[track_caller]
fn traced_child(test: &str) -> Option<Calls> {
    let mut command = child::command(test, &[]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let trace_me = || match ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(trace_me) };
    let mut child = match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("{test}: system calls cannot be counted here: {error}");
            return None;
        }
        child => child.expect("the test's own binary"),
    };
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut stderr = child.stderr.take().expect("a pipe");
    let output = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let errors = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let (calls, status) = follow(child.id() as i32);
    let (output, errors) = (output.join().unwrap(), errors.join().unwrap());
    assert!(output.contains("running 1 test"), "no test is named {test}");
    assert_eq!(status, 0, "{output}\n{errors}");
    Some(calls)
}

fn ptrace(request: libc::c_uint, pid: i32, address: usize, data: usize) -> i64 {
    // SAFETY: the requests used here write to this process's memory at `data` alone, which `syscall_info`
    // takes care of.
    unsafe { libc::ptrace(request, pid, address, data) }
}

/// Waits for a thread of the child to stop or end.
fn wait() -> Option<(i32, i32)> {
    let mut status = 0;
    // Only the children of this thread: other tests of this process have theirs.
    let flags = libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the pointer is to an integer of this function's.
    let pid = unsafe { libc::waitpid(-1, ptr::from_mut(&mut status), flags) };
    (pid > 0).then_some((pid, status))
}

/// Lets the child run to its end; returns what it called, and the status it ended with.
fn follow(child: i32) -> (Calls, i32) {
    let mut calls = Calls::default();
    let mut counting = false;
    let mut begun = false;
    while let Some((pid, status)) = wait() {
        if !libc::WIFSTOPPED(status) {
            if pid == child {
                return (calls, status);
            }
            continue;
        }
        let mut signal = 0;
        if !mem::replace(&mut begun, true) {
            let options =
                libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
            assert_eq!(ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options as usize), 0);
        } else if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
            if let Some(entry) = syscall_entry(pid) {
                if entry == MARK {
                    counting = !counting;
                } else if counting && !is_monitor(pid) {
                    *calls.0.entry(entry.0).or_default() += 1;
                }
            }
        } else if status >> 16 == 0 && libc::WSTOPSIG(status) != libc::SIGSTOP {
            // A signal of its own; a new thread begins with SIGSTOP.
            signal = libc::WSTOPSIG(status) as usize;
        }
        // It may have been killed meanwhile; the next wait tells.
        ptrace(libc::PTRACE_SYSCALL, pid, 0, signal);
    }
    panic!("the child was not there");
}

fn is_monitor(thread: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{thread}/comm"));
    name.is_ok_and(|name| name.trim_end() == "gmp-monitor")
}

/// The number and the first argument, if the thread is about to make a system call.
fn syscall_entry(pid: i32) -> Option<(i64, u64)> {
    let mut info = mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = mem::size_of_val(&info);
    let data = info.as_mut_ptr() as usize;
    let got = ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, data);
    if got <= 0 {
        return None;
    }
    // SAFETY: zeroes are a valid value of the type, and the kernel has written the part that counts.
    let info = unsafe { info.assume_init() };
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: `op` says that this is the part of the union that was written.
    let entry = unsafe { info.u.entry };
    Some((entry.nr as i64, entry.args[0]))
}
