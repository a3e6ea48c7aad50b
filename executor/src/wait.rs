//! Wait reasons: what a task that is not runnable waits for, as in Go's goroutine dumps.

use crate::context;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident => $text:literal,)*) => {
        /// What a task waits for. Leaf operations record it just before they return `Pending`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum WaitReason {
            $($(#[$doc])* $variant,)*
        }

        impl WaitReason {
            const ALL: &[WaitReason] = &[$(WaitReason::$variant,)*];

            /// The reason as it stands between brackets in a dump, such as `mpsc recv`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(WaitReason::$variant => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// Nothing of gmp's: a future of somebody else's returned `Pending`.
    Unknown => "waiting",
    /// A timer.
    Sleep => "sleep",
    /// Readiness for reading of a socket, a pipe or another descriptor.
    NetRead => "net read",
    /// Readiness for writing.
    NetWrite => "net write",
    /// A connection to accept.
    NetAccept => "net accept",
    /// A connection being made.
    NetConnect => "net connect",
    /// `mpsc::Receiver::recv`.
    MpscRecv => "mpsc recv",
    /// `mpsc::Sender::send` on a full channel.
    MpscSend => "mpsc send",
    /// The receiving half of a `oneshot`.
    OneshotRecv => "oneshot recv",
    /// The sending half of a `oneshot`, in `closed`.
    OneshotClosed => "oneshot closed",
    /// `broadcast::Receiver::recv`.
    BroadcastRecv => "broadcast recv",
    /// `watch::Receiver::changed`.
    WatchChanged => "watch changed",
    /// `Mutex::lock`.
    MutexLock => "Mutex lock",
    /// `RwLock::read`.
    RwLockRead => "RwLock read",
    /// `RwLock::write`.
    RwLockWrite => "RwLock write",
    /// `Semaphore::acquire`.
    SemaphoreAcquire => "Semaphore acquire",
    /// `Notify::notified`.
    Notified => "Notify notified",
    /// `Barrier::wait`.
    BarrierWait => "Barrier wait",
    /// `OnceCell::get_or_init` or `SetOnce::wait`.
    OnceCell => "OnceCell",
    /// A `JoinHandle` or `JoinSet`.
    Join => "join",
    /// A file operation on the blocking pool.
    File => "file",
    /// A child process.
    Child => "child",
    /// A signal.
    Signal => "signal",
    /// An in-memory pipe such as `duplex`.
    Duplex => "duplex",
    /// `yield_now`.
    Yield => "yield",
    /// The budget of the poll was spent.
    Budget => "budget",
}

impl WaitReason {
    pub(crate) fn from_u8(value: u8) -> WaitReason {
        *Self::ALL
            .get(value as usize)
            .unwrap_or(&WaitReason::Unknown)
    }
}

/// Records why the task being polled on this thread is about to wait. Costs a store; outside a task
/// it does nothing.
#[inline]
pub fn record(reason: WaitReason) {
    context::with_task(|meta| meta.set_wait_reason(reason));
}
