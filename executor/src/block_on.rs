//! `block_on` of a multi-thread runtime: a thread that polls a future of its own.
//!
//! The thread borrows an idle P for each poll, so that what its future spawns and wakes goes into a
//! runnext and a local queue, as from a task. When the future waits, the P goes back to its watcher
//! with what was left in it, and the thread sleeps.
//!
//! # Partners
//!
//! That would make request and reply between the future and a task two switches of threads, 10 µs and
//! more, where two tasks need a fraction of one. Go has no such difference, since its `main` is a goroutine; here
//! the future need not be `Send` and cannot leave the thread. So the thread runs the *partner* itself:
//! the task that its future has just woken or spawned, if tasks from the same place in the program
//! have answered it [`TRUSTED_AFTER`] times in a row within the poll that the request caused.
//!
//! Only such tasks: a task that blocks on this thread would hold the future up, and no other thread
//! can go on with it. One that does not answer within its poll loses the trust at once. (tokio's thread runs
//! nothing, and was measured at 17 times task to task. A thread that ran every task would be held up by
//! the first one that blocks.)

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::context;
use crate::handle::Handle;
use crate::m::{self, M};
use crate::ownership::Entry;
use crate::pool;

/// How many answers in a row make a partner.
const TRUSTED_AFTER: u32 = 8;

/// After how many of a partner's polls in a row the P goes back, so that others get at it.
const PARTNER_POLLS_MAX: u32 = 61;

/// The waker of the future.
struct MainWaker {
    woken: AtomicBool,
    thread: Thread,
    /// Where the task was spawned whose poll woke the future last, or null.
    woken_by: AtomicPtr<Location<'static>>,
}

impl MainWaker {
    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        // Acquire: pairs with the Release in `wake_by_ref`.
        self.is_woken() && self.woken.swap(false, Ordering::Acquire)
    }

    fn woken_by(&self) -> *const Location<'static> {
        self.woken_by.load(Ordering::Relaxed)
    }
}

impl Wake for MainWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let location = context::with_task(|meta| ptr::from_ref(meta.location()));
        let location = location.unwrap_or(ptr::null());
        self.woken_by.store(location.cast_mut(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`.
        if !self.woken.swap(true, Ordering::Release) && thread::current().id() != self.thread.id() {
            self.thread.unpark();
        }
    }
}

/// The place whose tasks answer the future, and how often they did so in a row.
struct Partner {
    location: *const Location<'static>,
    answers: u32,
}

impl Partner {
    fn is_trusted(&self, location: &'static Location<'static>) -> bool {
        self.answers >= TRUSTED_AFTER && ptr::eq(self.location, location)
    }

    /// The future woke a task from `asked`, and was woken by one from `by`.
    fn answered(&mut self, asked: *const Location<'static>, by: *const Location<'static>) {
        if asked.is_null() || asked != by {
            self.answers = 0;
        } else if self.location == asked {
            self.answers += 1;
        } else {
            *self = Partner {
                location: asked,
                answers: 1,
            };
        }
    }
}

/// The borrowed P goes back also when the future panics.
struct Borrower<'a> {
    m: &'a M,
    holds: bool,
}

impl Borrower<'_> {
    fn borrow(&mut self) {
        self.holds = self.holds || self.m.borrow();
    }

    /// The P was taken away, or handed off, while user code ran.
    fn lost(&mut self) {
        self.holds = false;
        self.m.finish_without_p();
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.holds) {
            let p = self.m.put_down();
            self.m.scheduler().return_borrowed(p);
        }
    }
}

impl Drop for Borrower<'_> {
    fn drop(&mut self) {
        // After a panic of the future the M is outside, and the P may be gone.
        if self.holds {
            match self.m.comes_back() {
                Entry::Kept => self.give_back(),
                Entry::Lost => self.m.settle_retake(),
            }
        }
    }
}

/// Polls `future` on this thread, which is in the runtime's context already.
#[track_caller]
pub(crate) fn multi_thread<F: Future>(handle: &Handle, future: F) -> F::Output {
    let called_at = Location::caller();
    let mut future = pin!(future);
    let main = Arc::new(MainWaker {
        woken: AtomicBool::new(true),
        thread: thread::current(),
        woken_by: AtomicPtr::new(ptr::null_mut()),
    });
    let waker = Waker::from(main.clone());
    let mut cx = Context::from_waker(&waker);
    let m = M::borrower(handle.scheduler().clone());
    let _m = context::enter_m(&m);
    let mut partner = Partner {
        location: ptr::null(),
        answers: 0,
    };
    let mut borrower = Borrower {
        m: &m,
        holds: false,
    };
    loop {
        main.take();
        borrower.borrow();
        let (polled, entry) = m.poll_outside(called_at, || {
            m::poll_main(waker.data(), || future.as_mut().poll(&mut cx))
        });
        if borrower.holds && entry == Entry::Lost {
            borrower.lost();
        }
        m.wake_deferred();
        if let Poll::Ready(output) = polled {
            borrower.give_back();
            return output;
        }
        if borrower.holds {
            run_partner(&mut borrower, &main, &mut partner);
        }
        if main.is_woken() {
            // What the future has left in the queue must not wait until it sleeps.
            if borrower.holds && m.has_queued() {
                borrower.give_back();
            }
            continue;
        }
        let asked = borrower.holds.then(|| m.runnext_location()).flatten();
        borrower.give_back();
        pool::park_until(|| main.is_woken());
        let asked = asked.map_or(ptr::null(), ptr::from_ref);
        partner.answered(asked, main.woken_by());
    }
}

/// Runs the partner's task, if the future has left one in runnext, until it has answered.
fn run_partner(borrower: &mut Borrower<'_>, main: &MainWaker, partner: &mut Partner) {
    let m = borrower.m;
    for _ in 0..PARTNER_POLLS_MAX {
        if main.is_woken() {
            return;
        }
        let Some(g) = m.take_runnext_if(|location| partner.is_trusted(location)) else {
            return;
        };
        let entry = m.execute(g);
        if entry == Entry::Lost {
            borrower.lost();
        } else {
            m.wake_deferred();
        }
        if !main.is_woken() {
            partner.answers = 0;
        }
        if entry == Entry::Lost {
            return;
        }
    }
}
