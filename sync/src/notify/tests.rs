//! What `Notify` promises, a test for each sentence; then random programs against a simple model.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll, Wake};

use proptest::prelude::*;

use super::*;
use crate::test_util::{Polled, panicking_waker, polled};
use gmp_executor::coop::with_full_budget;

fn notified(notify: &Notify) -> Polled<Notified<'_>> {
    polled(notify.notified())
}

fn waiting(notify: &Notify) -> Polled<Notified<'_>> {
    let mut notified = notified(notify);
    notified.pending();
    notified
}

#[test]
fn a_permit_is_kept_for_the_next_to_come() {
    let notify = Notify::new();
    notify.notify_one();
    notified(&notify).ready();
    notified(&notify).pending();
}

#[test]
fn there_is_never_more_than_one_permit() {
    let notify = Notify::new();
    for _ in 0..5 {
        notify.notify_one();
        notify.notify_last();
    }
    notified(&notify).ready();
    notified(&notify).pending();
}

#[test]
fn notify_one_takes_the_oldest() {
    let notify = Notify::new();
    let mut waiters = [(); 3].map(|()| waiting(&notify));
    notify.notify_one();
    assert_eq!(waiters.each_ref().map(Polled::woken), [1, 0, 0]);
    waiters[1].pending();
    notify.notify_one();
    assert_eq!(waiters.each_ref().map(Polled::woken), [1, 1, 0]);
    waiters[0].ready();
    waiters[1].ready();
    waiters[2].pending();
}

#[test]
fn notify_last_takes_the_newest() {
    let notify = Notify::new();
    let mut waiters = [(); 3].map(|()| waiting(&notify));
    notify.notify_last();
    assert_eq!(waiters.each_ref().map(Polled::woken), [0, 0, 1]);
    notify.notify_last();
    notify.notify_last();
    assert_eq!(waiters.each_ref().map(Polled::woken), [1, 1, 1]);
    waiters.iter_mut().for_each(Polled::ready);
    waiting(&notify);
}

#[test]
fn a_future_not_polled_takes_no_part_in_notify_one() {
    let notify = Notify::new();
    let mut early = notified(&notify);
    notify.notify_one();
    notified(&notify).ready();
    early.pending();
}

#[test]
fn notify_waiters_reaches_everybody_from_the_start() {
    let notify = Notify::new();
    let mut fresh = notified(&notify);
    let mut linked = waiting(&notify);
    notify.notify_waiters();
    assert_eq!((fresh.woken(), linked.woken()), (0, 1));
    fresh.ready();
    linked.ready();
}

#[test]
fn notify_waiters_leaves_no_permit() {
    let notify = Notify::new();
    notify.notify_waiters();
    notified(&notify).pending();
    waiting(&notify);
    notify.notify_waiters();
    notified(&notify).pending();
}

#[test]
fn a_future_reached_by_notify_waiters_leaves_the_permit_alone() {
    let notify = Notify::new();
    let mut fresh = notified(&notify);
    notify.notify_waiters();
    notify.notify_one();
    fresh.ready();
    notified(&notify).ready();
}

#[test]
fn notify_waiters_keeps_an_earlier_permit() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_waiters();
    notified(&notify).ready();
}

#[test]
fn one_call_of_notify_waiters_does_not_get_through_two_waits() {
    let notify = Notify::new();
    let mut twice = polled(async {
        notify.notified().await;
        notify.notified().await;
    });
    twice.pending();
    notify.notify_waiters();
    twice.pending();
    notify.notify_waiters();
    twice.ready();
}

#[test]
fn it_is_fused() {
    let notify = Notify::new();
    notify.notify_one();
    let mut future = notified(&notify);
    future.ready();
    future.ready();
    assert!(future.as_mut().enable());
    notify.notify_one();
    future.ready();
    notified(&notify).ready();
}

#[test]
fn enable_says_whether_notify_waiters_was_called() {
    let notify = Notify::new();
    let mut future = notified(&notify);
    notify.notify_waiters();
    assert!(future.as_mut().enable());
    future.ready();
}

#[test]
fn enable_takes_the_permit() {
    let notify = Notify::new();
    notify.notify_one();
    let mut first = notified(&notify);
    let mut second = notified(&notify);
    assert!(first.as_mut().enable());
    assert!(!second.as_mut().enable());
    first.ready();
    // Enabled and told so: the permit is consumed, dropping the future does not give it back.
    notify.notify_one();
    assert!(second.as_mut().enable());
    drop(second);
    notified(&notify).pending();
}

