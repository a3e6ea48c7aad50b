//! The handle to a runtime, through which everything reaches it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::config::{Config, Flavor};
use crate::context;
use crate::current_thread::CurrentThread;
use crate::metrics::RuntimeMetrics;
use crate::scheduler::Scheduler;
use crate::seam::{Netpoll, Timers};
use crate::task::{self, G, Id, JoinHandle, Meta, Shard, Spawn, SpawnKind, Target};

/// A handle to a runtime: spawns onto it, blocks on it, enters it. Cheap to clone.
///
/// As `tokio::runtime::Handle`. A handle does not keep its runtime running: once the `Runtime` is
/// dropped, what is spawned is cancelled at once.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<HandleInner>,
}

pub(crate) struct HandleInner {
    id: RuntimeId,
    scheduler: Arc<Scheduler>,
    /// One a P: the tasks that were spawned by its Ms.
    shards: Box<[Arc<Shard>]>,
    extensions: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    pub(crate) current_thread: CurrentThread,
}

impl Drop for HandleInner {
    fn drop(&mut self) {
        for shard in &self.shards {
            if !shard.is_empty() {
                // Tasks of a runtime that was leaked: they may use their shard at any time.
                std::mem::forget(shard.clone());
            }
        }
    }
}

impl std::panic::UnwindSafe for Handle {}
impl std::panic::RefUnwindSafe for Handle {}

/// Which kind of scheduler a runtime has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// One P, on the thread in `block_on`.
    CurrentThread,
    /// A P a worker.
    MultiThread,
}

/// Identifies a runtime among those of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeId(u64);

impl RuntimeId {
    pub(crate) fn next() -> RuntimeId {
        static IDS: AtomicU64 = AtomicU64::new(1);
        RuntimeId(IDS.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Keeps a runtime entered; leaves it when dropped. Returned by [`Handle::enter`].
///
/// # Panics
///
/// Dropping guards in another order than the reverse of the one they were made in panics.
#[must_use = "Creating and dropping a guard does nothing"]
#[derive(Debug)]
pub struct EnterGuard<'a> {
    _entered: EnteredHandle,
    /// Bound to the handle's life. The destructor is the field's above, so that a guard may be
    /// dropped after its runtime, as in tokio.
    marker: PhantomData<&'a Handle>,
}

/// The entry on the thread's stack of handles.
#[derive(Debug)]
struct EnteredHandle {
    depth: usize,
    /// Bound to this thread, but shared freely.
    marker: PhantomData<std::sync::MutexGuard<'static, ()>>,
}

impl Drop for EnteredHandle {
    fn drop(&mut self) {
        context::pop_handle(self.depth);
    }
}

impl Handle {
    pub(crate) fn from_inner(inner: Arc<HandleInner>) -> Handle {
        Handle { inner }
    }

    /// Builds the scheduler of a runtime, without starting a thread.
    pub(crate) fn build(config: Config) -> Handle {
        let scheduler = Arc::new(Scheduler::new(config));
        let shard = |_| Shard::new(Target::Scheduler(scheduler.clone()));
        let inner = Arc::new(HandleInner {
            id: RuntimeId::next(),
            shards: (0..scheduler.procs()).map(shard).collect(),
            extensions: Mutex::new(HashMap::new()),
            current_thread: CurrentThread::new(),
            scheduler,
        });
        inner.scheduler.set_handle(Arc::downgrade(&inner));
        Handle { inner }
    }

    pub(crate) fn inner(&self) -> &HandleInner {
        &self.inner
    }

    pub(crate) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.inner.scheduler
    }

    /// The handle of the runtime that this thread is in.
    ///
    /// # Panics
    ///
    /// Outside a runtime: call it from a task, inside `block_on`, or under an [`EnterGuard`].
    #[track_caller]
    pub fn current() -> Handle {
        match Handle::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The handle of the runtime that this thread is in.
    ///
    /// # Errors
    ///
    /// Outside a runtime, or in the last moments of a thread whose thread-locals are gone.
    pub fn try_current() -> Result<Handle, TryCurrentError> {
        context::with_current(Handle::clone)
    }

    /// Enters the runtime: until the guard is dropped, this thread is in its context, so that
    /// `spawn`, sockets and timers find it. Nothing is driven by it.
    ///
    /// Guards must be dropped in the reverse order of their creation.
    ///
    /// # Panics
    ///
    /// In the destructor of a thread-local, when the one that holds the handles is gone.
    #[track_caller]
    pub fn enter(&self) -> EnterGuard<'_> {
        match self.try_enter() {
            Some(guard) => guard,
            None => panic!("{}", TryCurrentError::thread_local_destroyed()),
        }
    }

    /// As [`enter`](Handle::enter); `None` when the thread-local that holds the handles is gone.
    pub(crate) fn try_enter(&self) -> Option<EnterGuard<'_>> {
        let depth = context::push_handle(self.clone())?;
        Some(EnterGuard {
            _entered: EnteredHandle {
                depth,
                marker: PhantomData,
            },
            marker: PhantomData,
        })
    }

