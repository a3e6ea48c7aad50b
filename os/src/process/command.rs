//! [`Command`]: the standard library's, with asynchronous ends.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child as StdChild, Command as StdCommand, ExitStatus, Output, Stdio};

use gmp_executor::Handle;

use super::child::{Child, KillOnDrop};
use super::orphan;
use super::pipes::{ChildStderr, ChildStdin, ChildStdout};
use super::reaper::Reaper;

/// A program to run, and how.
///
/// Everything up to running it is [`std::process::Command`]'s, into which it can be turned, and
/// from which it can be made.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// let output = gmp::process::Command::new("git").args(["rev-parse", "HEAD"]).output().await?;
/// if output.status.success() {
///     println!("at {}", String::from_utf8_lossy(&output.stdout));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Command {
    std: StdCommand,
    kill_on_drop: bool,
}

impl Command {
    /// A command for a program, found through `PATH` unless its name holds a slash.
    ///
    /// It inherits the environment, the working directory and the standard streams (but for
    /// [`output`](Command::output), which captures two of them), and gets no arguments.
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        StdCommand::new(program).into()
    }

    /// The standard library's command inside.
    pub fn as_std(&self) -> &StdCommand {
        &self.std
    }

    /// The standard library's command inside, to change it.
    pub fn as_std_mut(&mut self) -> &mut StdCommand {
        &mut self.std
    }

    /// The standard library's command; what [`kill_on_drop`](Command::kill_on_drop) set is lost.
    pub fn into_std(self) -> StdCommand {
        self.std
    }

    /// Adds one argument. It is not split at spaces: no shell is involved.
    pub fn arg<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Command {
        self.std.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.std.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env<K, V>(&mut self, key: K, val: V) -> &mut Command
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.env(key, val);
        self
    }

    /// Sets environment variables.
    pub fn envs<I, K, V>(&mut self, vars: I) -> &mut Command
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.envs(vars);
        self
    }

    /// Keeps an environment variable from the child, whether it was set here or is inherited.
    pub fn env_remove<K: AsRef<OsStr>>(&mut self, key: K) -> &mut Command {
        self.std.env_remove(key);
        self
    }

    /// Keeps the whole environment from the child, except what is set here afterwards.
    pub fn env_clear(&mut self) -> &mut Command {
        self.std.env_clear();
        self
    }

    /// Sets the child's working directory.
    pub fn current_dir<P: AsRef<Path>>(&mut self, dir: P) -> &mut Command {
        self.std.current_dir(dir);
        self
    }

    /// Sets where the child's standard input comes from.
    pub fn stdin<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stdin(cfg);
        self
    }

    /// Sets where the child's standard output goes.
    pub fn stdout<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stdout(cfg);
        self
    }

    /// Sets where the child's standard error goes.
    pub fn stderr<T: Into<Stdio>>(&mut self, cfg: T) -> &mut Command {
        self.std.stderr(cfg);
        self
    }

    /// Whether the child is killed when its [`Child`] is dropped before it has ended; off by default.
    ///
    /// This covers the futures of [`status`](Command::status), [`output`](Command::output) and
    /// [`Child::wait_with_output`], which own the `Child`. The child is sent `SIGKILL` in the drop,
    /// and reaped by the runtime soon after.
    pub fn kill_on_drop(&mut self, kill_on_drop: bool) -> &mut Command {
        self.kill_on_drop = kill_on_drop;
        self
    }

    /// What [`kill_on_drop`](Command::kill_on_drop) set.
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Runs the child as this user.
    pub fn uid(&mut self, id: u32) -> &mut Command {
        self.std.uid(id);
        self
    }

    /// Runs the child as this group.
    pub fn gid(&mut self, id: u32) -> &mut Command {
        self.std.gid(id);
        self
    }

    /// Sets the zeroth argument, by which the child knows itself, to something other than the program.
    pub fn arg0<S>(&mut self, arg: S) -> &mut Command
    where
        S: AsRef<OsStr>,
    {
        self.std.arg0(arg);
        self
    }

    /// Adds a function that the child calls between `fork` and `exec`.
    ///
    /// An error that it returns keeps the program from being run, and comes back from
    /// [`spawn`](Command::spawn). As [`CommandExt::pre_exec`].
    ///
    /// # Safety
    ///
    /// The function runs in a copy of this process in which only the calling thread exists. It may
    /// do only what a signal handler may: no allocation, no lock, nothing that another thread could
    /// have been in the middle of. See [`CommandExt::pre_exec`].
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller's contract is the same.
        unsafe { self.std.pre_exec(f) };
        self
    }

    /// Moves the child to a process group: 0 for a new one of its own.
    pub fn process_group(&mut self, pgroup: i32) -> &mut Command {
        self.std.process_group(pgroup);
        self
    }

    /// Starts the child.
    ///
    /// Blocks for the time of `fork` and `exec`, as in tokio.
    ///
    /// # Errors
    ///
    /// The program was not found or may not be run, there are no processes or descriptors left, or
    /// the runtime is shutting down. When the error comes after the child was started, the child
    /// is killed if [`kill_on_drop`](Command::kill_on_drop) is set, and reaped in any case.
    ///
    /// # Panics
    ///
    /// Outside a runtime, and in one that was built without I/O; the child is not started then.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        let handle = Handle::current();
        assert!(
            handle.netpoll().is_some(),
            "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime \
             builder to enable IO."
        );
        orphan::sweep();
        let child = self.std.spawn()?;
        adopt(child, self.kill_on_drop, &handle)
    }

    /// Starts the child and waits for it to end.
    ///
    /// It is started when this is called, not when the future is polled. Its piped streams, if any,
    /// are closed.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Command::spawn), when the future is polled. A child that fails is no error.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Command::spawn), when this is called.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the child goes on, or is killed with
    /// [`kill_on_drop`](Command::kill_on_drop).
    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async {
            let mut child = child?;
            // A child that waits for us to read or write would never end.
            drop(child.stdin.take());
            drop(child.stdout.take());
            drop(child.stderr.take());
            child.wait().await
        }
    }

    /// Starts the child, reads its standard output and error, and waits for it to end.
    ///
    /// Both are captured, whatever was set for them before; standard input is inherited unless it
    /// was set, and is closed if it is a pipe. The child is started when this is called, not when
    /// the future is polled.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Command::spawn), when the future is polled, and what reading said. A child that
    /// fails is no error.
    ///
    /// # Panics
    ///
    /// As [`spawn`](Command::spawn), when this is called.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the child goes on, or is killed with
    /// [`kill_on_drop`](Command::kill_on_drop); what was read is lost.
    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.std.stdout(Stdio::piped());
        self.std.stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<StdCommand> for Command {
    fn from(std: StdCommand) -> Command {
        Command {
            std,
            kill_on_drop: false,
        }
    }
}

/// Registers everything of a child that can be waited for.
fn adopt(mut child: StdChild, kill_on_drop: bool, handle: &Handle) -> io::Result<Child> {
    let stdin = child.stdin.take().map(ChildStdin::from_std);
    let stdout = child.stdout.take().map(ChildStdout::from_std);
    let stderr = child.stderr.take().map(ChildStderr::from_std);
    let mut running = KillOnDrop::new(Reaper::new(child), kill_on_drop);
    // From here on an error leaves a child that is killed if it should be, and reaped.
    running.watch(handle)?;
    Ok(Child::new(
        running,
        stdin.transpose()?,
        stdout.transpose()?,
        stderr.transpose()?,
    ))
}
