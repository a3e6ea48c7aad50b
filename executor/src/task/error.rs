//! Why a task has no output.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;

use parking_lot::Mutex;

use super::Id;

/// Why awaiting a [`JoinHandle`](super::JoinHandle) gave no output: the task panicked, or it was cancelled.
///
/// As `tokio::task::JoinError`.
pub struct JoinError {
    id: Id,
    reason: Reason,
}

enum Reason {
    Cancelled,
    /// In a mutex, since a payload is `Send` only and the error is to be `Sync`.
    Panic(Mutex<Box<dyn Any + Send + 'static>>),
}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> JoinError {
        JoinError {
            id,
            reason: Reason::Cancelled,
        }
    }

    pub(crate) fn panicked(id: Id, payload: Box<dyn Any + Send + 'static>) -> JoinError {
        JoinError {
            id,
            reason: Reason::Panic(Mutex::new(payload)),
        }
    }

    /// Whether the task was aborted, or dropped by its runtime's shutdown.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.reason, Reason::Cancelled)
    }

    /// Whether the task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.reason, Reason::Panic(_))
    }

    /// The payload with which the task panicked, for `std::panic::resume_unwind`.
    ///
    /// # Panics
    ///
    /// If the task did not panic. See [`try_into_panic`](JoinError::try_into_panic).
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic()
            .expect("`JoinError` reason is not a panic.")
    }

    /// The payload with which the task panicked.
    ///
    /// # Errors
    ///
    /// The error itself, if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.reason {
            Reason::Panic(payload) => Ok(payload.into_inner()),
            Reason::Cancelled => Err(self),
        }
    }

    /// The id of the task.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Calls `f` with the panic's message, if it was a panic with a text.
    fn with_message<R>(&self, f: impl FnOnce(Option<&str>) -> R) -> R {
        let Reason::Panic(payload) = &self.reason else {
            return f(None);
        };
        let payload = payload.lock();
        let text = payload
            .downcast_ref::<&'static str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        f(text)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cancelled() {
            return write!(f, "task {} was cancelled", self.id);
        }
        self.with_message(|text| match text {
            Some(text) => write!(f, "task {} panicked with message {text:?}", self.id),
            None => write!(f, "task {} panicked", self.id),
        })
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cancelled() {
            return write!(f, "JoinError::Cancelled({:?})", self.id);
        }
        self.with_message(|text| match text {
            Some(text) => write!(f, "JoinError::Panic({:?}, {text:?}, ...)", self.id),
            None => write!(f, "JoinError::Panic({:?}, ...)", self.id),
        })
    }
}

impl Error for JoinError {}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> io::Error {
        let what = if error.is_cancelled() {
            "task was cancelled"
        } else {
            "task panicked"
        };
        io::Error::other(what)
    }
}
