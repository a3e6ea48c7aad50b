//! `Semaphore`: the public face of the counting semaphore, with permits that release themselves.

use std::sync::Arc;

use gmp_executor::context::block_on_thread;
use gmp_executor::wait::WaitReason;

use crate::batch_semaphore::{self as batch, AcquireError, TryAcquireError};

#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// A counting semaphore: limits how many tasks do something at the same time.
///
/// It holds a number of permits. [`acquire`](Semaphore::acquire) takes one, waiting until one is
/// free; dropping the permit gives it back.
///
/// Fair: permits are given out in the order they were asked for. That includes
/// [`acquire_many`](Semaphore::acquire_many): while the task at the head of the queue waits for more
/// permits than are free, a task behind it that wants fewer waits too.
///
/// As `tokio::sync::Semaphore`.
///
/// # Memory ordering
///
/// What a task did before it released a permit is seen by every task that acquires one later.
/// More precisely: acquiring (also with the `try_` methods, when they succeed), releasing (by
/// dropping a permit, with [`add_permits`](Semaphore::add_permits) or
/// [`forget_permits`](Semaphore::forget_permits)) and [`close`](Semaphore::close) are `AcqRel`
/// operations in one total order, as on a single atomic. A failed attempt,
/// [`available_permits`](Semaphore::available_permits) and [`is_closed`](Semaphore::is_closed) are
/// `Acquire` loads.
///
/// # Examples
///
/// ```
/// use gmp::sync::{Semaphore, TryAcquireError};
///
/// #[gmp::main]
/// async fn main() {
///     let semaphore = Semaphore::new(3);
///     let one = semaphore.acquire().await.unwrap();
///     let two = semaphore.acquire_many(2).await.unwrap();
///     assert_eq!(semaphore.try_acquire().err(), Some(TryAcquireError::NoPermits));
///     drop((one, two));
///     assert_eq!(semaphore.available_permits(), 3);
/// }
/// ```
///
/// At most ten downloads at a time:
///
/// ```
/// use std::sync::Arc;
/// use gmp::sync::Semaphore;
///
/// # async fn download(_: u32) {}
/// #[gmp::main]
/// async fn main() {
///     let limit = Arc::new(Semaphore::new(10));
///     let mut tasks = Vec::new();
///     for page in 0..100 {
///         let permit = limit.clone().acquire_owned().await.unwrap();
///         tasks.push(gmp::spawn(async move {
///             download(page).await;
///             drop(permit);
///         }));
///     }
///     for task in tasks {
///         task.await.unwrap();
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Semaphore {
    inner: batch::Semaphore,
}

impl Semaphore {
    /// The most permits a semaphore can have: `usize::MAX >> 3`. More is usually a panic.
    pub const MAX_PERMITS: usize = batch::Semaphore::MAX_PERMITS;

