use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{JoinHandle, LocalEnterGuard};
use crate::runtime::{Id, Runtime};

/// A set of tasks that run on the thread that polls it, so that they need not be `Send`.
///
/// As `tokio::task::LocalSet`: awaiting the set runs its tasks until all are done;
/// [`run_until`](LocalSet::run_until) runs them while a future is polled; dropping it drops them.
/// Each task has a budget of its own, and after 61 polls the thread's other work gets a turn.
///
/// ```
/// use std::rc::Rc;
///
/// #[gmp::main]
/// async fn main() {
///     let text = Rc::new("not Send");
///     let set = gmp::task::LocalSet::new();
///     let len = set
///         .run_until(async move {
///             gmp::task::spawn_local(async move { text.len() }).await.unwrap()
///         })
///         .await;
///     assert_eq!(len, 8);
/// }
/// ```
#[derive(Debug, Default)]
pub struct LocalSet {
    inner: gmp_executor::task::LocalSet,
}

impl LocalSet {
    /// Makes an empty set, bound to the calling thread.
    pub fn new() -> LocalSet {
        LocalSet::default()
    }

    /// Enters the set's context: until the guard is dropped, [`spawn_local`](super::spawn_local) on this
    /// thread spawns onto it. Nothing is run by it.
    pub fn enter(&self) -> LocalEnterGuard {
        self.inner.enter()
    }

    /// Spawns a task onto the set. It runs when the set is polled.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.inner.spawn_local(future)
    }

    /// Runs a future and the set's tasks on this thread until the future completes.
    ///
    /// Tasks that are left go on when the set is polled again.
    ///
    /// # Panics
    ///
    /// As [`Runtime::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, rt: &Runtime, future: F) -> F::Output {
        rt.block_on(self.run_until(future))
    }

    /// Runs the set's tasks until `future`, which may itself `spawn_local`, completes.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `future` alone; the tasks stay in the set.
    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        self.inner.run_until(future).await
    }

    /// Tells sets apart, from one another and from runtimes.
    pub fn id(&self) -> Id {
        self.inner.id()
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.inner).poll(cx)
    }
}

/// For `JoinSet::spawn_local_on` and `Builder::spawn_local_on`, which take the executor's type.
#[doc(hidden)]
impl Deref for LocalSet {
    type Target = gmp_executor::task::LocalSet;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}
