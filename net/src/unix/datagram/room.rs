//! Waiting for room in the queue of a receiver.
//!
//! A *connected* socket is told by the kernel when its receiver has room again. One that is not
//! connected is told of room in its own buffer only. When a receiver's queue is full it gets
//! `EAGAIN` and stays writable all the while; the refused datagram, when it is freed, even reports a
//! new edge. Whoever waits for that edge and tries again is busy until the receiver reads.
//!
//! So a second socket waits in place of the first: it is connected to the receiver and sends
//! nothing. It is made for one wait, because the kernel looks at the receiver's queue only when a
//! socket is registered or reports an event, and somebody else may have filled the queue again
//! between that event and our next attempt.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use gmp_executor::context;
use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, Type};

use crate::Interest;
use crate::poll_evented::PollEvented;
use crate::sys::{self, retry};

/// A socket that is connected to a receiver to learn when that has room.
pub(super) struct Room {
    target: PathBuf,
    io: PollEvented<net::UnixDatagram>,
}

impl Room {
    /// Fails as sending to `target` would, when there is no such receiver any more.
    pub(super) fn new(target: &Path) -> io::Result<Room> {
        let socket = sys::nonblocking_socket(Domain::UNIX, Type::DGRAM)?;
        let socket = net::UnixDatagram::from(socket);
        retry(|| socket.connect(target))?;
        Ok(Room {
            target: target.to_owned(),
            io: PollEvented::new_with_interest(socket, Interest::WRITABLE)?,
        })
    }

    pub(super) fn is_at(&self, target: &Path) -> bool {
        self.target == target
    }

    pub(super) async fn wait(&self) -> io::Result<()> {
        self.io.ready(Interest::WRITABLE).await?;
        Ok(())
    }

    pub(super) fn poll_wait(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(|_| ())
    }
}

/// Whether `socket`, which got `EAGAIN`, has room in its own buffer, so that it was the receiver that
/// had none.
pub(super) fn has_room(socket: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    let polled = rustix::event::poll(&mut fds, Some(&Timespec::default()));
    polled.is_ok() && fds[0].revents().contains(PollFlags::OUT)
}

/// Whether this thread is in a runtime that a [`Room`] could be registered with.
///
/// A future may be polled anywhere. Outside a runtime the sender has to make do with its own edges.
pub(super) fn can_wait() -> bool {
    context::with_current(|handle| handle.netpoll().is_some()).unwrap_or(false)
}
