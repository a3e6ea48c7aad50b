//! What goes wrong with a channel.

use std::error::Error;
use std::fmt;

const CLOSED: &str = "channel closed";

/// Error returned by [`Sender::send`](super::Sender::send): the receiver is gone or was closed. Holds
/// the value that was not sent.
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

impl<T> Error for SendError<T> {}

/// Error returned by the `try_` methods of [`Sender`](super::Sender). Holds what was not sent.
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// The channel has no capacity left right now.
    Full(T),

    /// The receiver is gone or was closed.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// The value that was not sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use gmp::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel(1);
    /// sender.try_send("first").unwrap();
    /// let error = sender.try_send("second").unwrap_err();
    /// assert_eq!(error.into_inner(), "second");
    /// ```
    pub fn into_inner(self) -> T {
        let (TrySendError::Full(value) | TrySendError::Closed(value)) = self;
        value
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "no available capacity",
            TrySendError::Closed(_) => CLOSED,
        })
    }
}

impl<T> Error for TrySendError<T> {}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        TrySendError::Closed(error.0)
    }
}

/// Error returned by [`Receiver::try_recv`](super::Receiver::try_recv).
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// There is nothing to receive right now; somebody may still send.
    Empty,

    /// There is nothing to receive, and there never will be.
    Disconnected,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TryRecvError::Empty => "receiving on an empty channel",
            TryRecvError::Disconnected => "receiving on a closed channel",
        })
    }
}

impl Error for TryRecvError {}

/// Nothing returns this error; tokio has it, so it is here.
#[derive(Debug, Clone)]
#[doc(hidden)]
#[deprecated(note = "`recv` returns an `Option`; nothing uses this type")]
pub struct RecvError(());

#[allow(deprecated)]
impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

#[allow(deprecated)]
impl Error for RecvError {}

/// Error returned by [`Sender::send_timeout`](super::Sender::send_timeout). Holds the value that was
/// not sent.
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// The channel had no capacity left for all of the time allowed.
    Timeout(T),

    /// The receiver is gone or was closed.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        let (SendTimeoutError::Timeout(value) | SendTimeoutError::Closed(value)) = self;
        value
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SendTimeoutError::Timeout(_) => "Timeout(..)",
            SendTimeoutError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendTimeoutError::Timeout(_) => "timed out waiting on send operation",
            SendTimeoutError::Closed(_) => CLOSED,
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}
