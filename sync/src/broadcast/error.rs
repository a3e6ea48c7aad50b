//! Errors of the channel in which every receiver sees every value.

use std::error::Error;
use std::fmt;

/// There is no receiver; the value comes back.
#[derive(Debug)]
pub struct SendError<T>(pub T);

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl<T: fmt::Debug> Error for SendError<T> {}

/// Why [`recv`](super::Receiver::recv) has no value.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum RecvError {
    /// Every sender is gone, and all values have been read.
    Closed,
    /// So many values were overwritten before they were read. The next call reads the oldest there is.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => f.write_str("channel closed"),
            RecvError::Lagged(missed) => write!(f, "channel lagged by {missed}"),
        }
    }
}

impl Error for RecvError {}

/// Why [`try_recv`](super::Receiver::try_recv) has no value.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum TryRecvError {
    /// All values have been read, and there are senders.
    Empty,
    /// Every sender is gone, and all values have been read.
    Closed,
    /// So many values were overwritten before they were read. The next call reads the oldest there is.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("channel empty"),
            TryRecvError::Closed => f.write_str("channel closed"),
            TryRecvError::Lagged(missed) => write!(f, "channel lagged by {missed}"),
        }
    }
}

impl Error for TryRecvError {}