    /// Makes a semaphore with that many permits.
    ///
    /// # Panics
    ///
    /// With more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        Semaphore {
            inner: batch::Semaphore::new(permits),
        }
    }

    /// Makes a semaphore with that many permits, also in a `static`.
    ///
    /// # Panics
    ///
    /// With more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS); in a `static`, an error of the compiler.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Semaphore;
    ///
    /// static CONNECTIONS: Semaphore = Semaphore::const_new(100);
    /// ```
    #[cfg(not(gmp_loom))]
    #[track_caller]
    pub const fn const_new(permits: usize) -> Self {
        Semaphore {
            inner: batch::Semaphore::const_new(permits),
        }
    }

    /// How many permits are free right now.
    pub fn available_permits(&self) -> usize {
        self.inner.available_permits()
    }

    /// Adds `n` permits, which go to those who wait first.
    ///
    /// # Panics
    ///
    /// When there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        self.inner.release(n);
    }

    /// Takes up to `n` free permits away for good, and says how many.
    pub fn forget_permits(&self, n: usize) -> usize {
        self.inner.forget_permits(n)
    }

    /// Takes a permit, waiting for one if none is free.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        let reason = WaitReason::SemaphoreAcquire;
        self.inner.acquire(1, reason).await?;
        Ok(SemaphorePermit {
            semaphore: self,
            permits: 1,
        })
    }

    /// Takes `n` permits at once, waiting until all of them are there.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue, and the permits it had collected.
    pub async fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        let permits = n as usize;
        let reason = WaitReason::SemaphoreAcquire;
        self.inner.acquire(permits, reason).await?;
        Ok(SemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Takes a permit if one is free.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::NoPermits`] if none is, [`TryAcquireError::Closed`] if the semaphore is
    /// closed.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if as many are free.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::NoPermits`] if they are not, [`TryAcquireError::Closed`] if the semaphore
    /// is closed.
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let permits = n as usize;
        self.inner.try_acquire(permits)?;
        Ok(SemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Takes a permit, putting the thread to sleep until one is free.
    ///
    /// For synchronous code, such as a job of `spawn_blocking`; otherwise as
    /// [`acquire`](Semaphore::acquire).
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        block_on_thread(self.acquire())
    }

    /// Takes `n` permits, putting the thread to sleep until all of them are there.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        block_on_thread(self.acquire_many(n))
    }

    /// Takes a permit that owns a reference to the semaphore, waiting for one if none is free.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue.
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        let reason = WaitReason::SemaphoreAcquire;
        self.inner.acquire(1, reason).await?;
        Ok(OwnedSemaphorePermit {
            semaphore: self,
            permits: 1,
        })
    }

    /// Takes `n` permits at once, waiting until all of them are there; they own a reference to the
    /// semaphore.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue, and the permits it had collected.
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let permits = n as usize;
        let reason = WaitReason::SemaphoreAcquire;
        self.inner.acquire(permits, reason).await?;
        Ok(OwnedSemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Takes a permit that owns a reference to the semaphore, if one is free.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Semaphore::try_acquire).
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Takes `n` permits that own a reference to the semaphore, if as many are free.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_many`](Semaphore::try_acquire_many).
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let permits = n as usize;
        self.inner.try_acquire(permits)?;
        Ok(OwnedSemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Takes a permit that owns a reference to the semaphore, putting the thread to sleep until one
    /// is free.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        block_on_thread(self.acquire_owned())
    }

    /// Takes `n` permits that own a reference to the semaphore, putting the thread to sleep until
    /// all of them are there.
    ///
    /// # Panics
    ///
    /// On a thread that drives asynchronous tasks.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore is, or is being, closed.
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        block_on_thread(self.acquire_many_owned(n))
    }

    /// Closes the semaphore: it gives out no permit any more, and those who wait get an error.
    ///
    /// Permits already given out stay good.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gmp::sync::{Semaphore, TryAcquireError};
    ///
    /// #[gmp::main]
    /// async fn main() {
    ///     let semaphore = Arc::new(Semaphore::new(0));
    ///     let other = semaphore.clone();
    ///     let waiting = gmp::spawn(async move { other.acquire().await.is_err() });
    ///     semaphore.close();
    ///     assert!(waiting.await.unwrap());
    ///     assert_eq!(semaphore.try_acquire().err(), Some(TryAcquireError::Closed));
    /// }
    /// ```
    pub fn close(&self) {
        self.inner.close();
    }

    /// Whether the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}

/// Permits of a [`Semaphore`], given back when this is dropped.
#[must_use]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl SemaphorePermit<'_> {
    /// Drops this without giving the permits back: the semaphore has fewer from now on.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Adds the permits of `other` to this.
    ///
    /// # Panics
    ///
    /// If they are of different semaphores.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(10);
    /// let mut permit = semaphore.try_acquire().unwrap();
    /// permit.merge(semaphore.try_acquire_many(4).unwrap());
    /// assert_eq!(permit.num_permits(), 5);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        let is_same = std::ptr::eq(self.semaphore, other.semaphore);
        merge(is_same, &mut self.permits, &mut other.permits);
    }

    /// Splits `n` permits off, or returns `None` if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(10);
    /// let mut five = semaphore.try_acquire_many(5).unwrap();
    /// let two = five.split(2).unwrap();
    /// assert_eq!((five.num_permits(), two.num_permits()), (3, 2));
    /// ```
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(SemaphorePermit {
            semaphore: self.semaphore,
            permits: n,
        })
    }

    /// The semaphore that the permits are of.
    pub fn semaphore(&self) -> &Semaphore {
        self.semaphore
    }

    /// How many permits this holds.
    pub fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        self.semaphore.add_permits(self.permits);
    }
}

/// Permits of a [`Semaphore`] with a reference to it, given back when this is dropped.
#[must_use]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedSemaphorePermit {
    /// Drops this without giving the permits back: the semaphore has fewer from now on.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Adds the permits of `other` to this.
    ///
    /// # Panics
    ///
    /// If they are of different semaphores.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        let is_same = Arc::ptr_eq(&self.semaphore, &other.semaphore);
        merge(is_same, &mut self.permits, &mut other.permits);
    }

    /// Splits `n` permits off, or returns `None` if there are fewer. Clones the `Arc`.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(OwnedSemaphorePermit {
            semaphore: self.semaphore.clone(),
            permits: n,
        })
    }

    /// The semaphore that the permits are of.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }

    /// How many permits this holds.
    pub fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        self.semaphore.add_permits(self.permits);
    }
}

#[track_caller]
fn merge(is_same: bool, into: &mut usize, from: &mut usize) {
    assert!(
        is_same,
        "merging permits from different semaphore instances"
    );
    *into = into
        .checked_add(std::mem::take(from))
        .expect("the permits of one semaphore fit");
}
