//! [`Child`]: a child process, running or ended.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Output};
use std::task::{Poll, ready};

use gmp_executor::{Handle, coop};
use gmp_io::{AsyncRead, AsyncReadExt};

use super::pipes::{ChildStderr, ChildStdin, ChildStdout};
use super::reaper::Reaper;

/// A child process.
///
/// Returned by [`Command::spawn`](super::Command::spawn). Dropping it does not end the child, unless
/// [`kill_on_drop`](super::Command::kill_on_drop) was set; see [the module](super#dropping-a-child).
#[derive(Debug)]
pub struct Child {
    state: State,

    /// Writes to the child's standard input, if that is piped. [`wait`](Child::wait) closes it;
    /// `take` it to decide for yourself.
    pub stdin: Option<ChildStdin>,

    /// Reads the child's standard output, if that is piped.
    pub stdout: Option<ChildStdout>,

    /// Reads the child's standard error, if that is piped.
    pub stderr: Option<ChildStderr>,
}

#[derive(Debug)]
enum State {
    Running(KillOnDrop),
    Ended(ExitStatus),
}

/// Kills the child when it is dropped, if told to; the reaper inside does the rest.
#[derive(Debug)]
pub(super) struct KillOnDrop {
    reaper: Reaper,
    kill: bool,
}

impl KillOnDrop {
    pub(super) fn new(reaper: Reaper, kill: bool) -> KillOnDrop {
        KillOnDrop { reaper, kill }
    }

    /// See [`Reaper::watch`].
    pub(super) fn watch(&mut self, handle: &Handle) -> io::Result<()> {
        self.reaper.watch(handle)
    }

    fn kill(&mut self) -> io::Result<()> {
        self.reaper.kill()?;
        self.kill = false;
        Ok(())
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if self.kill {
            // It may just have ended; there is nobody to tell of anything else.
            let _ = self.kill();
        }
    }
}

impl Child {
    pub(super) fn new(
        running: KillOnDrop,
        stdin: Option<ChildStdin>,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
    ) -> Child {
        Child {
            state: State::Running(running),
            stdin,
            stdout,
            stderr,
        }
    }

    /// The process's number, or `None` once it has been reaped: the number may be somebody else's
    /// then.
    pub fn id(&self) -> Option<u32> {
        match &self.state {
            State::Running(running) => Some(running.reaper.id()),
            State::Ended(_) => None,
        }
    }

    /// Kills the child with `SIGKILL` and does not wait for it.
    ///
    /// # Errors
    ///
    /// What the operating system said. A child that has ended is no error.
    pub fn start_kill(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Running(running) => running.kill(),
            State::Ended(_) => Ok(()),
        }
    }

    /// Kills the child with `SIGKILL` and waits until it has ended.
    ///
    /// For a gentler end, send it `SIGTERM` through [`id`](Child::id), wait with a timeout, and kill
    /// it then.
    ///
    /// # Errors
    ///
    /// What the operating system said. A child that has ended is no error.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the child is killed in any case.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await?;
        Ok(())
    }

    /// Waits until the child has ended, and says how. May be called again, for the same answer.
    ///
    /// Closes the child's standard input first, if [`stdin`](Child::stdin) was not taken: a child
    /// that waits for its parent would never end. A child whose output is piped and that writes
    /// much must be read meanwhile.
    ///
    /// # Errors
    ///
    /// What the operating system said, for instance when somebody else reaped the child.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped; but standard input is closed.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let running = match &mut self.state {
            State::Running(running) => running,
            State::Ended(status) => return Ok(*status),
        };
        let status = poll_fn(|cx| {
            let coop = ready!(coop::poll_proceed(cx));
            let ended = Pin::new(&mut running.reaper).poll(cx);
            if ended.is_ready() {
                coop.made_progress();
            }
            ended
        })
        .await?;
        self.set_ended(status);
        Ok(status)
    }

    /// How the child ended, if it has; `None` if it still runs.
    ///
    /// Does not wait, does not close standard input, and does not wake the task later.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.state {
            State::Running(running) => {
                let status = running.reaper.try_wait()?;
                if let Some(status) = status {
                    self.set_ended(status);
                }
                Ok(status)
            }
            State::Ended(status) => Ok(Some(*status)),
        }
    }

    fn set_ended(&mut self, status: ExitStatus) {
        if let State::Running(running) = &mut self.state {
            // Its number may be another process's by now.
            running.kill = false;
        }
        self.state = State::Ended(status);
    }

    /// Waits until the child has ended, and reads its piped output until then.
    ///
    /// Closes the child's standard input first, if it was not taken. Streams that are not piped are
    /// empty in the answer. It waits for the end of the streams too, which a grandchild that
    /// inherited them may hold open.
    ///
    /// # Errors
    ///
    /// What waiting or reading said.
    ///
    /// # Cancel safety
    ///
    /// The future owns the child: when it is dropped, what was read is lost, and the child goes on or
    /// is killed, as [`kill_on_drop`](super::Command::kill_on_drop) says.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        // They are closed when the child has ended, not as soon as they are empty: a child that
        // goes on writing after its stream was closed by another process would get `SIGPIPE`.
        let mut stdout_pipe = self.stdout.take();
        let mut stderr_pipe = self.stderr.take();

        let mut waiting = pin!(self.wait());
        let mut reading_stdout = pin!(read_all(&mut stdout_pipe));
        let mut reading_stderr = pin!(read_all(&mut stderr_pipe));
        let (mut status, mut stdout, mut stderr) = (None, None, None);
        poll_fn(|cx| {
            let ended = advance(waiting.as_mut(), &mut status, cx)?;
            let read_stdout = advance(reading_stdout.as_mut(), &mut stdout, cx)?;
            let read_stderr = advance(reading_stderr.as_mut(), &mut stderr, cx)?;
            if ended && read_stdout && read_stderr {
                Poll::Ready(Ok::<(), io::Error>(()))
            } else {
                Poll::Pending
            }
        })
        .await?;
        const DONE: &str = "all three are done";
        Ok(Output {
            status: status.expect(DONE),
            stdout: stdout.expect(DONE),
            stderr: stderr.expect(DONE),
        })
    }
}

async fn read_all<R: AsyncRead + Unpin>(pipe: &mut Option<R>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Polls a future unless its result is there, and says whether it is now.
fn advance<R>(
    future: Pin<&mut impl Future<Output = io::Result<R>>>,
    result: &mut Option<R>,
    cx: &mut std::task::Context<'_>,
) -> io::Result<bool> {
    if result.is_none()
        && let Poll::Ready(outcome) = future.poll(cx)
    {
        *result = Some(outcome?);
    }
    Ok(result.is_some())
}
