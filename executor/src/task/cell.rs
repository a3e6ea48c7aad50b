//! The allocation of a task: header, future or output, join waker; and what is done to it.
//!
//! `state` says who may touch which part; the SAFETY comments here cite its numbered rules.

use std::any::Any;
use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::ptr::{NonNull, addr_of};
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::meta::{self, Meta};
use super::state::{Idle, State, Wake};
use super::{Id, JoinError, JoinHandle, Shard, Target};
use crate::context;
use crate::runnext::Slotted;

/// The part of a task that does not depend on its future's type. Pointers to tasks point here.
///
/// What each poll touches is at the end, next to the future, and on two cache lines with a small one: a task often
/// comes from another core.
#[repr(C)]
pub(crate) struct Header {
    /// Which waker is in the join slot, as long as JOIN_WAKER is set; the slot itself may be the M's then. The
    /// handle's alone.
    registered: UnsafeCell<Option<WakerIdentity>>,
    meta: Meta,
    vtable: &'static VTable,
    pub(super) state: State,
}

/// What depends on the future's type.
struct VTable {
    /// Polls; on completion stores the output. RUNNING is the caller's.
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> bool,
    /// Drops the future and stores an error in its place. RUNNING is the caller's.
    cancel: unsafe fn(NonNull<Header>),
    /// Moves the output to a `*mut Result<T, JoinError>`.
    take_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Drops the output where it is, if it is still there.
    drop_output: unsafe fn(NonNull<Header>),
    join_waker: unsafe fn(NonNull<Header>) -> NonNull<UnsafeCell<Option<Waker>>>,
    dealloc: unsafe fn(NonNull<Header>),
}

#[repr(C)]
struct Cell<F: Future> {
    header: Header,
    stage: UnsafeCell<Stage<F>>,
    join_waker: UnsafeCell<Option<Waker>>,
}

enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, JoinError>),
    Gone,
}

/// What makes a waker wake the same as another, as long as either lives.
pub(super) type WakerIdentity = (*const (), &'static RawWakerVTable);

/// Futures beyond this size are boxed before they are moved for the first time, so that a spawn
/// takes little of the caller's stack (tokio's limit).
pub(crate) const BOX_ABOVE: usize = 16 * 1024;

/// Which pool a task belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpawnKind {
    Async,
    Blocking { mandatory: bool },
}

/// Everything about a task but its future.
pub(crate) struct Spawn<'a> {
    pub(crate) owner: &'a Arc<Shard>,
    pub(crate) id: Id,
    pub(crate) location: &'static Location<'static>,
    pub(crate) name: Option<Box<str>>,
    pub(crate) kind: SpawnKind,
}

/// Makes a task. The `G` is the caller's to queue.
///
/// # Safety
///
/// Either the future and its output are `Send`, or the caller sees to it that the `G` is run and
/// dropped on the thread that calls this. Either way they are `'static`.
pub(crate) unsafe fn new_g<F: Future>(spec: Spawn<'_>, future: F) -> (G, JoinHandle<F::Output>) {
    let cell = Box::new(Cell {
        header: Header {
            registered: UnsafeCell::new(None),
            meta: Meta::new(spec.owner, spec.id, spec.location, spec.name, spec.kind),
            vtable: const { &VTable::of::<F>() },
            state: State::new(),
        },
        stage: UnsafeCell::new(Stage::Future(future)),
        join_waker: UnsafeCell::new(None),
    });
    let header = NonNull::from(Box::leak(cell)).cast::<Header>();
    // The two references that `State::new` counts.
    (G(header), JoinHandle::new(header))
}

impl VTable {
    const fn of<F: Future>() -> VTable {
        VTable {
            poll: poll::<F>,
            cancel: cancel::<F>,
            take_output: take_output::<F>,
            drop_output: drop_output::<F>,
            join_waker: join_waker::<F>,
            dealloc: dealloc::<F>,
        }
    }
}

// ----- What the vtable points to. `header` is that of a live `Cell<F>`. -----

/// # Safety
///
/// The caller set RUNNING (rule 1).
unsafe fn poll<F: Future>(header: NonNull<Header>, cx: &mut Context<'_>) -> bool {
    // SAFETY: ours is a live cell.
    let stage = unsafe { stage::<F>(header) };
    // SAFETY: the cell is alive; only its `stage` is borrowed, and by rule 1 only here.
    let stage = unsafe { &mut *stage };
    let Stage::Future(future) = &mut *stage else {
        unreachable!("a G is polled after it is done");
    };
    // SAFETY: the future is in its allocation for good, and dropped in place.
    let future = unsafe { Pin::new_unchecked(future) };
    let polled = catch_unwind(AssertUnwindSafe(|| future.poll(cx)));
    let output = match polled {
        Ok(Poll::Pending) => return false,
        Ok(Poll::Ready(output)) => drop_stage(stage).map(|()| output),
        Err(payload) => {
            // Of two panics the first is the one to report.
            drop_stage_unwinding(stage);
            Err(payload)
        }
    };
    // SAFETY: the cell is alive.
    let id = unsafe { header.as_ref() }.meta.id();
    *stage = Stage::Output(output.map_err(|payload| JoinError::panicked(id, payload)));
    true
}

