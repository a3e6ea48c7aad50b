//! Unix signals: [`signal()`] listens for one, a [`Signal`] hands out what arrives.

use std::future::poll_fn;
use std::io;
use std::os::raw::c_int;
use std::task::{Context, Poll};

use gmp_executor::wait::{self, WaitReason};
use gmp_executor::{Handle, coop};

use crate::delivery::{self, Listener};

/// Which signal.
///
/// The constructors name the signals that programs usually listen for;
/// [`from_raw`](SignalKind::from_raw) takes any other, such as a real-time signal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SignalKind(c_int);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $signal:ident;)*) => {
        impl SignalKind {
            $($(#[$doc])*
            pub const fn $name() -> Self {
                Self(libc::$signal)
            })*
        }
    };
}

kinds! {
    /// `SIGALRM`: a timer of `alarm(2)` or `setitimer(2)` has run out. Ends the process by default.
    alarm = SIGALRM;
    /// `SIGCHLD`: a child has ended, or was stopped or continued. Ignored by default.
    child = SIGCHLD;
    /// `SIGHUP`: the terminal is gone; for many servers, a request to read their configuration
    /// again. Ends the process by default.
    hangup = SIGHUP;
    /// `SIGINT`: *Ctrl-C*. Ends the process by default.
    interrupt = SIGINT;
    /// `SIGIO`: a descriptor that was set up for it is ready. Ends the process by default on Linux.
    io = SIGIO;
    /// `SIGPIPE`: a write to a pipe or socket that nobody reads any more. Rust programs ignore it
    /// from the start.
    pipe = SIGPIPE;
    /// `SIGQUIT`: *Ctrl-\\*. Ends the process with a core dump by default.
    quit = SIGQUIT;
    /// `SIGTERM`: a polite request to end. Ends the process by default.
    terminate = SIGTERM;
    /// `SIGUSR1`: what it means is the program's choice. Ends the process by default.
    user_defined1 = SIGUSR1;
    /// `SIGUSR2`: what it means is the program's choice. Ends the process by default.
    user_defined2 = SIGUSR2;
    /// `SIGWINCH`: the terminal's window has another size. Ignored by default.
    window_change = SIGWINCH;
}

impl SignalKind {
    /// The signal with that number, which is looked at only by [`signal()`].
    pub const fn from_raw(signum: c_int) -> Self {
        Self(signum)
    }

    /// The signal's number.
    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }
}

impl From<c_int> for SignalKind {
    fn from(signum: c_int) -> Self {
        Self::from_raw(signum)
    }
}

impl From<SignalKind> for c_int {
    fn from(kind: SignalKind) -> Self {
        kind.as_raw_value()
    }
}

/// Listens for a signal from now on.
///
/// A signal may be listened for any number of times, in several runtimes too; each [`Signal`] gets
/// every one.
///
/// From the first call for a kind on, the signal has lost its default effect for the rest of the
/// life of the process, also when every `Signal` has been dropped.
///
/// # Errors
///
/// The signal's handler may not be replaced (`SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE`, `SIGSEGV`),
/// there is no such signal, installing the handler failed, now or at an earlier call for this kind,
/// or the runtime is shutting down.
///
/// # Panics
///
/// Outside a runtime, and in one that was built without I/O.
///
/// # Examples
///
/// ```no_run
/// # #[gmp::main] async fn main() -> std::io::Result<()> {
/// use gmp::signal::unix::{SignalKind, signal};
///
/// let mut hangups = signal(SignalKind::hangup())?;
/// while let Some(()) = hangups.recv().await {
///     println!("reading the configuration again");
/// }
/// # Ok(()) }
/// ```
#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let handle = Handle::current();
    assert!(
        handle.netpoll().is_some(),
        "there is no signal driver running, must be called from the context of a runtime \
         that was built with `enable_io`"
    );
    Ok(Signal {
        listener: delivery::listen(kind.0, &handle)?,
    })
}

/// Somebody who listens for a signal.
///
/// Signals coalesce, in the kernel and here: those that arrive between two looks are one, so what
/// [`recv`](Signal::recv) hands out stands for *at least* one signal since the last time.
///
/// Returned by [`signal()`]. Dropping it does not bring the signal's default effect back.
#[derive(Debug)]
#[must_use = "nothing is received unless it is polled"]
pub struct Signal {
    listener: Listener,
}

impl Signal {
    /// Waits for the signal. Never `None`: the `Option` is tokio's, for use as a stream.
    ///
    /// # Cancel safety
    ///
    /// No signal is lost: what arrives while nobody waits is what the next call gets.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the signal: [`recv`](Signal::recv) outside an `async` function.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll};
    /// use gmp::signal::unix::Signal;
    ///
    /// struct Hangups(Signal);
    ///
    /// impl futures::Stream for Hangups {
    ///     type Item = ();
    ///
    ///     fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
    ///         self.0.poll_recv(cx)
    ///     }
    /// }
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if self.listener.poll_take(cx).is_pending() {
            // It may be polled in another runtime than it was made in, which may be gone.
            delivery::ensure_received_here();
            if coop::has_budget_remaining() {
                wait::record(WaitReason::Signal);
            }
            return Poll::Pending;
        }
        Poll::Ready(Some(()))
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_numbers_they_name() {
        let kinds = [
            (SignalKind::alarm(), libc::SIGALRM),
            (SignalKind::child(), libc::SIGCHLD),
            (SignalKind::hangup(), libc::SIGHUP),
            (SignalKind::interrupt(), libc::SIGINT),
            (SignalKind::io(), libc::SIGIO),
            (SignalKind::pipe(), libc::SIGPIPE),
            (SignalKind::quit(), libc::SIGQUIT),
            (SignalKind::terminate(), libc::SIGTERM),
            (SignalKind::user_defined1(), libc::SIGUSR1),
            (SignalKind::user_defined2(), libc::SIGUSR2),
            (SignalKind::window_change(), libc::SIGWINCH),
            (SignalKind::from_raw(-1), -1),
        ];
        for (kind, number) in kinds {
            assert_eq!(kind.as_raw_value(), number);
            assert_eq!(c_int::from(kind), number);
            assert_eq!(SignalKind::from(number), kind);
        }
    }

    #[test]
    #[should_panic = "there is no reactor running"]
    fn outside_a_runtime() {
        let _ = signal(SignalKind::hangup());
    }
}
