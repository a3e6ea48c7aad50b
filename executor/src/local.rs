//! Tasks that stay on one thread: `LocalSet`, and `spawn_local`.
//!
//! A `LocalSet` is a small scheduler of its own inside the task or `block_on` that polls it. Its Gs are
//! made on the set's thread, run there and are dropped there, so their futures need not be `Send`.
//!
//! # Who owns what
//!
//! * `local` belongs to the set's thread. A wake on that thread pushes to it without a lock.
//! * `remote` is for wakes from elsewhere. Only the set's thread takes out of it.
//! * `waker` wakes the task that polls the set. It is woken for a G that arrives while the set is not
//!   running its Gs; while it runs them, it finds the G itself before it returns.
//!
//! The set's drop runs on its thread (`LocalSet` is not `Send`), aborts every task and runs the Gs
//! until the registry is empty. So no G exists any more when the last waker drops the shared part,
//! possibly on another thread.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::context;
use crate::coop;
use crate::handle::{Handle, RuntimeId};
use crate::task::{self, G, Id, JoinHandle, Shard, Spawn, SpawnKind, Target};

/// How many Gs a set runs before it lets its thread's other work go on.
const TICKS_MAX: usize = 61;

/// After how many Gs the remote queue is looked at first.
const REMOTE_INTERVAL: usize = 31;

/// The part of a set that wakers reach.
pub(crate) struct LocalShared {
    id: RuntimeId,
    /// Names the set's thread.
    thread: usize,
    local: UnsafeCell<Local>,
    remote: Mutex<VecDeque<G>>,
    remote_len: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

/// The part that only the set's thread touches.
struct Local {
    queue: VecDeque<G>,
    running: bool,
}

// SAFETY: `local` is touched only by the thread that `thread` names (`with_local` checks it). A `G` is
// `Send`, and the set's thread alone runs and drops those of a set.
unsafe impl Send for LocalShared {}
// SAFETY: as above.
unsafe impl Sync for LocalShared {}

impl LocalShared {
    fn new() -> LocalShared {
        LocalShared {
            id: RuntimeId::next(),
            thread: context::thread_token(),
            local: UnsafeCell::new(Local {
                queue: VecDeque::new(),
                running: false,
            }),
            remote: Mutex::new(VecDeque::new()),
            remote_len: AtomicUsize::new(0),
            waker: Mutex::new(None),
        }
    }

    fn is_here(&self) -> bool {
        self.thread == context::thread_token()
    }

    /// Calls `f` with the local part, on the set's thread. `f` calls no code that comes back here.
    fn with_local<R>(&self, f: impl FnOnce(&mut Local) -> R) -> R {
        assert!(self.is_here(), "a LocalSet is used on another thread");
        // SAFETY: this is the set's thread, and `f` does not lead back into this function.
        f(unsafe { &mut *self.local.get() })
    }

    /// A G of the set became runnable, on any thread.
    pub(crate) fn ready(self: &Arc<Self>, g: G) {
        if self.is_here() {
            let running = self.with_local(|local| {
                local.queue.push_back(g);
                local.running
            });
            if !running {
                self.wake();
            }
            return;
        }
        // The G may be run and gone as soon as it is queued, and the caller's reference with it.
        let this = self.clone();
        {
            let mut remote = this.remote.lock();
            remote.push_back(g);
            this.remote_len.store(remote.len(), Ordering::Relaxed);
        }
        this.wake();
    }

    fn wake(&self) {
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn register(&self, waker: &Waker) {
        let mut slot = self.waker.lock();
        if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            let old = slot.replace(waker.clone());
            drop(slot);
            drop(old);
        }
    }

    fn pop_remote(&self) -> Option<G> {
        if self.remote_len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut remote = self.remote.lock();
        let g = remote.pop_front();
        self.remote_len.store(remote.len(), Ordering::Relaxed);
        g
    }

    fn next_g(&self, tick: usize) -> Option<G> {
        if tick.is_multiple_of(REMOTE_INTERVAL)
            && let Some(g) = self.pop_remote()
        {
            return Some(g);
        }
        self.with_local(|local| local.queue.pop_front())
            .or_else(|| self.pop_remote())
    }

    /// Runs Gs; says whether there may be more.
    fn tick(&self) -> bool {
        struct Running<'a>(&'a LocalShared);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.with_local(|local| local.running = false);
            }
        }
        self.with_local(|local| local.running = true);
        let _running = Running(self);
        for tick in 0..TICKS_MAX {
            let Some(g) = self.next_g(tick) else {
                return false;
            };
            // The body catches the task's panics; what is left is a waker of somebody else's.
            let _ = catch_unwind(AssertUnwindSafe(|| coop::with_full_budget(|| g.run())));
        }
        true
    }
}

thread_local! {
    /// The set whose context this thread is in.
    static CURRENT: RefCell<Option<Arc<Shard>>> = const { RefCell::new(None) };
}

/// Makes `shard`'s set current until the guard goes.
fn enter(shard: Option<Arc<Shard>>) -> impl Drop + use<> {
    struct Reset(Option<Arc<Shard>>);
    impl Drop for Reset {
        fn drop(&mut self) {
            let before = self.0.take();
            let _ = CURRENT.try_with(|current| current.replace(before));
        }
    }
    let before = CURRENT.try_with(|current| current.replace(shard));
    Reset(before.ok().flatten())
}

