//! Files, processes, signals and standard streams.
//!
//! Two ways lead from here to the operating system:
//!
//! * what can only block (`fs`, `stdio`) runs on the blocking pool: the caller's bytes are copied
//!   into a buffer that travels with the job, so that a cancelled read or write touches no memory
//!   of the caller (`blocking`, `buf`);
//! * what can be polled (a child's pipes, its pidfd, the self-pipe of the signals) is registered
//!   with netpoll. Descriptors that belong to the runtime rather than to a task have no task
//!   either: their waker *is* the callback (`watch`).
//!
//! Nothing here needs a hook in the executor. What lives as long as a runtime (the registration of
//! the self-pipe) is an extension of its handle.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`fs`] | files and directories; becomes `gmp::fs` |
//! | [`process`] | commands and children; becomes `gmp::process` |
//! | [`signal`] | `ctrl_c` and Unix signals; becomes `gmp::signal` |
//! | [`stdio`] | `stdin`, `stdout`, `stderr`; becomes part of `gmp::io` |

#[cfg(any(feature = "fs", feature = "io-std"))]
mod blocking;
#[cfg(any(feature = "fs", feature = "io-std"))]
mod buf;
#[cfg(any(feature = "process", feature = "signal"))]
mod delivery;
#[cfg(any(feature = "fs", feature = "io-std", feature = "process"))]
mod other_traits;
#[cfg(any(feature = "process", feature = "signal"))]
mod watch;

#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(feature = "io-std")]
pub mod stdio;