#[test]
fn enable_joins_the_queue() {
    let notify = Notify::new();
    let mut first = notified(&notify);
    let mut second = notified(&notify);
    assert!(!first.as_mut().enable());
    assert!(!second.as_mut().enable());
    notify.notify_one();
    notify.notify_one();
    assert!(first.as_mut().enable());
    second.ready();
}

#[test]
fn poll_after_enable_registers_the_waker() {
    let notify = Notify::new();
    let mut future = notified(&notify);
    assert!(!future.as_mut().enable());
    future.pending();
    assert!(!future.as_mut().enable());
    notify.notify_one();
    assert_eq!(future.woken(), 1);
}

#[test]
fn the_last_waker_counts() {
    let notify = Notify::new();
    let mut future = waiting(&notify);
    let old = future.count();
    assert!(future.poll_as_another().is_pending());
    notify.notify_one();
    assert_eq!((old.get(), future.woken()), (0, 1));
}

#[test]
fn a_dropped_future_leaves_the_queue() {
    let notify = Notify::new();
    for leaver in 0..3 {
        let mut waiters: Vec<_> = (0..3).map(|_| waiting(&notify)).collect();
        waiters.remove(leaver);
        notify.notify_one();
        assert_eq!((waiters[0].woken(), waiters[1].woken()), (1, 0));
        notify.notify_one();
        waiters.iter_mut().for_each(Polled::ready);
    }
    // The last one out leaves an empty queue: the permit is kept.
    drop(waiting(&notify));
    notify.notify_one();
    notified(&notify).ready();
}

#[test]
fn a_notification_not_seen_goes_on_to_the_next() {
    let notify = Notify::new();
    let first = waiting(&notify);
    let mut second = waiting(&notify);
    notify.notify_one();
    drop(first);
    assert_eq!(second.woken(), 1);
    second.ready();
}

#[test]
fn a_notification_not_seen_of_notify_last_goes_on_to_the_newest() {
    let notify = Notify::new();
    let mut first = waiting(&notify);
    let mut second = waiting(&notify);
    let third = waiting(&notify);
    notify.notify_last();
    drop(third);
    second.ready();
    first.pending();
}

#[test]
fn a_notification_not_seen_becomes_the_permit_again() {
    let notify = Notify::new();
    let first = waiting(&notify);
    notify.notify_one();
    drop(first);
    notified(&notify).ready();
    notified(&notify).pending();
}

#[test]
fn a_broadcast_not_seen_does_not_go_on() {
    let notify = Notify::new();
    let first = waiting(&notify);
    notify.notify_waiters();
    drop(first);
    notified(&notify).pending();
}

#[test]
fn owned_futures_outlive_the_handle() {
    let notify = Arc::new(Notify::new());
    let mut first = polled(notify.clone().notified_owned());
    let mut second = polled(notify.clone().notified_owned());
    assert!(!first.as_mut().enable());
    first.pending();
    second.pending();
    notify.notify_one();
    drop(first);
    drop(notify);
    second.ready();
}

#[test]
fn many_waiters_are_woken_in_order() {
    let notify = Notify::new();
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    struct InOrder(usize, Arc<parking_lot::Mutex<Vec<usize>>>);
    impl Wake for InOrder {
        fn wake(self: Arc<Self>) {
            self.1.lock().push(self.0);
        }
    }
    let mut futures: Vec<_> = (0..100).map(|_| Box::pin(notify.notified())).collect();
    for (at, future) in futures.iter_mut().enumerate() {
        let waker = Waker::from(Arc::new(InOrder(at, order.clone())));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    notify.notify_waiters();
    assert_eq!(*order.lock(), (0..100).collect::<Vec<_>>());
}

/// Runs something when it is woken or dropped, then is spent.
type Action = Box<dyn FnOnce() + Send>;
struct Acts(parking_lot::Mutex<Option<Action>>);

impl Wake for Acts {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().take();
        if let Some(action) = action {
            action();
        }
    }
}

fn acting_waker(action: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(Acts(parking_lot::Mutex::new(Some(Box::new(
        action,
    ))))))
}

fn poll_with(future: Pin<&mut OwnedNotified>, waker: &Waker) -> Poll<()> {
    future.poll(&mut Context::from_waker(waker))
}

