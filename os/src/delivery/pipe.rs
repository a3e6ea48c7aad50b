//! The self-pipe: what a signal handler can write to.
//!
//! One for the process, made when the first signal is listened for, never closed. A child made by
//! `fork` inherits it together with its parent's netpolls. Were the child to go on with it, it
//! would drain bytes that its parent's receivers are to be woken by. So the pipe carries the number
//! of the process that made it: a handler that runs in another process does not write, and the
//! child's first listener makes a pipe of its own.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::io::Errno;

pub(super) struct Pipe {
    pid: u32,
    sender: UnixStream,
    receiver: UnixStream,
}

/// The pipe, or null. Points to leaked memory: a handler may be using any pipe there ever was.
static PIPE: AtomicPtr<Pipe> = AtomicPtr::new(ptr::null_mut());

/// The pipe of this process, made if need be.
///
/// # Errors
///
/// There are no descriptors left.
pub(super) fn current() -> io::Result<&'static Pipe> {
    loop {
        let found = load();
        match found {
            Some(pipe) if pipe.pid == process::id() => return Ok(pipe),
            _ => {}
        }
        let old = found.map_or(ptr::null_mut(), |pipe| ptr::from_ref(pipe).cast_mut());
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let pid = process::id();
        let new = Box::into_raw(Box::new(Pipe {
            pid,
            sender,
            receiver,
        }));
        // Release: pairs with the Acquire in `load`, which must find the pipe written.
        if PIPE
            .compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // Somebody was quicker.
            // SAFETY: nobody has seen the pointer, which comes from the `Box` above.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

fn load() -> Option<&'static Pipe> {
    // Acquire: pairs with the Release in `current`.
    let pipe = PIPE.load(Ordering::Acquire);
    // SAFETY: what is stored here comes from a `Box` and is never freed nor changed.
    unsafe { pipe.as_ref() }
}

/// Makes every receiver readable. All that it does may be done in a signal handler.
pub(super) fn write_byte() {
    if let Some(pipe) = load()
        && pipe.pid == process::id()
    {
        // A full pipe is as good: its bytes have not been looked at yet.
        let _ = (&pipe.sender).write(&[1]);
    }
}

impl Pipe {
    /// A descriptor of one's own for the receiving end.
    pub(super) fn receiver(&self) -> io::Result<OwnedFd> {
        self.receiver.try_clone().map(OwnedFd::from)
    }
}

/// Reads until there is nothing left.
pub(super) fn drain(receiver: &OwnedFd) {
    let mut bytes = [0; 128];
    loop {
        match rustix::io::read(receiver, &mut bytes) {
            Ok(0) => unreachable!("the sending end is never closed"),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_pipe() {
        let pipes: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| ptr::from_ref(current().unwrap()) as usize))
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(pipes.iter().all(|pipe| *pipe == pipes[0]));
    }

    #[test]
    fn a_full_pipe_never_blocks_and_drains_empty() {
        let (sender, receiver) = UnixStream::pair().unwrap();
        sender.set_nonblocking(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        while (&sender).write(&[1; 512]).is_ok() {}
        let receiver = OwnedFd::from(receiver);
        drain(&receiver);
        let left = rustix::io::read(&receiver, &mut [0; 1]);
        assert_eq!(left, Err(Errno::AGAIN));
    }
}