    /// Spawns a task onto the runtime; it starts at once, awaited or not.
    ///
    /// After the runtime's shutdown the task is dropped and its handle says cancelled.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_named(future, None, Location::caller())
    }

    /// Spawns a task with a name, on behalf of the caller at `location`.
    #[doc(hidden)]
    pub fn spawn_named<F>(
        &self,
        future: F,
        name: Option<Box<str>>,
        location: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if size_of::<F>() > task::BOX_ABOVE {
            self.spawn_sized(Box::pin(future), name, location)
        } else {
            self.spawn_sized(future, name, location)
        }
    }

    fn spawn_sized<F>(
        &self,
        future: F,
        name: Option<Box<str>>,
        location: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let id = Id::next();
        let owner = self.shard(id);
        let spec = Spawn {
            owner,
            id,
            location,
            name,
            kind: SpawnKind::Async,
        };
        // SAFETY: the bounds of this function say that future and output are `Send + 'static`.
        let (g, handle) = unsafe { task::new_g(spec, future) };
        self.count_spawn(owner);
        self.submit(owner, g);
        handle
    }

    /// Counts an async task that is being spawned on this thread.
    pub(crate) fn count_spawn(&self, owner: &Shard) {
        let counted = context::hot(|hot| {
            let scheduler = Arc::as_ptr(self.scheduler());
            let m = hot.m().filter(|m| std::ptr::eq(m.scheduler(), scheduler));
            m.map(|m| m.count_alive(1)).is_some()
        });
        if !counted {
            owner.count_alive(1);
        }
    }

    /// Queues a new task, or drops it when the runtime has shut down.
    fn submit(&self, owner: &Shard, g: G) {
        if owner.is_closed() && !g.metadata().is_mandatory() {
            drop(g);
        } else {
            crate::scheduler::ready(Arc::as_ptr(self.scheduler()), g, false);
        }
    }

    /// The shard of the P that this thread holds, or else some shard.
    pub(crate) fn shard(&self, id: Id) -> &Arc<Shard> {
        let p = self.p_held().unwrap_or(id.as_u64() as usize % self.procs());
        &self.inner.shards[p]
    }

    /// Runs a closure on a thread where it may block.
    ///
    /// The pool has up to `max_blocking_threads` threads; further jobs wait for one.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, job: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_job(job, false, None, Location::caller())
    }

    /// As [`spawn_blocking`](Handle::spawn_blocking), for a job that must run even when the runtime
    /// shuts down before it starts; `None` when the runtime has already shut down.
    #[doc(hidden)]
    #[track_caller]
    pub fn spawn_mandatory_blocking<F, R>(&self, job: F) -> Option<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        if self.scheduler().is_closing() {
            return None;
        }
        Some(self.spawn_job(job, true, None, Location::caller()))
    }

    #[doc(hidden)]
    pub fn spawn_blocking_named<F, R>(
        &self,
        job: F,
        name: Option<Box<str>>,
        location: &'static Location<'static>,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_job(job, false, name, location)
    }

    fn spawn_job<F, R>(
        &self,
        job: F,
        mandatory: bool,
        name: Option<Box<str>>,
        location: &'static Location<'static>,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let id = Id::next();
        let owner = self.shard(id);
        let spec = Spawn {
            owner,
            id,
            location,
            name,
            kind: SpawnKind::Blocking { mandatory },
        };
        // Until its G is finished.
        if let Some(timers) = self.scheduler().pausable_timers() {
            timers.inhibit_auto_advance(true);
        }
        // SAFETY: the bounds of this function say that the job and its result are `Send + 'static`.
        let (g, handle) = unsafe { task::new_g(spec, async move { job() }) };
        self.submit(owner, g);
        handle
    }

    /// Runs a future on this thread, in the runtime's context, until it completes.
    ///
    /// On a `current_thread` runtime this does not drive the runtime's tasks, netpoll and timers:
    /// `Runtime::block_on` on another thread has to, as in tokio.
    ///
    /// # Panics
    ///
    /// On a thread that already drives async tasks; and with the future.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Some(_entered) = context::enter_runtime(true) else {
            panic!("{CANNOT_START}");
        };
        let _context = self.enter();
        if !self.scheduler().is_multi_thread() {
            return context::park_on(future);
        }
        if size_of::<F>() > task::BOX_ABOVE {
            crate::block_on::multi_thread(self, Box::pin(future))
        } else {
            crate::block_on::multi_thread(self, future)
        }
    }

    /// Which kind of scheduler the runtime has.
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        match self.scheduler().config.flavor {
            Flavor::CurrentThread => RuntimeFlavor::CurrentThread,
            Flavor::MultiThread => RuntimeFlavor::MultiThread,
        }
    }

    /// Tells runtimes apart.
    pub fn id(&self) -> RuntimeId {
        self.inner.id
    }

    /// The name that the runtime was given with `Builder::name`.
    pub fn name(&self) -> Option<&str> {
        self.scheduler().config.name.as_deref()
    }

    /// A view of what the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::new(self.clone())
    }

    // ----- For the crates around the executor -----

    /// The netpoll, if the runtime was built with I/O enabled.
    #[doc(hidden)]
    pub fn netpoll(&self) -> Option<&Arc<dyn Netpoll>> {
        self.scheduler().config.netpoll.as_ref()
    }

    /// The timers, if the runtime was built with time enabled.
    #[doc(hidden)]
    pub fn timers(&self) -> Option<&Arc<dyn Timers>> {
        self.scheduler().config.timers.as_ref()
    }

    /// How many Ps the runtime has.
    #[doc(hidden)]
    pub fn procs(&self) -> usize {
        self.scheduler().procs()
    }

    /// The P that this thread holds in this runtime, as far as it knows.
    #[doc(hidden)]
    #[inline]
    pub fn p_held(&self) -> Option<usize> {
        context::hot(|hot| {
            hot.m()
                .filter(|m| std::ptr::eq(m.scheduler(), Arc::as_ptr(self.scheduler())))
                .and_then(|m| m.p_index())
        })
    }

    /// Whether this thread holds P `p` of this runtime now. It may lose it the moment after, and then whoever
    /// gets the P sees what this thread did before the call.
    #[doc(hidden)]
    pub fn holds_p(&self, p: usize) -> bool {
        self.p_held() == Some(p) && context::hot(|hot| hot.m().and_then(|m| m.holds())) == Some(p)
    }

    /// The P that this thread holds in this runtime; for a thread without one, some P.
    #[doc(hidden)]
    #[inline]
    pub fn p_hint(&self) -> usize {
        self.p_held()
            .unwrap_or_else(|| context::thread_hash() % self.procs())
    }

    /// Breaks the wait of P `p`'s M, if it waits, so that it looks at its timers again.
    #[doc(hidden)]
    pub fn unpark(&self, p: usize) {
        self.scheduler().unpark(p);
    }

    /// Whether the runtime's shutdown has begun.
    #[doc(hidden)]
    pub fn is_shutdown(&self) -> bool {
        self.scheduler().is_closing()
    }

    /// What some crate keeps with the runtime, made at the first call. Dropped with the last handle.
    #[doc(hidden)]
    pub fn extension<T: Any + Send + Sync>(&self, init: impl FnOnce() -> T) -> Arc<T> {
        let existing = self
            .inner
            .extensions
            .lock()
            .get(&TypeId::of::<T>())
            .cloned();
        let any = existing.unwrap_or_else(|| {
            // Outside the lock: `init` may use the handle.
            let made: Arc<dyn Any + Send + Sync> = Arc::new(init());
            let mut extensions = self.inner.extensions.lock();
            extensions.entry(TypeId::of::<T>()).or_insert(made).clone()
        });
        any.downcast().expect("stored under its own type")
    }

    // ----- Shutdown and dumps -----

    /// No new tasks; every registered one is aborted.
    pub(crate) fn close_tasks(&self) {
        for shard in &self.inner.shards {
            shard.close();
        }
    }

    /// How many async tasks are alive.
    pub(crate) fn alive_tasks(&self) -> usize {
        let shards = self.inner.shards.iter();
        let alive = shards.map(|shard| shard.alive()).sum::<isize>() + self.scheduler().ms.alive();
        // The parts are not read at one moment.
        alive.max(0) as usize
    }

    /// Whether a waker has a task's G in hand.
    pub(crate) fn has_runnable(&self) -> bool {
        self.inner.shards.iter().any(|shard| shard.has_runnable())
    }

    /// Calls `f` for each task's record, under a lock: `f` must not call user code.
    pub(crate) fn for_each_task(&self, mut f: impl FnMut(&Meta)) {
        for shard in &self.inner.shards {
            shard.for_each(&mut f);
        }
    }
}

