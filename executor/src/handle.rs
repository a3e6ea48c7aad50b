//! The handle to a runtime.
use std::sync::Arc;
use std::fmt;
use std::error::Error;
use std::future::Future;
use crate::seam::{Netpoll, Timers};
use crate::context;

/// A handle to a runtime.
#[derive(Clone, Debug)]
pub struct Handle { inner: Arc<Inner> }
#[derive(Debug)]
struct Inner { netpoll: Option<Arc<dyn Netpoll>>, timers: Option<Arc<dyn Timers>> }

impl Handle {
    /// The handle of the runtime this thread is in; panics outside one.
    #[track_caller]
    pub fn current() -> Handle {
        match Handle::try_current() { Ok(h) => h, Err(e) => panic!("{e}") }
    }
    /// The handle of the runtime this thread is in.
    pub fn try_current() -> Result<Handle, TryCurrentError> { context::with_current(Handle::clone) }
    /// The netpoll, if the runtime was built with I/O enabled.
    pub fn netpoll(&self) -> Option<&Arc<dyn Netpoll>> { self.inner.netpoll.as_ref() }
    /// The timers, if the runtime was built with time enabled.
    pub fn timers(&self) -> Option<&Arc<dyn Timers>> { self.inner.timers.as_ref() }
    /// How many Ps the runtime has.
    pub fn procs(&self) -> usize { unimplemented!() }
    /// The P that this thread holds in this runtime; for a thread without one, some P.
    pub fn p_hint(&self) -> usize { unimplemented!() }
    /// The P that this thread holds in this runtime.
    pub fn p_held(&self) -> Option<usize> { unimplemented!() }
    /// Breaks the wait of P `p`'s M, if it waits, so that it looks at its timers again.
    pub fn unpark(&self, _p: usize) { unimplemented!() }
    /// Runs a blocking closure on the blocking pool.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, _f: F) -> crate::task::JoinHandle<R> where F: FnOnce() -> R + Send + 'static, R: Send + 'static { unimplemented!() }
    /// Spawns a task.
    #[track_caller]
    pub fn spawn<F>(&self, _f: F) -> crate::task::JoinHandle<F::Output> where F: Future + Send + 'static, F::Output: Send + 'static { unimplemented!() }
}

/// Why there is no current handle.
#[derive(Debug)]
pub struct TryCurrentError { destroyed: bool }
impl TryCurrentError {
    pub(crate) fn no_context() -> Self { Self { destroyed: false } }
    pub(crate) fn thread_local_destroyed() -> Self { Self { destroyed: true } }
    /// Whether the thread is in no runtime.
    pub fn is_missing_context(&self) -> bool { !self.destroyed }
    /// Whether the thread-local is gone.
    pub fn is_thread_local_destroyed(&self) -> bool { self.destroyed }
}
impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.destroyed {
            "The gmp context thread-local variable has been destroyed."
        } else {
            "there is no reactor running, must be called from the context of a Tokio 1.x runtime (gmp)"
        })
    }
}
impl Error for TryCurrentError {}
