//! A set of tasks that are awaited in the order in which they complete.
//!
//! A completed task is found without asking the others: each task of the set gets a [`Ticket`] of its
//! own as the waker of its `JoinHandle`, and a ticket that is woken puts itself at the end of the
//! [`Finished`] list. The set takes tickets from the front and joins the tasks they name.
//!
//! # Who owns what
//!
//! The handles belong to the [`JoinSet`] alone and are reached by `&mut` only. Shared with the tasks
//! is the list, behind a lock that is held for a push or a pop; no foreign code runs under it.
//! A ticket names its task by the key of its slot and by a serial number: slots are used again, so a
//! ticket that is woken late, when its task has left the set, must not be taken for the next
//! tenant's. Its number no longer matches, and it is thrown away.
//!
//! Tickets in the list keep the list alive and the list keeps them: [`Finished::close`] cuts the
//! circle when the set goes.
//!
//! # The designs not taken
//!
//! Two intrusive lists of idle and notified entries (tokio) need no slab, but unsafe code for the
//! pointers and for the values inside of shared entries. A lock-free list saves the lock, which two
//! parties hold for a few instructions; a completed task costs more than that elsewhere.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use futures_task::{ArcWake, waker_ref};
use parking_lot::Mutex;
use slab::Slab;

use super::{AbortHandle, Id, JoinError, JoinHandle, LocalSet};
use crate::coop;
use crate::handle::Handle;
use crate::seam;
use crate::wait::{self, WaitReason};

/// A set of tasks with one type of output, to be awaited as they complete.
///
/// As `tokio::task::JoinSet`. Dropping the set aborts its tasks.
///
/// ```ignore
/// use gmp::task::JoinSet;
///
/// # #[gmp::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut set = JoinSet::new();
/// for i in 0..10 {
///     set.spawn(async move { i });
/// }
/// let mut sum = 0;
/// while let Some(output) = set.join_next().await {
///     sum += output.unwrap();
/// }
/// assert_eq!(sum, 45);
/// # }
/// ```
pub struct JoinSet<T> {
    /// Made with the first task.
    inner: Option<Box<Inner<T>>>,
}

struct Inner<T> {
    members: Slab<Member<T>>,
    /// The serial number of the next member.
    next_serial: u64,
    finished: Arc<Finished>,
}

/// A task of the set.
struct Member<T> {
    serial: u64,
    state: State<T>,
}

enum State<T> {
    Running(JoinHandle<T>),
    /// It had completed before its ticket was registered with it. Boxed, as it is rare; in a mutex,
    /// so that the set is `Sync` whatever `T` is.
    Joined(Id, Box<Mutex<Result<T, JoinError>>>),
}

/// The tickets of tasks that have completed, in the order in which they did.
struct Finished(Mutex<List>);

struct List {
    tickets: VecDeque<Arc<Ticket>>,
    /// Who waits in `poll_join_next`.
    waker: Option<Waker>,
    /// The set is gone: no more tickets are taken.
    closed: bool,
}

/// The waker of one task's `JoinHandle`.
struct Ticket {
    key: usize,
    serial: u64,
    /// Whether the ticket is in the list. Read and written under the list's lock.
    listed: AtomicBool,
    finished: Arc<Finished>,
}

impl ArcWake for Ticket {
    fn wake_by_ref(ticket: &Arc<Ticket>) {
        let waker = {
            let mut list = ticket.finished.0.lock();
            // Relaxed: the lock orders it.
            if list.closed || ticket.listed.swap(true, Ordering::Relaxed) {
                return;
            }
            list.tickets.push_back(ticket.clone());
            list.waker.take()
        };
        seam::wake_all(waker);
    }
}

impl Finished {
    fn new() -> Finished {
        Finished(Mutex::new(List {
            tickets: VecDeque::new(),
            waker: None,
            closed: false,
        }))
    }

    /// Takes the first ticket.
    fn pop(&self) -> Option<Arc<Ticket>> {
        self.0.lock().pop()
    }

    /// Takes the first ticket; if there is none, `waker` is woken by the next one.
    fn pop_or_wait(&self, waker: &Waker) -> Option<Arc<Ticket>> {
        let mut list = self.0.lock();
        let ticket = list.pop();
        let known = |list: &List| list.waker.as_ref().is_some_and(|old| old.will_wake(waker));
        if ticket.is_some() || known(&list) {
            return ticket;
        }
        // Cloning and dropping a waker runs foreign code, which may come back to this list.
        drop(list);
        let new = waker.clone();
        let mut list = self.0.lock();
        let ticket = list.pop();
        let unused = match ticket {
            Some(_) => Some(new),
            None => list.waker.replace(new),
        };
        drop(list);
        drop(unused);
        ticket
    }

