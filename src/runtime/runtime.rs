use std::future::Future;
#[cfg(feature = "rt-multi-thread")]
use std::io;
use std::time::Duration;

use super::{EnterGuard, Handle, RuntimeMetrics};
use crate::task::JoinHandle;

/// The owner of a runtime: dropping it shuts the runtime down.
///
/// As `tokio::runtime::Runtime`. A drop waits for the threads: for polls in progress, and for
/// `spawn_blocking` jobs that have started, however long they take.
/// [`shutdown_timeout`](Runtime::shutdown_timeout) and
/// [`shutdown_background`](Runtime::shutdown_background) do not.
///
/// # Panics
///
/// Dropping a runtime in async code panics, as that would block a worker; the two methods are the way out.
#[derive(Debug)]
pub struct Runtime {
    inner: gmp_executor::Runtime,
}

impl Runtime {
    pub(super) fn from_inner(inner: gmp_executor::Runtime) -> Runtime {
        Runtime { inner }
    }

    /// A multi-thread runtime with I/O and time, and otherwise the defaults.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`](super::Builder::build).
    #[cfg(feature = "rt-multi-thread")]
    #[track_caller]
    pub fn new() -> io::Result<Runtime> {
        super::Builder::new_multi_thread().enable_all().build()
    }

    /// The runtime's handle.
    pub fn handle(&self) -> &Handle {
        self.inner.handle()
    }

    /// Spawns a task; see [`spawn`](crate::spawn). It runs once the runtime is driven, which a
    /// multi-thread one always is.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().spawn(future)
    }

    /// Runs a closure on the blocking pool; see [`spawn_blocking`](crate::task::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle().spawn_blocking(func)
    }

    /// Runs a future on this thread until it completes; the runtime's tasks run meanwhile.
    ///
    /// # Panics
    ///
    /// In async code, and with the future.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.inner.block_on(future)
    }

    /// Enters the runtime's context; see [`Handle::enter`].
    pub fn enter(&self) -> EnterGuard<'_> {
        self.inner.enter()
    }

    /// Shuts the runtime down and waits at most `duration` for its threads.
    ///
    /// Tasks are dropped at their next await; blocking jobs that have started go on by themselves.
    pub fn shutdown_timeout(self, duration: Duration) {
        self.inner.shutdown_timeout(duration);
    }

    /// Shuts the runtime down without waiting for anything. May be called in async code.
    pub fn shutdown_background(self) {
        self.inner.shutdown_background();
    }

    /// What the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle().metrics()
    }
}

impl std::panic::UnwindSafe for Runtime {}
impl std::panic::RefUnwindSafe for Runtime {}
