//! The `current_thread` flavour: one P, whose M is the thread in `block_on`.
//!
//! Several threads may be in `block_on` at the same time. One of them drives the runtime; the others
//! poll their own futures, and one of them takes over when the driver leaves.

use std::future::Future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::context;
use crate::handle::Handle;
use crate::m::{self, M};
use crate::park::ThreadParker;
use crate::scheduler::Scheduler;

/// The only P of a `current_thread` runtime.
const P0: usize = 0;

/// Who drives.
pub(crate) struct CurrentThread {
    state: Mutex<State>,
}

struct State {
    driven: bool,
    /// Threads in `block_on` that would drive if nobody did.
    waiting: Vec<Waker>,
}

impl CurrentThread {
    pub(crate) fn new() -> CurrentThread {
        CurrentThread {
            state: Mutex::new(State {
                driven: false,
                waiting: Vec::new(),
            }),
        }
    }

    /// Makes this thread the driver; if there is one, leaves `waker` to be woken when it leaves.
    fn try_drive(&self, waker: &Waker) -> Option<Driving<'_>> {
        let mut state = self.state.lock();
        if state.driven {
            if !state.waiting.iter().any(|other| other.will_wake(waker)) {
                state.waiting.push(waker.clone());
            }
            return None;
        }
        state.driven = true;
        Some(Driving(self))
    }
}

/// This thread drives, until it is dropped.
struct Driving<'a>(&'a CurrentThread);

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state.lock();
            state.driven = false;
            std::mem::take(&mut state.waiting)
        };
        crate::seam::wake_all(waiting);
    }
}

/// Puts the P down also when the main future panics.
struct Held<'a>(&'a M);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.put_down();
    }
}

/// The waker of the future in `block_on`.
struct MainWaker {
    woken: AtomicBool,
    scheduler: Arc<Scheduler>,
}

impl MainWaker {
    fn is_woken(&self) -> bool {
        // SeqCst: the driver marks its P idle and then looks here; see `wake_by_ref`.
        self.woken.load(Ordering::SeqCst)
    }

    fn take(&self) -> bool {
        // Acquire: pairs with the Release half of the swap in `wake_by_ref`.
        self.is_woken() && self.woken.swap(false, Ordering::Acquire)
    }
}

impl Wake for MainWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // SeqCst: raised before the look at the idle word in `unpark`.
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.scheduler.unpark(P0);
        }
    }
}

/// Drives the runtime until `future` completes. The thread is in the runtime's context.
#[track_caller]
pub(crate) fn block_on<F: Future>(handle: &Handle, future: F) -> F::Output {
    let called_at = Location::caller();
    let mut future = pin!(future);
    let parker = ThreadParker::new();
    let waker = parker.waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Some(driving) = handle.inner().current_thread.try_drive(&waker) {
            return drive(handle, driving, future, called_at);
        }
        let polled = m::poll_main(waker.data(), || future.as_mut().poll(&mut cx));
        if let Poll::Ready(output) = polled {
            return output;
        }
        parker.park();
    }
}

fn drive<F: Future>(
    handle: &Handle,
    driving: Driving<'_>,
    mut future: Pin<&mut F>,
    called_at: &'static Location<'static>,
) -> F::Output {
    let scheduler = handle.scheduler();
    let main = Arc::new(MainWaker {
        woken: AtomicBool::new(true),
        scheduler: scheduler.clone(),
    });
    let waker = Waker::from(main.clone());
    let mut cx = Context::from_waker(&waker);
    let _driving = driving;
    let m = M::new(scheduler.clone());
    let _m = context::enter_m(&m);
    m.take_up(P0);
    let _held = Held(&m);
    loop {
        if main.take() {
            let (polled, _kept) = m.poll_outside(called_at, || {
                m::poll_main(waker.data(), || future.as_mut().poll(&mut cx))
            });
            if let Poll::Ready(output) = polled {
                m.wake_deferred();
                return output;
            }
        }
        for _ in 0..scheduler.config.event_interval.max(1) {
            let Some(g) = m.next_g() else {
                if main.is_woken() {
                    break;
                }
                m.park_current_thread(|| main.is_woken());
                break;
            };
            let kept = m.execute(g);
            debug_assert_eq!(kept, crate::ownership::Entry::Kept, "nobody retakes here");
            // The main future is ready and the others have just given way.
            if main.is_woken() && m.all_yielded() {
                break;
            }
        }
    }
}

/// Drops every task of a runtime that is being shut down, on this thread.
pub(crate) fn shut_down(handle: &Handle) {
    let waker = Waker::noop();
    let Some(driving) = handle.inner().current_thread.try_drive(waker) else {
        // A thread is in `block_on` through a leaked runtime: it finds the tasks aborted.
        return;
    };
    let _driving = driving;
    let m = M::new(handle.scheduler().clone());
    let _m = context::enter_m(&m);
    m.take_up(P0);
    let _held = Held(&m);
    while let Some(g) = m.next_g() {
        let _ = m.execute(g);
    }
    handle.scheduler().retire_p();
}