    /// Lets go of all tickets and of the waker, and takes no more.
    fn close(&self) {
        let mut list = self.0.lock();
        list.closed = true;
        let tickets = std::mem::take(&mut list.tickets);
        let waker = list.waker.take();
        drop(list);
        drop((tickets, waker));
    }
}

impl List {
    fn pop(&mut self) -> Option<Arc<Ticket>> {
        let ticket = self.tickets.pop_front()?;
        // From here on the ticket may be listed again. Relaxed: the lock orders it.
        ticket.listed.store(false, Ordering::Relaxed);
        Some(ticket)
    }
}

impl<T> Inner<T> {
    fn new() -> Inner<T> {
        Inner {
            members: Slab::new(),
            next_serial: 0,
            finished: Arc::new(Finished::new()),
        }
    }

    fn insert(&mut self, mut handle: JoinHandle<T>) {
        let slot = self.members.vacant_entry();
        let serial = self.next_serial;
        self.next_serial += 1;
        let ticket = Arc::new(Ticket {
            key: slot.key(),
            serial,
            listed: AtomicBool::new(false),
            finished: self.finished.clone(),
        });
        match poll_handle(&mut handle, &ticket) {
            Poll::Pending => {
                let state = State::Running(handle);
                slot.insert(Member { serial, state });
            }
            Poll::Ready(result) => {
                let state = State::Joined(handle.id(), Box::new(Mutex::new(result)));
                slot.insert(Member { serial, state });
                ArcWake::wake(ticket);
            }
        }
    }

    /// Takes the ticket's task out of the set. `None` if it has left already, or if it was woken
    /// without having completed.
    fn join(&mut self, ticket: &Arc<Ticket>) -> Option<(Id, Result<T, JoinError>)> {
        let member = self.members.get_mut(ticket.key)?;
        if member.serial != ticket.serial {
            return None;
        }
        if let State::Running(handle) = &mut member.state {
            let Poll::Ready(result) = poll_handle(handle, ticket) else {
                return None;
            };
            let id = handle.id();
            self.members.remove(ticket.key);
            return Some((id, result));
        }
        match self.members.remove(ticket.key).state {
            State::Joined(id, result) => Some((id, result.into_inner())),
            State::Running(_) => unreachable!("it was joined above"),
        }
    }
}

/// Polls a handle for its ticket. The budget is the set's business: a denial would list the ticket
/// again as if the task had completed.
fn poll_handle<T>(handle: &mut JoinHandle<T>, ticket: &Arc<Ticket>) -> Poll<Result<T, JoinError>> {
    let waker = waker_ref(ticket);
    coop::with_unconstrained(|| Pin::new(handle).poll(&mut Context::from_waker(&waker)))
}

impl<T> JoinSet<T> {
    /// An empty set. It allocates nothing.
    pub fn new() -> JoinSet<T> {
        JoinSet { inner: None }
    }