/// # Safety
///
/// The caller set RUNNING (rule 1).
unsafe fn cancel<F: Future>(header: NonNull<Header>) {
    // SAFETY: ours is a live cell.
    let stage = unsafe { stage::<F>(header) };
    // SAFETY: as in `poll`.
    let stage = unsafe { &mut *stage };
    let dropped = drop_stage(stage);
    // SAFETY: the cell is alive.
    let id = unsafe { header.as_ref() }.meta.id();
    *stage = Stage::Output(Err(match dropped {
        Ok(()) => JoinError::cancelled(id),
        Err(payload) => JoinError::panicked(id, payload),
    }));
}

/// # Safety
///
/// The output is the caller's (rule 2), and `to` a place for a `Result<F::Output, JoinError>`.
unsafe fn take_output<F: Future>(header: NonNull<Header>, to: *mut ()) {
    // SAFETY: ours is a live cell.
    let stage = unsafe { stage::<F>(header) };
    // SAFETY: the cell is alive and its stage the caller's.
    let stage = unsafe { &mut *stage };
    let Stage::Output(output) = std::mem::replace(stage, Stage::Gone) else {
        panic!("JoinHandle polled after completion");
    };
    // SAFETY: the caller's contract.
    unsafe { to.cast::<Result<F::Output, JoinError>>().write(output) }
}

/// # Safety
///
/// The output is the caller's (rule 2).
unsafe fn drop_output<F: Future>(header: NonNull<Header>) {
    // SAFETY: ours is a live cell.
    let stage = unsafe { stage::<F>(header) };
    // SAFETY: the cell is alive and its stage the caller's.
    let stage = unsafe { &mut *stage };
    // An output that nobody wanted may panic while it is dropped: that is nobody's failure.
    let _ = drop_stage(stage);
}

/// # Safety
///
/// The cell is alive.
unsafe fn join_waker<F: Future>(header: NonNull<Header>) -> NonNull<UnsafeCell<Option<Waker>>> {
    let cell = header.cast::<Cell<F>>().as_ptr();
    // SAFETY: the field of a live cell; no reference is made.
    let slot = unsafe { addr_of!((*cell).join_waker) };
    // SAFETY: the address of a field is not null.
    unsafe { NonNull::new_unchecked(slot.cast_mut()) }
}

/// # Safety
///
/// The caller dropped the last reference (rule 4).
unsafe fn dealloc<F: Future>(header: NonNull<Header>) {
    // SAFETY: made by `Box::leak` in `new_g`, and nobody else has it.
    let mut cell = unsafe { Box::from_raw(header.cast::<Cell<F>>().as_ptr()) };
    let _ = drop_stage(cell.stage.get_mut());
}

/// # Safety
///
/// The cell is alive.
unsafe fn stage<F: Future>(header: NonNull<Header>) -> *mut Stage<F> {
    let cell = header.cast::<Cell<F>>().as_ptr();
    // SAFETY: the field of a live cell.
    unsafe { (*cell).stage.get() }
}

/// Drops what is in the stage; a panic of its destructor is the result.
fn drop_stage<F: Future>(stage: &mut Stage<F>) -> Result<(), Box<dyn Any + Send>> {
    struct Gone<'a, F: Future>(&'a mut Stage<F>);
    impl<F: Future> Drop for Gone<'_, F> {
        fn drop(&mut self) {
            // SAFETY: a place for a stage; what was there has been dropped, or has panicked half way.
            unsafe { std::ptr::write(self.0, Stage::Gone) }
        }
    }
    let gone = Gone(stage);
    catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: a valid stage; `gone` overwrites it without dropping it again.
        unsafe { std::ptr::drop_in_place(gone.0) }
    }))
}

/// As [`drop_stage`], for a future whose poll panicked: its destructors see that the thread panics, as
/// they would if the panic went through them.
fn drop_stage_unwinding<F: Future>(stage: &mut Stage<F>) {
    struct DropInUnwind<'a, F: Future>(&'a mut Stage<F>);
    impl<F: Future> Drop for DropInUnwind<'_, F> {
        fn drop(&mut self) {
            let _ = drop_stage(self.0);
        }
    }
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _stage = DropInUnwind(stage);
        std::panic::resume_unwind(Box::new(()));
    }));
    debug_assert!(unwound.is_err());
}