fn spawn_on<F>(
    owner: Arc<Shard>,
    future: F,
    name: Option<Box<str>>,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    if size_of::<F>() > task::BOX_ABOVE {
        spawn_sized(owner, Box::pin(future), name, location)
    } else {
        spawn_sized(owner, future, name, location)
    }
}

fn spawn_sized<F>(
    owner: Arc<Shard>,
    future: F,
    name: Option<Box<str>>,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let spec = Spawn {
        owner: &owner,
        id: Id::next(),
        location,
        name,
        kind: SpawnKind::Async,
    };
    // SAFETY: the future is `'static`; the callers are on the set's (or the local runtime's) thread,
    // and that thread alone runs and drops the G, as the opening of this file argues.
    let (g, handle) = unsafe { task::new_g(spec, future) };
    match owner.target() {
        Target::Local(_) => owner.count_alive(1),
        Target::Scheduler(_) => {
            let _ = context::with_current(|handle| handle.count_spawn(&owner));
        }
    }
    if owner.is_closed() {
        drop(g);
    } else {
        g.schedule();
    }
    handle
}

/// Spawns a task that need not be `Send` onto the current `LocalSet` or `LocalRuntime`.
///
/// As `tokio::task::spawn_local`. The task runs on this thread.
///
/// # Panics
///
/// Outside both; and inside a task of the runtime proper, which may run on any thread.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_local_named(future, None, Location::caller())
}

#[track_caller]
pub(crate) fn spawn_local_named<F>(
    future: F,
    name: Option<Box<str>>,
    location: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let set = CURRENT.try_with(|current| current.borrow().clone());
    if let Some(shard) = set.ok().flatten() {
        return spawn_on(shard, future, name, location);
    }
    let local_runtime = context::with_current(|handle| {
        handle
            .is_local_here()
            .then(|| handle.shard(Id::next()).clone())
    });
    match local_runtime {
        Ok(Some(shard)) => spawn_on(shard, future, name, location),
        _ if context::with_current(Handle::is_local).unwrap_or(false) => panic!(
            "Local tasks can only be spawned on a LocalRuntime from the thread the runtime was \
             created on"
        ),
        _ => panic!(
            "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`"
        ),
    }
}

/// A set of tasks that run on the thread that polls it, so that they need not be `Send`.
///
/// As `tokio::task::LocalSet`: awaiting the set runs its tasks until all are done;
/// [`run_until`](LocalSet::run_until) runs them while a future is polled; dropping it drops them.
/// Each task has a budget of its own, and at most 61 polls go by before the thread's other work gets a turn.
pub struct LocalSet {
    shard: Arc<Shard>,
    shared: Arc<LocalShared>,
    /// Neither `Send` nor `Sync`: the tasks belong to this thread.
    marker: PhantomData<Rc<()>>,
}

/// Keeps a [`LocalSet`] entered; leaves it when dropped. Returned by [`LocalSet::enter`].
#[must_use = "the set is left as soon as the guard is dropped"]
pub struct LocalEnterGuard {
    before: Cell<Option<Option<Arc<Shard>>>>,
    marker: PhantomData<Rc<()>>,
}

impl Drop for LocalEnterGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = CURRENT.try_with(|current| current.replace(before));
        }
    }
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}

impl LocalSet {
    /// Makes an empty set, bound to the calling thread.
    pub fn new() -> LocalSet {
        let shared = Arc::new(LocalShared::new());
        LocalSet {
            shard: Shard::new(Target::Local(shared.clone())),
            shared,
            marker: PhantomData,
        }
    }

    /// Enters the set's context: until the guard is dropped, [`spawn_local`] on this thread spawns
    /// onto it. Nothing is run by it.
    pub fn enter(&self) -> LocalEnterGuard {
        let before = CURRENT.try_with(|current| current.replace(Some(self.shard.clone())));
        LocalEnterGuard {
            before: Cell::new(before.ok()),
            marker: PhantomData,
        }
    }

    /// Spawns a task onto the set. It runs when the set is polled.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn_on(self.shard.clone(), future, None, Location::caller())
    }

    /// Runs the set's tasks until `future`, which may itself `spawn_local`, completes.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `future` alone; the tasks stay in the set.
    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _set = enter(Some(self.shard.clone()));
            let _no_blocking = context::disallow_block_in_place();
            self.shared.register(cx.waker());
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            if self.shared.tick() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// Tells sets apart, from one another and from runtimes.
    pub fn id(&self) -> RuntimeId {
        self.shared.id
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _set = enter(Some(self.shard.clone()));
        let _no_blocking = context::disallow_block_in_place();
        self.shared.register(cx.waker());
        if self.shared.tick() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.shard.alive() == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Default for LocalSet {
    fn default() -> LocalSet {
        LocalSet::new()
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        let _set = enter(Some(self.shard.clone()));
        let _no_blocking = context::disallow_block_in_place();
        self.shard.close();
        loop {
            while self.shared.tick() {}
            if self.shard.alive() == 0 {
                break;
            }
            // A waker on another thread has a G in its hands and is about to queue it.
            std::thread::yield_now();
        }
    }
}

impl std::panic::UnwindSafe for LocalSet {}
impl std::panic::RefUnwindSafe for LocalSet {}

/// The runtime's side of `LocalRuntime`: which thread it belongs to.
impl Handle {
    fn is_local(&self) -> bool {
        self.scheduler().config.local_thread.is_some()
    }

    /// Whether this is a `LocalRuntime`'s handle and this the thread that it belongs to.
    pub(crate) fn is_local_here(&self) -> bool {
        self.scheduler().config.local_thread == Some(context::thread_token())
    }
}
