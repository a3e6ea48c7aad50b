//! gmp: an async runtime with Go's scheduler inside and tokio's API outside.
//!
//! ```
//! use gmp::io::{AsyncReadExt, AsyncWriteExt};
//! use gmp::net::{TcpListener, TcpStream};
//!
//! #[gmp::main]
//! async fn main() -> std::io::Result<()> {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let addr = listener.local_addr()?;
//!     let server = gmp::spawn(async move {
//!         let (mut stream, _peer) = listener.accept().await?;
//!         stream.write_all(b"hello").await
//!     });
//!     let mut text = String::new();
//!     TcpStream::connect(addr).await?.read_to_string(&mut text).await?;
//!     assert_eq!(text, "hello");
//!     server.await.expect("the server panicked")
//! }
//! ```
//!
//! Whoever knows tokio knows this crate: every name stands at tokio's path, with tokio's defaults, panics
//! and cancel safety (`docs/tokio.md` in the repository lists what differs). What is Go's is under the
//! hood, and can be seen: a task that blocks or computes too long loses its P to another thread, and
//! `GMPDEBUG=schedtrace=1000` prints the scheduler's state every second.
//!
//! # Features
//!
//! Tokio's, with tokio's meaning; none is on by default. `full` is all but `test-util`.
//!
//! Two more let libraries use gmp's streams, files and pipes that ask for other traits than gmp's, without
//! patching: with `futures-io` they have `AsyncRead`, `AsyncBufRead`, `AsyncWrite` of `futures::io` (a
//! `fs::File` also `AsyncSeek`), with `tokio-io` the traits of the registry's tokio. The methods of the
//! extension traits have the same names, so import one family of these at a place. Do not switch
//! `tokio-io` on where tokio is patched to be gmp.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod macros;

#[cfg(all(feature = "macros", feature = "rt-multi-thread"))]
pub use gmp_macros::{main, test};
#[cfg(all(feature = "macros", feature = "rt", not(feature = "rt-multi-thread")))]
pub use gmp_macros::{main_current_thread as main, test_current_thread as test};
#[cfg(all(feature = "macros", not(feature = "rt")))]
pub use gmp_macros::{main_without_rt as main, test_without_rt as test};

#[cfg(feature = "rt")]
pub mod runtime;

#[cfg(feature = "rt")]
#[doc(inline)]
pub use task::spawn;

#[cfg(feature = "rt")]
pub mod task;

/// Time: sleeping, intervals, timeouts, and a clock that tests can pause.
#[cfg(feature = "time")]
pub mod time {
    pub use gmp_timer::{
        Duration, Instant, Interval, MissedTickBehavior, Sleep, Timeout, error, interval,
        interval_at, sleep, sleep_until, timeout, timeout_at,
    };
    #[cfg(feature = "test-util")]
    pub use gmp_timer::{advance, pause, resume};
}

/// Channels and locks for tasks.
#[cfg(feature = "sync")]
pub mod sync {
    pub use gmp_sync::*;
}

/// Sockets.
#[cfg(feature = "net")]
pub mod net {
    pub use gmp_net::{
        TcpListener, TcpSocket, TcpStream, ToSocketAddrs, UdpSocket, UnixDatagram, UnixListener,
        UnixSocket, UnixStream, lookup_host, tcp, unix,
    };
}

/// Asynchronous reading and writing.
pub mod io {
    pub use gmp_io::{
        AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, Error, ErrorKind, ReadBuf, Result, SeekFrom,
    };
    #[cfg(feature = "io-util")]
    pub use gmp_io::{
        AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufStream,
        BufWriter, Chain, DuplexStream, Empty, Join, Lines, ReadHalf, Repeat, SimplexStream, Sink,
        Split, Take, WriteHalf, copy, copy_bidirectional, copy_bidirectional_with_sizes, copy_buf,
        duplex, empty, join, repeat, simplex, sink, split,
    };
    #[cfg(feature = "net")]
    pub use gmp_net::{Interest, Ready};
    #[cfg(feature = "io-std")]
    pub use gmp_os::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

    /// Readiness of any descriptor.
    #[cfg(feature = "net")]
    pub mod unix {
        #[allow(deprecated)]
        pub use gmp_net::AsyncFdTryNewError;
        pub use gmp_net::{
            AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
        };
    }
}

#[cfg(feature = "fs")]
#[doc(inline)]
pub use gmp_os::fs;
#[cfg(feature = "process")]
#[doc(inline)]
pub use gmp_os::process;
#[cfg(feature = "signal")]
#[doc(inline)]
pub use gmp_os::signal;
