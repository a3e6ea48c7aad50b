//! Jobs on the blocking pool, as the files and the standard streams use them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use gmp_executor::task::{JoinError, JoinHandle};
use gmp_executor::wait::{self, WaitReason};
use gmp_executor::{Handle, coop};

/// The most bytes that one job reads or writes, unless the file was told otherwise. tokio's figure.
pub(crate) const DEFAULT_MAX_BUF_SIZE: usize = 2 * 1024 * 1024;

/// A job on the blocking pool. While it is awaited the task waits for a *file*.
///
/// Dropping it does not stop the job.
#[derive(Debug)]
pub(crate) struct Job<R>(JoinHandle<R>);

impl<R: Send + 'static> Job<R> {
    /// Starts a job on the pool of the current runtime.
    ///
    /// It is forgotten when the runtime shuts down before the job has begun.
    #[track_caller]
    pub(crate) fn start(job: impl FnOnce() -> R + Send + 'static) -> Job<R> {
        Job(Handle::current().spawn_blocking(job))
    }

    /// Starts a job that runs even when the runtime shuts down meanwhile: somebody was told that
    /// his bytes are on their way. `None` when the runtime is already shut down.
    #[track_caller]
    pub(crate) fn start_mandatory(job: impl FnOnce() -> R + Send + 'static) -> Option<Job<R>> {
        Handle::current().spawn_mandatory_blocking(job).map(Job)
    }
}

impl<R> Future for Job<R> {
    type Output = Result<R, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.0).poll(cx);
        // A poll denied for want of budget has recorded its own reason.
        if polled.is_pending() && coop::has_budget_remaining() {
            wait::record(WaitReason::File);
        }
        polled
    }
}

/// Runs a file operation on the blocking pool.
#[cfg(feature = "fs")]
pub(crate) async fn asyncify<R: Send + 'static>(
    operation: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    match Job::start(operation).await {
        Ok(result) => result,
        Err(_) => Err(job_lost()),
    }
}

/// What an operation answers whose job panicked, or never ran since the runtime is shut down.
pub(crate) fn job_lost() -> io::Error {
    io::Error::other("background task failed")
}