/// In the middle of `notify_waiters`, when the first batch is woken: waiters of the later batches
/// are polled and dropped, new ones come, `notify_one` is called.
#[test]
fn in_the_middle_of_notify_waiters() {
    let notify = Arc::new(Notify::new());
    let owned = || Box::pin(notify.clone().notified_owned());
    let mut first = owned();
    let mut rest: Vec<_> = (0..100).map(|_| owned()).collect();
    let (polled_later, dropped) = (owned(), owned());
    let inside = Arc::new(parking_lot::Mutex::new((polled_later, Some(dropped))));
    let action = {
        let (notify, inside) = (notify.clone(), inside.clone());
        move || {
            let mut inside = inside.lock();
            // It belongs to the last batch, but the call has been made.
            assert!(poll_with(inside.0.as_mut(), Waker::noop()).is_ready());
            inside.1 = None;
            // Whoever comes now is not reached by the call, and gets the next `notify_one`.
            let mut new = Box::pin(notify.clone().notified_owned());
            assert!(poll_with(new.as_mut(), Waker::noop()).is_pending());
            notify.notify_one();
            assert!(poll_with(new.as_mut(), Waker::noop()).is_ready());
            notify.notify_one();
        }
    };
    assert!(poll_with(first.as_mut(), &acting_waker(action)).is_pending());
    for future in &mut rest {
        assert!(poll_with(future.as_mut(), Waker::noop()).is_pending());
    }
    {
        let mut inside = inside.lock();
        assert!(poll_with(inside.0.as_mut(), Waker::noop()).is_pending());
        let dropped = inside.1.as_mut().expect("not yet dropped");
        assert!(poll_with(dropped.as_mut(), Waker::noop()).is_pending());
    }
    notify.notify_waiters();
    assert!(inside.lock().1.is_none(), "the waker has run");
    for future in &mut rest {
        assert!(poll_with(future.as_mut(), Waker::noop()).is_ready());
    }
    // The permit of the last `notify_one`.
    assert!(poll_with(owned().as_mut(), Waker::noop()).is_ready());
    assert!(poll_with(owned().as_mut(), Waker::noop()).is_pending());
}

/// A waker may call back when it is dropped, also while it is being replaced.
#[test]
fn wakers_are_dropped_without_the_lock() {
    struct OnDrop(Arc<Notify>);
    impl Wake for OnDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_waiters();
        }
    }
    let notify = Arc::new(Notify::new());
    let waker = || Waker::from(Arc::new(OnDrop(notify.clone())));
    let mut future = Box::pin(notify.notified());
    let mut poll = || future.as_mut().poll(&mut Context::from_waker(&waker()));
    assert!(poll().is_pending());
    // The first waker is dropped, and notifies.
    assert!(poll().is_pending());
    assert!(poll().is_ready());
    let mut future = Box::pin(notify.notified());
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker()));
    assert!(polled.is_pending());
    notify.notify_waiters();
}

/// A waker that panics must not take the wake-ups behind it with it.
#[test]
fn a_panicking_waker_in_a_queue_of_three() {
    let notify = Notify::new();
    let mut first = waiting(&notify);
    let mut second = Box::pin(notify.notified());
    let polled = second
        .as_mut()
        .poll(&mut Context::from_waker(&panicking_waker()));
    assert!(polled.is_pending());
    let mut third = waiting(&notify);
    notify.notify_waiters();
    assert_eq!((first.woken(), third.woken()), (1, 1));
    first.ready();
    third.ready();
    assert!(
        second
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    );
}

/// The budget: a notification that may not be delivered yet is not lost.
#[test]
fn it_consumes_budget() {
    let notify = Notify::new();
    with_full_budget(|| {
        for _ in 0..128 {
            notify.notify_one();
            notified(&notify).ready();
        }
        // Waiting costs nothing.
        let mut future = waiting(&notify);
        notify.notify_one();
        future.pending();
        // Dropped without being told, it hands the notification on; enabled, it is told.
        drop(future);
        assert!(notified(&notify).as_mut().enable());
        notify.notify_one();
        notified(&notify).pending();
    });
    notified(&notify).ready();
    notified(&notify).pending();
}

#[test]
fn sizes_and_auto_traits() {
    fn assert_send_sync<T: Send + Sync>() {}
    fn assert_unwind_safe<T: UnwindSafe + RefUnwindSafe + Unpin>() {}
    assert_send_sync::<Notify>();
    assert_send_sync::<Notified<'_>>();
    assert_send_sync::<OwnedNotified>();
    assert_unwind_safe::<Notify>();
    static NOTIFY: Notify = Notify::const_new();
    assert!(format!("{NOTIFY:?}").starts_with("Notify { permit: false"));
    assert!(format!("{:?}", NOTIFY.notified()).starts_with("Notified {"));
    assert!(
        format!("{:?}", Arc::new(Notify::default()).notified_owned())
            .starts_with("OwnedNotified {")
    );
    // tokio 1.54 on 64 bits: 32, 64, 64.
    assert!(size_of::<Notify>() <= 32);
    assert!(size_of::<Notified<'_>>() <= 64);
    assert!(size_of::<OwnedNotified>() <= 64);
}

/// The model: what each future has seen, in plain words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// Made, not polled.
    Nothing,
    /// Polled (with a waker) or enabled (without), and in the queue.
    Queued {
        wakes: bool,
    },
    /// Notified and not told.
    Notified {
        by: By,
    },
    Told,
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    One,
    Last,
    All,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    New,
    Poll(usize),
    Enable(usize),
    Drop(usize),
    One,
    Last,
    All,
}