// ----- The header: what does not depend on the type. -----

impl Header {
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Drops a reference to the task.
///
/// # Safety
///
/// The reference is the caller's, and not used any more.
pub(super) unsafe fn drop_reference(header: NonNull<Header>) {
    // SAFETY: the reference keeps the task alive.
    let task = unsafe { header.as_ref() };
    if task.state.drop_reference() {
        // SAFETY: that was the last one (rule 4).
        unsafe { (task.vtable.dealloc)(header) }
    }
}

/// Aborts the task.
///
/// # Safety
///
/// The caller has a reference.
pub(super) unsafe fn abort(header: NonNull<Header>) {
    // SAFETY: the reference keeps the task alive.
    let task = unsafe { header.as_ref() };
    if task.state.abort() == Wake::Submit {
        schedule(G(header), false);
    }
}

/// The slot of the join waker.
///
/// # Safety
///
/// The slot is the caller's by rule 3, for as long as the reference lives.
pub(super) unsafe fn join_waker_slot<'a>(header: NonNull<Header>) -> &'a mut Option<Waker> {
    // SAFETY: the caller has a reference.
    let task = unsafe { header.as_ref() };
    // SAFETY: the function that belongs to the task.
    let slot = unsafe { (task.vtable.join_waker)(header) };
    // SAFETY: a field of the live task.
    let slot = unsafe { slot.as_ref() };
    // SAFETY: rule 3.
    unsafe { &mut *slot.get() }
}

/// Which waker the handle has left in the slot.
///
/// # Safety
///
/// The caller is the handle, for as long as the reference lives.
pub(super) unsafe fn registered_waker<'a>(
    header: NonNull<Header>,
) -> &'a mut Option<WakerIdentity> {
    // SAFETY: the handle has a reference.
    let task = unsafe { header.as_ref() };
    // SAFETY: the field is the handle's alone.
    unsafe { &mut *task.registered.get() }
}

/// Takes the output out, as the handle.
///
/// # Safety
///
/// The caller is the handle of a task whose output is a `T`, and has seen COMPLETE (rule 2).
pub(super) unsafe fn output_of<T>(header: NonNull<Header>) -> Result<T, JoinError> {
    let mut output = std::mem::MaybeUninit::<Result<T, JoinError>>::uninit();
    // SAFETY: the caller has a reference.
    let task = unsafe { header.as_ref() };
    // SAFETY: the output is the handle's, and of this type.
    unsafe { (task.vtable.take_output)(header, output.as_mut_ptr().cast()) }
    // SAFETY: written by `take_output`, or that panicked.
    unsafe { output.assume_init() }
}

/// Drops the output, if it was not taken.
///
/// # Safety
///
/// The output is the caller's (rule 2).
pub(super) unsafe fn discard_output(header: NonNull<Header>) {
    // SAFETY: the caller has a reference.
    let task = unsafe { header.as_ref() };
    let _task = context::enter_task(&task.meta, std::ptr::null());
    // SAFETY: passed on.
    unsafe { (task.vtable.drop_output)(header) }
}

// ----- G -----

/// A goroutine's counterpart: a task that is runnable. Owns a reference, and the right to set RUNNING.
///
/// Dropping it without running it cancels the task.
pub(crate) struct G(NonNull<Header>);

// SAFETY: whoever has the G polls or drops the future, which is `Send` or, as `new_g` demands, kept
// on its thread by the caller.
unsafe impl Send for G {}

impl Slotted for G {
    fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).0.cast()
    }

    unsafe fn from_raw(raw: NonNull<()>) -> G {
        G(raw.cast())
    }
}

impl G {
    fn header(&self) -> &Header {
        // SAFETY: the G's reference keeps the task alive.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn metadata(&self) -> &Meta {
        &self.header().meta
    }

    /// Queues the G where it belongs.
    pub(crate) fn schedule(self) {
        schedule(self, false);
    }

    /// Polls the task once, or drops its future if it was aborted.
    pub(crate) fn run(self) {
        let this = ManuallyDrop::new(self);
        let task = this.header();
        if task.state.start() || task.meta.is_cancelled_unpolled() {
            return this.cancel();
        }
        task.meta.poll_begins();
        let waker = ManuallyDrop::new(waker(this.0));
        let done = {
            let _task = context::enter_task(&task.meta, this.0.as_ptr().cast_const().cast());
            // SAFETY: `start` set RUNNING.
            unsafe { (task.vtable.poll)(this.0, &mut Context::from_waker(&waker)) }
        };
        if done {
            this.finish();
        } else {
            this.goes_idle();
        }
    }

