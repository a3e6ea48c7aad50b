//! Task-locals: values that a task finds again at each of its polls, on whichever thread.
//!
//! A [`LocalKey`] is a thread-local slot. A [`TaskLocalFuture`] carries the value while its future is
//! not being polled. Whenever it polls its future, and when it drops it, it *swaps* its value with
//! what the slot holds, and swaps back afterwards. So the future, and nothing else, sees the value;
//! scopes of the same key nest, and the value travels with the future from thread to thread.
//!
//! No borrow of the slot is held while foreign code runs, except the shared one of
//! [`LocalKey::with`]; under that one a swap is refused with a panic.

use std::cell::{BorrowMutError, RefCell};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;

/// A key for a value that belongs to a task, declared with `task_local!`.
///
/// As `tokio::task::LocalKey`. Unlike a thread-local it has no initial value: it has one only inside
/// of [`scope`](LocalKey::scope) and [`sync_scope`](LocalKey::sync_scope).
///
/// ```ignore
/// gmp::task_local! {
///     static REQUEST: u32;
/// }
///
/// # #[gmp::main(flavor = "current_thread")]
/// # async fn main() {
/// REQUEST
///     .scope(1, async {
///         assert_eq!(REQUEST.get(), 1);
///         REQUEST.scope(2, async { assert_eq!(REQUEST.get(), 2) }).await;
///         assert_eq!(REQUEST.get(), 1);
///     })
///     .await;
/// # }
/// ```
pub struct LocalKey<T: 'static> {
    slot: thread::LocalKey<RefCell<Option<T>>>,
}

impl<T: 'static> LocalKey<T> {
    /// For `task_local!` alone: a key over a thread-local that nothing else uses.
    #[doc(hidden)]
    pub const fn over(slot: thread::LocalKey<RefCell<Option<T>>>) -> LocalKey<T> {
        LocalKey { slot }
    }

    /// Runs the future `future` with the key set to `value`.
    ///
    /// The value is there during each poll of the future and while the future is dropped. It is
    /// dropped together with the returned future, unless
    /// [`take_value`](TaskLocalFuture::take_value) took it. Tasks spawned by the future do not see
    /// it. As `tokio::task::LocalKey::scope`.
    ///
    /// # Panics
    ///
    /// Polling the returned future inside of [`with`](LocalKey::with) or
    /// [`try_with`](LocalKey::try_with) of the same key panics.
    pub fn scope<F>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F>
    where
        F: Future,
    {
        TaskLocalFuture {
            key: self,
            value: Some(value),
            future: Some(future),
            _pinned: PhantomPinned,
        }
    }

    /// Calls `f` with the key set to `value`, which is dropped afterwards.
    ///
    /// As `tokio::task::LocalKey::sync_scope`.
    ///
    /// # Panics
    ///
    /// Inside of [`with`](LocalKey::with) or [`try_with`](LocalKey::try_with) of the same key.
    #[track_caller]
    pub fn sync_scope<F, R>(&'static self, value: T, f: F) -> R
    where
        F: FnOnce() -> R,
    {
        let mut value = Some(value);
        match self.swapped(&mut value, f) {
            Ok(result) => result,
            Err(error) => error.panic(),
        }
    }

    /// Calls `f` with the current value.
    ///
    /// # Panics
    ///
    /// When the key has no value here. See [`try_with`](LocalKey::try_with).
    #[track_caller]
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(_) => panic!("cannot access a task-local storage value without setting it first"),
        }
    }

    /// Calls `f` with the current value, if there is one.
    ///
    /// # Errors
    ///
    /// When the key has no value here: outside of a scope, after `take_value`, or while the
    /// thread's locals are being destroyed.
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let called = self.slot.try_with(|slot| {
            // A mutable borrow lasts for a swap only, in which nothing else runs.
            slot.borrow().as_ref().map(f)
        });
        match called {
            Ok(Some(result)) => Ok(result),
            Ok(None) | Err(_) => Err(AccessError(())),
        }
    }

    /// Calls `f` with the contents of `value` in the slot, and puts both back in their places
    /// afterwards, also when `f` panics.
    fn swapped<R>(
        &'static self,
        value: &mut Option<T>,
        f: impl FnOnce() -> R,
    ) -> Result<R, NoScope> {
        struct SwapBack<'a, T: 'static> {
            key: &'static LocalKey<T>,
            value: &'a mut Option<T>,
        }
        impl<T> Drop for SwapBack<'_, T> {
            fn drop(&mut self) {
                // It worked on the way in: the thread-local is still there, for it is destroyed
                // only when its thread runs nothing else, and whoever borrowed the slot since has
                // given it back, for borrows end before `with` does.
                self.key
                    .swap(self.value)
                    .expect("the slot that was swapped into can be swapped out of");
            }
        }

        self.swap(value)?;
        let _swap_back = SwapBack { key: self, value };
        Ok(f())
    }

    fn swap(&'static self, value: &mut Option<T>) -> Result<(), NoScope> {
        self.slot.try_with(|slot| {
            slot.try_borrow_mut()
                .map(|mut slot| mem::swap(value, &mut *slot))
        })??;
        Ok(())
    }
}

