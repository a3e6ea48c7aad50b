//! Signals: what the outside tells the process, such as *Ctrl-C* or "reload your configuration".
//!
//! [`ctrl_c`] waits for one *Ctrl-C*; [`unix::signal`] listens for any signal that can be handled.
//! Delivery is the process's, not a runtime's: every listener in every runtime gets every signal.
//!
//! # The handler stays
//!
//! Listening for a signal for the first time replaces what the signal did by default, **for the
//! rest of the life of the process**, as in tokio. When the listener is dropped the default does
//! *not* come back: after one `ctrl_c().await`, another *Ctrl-C* does nothing at all unless
//! somebody listens again. A program whose shutdown may take long listens twice, and lets the
//! second one be the end:
//!
//! ```no_run
//! #[gmp::main]
//! async fn main() -> std::io::Result<()> {
//!     gmp::signal::ctrl_c().await?;
//!     eprintln!("finishing what is under way; press Ctrl-C again to stop at once");
//!     gmp::select! {
//!         () = finish() => Ok(()),
//!         again = gmp::signal::ctrl_c() => {
//!             again?;
//!             std::process::exit(130)
//!         }
//!     }
//! }
//! # async fn finish() {}
//! ```
//!
//! # After a fork
//!
//! A child made by `fork` without `exec` has none of the parent's threads. Signals reach a runtime
//! that the child itself builds; those of the parent are not to be used there.

pub mod unix;

use std::io;

/// Waits for a *Ctrl-C*: the signal `SIGINT`.
///
/// It listens from the first poll on; a *Ctrl-C* before that is not seen, or ends the process.
/// As the handler stays when the future is done or dropped, see [the module](self#the-handler-stays)
/// for how to listen for the second one.
///
/// # Errors
///
/// The handler could not be installed, or the runtime is shutting down.
///
/// # Panics
///
/// When it is polled outside a runtime, or in one that was built without I/O.
///
/// # Cancel safety
///
/// A *Ctrl-C* between two calls is lost: to miss none, keep a [`unix::Signal`].
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// println!("press Ctrl-C to leave");
/// gmp::signal::ctrl_c().await?;
/// println!("bye");
/// # Ok(()) }
/// ```
pub async fn ctrl_c() -> io::Result<()> {
    unix::signal(unix::SignalKind::interrupt())?.recv().await;
    Ok(())
}
