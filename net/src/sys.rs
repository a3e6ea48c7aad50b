//! System calls that the socket types share: making sockets, and receiving into memory that is not
//! initialised yet.
//!
//! Everything here is non-blocking: a call that would wait fails with
//! [`WouldBlock`](io::ErrorKind::WouldBlock), and the registration turns that into waiting. A call
//! that a signal interrupted is made again, so that nobody above sees
//! [`Interrupted`](io::ErrorKind::Interrupted).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bytes::BufMut;
use gmp_io::ReadBuf;
use rustix::io::retry_on_intr;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// Receive the next datagram, and remove it from the queue.
pub(crate) const TAKE: i32 = 0;
/// Receive the next datagram, and leave it in the queue.
pub(crate) const PEEK: i32 = libc::MSG_PEEK;

/// A new socket that does not block and is closed on exec.
pub(crate) fn nonblocking_socket(domain: Domain, ty: Type) -> io::Result<Socket> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let socket = Socket::new(domain, ty.nonblocking(), None)?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let socket = nonblocking(Socket::new(domain, ty, None)?)?;
    Ok(socket)
}

/// Two sockets connected with each other that do not block and are closed on exec.
pub(crate) fn nonblocking_pair(ty: Type) -> io::Result<(Socket, Socket)> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let pair = Socket::pair(Domain::UNIX, ty.nonblocking(), None)?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let pair = {
        let (a, b) = Socket::pair(Domain::UNIX, ty, None)?;
        (nonblocking(a)?, nonblocking(b)?)
    };
    Ok(pair)
}

/// Accepts a connection; the new socket does not block and is closed on exec.
pub(crate) fn accept(listener: &impl AsFd) -> io::Result<(Socket, SockAddr)> {
    let listener = SockRef::from(listener);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let accepted = retry(|| listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC))?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let accepted = {
        let (socket, addr) = retry(|| listener.accept())?;
        (nonblocking(socket)?, addr)
    };
    Ok(accepted)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn nonblocking(socket: Socket) -> io::Result<Socket> {
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A pipe whose ends (reading, writing) do not block and are closed on exec.
pub(crate) fn nonblocking_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::pipe::{PipeFlags, pipe_with};
        Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let (rx, tx) = io::pipe()?;
        let (rx, tx) = (OwnedFd::from(rx), OwnedFd::from(tx));
        rustix::io::ioctl_fionbio(&rx, true)?;
        rustix::io::ioctl_fionbio(&tx, true)?;
        Ok((rx, tx))
    }
}

/// Calls `f` until it is not interrupted by a signal.
pub(crate) fn retry<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match f() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Panics, in builds with debug assertions, when `socket` blocks: it would block a whole M.
#[track_caller]
pub(crate) fn check_nonblocking(socket: &impl AsFd) -> io::Result<()> {
    let nonblocking = SockRef::from(socket).nonblocking()?;
    debug_assert!(
        nonblocking,
        "a socket in blocking mode cannot be registered with the runtime; \
         call `set_nonblocking(true)` first"
    );
    Ok(())
}

/// Receives into the unfilled part of `buf` and advances it; the sender is of no interest.
pub(crate) fn recv_read_buf(
    socket: &impl AsFd,
    buf: &mut ReadBuf<'_>,
    flags: i32,
) -> io::Result<()> {
    fill_read_buf(buf, |space| Ok((recv(socket, space, flags)?, ())))
}

/// Receives into the unfilled part of `buf` and advances it; returns the sender.
pub(crate) fn recv_read_buf_from(
    socket: &impl AsFd,
    buf: &mut ReadBuf<'_>,
    flags: i32,
) -> io::Result<SockAddr> {
    fill_read_buf(buf, |space| recv_from(socket, space, flags))
}

/// What a read from a stream says about the bytes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There are none: the next byte will be an edge for the netpoll.
    Empty,
    /// There may be some.
    Unknown,
}

/// Reads from a Unix stream socket into the unfilled part of `buf` and advances it.
///
/// A read that does not fill the buffer has usually emptied the queue, but it also stops behind a
/// message that carries descriptors, or in front of one with other credentials. The kernel tells of
/// control data for which there was no room, so `recvmsg` knows what `read` does not.
pub(crate) fn recv_stream(socket: &impl AsFd, buf: &mut ReadBuf<'_>) -> io::Result<Rest> {
    // SAFETY: `recv_msg` lets the kernel store bytes there and nothing else, so what is initialised
    // stays initialised.
    let space = unsafe { buf.unfilled_mut() };
    let len = space.len();
    if len == 0 {
        return Ok(Rest::Unknown);
    }
    let (n, flags) = retry(|| recv_msg(socket.as_fd(), space))?;
    // SAFETY: `recv_msg` promises that the first `n` bytes of the unfilled part are initialised.
    unsafe { buf.assume_init(n) };
    buf.advance(n);
    if 0 < n && n < len && flags & libc::MSG_CTRUNC == 0 {
        return Ok(Rest::Empty);
    }
    Ok(Rest::Unknown)
}