impl<T: Clone + 'static> LocalKey<T> {
    /// A clone of the current value.
    ///
    /// # Panics
    ///
    /// When the key has no value here. See [`try_get`](LocalKey::try_get).
    #[track_caller]
    pub fn get(&'static self) -> T {
        self.with(T::clone)
    }

    /// A clone of the current value, if there is one.
    ///
    /// # Errors
    ///
    /// As [`try_with`](LocalKey::try_with).
    pub fn try_get(&'static self) -> Result<T, AccessError> {
        self.try_with(T::clone)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("LocalKey { .. }")
    }
}

pin_project! {
    /// A future that runs another with a task-local set, made by [`LocalKey::scope`].
    ///
    /// As `tokio::task::futures::TaskLocalFuture`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the future inside, with the value set, and then the value.
    #[must_use = "futures do nothing unless polled"]
    pub struct TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        key: &'static LocalKey<T>,
        // What belongs into the slot while the future runs; what the slot held, meanwhile.
        value: Option<T>,
        // `None` once it has completed: it is dropped while the value is still set.
        #[pin]
        future: Option<F>,
        #[pin]
        _pinned: PhantomPinned,
    }

    impl<T: 'static, F> PinnedDrop for TaskLocalFuture<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let mut future = this.future;
            if mem::needs_drop::<F>() && future.is_some() {
                // Where no scope can be entered, the future is dropped behind this, without one.
                let _ = this.key.swapped(this.value, || future.set(None));
            }
        }
    }
}

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value out: after the future has completed, or before that, and then the future
    /// finds the key without a value from now on.
    ///
    /// `None` when it was taken already. As in tokio.
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut future = this.future;
        let polled = this.key.swapped(this.value, || {
            let polled = future.as_mut().as_pin_mut()?.poll(cx);
            if polled.is_ready() {
                future.set(None);
            }
            Some(polled)
        });
        match polled {
            Ok(Some(polled)) => polled,
            Ok(None) => panic!("`TaskLocalFuture` polled after completion"),
            Err(error) => error.panic(),
        }
    }
}

impl<T: fmt::Debug + 'static, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("TaskLocalFuture");
        match &self.value {
            Some(value) => debug.field("value", value),
            None => debug.field("value", &format_args!("<missing>")),
        };
        debug.finish()
    }
}

/// The error of [`LocalKey::try_with`]: the key has no value here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessError").finish()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("task-local value not set")
    }
}

impl Error for AccessError {}

/// Why a value cannot be swapped into the slot.
#[derive(Debug)]
enum NoScope {
    /// Inside of `with` of the same key.
    Borrowed,
    /// The thread is ending and the thread-local is gone.
    Destroyed,
}

impl NoScope {
    #[track_caller]
    fn panic(self) -> ! {
        match self {
            NoScope::Borrowed => {
                panic!("cannot enter a task-local scope while the task-local storage is borrowed")
            }
            NoScope::Destroyed => panic!(
                "cannot enter a task-local scope during or after destruction of the underlying thread-local"
            ),
        }
    }
}

impl From<BorrowMutError> for NoScope {
    fn from(_: BorrowMutError) -> NoScope {
        NoScope::Borrowed
    }
}

impl From<thread::AccessError> for NoScope {
    fn from(_: thread::AccessError) -> NoScope {
        NoScope::Destroyed
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests;
