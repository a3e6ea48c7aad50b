use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use gmp_executor::Config;

use super::{Builder, EnterGuard, Handle, RuntimeMetrics};
use crate::task::JoinHandle;

/// A `current_thread` runtime that is bound to its thread, so that its tasks need not be `Send`.
///
/// As `tokio::runtime::LocalRuntime`: [`spawn_local`](crate::task::spawn_local) works anywhere in it,
/// without a `LocalSet`.
///
/// ```
/// use std::rc::Rc;
/// use gmp::runtime::LocalRuntime;
///
/// let runtime = LocalRuntime::new().unwrap();
/// let text = Rc::new("not Send");
/// let len = runtime.block_on(async move {
///     gmp::task::spawn_local(async move { text.len() }).await.unwrap()
/// });
/// assert_eq!(len, 8);
/// ```
#[derive(Debug)]
pub struct LocalRuntime {
    inner: gmp_executor::Runtime,
    /// Neither `Send` nor `Sync`: the tasks belong to this thread.
    marker: PhantomData<Rc<()>>,
}

/// Options of a [`LocalRuntime`]. There are none yet.
#[derive(Default)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Neither `Send` nor `Sync`, as in tokio, for options to come.
    marker: PhantomData<Rc<()>>,
}

impl fmt::Debug for LocalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalOptions").finish()
    }
}

impl LocalRuntime {
    pub(super) fn build(mut config: Config) -> io::Result<LocalRuntime> {
        // SAFETY: the type is not `Send`, so it is driven and dropped where it is made.
        unsafe { config.bind_to_this_thread() };
        Ok(LocalRuntime {
            inner: gmp_executor::Runtime::new(config)?,
            marker: PhantomData,
        })
    }

    /// A local runtime with I/O and time, and otherwise the defaults.
    ///
    /// # Errors
    ///
    /// As [`Builder::build_local`].
    pub fn new() -> io::Result<LocalRuntime> {
        let options = LocalOptions::default();
        Builder::new_current_thread()
            .enable_all()
            .build_local(options)
    }

    /// The runtime's handle. Tasks that are spawned through it have to be `Send`.
    pub fn handle(&self) -> &Handle {
        self.inner.handle()
    }

    /// Spawns a task that need not be `Send`.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let _entered = self.enter();
        crate::task::spawn_local(future)
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

    /// Drives the runtime until `future` completes.
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
    pub fn shutdown_timeout(self, duration: Duration) {
        self.inner.shutdown_timeout(duration);
    }

    /// Shuts the runtime down without waiting for its threads.
    pub fn shutdown_background(self) {
        self.inner.shutdown_background();
    }

    /// What the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle().metrics()
    }
}

impl std::panic::UnwindSafe for LocalRuntime {}
impl std::panic::RefUnwindSafe for LocalRuntime {}