#[derive(Default)]
struct Model {
    permit: bool,
    futures: Vec<Seen>,
    woken: Vec<usize>,
    queue: Vec<usize>,
}

impl Model {
    fn notify(&mut self, by: By) {
        let at = match by {
            By::One if !self.queue.is_empty() => self.queue.remove(0),
            By::Last if !self.queue.is_empty() => self.queue.pop().expect("not empty"),
            _ => {
                self.permit = true;
                return;
            }
        };
        self.mark(at, by);
    }

    fn mark(&mut self, at: usize, by: By) {
        if let Seen::Queued { wakes: true } = self.futures[at] {
            self.woken[at] += 1;
        }
        self.futures[at] = Seen::Notified { by };
    }

    fn poll(&mut self, at: usize, wakes: bool) -> bool {
        match self.futures[at] {
            Seen::Nothing if self.permit => {
                self.permit = false;
                self.futures[at] = Seen::Told;
            }
            Seen::Nothing => {
                self.futures[at] = Seen::Queued { wakes };
                self.queue.push(at);
            }
            Seen::Queued { wakes: before } => {
                self.futures[at] = Seen::Queued {
                    wakes: before || wakes,
                }
            }
            Seen::Notified { .. } => self.futures[at] = Seen::Told,
            Seen::Told | Seen::Dropped => {}
        }
        self.futures[at] == Seen::Told
    }

    fn drop(&mut self, at: usize) {
        self.queue.retain(|queued| *queued != at);
        let before = std::mem::replace(&mut self.futures[at], Seen::Dropped);
        if let Seen::Notified {
            by: by @ (By::One | By::Last),
        } = before
        {
            self.notify(by);
        }
    }

    fn all(&mut self) {
        self.queue.clear();
        for at in 0..self.futures.len() {
            if let Seen::Nothing | Seen::Queued { .. } = self.futures[at] {
                self.mark(at, By::All);
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..8usize;
    prop_oneof![
        3 => Just(Step::New),
        4 => at.clone().prop_map(Step::Poll),
        1 => at.clone().prop_map(Step::Enable),
        2 => at.prop_map(Step::Drop),
        3 => Just(Step::One),
        2 => Just(Step::Last),
        1 => Just(Step::All),
    ]
}

fn run(steps: &[Step]) {
    let notify = Notify::new();
    let futures: RefCell<Vec<Option<Polled<Notified<'_>>>>> = RefCell::default();
    let mut model = Model::default();
    for step in steps {
        let mut futures = futures.borrow_mut();
        // A step on a future is one on the youngest eight.
        let index = |at: usize| (futures.len() > at).then(|| futures.len() - 1 - at);
        match *step {
            Step::New => {
                futures.push(Some(notified(&notify)));
                model.futures.push(Seen::Nothing);
                model.woken.push(0);
            }
            Step::Poll(at) => {
                let Some(at) = index(at) else { continue };
                if let Some(future) = &mut futures[at] {
                    assert_eq!(future.poll().is_ready(), model.poll(at, true));
                }
            }
            Step::Enable(at) => {
                let Some(at) = index(at) else { continue };
                if let Some(future) = &mut futures[at] {
                    assert_eq!(future.as_mut().enable(), model.poll(at, false));
                }
            }
            Step::Drop(at) => {
                let Some(at) = index(at) else { continue };
                if futures[at].take().is_some() {
                    model.drop(at);
                }
            }
            Step::One => {
                notify.notify_one();
                model.notify(By::One);
            }
            Step::Last => {
                notify.notify_last();
                model.notify(By::Last);
            }
            Step::All => {
                notify.notify_waiters();
                model.all();
            }
        }
        for (future, woken) in futures.iter().zip(&model.woken) {
            if let Some(future) = future {
                assert_eq!(future.woken(), *woken);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn random_programs(steps in prop::collection::vec(step(), 0..100)) {
        run(&steps);
    }
}