/// Receives into the free part of `buf` and advances it; returns the number of bytes.
pub(crate) fn recv_buf_mut<B: BufMut>(socket: &impl AsFd, buf: &mut B) -> io::Result<usize> {
    let (n, ()) = fill_buf_mut(buf, |space| Ok((recv(socket, space, TAKE)?, ())))?;
    Ok(n)
}

/// Receives into the free part of `buf` and advances it; returns the number of bytes and the sender.
pub(crate) fn recv_buf_mut_from<B: BufMut>(
    socket: &impl AsFd,
    buf: &mut B,
) -> io::Result<(usize, SockAddr)> {
    fill_buf_mut(buf, |space| recv_from(socket, space, TAKE))
}

/// Reads into the free part of `buf` and advances it; returns the number of bytes.
pub(crate) fn read_buf_mut<B: BufMut>(file: &impl AsFd, buf: &mut B) -> io::Result<usize> {
    let (n, ()) = fill_buf_mut(buf, |space| Ok((read(file, space)?, ())))?;
    Ok(n)
}

/// Lets `fill`, one of the functions below, initialise a prefix of the unfilled part of `buf`.
fn fill_read_buf<T>(
    buf: &mut ReadBuf<'_>,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, T)>,
) -> io::Result<T> {
    // SAFETY: `fill` lets the kernel store bytes there and nothing else, so what is initialised
    // stays initialised.
    let space = unsafe { buf.unfilled_mut() };
    let (n, rest) = fill(space)?;
    // SAFETY: `fill` promises that the first `n` bytes of the unfilled part are initialised.
    unsafe { buf.assume_init(n) };
    buf.advance(n);
    Ok(rest)
}

/// Lets `fill`, one of the functions below, initialise a prefix of the free part of `buf`.
fn fill_buf_mut<B: BufMut, T>(
    buf: &mut B,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, T)>,
) -> io::Result<(usize, T)> {
    let chunk = buf.chunk_mut();
    // SAFETY: `fill` lets the kernel store bytes there and nothing else, so what is initialised
    // stays initialised.
    let space = unsafe { chunk.as_uninit_slice_mut() };
    let (n, rest) = fill(space)?;
    // SAFETY: `fill` promises that the first `n` bytes of this very chunk are initialised.
    unsafe { buf.advance_mut(n) };
    Ok((n, rest))
}

// Each of the functions below returns a number of bytes, `n`, and promises that the first `n` bytes
// of `space` are initialised then. A datagram that is longer than `space` loses its tail.

fn recv(socket: &impl AsFd, space: &mut [MaybeUninit<u8>], flags: i32) -> io::Result<usize> {
    let socket = SockRef::from(socket);
    retry(|| socket.recv_with_flags(space, flags))
}

fn recv_from(
    socket: &impl AsFd,
    space: &mut [MaybeUninit<u8>],
    flags: i32,
) -> io::Result<(usize, SockAddr)> {
    let socket = SockRef::from(socket);
    retry(|| socket.recv_from_with_flags(space, flags))
}

/// Offers no room for control data; returns the flags of the message too.
fn recv_msg(socket: BorrowedFd<'_>, space: &mut [MaybeUninit<u8>]) -> io::Result<(usize, i32)> {
    let mut buffer = libc::iovec {
        iov_base: space.as_mut_ptr().cast(),
        iov_len: space.len(),
    };
    // SAFETY: a `msghdr` is made of integers and raw pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut buffer;
    message.msg_iovlen = 1;
    // SAFETY: `message` names one buffer, `space`, which is ours until the call returns, and neither
    // an address nor control data.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    match usize::try_from(n) {
        Ok(n) => Ok((n, message.msg_flags)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

fn read(file: &impl AsFd, space: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let n = retry_on_intr(|| {
        let (filled, _) = rustix::io::read(file, &mut *space)?;
        Ok(filled.len())
    })?;
    Ok(n)
}