/// The words in which tokio says that a thread already drives a runtime.
pub(crate) const CANNOT_START: &str = "Cannot start a runtime from within a runtime. This happens \
     because a function (like `block_on`) attempted to block the current thread while the thread \
     is being used to drive asynchronous tasks. If you are in an async function, use `.await` on \
     the future instead of blocking on it.";

/// For code that is generic over executors. The task's handle is dropped: it goes on by itself, and a panic in
/// it is lost.
impl futures_task::Spawn for Handle {
    /// # Errors
    ///
    /// When the runtime has shut down.
    #[track_caller]
    fn spawn_obj(
        &self,
        future: futures_task::FutureObj<'static, ()>,
    ) -> Result<(), futures_task::SpawnError> {
        self.status()?;
        drop(self.spawn(future));
        Ok(())
    }

    fn status(&self) -> Result<(), futures_task::SpawnError> {
        if self.scheduler().is_closing() {
            return Err(futures_task::SpawnError::shutdown());
        }
        Ok(())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("id", &self.inner.id)
            .field("flavor", &self.scheduler().config.flavor)
            .finish_non_exhaustive()
    }
}

/// Why [`Handle::try_current`] found no runtime.
#[derive(Debug)]
pub struct TryCurrentError {
    destroyed: bool,
}

impl TryCurrentError {
    pub(crate) fn no_context() -> Self {
        Self { destroyed: false }
    }

    pub(crate) fn thread_local_destroyed() -> Self {
        Self { destroyed: true }
    }

    /// Whether the thread is in no runtime.
    pub fn is_missing_context(&self) -> bool {
        !self.destroyed
    }

    /// Whether the thread is ending, and the thread-local that names its runtime is gone.
    pub fn is_thread_local_destroyed(&self) -> bool {
        self.destroyed
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.destroyed {
            "The Tokio context thread-local variable has been destroyed."
        } else {
            "there is no reactor running, must be called from the context of a Tokio 1.x runtime"
        })
    }
}

impl Error for TryCurrentError {}