    /// How many tasks the set holds: all that were spawned on it and not yet joined.
    pub fn len(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.members.len())
    }

    /// Whether the set holds no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn abort_members(&self) {
        for (_, member) in self.inner.iter().flat_map(|inner| &inner.members) {
            if let State::Running(handle) = &member.state {
                handle.abort();
            }
        }
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and puts it into the set.
    ///
    /// As `tokio::task::JoinSet::spawn`. The task runs whether or not the set is awaited.
    ///
    /// # Panics
    ///
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        self.insert(super::spawn(task))
    }

    /// Spawns a task on the runtime of `handle` and puts it into the set.
    ///
    /// As `tokio::task::JoinSet::spawn_on`.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn(task))
    }

    /// Spawns a task that need not be `Send` on the current `LocalSet` or `LocalRuntime` and puts it
    /// into the set.
    ///
    /// As `tokio::task::JoinSet::spawn_local`.
    ///
    /// # Panics
    ///
    /// Outside both.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        F: 'static,
    {
        self.insert(super::spawn_local(task))
    }

    /// Spawns a task that need not be `Send` on `local_set` and puts it into the set. It runs when
    /// the `LocalSet` does.
    ///
    /// As `tokio::task::JoinSet::spawn_local_on`.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T>,
        F: 'static,
    {
        self.insert(local_set.spawn_local(task))
    }

    /// Runs `f` on the blocking pool of the current runtime and puts its task into the set.
    ///
    /// As `tokio::task::JoinSet::spawn_blocking`. A job that has begun to run is not aborted by the
    /// set's drop.
    ///
    /// # Panics
    ///
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        self.insert(super::spawn_blocking(f))
    }

    /// Runs `f` on the blocking pool of the runtime of `handle` and puts its task into the set.
    ///
    /// As `tokio::task::JoinSet::spawn_blocking_on`.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking(f))
    }

    /// Puts a task into the set.
    fn insert(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        let abort = handle.abort_handle();
        self.inner
            .get_or_insert_with(|| Box::new(Inner::new()))
            .insert(handle);
        abort
    }

    /// Waits for the next task to complete and gives its output; `None` if the set is empty.
    ///
    /// As `tokio::task::JoinSet::join_next`.
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`: it panicked or was aborted.
    ///
    /// # Cancel safety
    ///
    /// No task leaves the set when the future is dropped before it is ready.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Waits for the next task to complete and gives its id and output; `None` if the set is empty.
    ///
    /// As `tokio::task::JoinSet::join_next_with_id`.
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`; it knows the id.
    ///
    /// # Cancel safety
    ///
    /// No task leaves the set when the future is dropped before it is ready.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// The output of a task that has completed; `None` if there is none, or if the set is empty.
    ///
    /// As `tokio::task::JoinSet::try_join_next`.
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join().map(|(_, result)| result)
    }

    /// The id and output of a task that has completed; `None` if there is none, or if the set is
    /// empty.
    ///
    /// As `tokio::task::JoinSet::try_join_next_with_id`.
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`; it knows the id.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.try_join().map(with_id)
    }

    fn try_join(&mut self) -> Option<(Id, Result<T, JoinError>)> {
        let inner = self.inner.as_deref_mut()?;
        loop {
            let ticket = inner.finished.pop()?;
            if let Some(joined) = inner.join(&ticket) {
                return Some(joined);
            }
        }
    }

    /// Aborts all tasks and waits until they are gone. Their errors and outputs are dropped.
    ///
    /// As `tokio::task::JoinSet::shutdown`.
    ///
    /// # Cancel safety
    ///
    /// The tasks that are still there when the future is dropped stay in the set, aborted.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Waits for all tasks and gives their outputs in the order in which they completed.
    ///
    /// As `tokio::task::JoinSet::join_all`.
    ///
    /// # Panics
    ///
    /// With the panic of the first task that panicked, or when a task was aborted. The other tasks
    /// are aborted then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the tasks and loses the outputs.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(result) = self.join_next().await {
            match result {
                Ok(output) => outputs.push(output),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(error) => panic!("{error}"),
            }
        }
        outputs
    }

    /// Aborts all tasks. They stay in the set until they are joined.
    ///
    /// As `tokio::task::JoinSet::abort_all`.
    pub fn abort_all(&mut self) {
        self.abort_members();
    }

    /// Takes all tasks out of the set without aborting them: they go on in the background.
    ///
    /// As `tokio::task::JoinSet::detach_all`.
    pub fn detach_all(&mut self) {
        if let Some(inner) = &mut self.inner {
            drop(std::mem::take(&mut inner.members));
        }
    }

    /// Polls for a task that has completed.
    ///
    /// `Ready(None)` when the set is empty. When it is `Pending`, the waker of `cx`, and no waker of
    /// an earlier call, is woken when a task completes. It may be `Pending` although a task has
    /// completed, when the caller's budget is spent. As `tokio::task::JoinSet::poll_join_next`.
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_join(cx)
            .map(|joined| joined.map(|(_, result)| result))
    }

    /// Polls for a task that has completed, and gives its id as well.
    ///
    /// See [`poll_join_next`](JoinSet::poll_join_next).
    ///
    /// # Errors
    ///
    /// The task's [`JoinError`], inside of `Some`; it knows the id.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.poll_join(cx).map(|joined| joined.map(with_id))
    }

    fn poll_join(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Id, Result<T, JoinError>)>> {
        let Some(inner) = self.inner.as_deref_mut() else {
            return Poll::Ready(None);
        };
        if inner.members.is_empty() {
            return Poll::Ready(None);
        }
        let coop = ready!(coop::poll_proceed(cx));
        while let Some(ticket) = inner.finished.pop_or_wait(cx.waker()) {
            if let Some(joined) = inner.join(&ticket) {
                coop.made_progress();
                return Poll::Ready(Some(joined));
            }
        }
        wait::record(WaitReason::Join);
        Poll::Pending
    }
}

fn with_id<T>((id, result): (Id, Result<T, JoinError>)) -> Result<(Id, T), JoinError> {
    result.map(|output| (id, output))
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            inner.finished.close();
        }
        self.abort_members();
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> JoinSet<T> {
        JoinSet::new()
    }
}

/// Spawns each future of the iterator on the current runtime.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T>,
    F: Send + 'static,
    T: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = F>>(tasks: I) -> JoinSet<T> {
        let mut set = JoinSet::new();
        set.extend(tasks);
        set
    }
}

/// Spawns each future of the iterator on the current runtime.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T>,
    F: Send + 'static,
    T: Send + 'static,
{
    fn extend<I: IntoIterator<Item = F>>(&mut self, tasks: I) {
        for task in tasks {
            self.spawn(task);
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests;
