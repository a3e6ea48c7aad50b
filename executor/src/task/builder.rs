//! Spawning with a name.

use std::future::Future;
use std::io;
use std::panic::Location;

use super::{JoinHandle, LocalSet};
use crate::handle::Handle;

/// Spawns tasks with a name, which dumps and the schedtrace show.
///
/// As `tokio::task::Builder`, which is unstable there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builder<'a> {
    name: Option<&'a str>,
}

impl<'a> Builder<'a> {
    /// A builder of tasks without a name.
    pub fn new() -> Builder<'a> {
        Builder::default()
    }

    /// Names the tasks that this builder spawns.
    pub fn name(self, name: &'a str) -> Builder<'a> {
        Builder { name: Some(name) }
    }

    fn boxed_name(self) -> Option<Box<str>> {
        self.name.map(Box::from)
    }

    /// Spawns onto the current runtime.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    ///
    /// # Panics
    ///
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_on(future, &Handle::current())
    }

    /// Spawns onto the runtime of `handle`.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(handle.spawn_named(future, self.boxed_name(), Location::caller()))
    }

    /// Spawns onto the current `LocalSet` or `LocalRuntime`.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    ///
    /// # Panics
    ///
    /// Outside both.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let location = Location::caller();
        Ok(crate::local::spawn_local_named(
            future,
            self.boxed_name(),
            location,
        ))
    }

    /// Spawns onto `set`.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, set: &LocalSet) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let _set = set.enter();
        self.spawn_local(future)
    }

    /// Runs a closure on the blocking pool of the current runtime.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    ///
    /// # Panics
    ///
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, job: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_on(job, &Handle::current())
    }

    /// Runs a closure on the blocking pool of `handle`'s runtime.
    ///
    /// # Errors
    ///
    /// None today; the type leaves room.
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, job: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(handle.spawn_blocking_named(job, self.boxed_name(), Location::caller()))
    }
}
