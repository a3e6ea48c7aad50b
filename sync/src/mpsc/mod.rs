//! A queue with many senders and one receiver.
//!
//! [`channel`] makes a *bounded* one: at most so many messages are in flight, and whoever sends one
//! more waits until the receiver has taken one. [`unbounded_channel`] makes one without a bound,
//! whose `send` never waits; a receiver that is too slow lets the memory grow.
//!
//! [`Sender`] and [`UnboundedSender`] are cloned to send from several tasks. Messages arrive in the
//! order in which they were sent.
//!
//! # Disconnection
//!
//! When every sender has been dropped, [`recv`](Receiver::recv) returns what is still in the channel,
//! then `None`. [`WeakSender`]s do not count.
//!
//! When the receiver has been dropped, every attempt to send fails, and the messages that were in
//! the channel have been dropped. To take the rest before going, call [`close`](Receiver::close):
//! senders fail from then on, while `recv` returns what was sent before, then `None`.
//!
//! # With synchronous code
//!
//! [`try_send`](Sender::try_send), [`try_recv`](Receiver::try_recv) and an unbounded `send` need no
//! runtime. [`blocking_send`](Sender::blocking_send) and [`blocking_recv`](Receiver::blocking_recv)
//! are for threads that may block. The two ends need not be in the same runtime, or in any.
//!
//! # Memory
//!
//! Messages live in blocks of 32, which are allocated as the channel fills and used again when it
//! has been emptied; a channel keeps a few of them. A capacity costs nothing before it is used.
//!
//! # What differs from tokio
//!
//! A bounded channel never holds more than 2^30 messages and permits, whatever its capacity.
//!
//! # How it works
//!
//! From the inside out: `block` is a piece of the queue, `list` the queue, `word` says where senders
//! stand, `capacity` who may send, `waker` is where the receiver's waker lies, `chan` puts these
//! together, `rx` is how the receiver waits. `bounded`, with `permit` and
//! `receiver`, and `unbounded` are the two faces. A message
//! costs its sender two shared operations, on the word and on the block; the receiver costs a bounded
//! channel one more, on its own cache line, and an unbounded one none.

mod block;
mod bounded;
mod capacity;
mod chan;
pub mod error;
mod list;
mod permit;
mod receiver;
mod rx;
mod timeout;
mod unbounded;
mod waker;
mod word;

#[cfg(all(test, gmp_loom))]
mod model;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

pub use bounded::{Sender, WeakSender, channel};
pub use permit::{OwnedPermit, Permit, PermitIterator};
pub use receiver::Receiver;
#[doc(hidden)]
pub use timeout::{SleepFn, install_sleep};
pub use unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

/// Keeps what one side writes off the cache lines of the other. Two lines, for processors that fetch
/// them in pairs.
#[repr(align(128))]
struct Padded<T>(T);
