//! A runtime's registration of the self-pipe.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use gmp_executor::Handle;

use super::pipe;
use crate::watch::{Source, Verdict, Watch};

/// An extension of the runtime's handle: the receiver, once there is one.
#[derive(Default)]
struct Receiver(OnceLock<Arc<Watch<SelfPipe>>>);

/// What a receiver does when the self-pipe is readable.
struct SelfPipe;

impl Source for SelfPipe {
    fn readable(&mut self, receiver: &OwnedFd) -> Verdict {
        pipe::drain(receiver);
        super::publish_pending();
        Verdict::Again
    }
}

/// Sees to it that the runtime behind `handle`, which has to be the current one, has a receiver.
///
/// # Errors
///
/// The runtime is shut down, or there are no descriptors left.
pub(super) fn ensure_receiver(handle: &Handle) -> io::Result<()> {
    let receiver = handle.extension::<Receiver>(Receiver::default);
    if let Some(watch) = receiver.0.get() {
        return if watch.is_over() {
            Err(io::Error::other(
                "the runtime is shut down: it receives no signals any more",
            ))
        } else {
            Ok(())
        };
    }
    let watch = Watch::new(pipe::current()?.receiver()?, SelfPipe).map_err(|(error, _)| error)?;
    // When somebody was quicker, this registration is dropped before it has begun.
    if receiver.0.set(Arc::clone(&watch)).is_ok() {
        watch.look();
    }
    Ok(())
}

/// Sees to it that the current runtime, if there is one with I/O, has a receiver.
///
/// Whoever waits for a signal may do so in another runtime than the one in which he began to listen,
/// and which may be gone.
pub(crate) fn ensure_received_here() {
    if let Ok(handle) = Handle::try_current()
        && handle.netpoll().is_some()
    {
        // A runtime that is shut down wakes nobody anyway.
        let _ = ensure_receiver(&handle);
    }
}