    /// The poll returned `Pending`.
    fn goes_idle(&self) {
        let task = self.header();
        task.meta.set_state(meta::State::Waiting);
        let mut keep = false;
        if !task.meta.is_registered() {
            // SAFETY: RUNNING is set, so the task is not done.
            let owner = unsafe { task.meta.owner() };
            if !owner.insert(self.0) {
                return self.cancel();
            }
            keep = true;
        }
        match task.state.idle(keep, task.meta.poll_ended()) {
            Idle::Waits => {}
            Idle::Again => schedule(G(self.0), true),
            Idle::Cancel => {
                if keep {
                    // The registry wants a reference, and the G still has its own.
                    task.state.add_reference();
                }
                self.cancel();
            }
            // SAFETY: the last reference is gone (rule 4).
            Idle::Dealloc => unsafe { (task.vtable.dealloc)(self.0) },
        }
    }

    /// Drops the future. RUNNING is set.
    fn cancel(&self) {
        let task = self.header();
        {
            let _task = context::enter_task(&task.meta, std::ptr::null());
            // SAFETY: RUNNING is the caller's.
            unsafe { (task.vtable.cancel)(self.0) }
        }
        self.finish();
    }

    /// The output is stored: tells whoever waits for it. Drops the G's reference.
    fn finish(&self) {
        let task = self.header();
        let timers = match task.meta.is_blocking() {
            // SAFETY: RUNNING is set, so the task is not done.
            true => unsafe { task.meta.owner() }.pausable_timers(),
            false => None,
        };
        super::shard::retire(&task.meta);
        let completed = task.state.complete();
        let allow_advance = || {
            if let Some(timers) = &timers {
                timers.inhibit_auto_advance(false);
            }
        };
        if !completed.wake_join {
            allow_advance();
        }
        if completed.drop_output {
            // SAFETY: nobody wants it: rule 2.
            unsafe { discard_output(self.0) }
        }
        if completed.wake_join {
            // SAFETY: JOIN_WAKER was set at the completion: rule 3.
            let waker = unsafe { join_waker_slot(self.0) }.take();
            crate::seam::wake_all(waker);
            // Only now, or a paused clock could step past the deadlines of whoever waited for the job.
            allow_advance();
        }
        if completed.holds_reference {
            // SAFETY: the G's, and this was its last use.
            unsafe { drop_reference(self.0) }
        }
    }
}

impl Drop for G {
    fn drop(&mut self) {
        // Never queued again: by a shutdown.
        let _aborted = self.header().state.start();
        self.cancel();
    }
}

/// A G became runnable: it goes to its set or its scheduler. `yielded`: it was woken while it was polled.
fn schedule(g: G, yielded: bool) {
    let meta = g.metadata();
    meta.set_state(meta::State::Runnable);
    // SAFETY: the G is in hand, so the task is not done.
    match unsafe { meta.owner() }.target() {
        Target::Local(local) => {
            let local: *const Arc<_> = local;
            // SAFETY: the G keeps its owner and so `local` alive until it is queued, and `ready`
            // touches its `self` after that only through a reference of its own, or on the set's
            // thread, where the set itself is alive.
            unsafe { (*local).ready(g) }
        }
        Target::Scheduler(scheduler) => {
            let scheduler = Arc::as_ptr(scheduler);
            crate::scheduler::ready(scheduler, g, yielded);
        }
    }
}

// ----- Wakers -----

static WAKER: RawWakerVTable =
    RawWakerVTable::new(clone_waker, wake_by_value, wake_by_ref, drop_waker);

/// Whether this is the waker of some task.
#[inline]
pub(crate) fn is_waker(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &WAKER)
}

/// A waker on a reference of the caller's.
fn waker(header: NonNull<Header>) -> Waker {
    // SAFETY: the functions of `WAKER` keep the contract: thread-safe, counting references.
    unsafe { Waker::from_raw(RawWaker::new(header.as_ptr().cast_const().cast(), &WAKER)) }
}

fn header_of(data: *const ()) -> NonNull<Header> {
    NonNull::new(data.cast_mut().cast()).expect("a waker's data is a header")
}

unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned has a reference.
    unsafe { header_of(data).as_ref() }.state.add_reference();
    RawWaker::new(data, &WAKER)
}

unsafe fn wake_by_value(data: *const ()) {
    let header = header_of(data);
    // SAFETY: the waker has a reference until the transition takes it.
    let task = unsafe { header.as_ref() };
    match task.state.wake_by_value() {
        Some(Wake::Submit) => schedule(G(header), false),
        Some(Wake::Nothing) => {}
        // SAFETY: that was the last reference (rule 4).
        None => unsafe { (task.vtable.dealloc)(header) },
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    let header = header_of(data);
    // SAFETY: the waker has a reference.
    if unsafe { header.as_ref() }.state.wake_by_ref() == Wake::Submit {
        schedule(G(header), false);
    }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker's reference.
    unsafe { drop_reference(header_of(data)) }
}
