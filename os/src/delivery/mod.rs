//! How a signal gets from its handler to the tasks that wait for it.
//!
//! Words: a *slot* is what the process knows of one signal; the *self-pipe* is what a handler can
//! write to; a *receiver* is a runtime's registration of the self-pipe with its netpoll.
//!
//! 1. The handler marks the signal's slot *pending* and writes a byte to the self-pipe. That is all
//!    that it may do: no lock, no allocation, no waker.
//! 2. Each runtime in which somebody asked for a signal or spawned a child without a pidfd has a
//!    receiver. The byte makes all of them readable.
//! 3. A receiver that netpoll finds readable drains the self-pipe, *then* takes the pending marks,
//!    and publishes an event for each signal whose mark it took, to the listeners in all runtimes.
//!    Whichever receiver comes first does the work of all.
//!
//! A signal that arrives between the drain and the taking of its mark is published now, and its
//! byte brings a second look that finds nothing; one that arrives after the taking is found at the
//! second look. Signals that arrive before a listener looks are one event for it: like the kernel,
//! this coalesces.
//!
//! Why a mark and a byte rather than a counter in the pipe: a full pipe then loses nothing, since
//! the bytes that are in it already promise a look.
//!
//! The handler of a signal is installed once and stays for the life of the process, as tokio
//! documents. After a `fork` the child gets a self-pipe of its own (`pipe`).

mod event;
mod mark;
mod pipe;
mod receiver;

use std::io;
use std::sync::OnceLock;

use gmp_executor::Handle;

use self::event::Event;
pub(crate) use self::event::Listener;
use self::mark::Mark;
pub(crate) use self::receiver::ensure_received_here;

/// What the process knows of one signal.
struct Slot {
    /// Set by the handler, taken by whichever receiver looks first.
    pending: Mark,
    event: Event,
    /// Whether the handler is installed, or what the operating system said instead; once for all.
    installed: OnceLock<Result<(), Option<i32>>>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            pending: Mark::new(),
            event: Event::default(),
            installed: OnceLock::new(),
        }
    }
}

/// The slots of the signals 1 to `SIGRTMAX`, in this order.
fn slots() -> &'static [Slot] {
    static SLOTS: OnceLock<Box<[Slot]>> = OnceLock::new();
    SLOTS.get_or_init(|| (0..signal_max()).map(|_| Slot::new()).collect())
}

fn signal_max() -> i32 {
    #[cfg(any(target_os = "linux", target_os = "illumos"))]
    return libc::SIGRTMAX();
    // Every Unix has the signals up to here; real-time signals are not to be had elsewhere.
    #[cfg(not(any(target_os = "linux", target_os = "illumos")))]
    return 33;
}

fn slot(signal: i32) -> Option<&'static Slot> {
    let index = usize::try_from(signal).ok()?.checked_sub(1)?;
    slots().get(index)
}

/// Listens for a signal from now on, in the runtime behind `handle`, which has to be the current one.
///
/// # Errors
///
/// The signal cannot be handled, its handler could not be installed, or the runtime is shut down.
pub(crate) fn listen(signal: i32, handle: &Handle) -> io::Result<Listener> {
    if signal_hook_registry::FORBIDDEN.contains(&signal) {
        return Err(io::Error::other(format!(
            "signal {signal} cannot be listened for: its handler may not be replaced"
        )));
    }
    let Some(slot) = slot(signal) else {
        return Err(io::Error::other(format!(
            "signal {signal} cannot be listened for: there is no such signal"
        )));
    };
    // The receiver first: from the moment the handler is installed somebody has to look.
    receiver::ensure_receiver(handle)?;
    install_handler(signal, slot)?;
    Ok(slot.event.listen())
}

/// Installs the handler of a signal, unless somebody did before; listens without a receiver.
#[cfg(feature = "process")]
pub(crate) fn listen_anywhere(signal: i32) -> io::Result<Listener> {
    let slot = slot(signal).expect("called for SIGCHLD alone");
    install_handler(signal, slot)?;
    Ok(slot.event.listen())
}

fn install_handler(signal: i32, slot: &'static Slot) -> io::Result<()> {
    // The handler must find the pipe made.
    pipe::current()?;
    let installed = slot.installed.get_or_init(|| {
        let handler = move || {
            slot.pending.set();
            pipe::write_byte();
        };
        // SAFETY: the handler does what a handler may do: it stores to an atomic of static lifetime
        // and writes to a descriptor. It neither allocates, nor locks, nor panics.
        match unsafe { signal_hook_registry::register(signal, handler) } {
            Ok(_) => Ok(()),
            Err(error) => Err(error.raw_os_error()),
        }
    });
    match *installed {
        Ok(()) => Ok(()),
        Err(Some(code)) => Err(io::Error::from_raw_os_error(code)),
        Err(None) => Err(io::Error::other(
            "the signal handler could not be installed",
        )),
    }
}

/// Publishes an event for each signal that is marked pending. After the drain of the pipe.
fn publish_pending() {
    for slot in slots() {
        if slot.pending.take() {
            slot.event.publish();
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    /// Publishes until the listener has seen something. A mark that somebody else in this process has taken,
    /// who looks at all of them, is published a little later.
    fn publish_until_taken(listener: &mut Listener) {
        let start = std::time::Instant::now();
        publish_pending();
        while !listener.try_take() {
            let waited = start.elapsed();
            assert!(waited.as_secs() < 600, "waited for {waited:?} in vain");
            std::thread::yield_now();
            publish_pending();
        }
    }

    #[test]
    fn slots_are_those_of_real_signals() {
        for signal in [i32::MIN, -1, 0, signal_max() + 1, i32::MAX] {
            assert!(slot(signal).is_none(), "{signal}");
        }
        for signal in [1, libc::SIGCHLD, signal_max()] {
            assert!(slot(signal).is_some(), "{signal}");
        }
        let one: *const Slot = slot(1).unwrap();
        assert!(std::ptr::eq(one, &slots()[0]));
    }

    #[test]
    fn pending_signals_are_published_once_and_to_their_own_listeners() {
        // Signals that nobody else in this process raises.
        let (a, b) = (signal_max() - 1, signal_max() - 2);
        let mut first = slot(a).unwrap().event.listen();
        let mut second = slot(a).unwrap().event.listen();
        let mut other = slot(b).unwrap().event.listen();
        slot(a).unwrap().pending.set();
        publish_until_taken(&mut first);
        publish_pending();
        assert!(!first.try_take());
        assert!(second.try_take());
        assert!(!other.try_take());
    }

    #[test]
    fn installing_is_done_once_and_its_failure_is_remembered() {
        let signal = signal_max() - 3;
        let slot = slot(signal).unwrap();
        install_handler(signal, slot).unwrap();
        install_handler(signal, slot).unwrap();
        assert_eq!(slot.installed.get(), Some(&Ok(())));

        let refused = Box::leak(Box::new(Slot::new()));
        // No signal has this number, so the operating system refuses.
        let error = install_handler(signal_max() + 100, refused).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        let again = install_handler(signal_max() + 100, refused).unwrap_err();
        assert_eq!(again.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn handler_marks_and_writes() {
        let signal = signal_max() - 4;
        let slot = slot(signal).unwrap();
        let mut listener = slot.event.listen();
        install_handler(signal, slot).unwrap();
        // SAFETY: the signal has a handler since the line above.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
        publish_until_taken(&mut listener);
    }
}
