//! Everybody's code, the values' `clone` and `drop` and the wakers, may use the channel that it is in.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex as StdMutex, Weak};
use std::task::{Poll, RawWaker, RawWakerVTable, Wake, Waker};

use super::*;

type Action = Arc<dyn Fn() + Send + Sync>;

/// A value that does something when it is cloned, or when it, and not its clone, is dropped.
struct Acting {
    number: u32,
    on_clone: Option<Action>,
    on_drop: Option<Action>,
    _counted: Counted,
}

impl Acting {
    fn new(number: u32, counts: &Arc<Counts>) -> Self {
        Acting {
            number,
            on_clone: None,
            on_drop: None,
            _counted: Counted::new(number, counts),
        }
    }

    fn on_clone(mut self, action: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_clone = Some(Arc::new(action));
        self
    }

    fn on_drop(mut self, action: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_drop = Some(Arc::new(action));
        self
    }
}

impl Clone for Acting {
    fn clone(&self) -> Self {
        if let Some(action) = &self.on_clone {
            action();
        }
        Acting {
            number: self.number,
            on_clone: None,
            on_drop: None,
            _counted: self._counted.clone(),
        }
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(action) = &self.on_drop {
            action();
        }
    }
}

fn send(sender: &Sender<Acting>, value: Acting) {
    assert!(sender.send(value).is_ok(), "there is no receiver");
}

fn read(receiver: &mut Receiver<Acting>) -> Result<u32, TryRecvError> {
    receiver.try_recv().map(|value| value.number)
}

/// The sender comes round, more than once, to the place that is being read.
#[test]
fn a_clone_may_send_all_round() {
    for capacity in [1, 2, 4] {
        let counts = Arc::new(Counts::default());
        let (sender, mut receiver) = channel(capacity);
        let mut other = sender.subscribe();
        let (weak, inner) = (sender.downgrade(), counts.clone());
        let last = 3 * capacity as u32;
        let value = Acting::new(0, &counts).on_clone(move || {
            let sender = weak.upgrade().unwrap();
            for number in 1..=last {
                send(&sender, Acting::new(number, &inner));
                assert_eq!(sender.len(), capacity.min(number as usize + 1));
                assert!(!sender.is_empty());
            }
        });
        send(&sender, value);
        assert_eq!(read(&mut receiver), Ok(0));
        // What was read has been dropped, although its place was wanted.
        assert_eq!(counts.alive(), capacity);
        let first = last + 1 - capacity as u32;
        for (receiver, seen) in [(&mut receiver, 1), (&mut other, 0)] {
            let missed = (first - seen) as u64;
            assert_eq!(read(receiver), Err(TryRecvError::Lagged(missed)));
            for number in first..=last {
                assert_eq!(read(receiver), Ok(number));
            }
            assert!(receiver.is_empty());
        }
        assert!(sender.is_empty());
        assert_eq!(counts.alive(), 0);
        // The ring still works where the spare place is.
        for number in 0..4 * last {
            send(&sender, Acting::new(number, &counts));
            assert_eq!(sender.len(), 1);
            assert_eq!(read(&mut receiver), Ok(number));
            assert_eq!(read(&mut other), Ok(number));
        }
    }
}

/// A clone within a clone within a clone, all in the only slot: a spare place for each.
#[test]
fn clones_may_nest() {
    const DEPTH: u32 = 5;
    fn value(number: u32, sender: WeakSender<Acting>, counts: &Arc<Counts>) -> Acting {
        let inner = counts.clone();
        Acting::new(number, counts).on_clone(move || {
            if number < DEPTH {
                let strong = sender.upgrade().unwrap();
                let mut receiver = strong.subscribe();
                send(&strong, value(number + 1, sender.clone(), &inner));
                assert_eq!(read(&mut receiver), Ok(number + 1));
            }
        })
    }
    let counts = Arc::new(Counts::default());
    let (sender, mut receiver) = channel(1);
    for _ in 0..3 {
        send(&sender, value(0, sender.downgrade(), &counts));
        assert_eq!(read(&mut receiver), Ok(0));
        assert_eq!(
            read(&mut receiver),
            Err(TryRecvError::Lagged(DEPTH as u64 - 1))
        );
        assert_eq!(read(&mut receiver), Ok(DEPTH));
        assert_eq!(counts.alive(), 0);
    }
}

/// Everything but reading the same value from the clone itself, which would wait for itself.
#[test]
fn a_clone_may_do_the_rest() {
    let counts = Arc::new(Counts::default());
    let (sender, mut receiver) = channel(4);
    let leaver = StdMutex::new(Some(sender.subscribe()));
    let weak = sender.downgrade();
    let value = Acting::new(0, &counts).on_clone(move || {
        let sender = weak.upgrade().unwrap();
        assert_eq!(sender.len(), 2);
        let subscribed = sender.subscribe();
        // It had yet to read this value too.
        drop(leaver.lock().unwrap().take());
        drop(subscribed);
        assert_eq!(sender.receiver_count(), 1);
        assert!(!sender.is_empty());
    });
    send(&sender, value);
    send(&sender, Acting::new(1, &counts));
    assert_eq!(read(&mut receiver), Ok(0));
    assert_eq!((sender.len(), counts.alive()), (1, 1));
    assert_eq!(read(&mut receiver), Ok(1));
    assert_eq!((sender.len(), counts.alive()), (0, 0));
}

/// The reader that clones is the last one to need the value, but only once the other one has gone.
#[test]
fn the_last_receiver_may_go_while_its_value_is_cloned() {
    let counts = Arc::new(Counts::default());
    let (sender, receiver) = channel(2);
    let mut first = sender.subscribe();
    let leaver = StdMutex::new(Some(receiver));
    let value = Acting::new(0, &counts).on_clone(move || drop(leaver.lock().unwrap().take()));
    send(&sender, value);
    assert_eq!(read(&mut first), Ok(0));
    assert!(sender.is_empty());
    assert_eq!(counts.alive(), 0);
}

#[test]
fn a_drop_may_use_the_channel() {
    let counts = Arc::new(Counts::default());
    let dropped = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(2);
    let acting = |number| {
        let (weak, counts, dropped) = (sender.downgrade(), counts.clone(), dropped.clone());
        Acting::new(number, &counts.clone()).on_drop(move || {
            dropped.fetch_add(1, Ordering::SeqCst);
            if let Some(sender) = weak.upgrade() {
                let _ = sender.send(Acting::new(100, &counts));
                assert!(sender.len() <= 2);
            }
        })
    };
    // Overwritten by a sender.
    send(&sender, acting(0));
    send(&sender, Acting::new(1, &counts));
    send(&sender, Acting::new(2, &counts));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(read(&mut receiver), Err(TryRecvError::Lagged(2)));
    assert_eq!(read(&mut receiver), Ok(2));
    assert_eq!(read(&mut receiver), Ok(100));
    // Read by the last receiver.
    send(&sender, acting(3));
    assert_eq!(read(&mut receiver), Ok(3));
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    assert_eq!(read(&mut receiver), Ok(100));
    // Left by the last receiver: the value that is sent finds none.
    send(&sender, acting(4));
    drop(receiver);
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    assert!(sender.is_empty());
    // Left in the channel.
    let _receiver = sender.subscribe();
    send(&sender, acting(5));
    drop(sender);
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    drop(_receiver);
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
    assert_eq!(counts.alive(), 0);
}

/// Whatever one value's `drop` does, the others are released, and `closed` is told.
#[test]
fn a_drop_that_panics_stops_nothing() {
    let counts = Arc::new(Counts::default());
    let (sender, receiver) = channel(4);
    let mut closed = polled(sender.closed());
    closed.pending();
    for number in 0..3 {
        let value = Acting::new(number, &counts);
        match number {
            1 => send(&sender, value.on_drop(|| panic!("on purpose"))),
            _ => send(&sender, value),
        }
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(closed.woken(), 1);
    closed.ready();
    assert!(sender.is_empty());
    assert_eq!(counts.alive(), 0);
    // A sender that overwrites it has sent.
    let mut receiver = sender.subscribe();
    let mut wait = polled(receiver.recv());
    wait.pending();
    send(
        &sender,
        Acting::new(0, &counts).on_drop(|| panic!("on purpose")),
    );
    for number in 1..4 {
        send(&sender, Acting::new(number, &counts));
    }
    let sent = catch_unwind(AssertUnwindSafe(|| send(&sender, Acting::new(4, &counts))));
    assert!(sent.is_err());
    assert!(matches!(wait.ready(), Err(RecvError::Lagged(1))));
    drop(wait);
    for number in 1..5 {
        assert_eq!(read(&mut receiver), Ok(number));
    }
}

/// A waker that uses the channel when it is woken, cloned or dropped.
struct Busy {
    sender: WeakSender<u32>,
    uses: AtomicUsize,
    /// Whether the next use sends.
    sends: AtomicBool,
}

impl Busy {
    fn new(sender: &Sender<u32>) -> Arc<Busy> {
        Arc::new(Busy {
            sender: sender.downgrade(),
            uses: AtomicUsize::new(0),
            sends: AtomicBool::new(true),
        })
    }

    fn act(&self) {
        self.uses.fetch_add(1, Ordering::SeqCst);
        let sender = self.sender.upgrade().unwrap();
        drop(sender.subscribe());
        assert!(sender.len() <= 2);
        if self.sends.swap(false, Ordering::SeqCst) {
            sender.send(7).unwrap();
        }
    }
}

impl Wake for Busy {
    fn wake(self: Arc<Self>) {
        self.act();
    }
}

#[test]
fn a_waker_may_send_when_it_is_woken() {
    let (sender, mut receiver) = channel(2);
    let busy = Busy::new(&sender);
    let waker = Waker::from(busy.clone());
    let mut wait = Box::pin(receiver.recv());
    assert!(
        wait.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    sender.send(1).unwrap();
    assert_eq!(busy.uses.load(Ordering::SeqCst), 1);
    assert_eq!(block_on(wait), Ok(1));
    assert_eq!(receiver.try_recv(), Ok(7));
}

/// The standard library's wakers cannot see themselves cloned and dropped.
fn busy_waker(busy: &Arc<Busy>) -> Waker {
    fn borrow(data: *const ()) -> std::mem::ManuallyDrop<Arc<Busy>> {
        // SAFETY: the data is what `Arc::into_raw` gave, and counts as one reference that is not dropped
        // here.
        std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
    }
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            borrow(data).act();
            RawWaker::new(Arc::into_raw(Arc::clone(&borrow(data))).cast(), &TABLE)
        },
        |data| {
            borrow(data).act();
            std::mem::ManuallyDrop::into_inner(borrow(data));
        },
        |data| borrow(data).act(),
        |data| {
            borrow(data).act();
            std::mem::ManuallyDrop::into_inner(borrow(data));
        },
    );
    let raw = RawWaker::new(Arc::into_raw(busy.clone()).cast(), &TABLE);
    // SAFETY: the table keeps one reference for each waker, and `Busy` is `Send` and `Sync`.
    unsafe { Waker::from_raw(raw) }
}

#[test]
fn a_waker_may_send_when_it_is_cloned_or_dropped() {
    let (sender, mut receiver) = channel(2);
    let busy = Busy::new(&sender);
    let waker = busy_waker(&busy);
    let cx = &mut Context::from_waker(&waker);
    // Cloned: so there is something to read at once.
    let mut wait = Box::pin(receiver.recv());
    assert_eq!(wait.as_mut().poll(cx), Poll::Ready(Ok(7)));
    drop(wait);
    // Replaced by another one.
    let mut wait = Box::pin(receiver.recv());
    assert!(wait.as_mut().poll(cx).is_pending());
    busy.sends.store(true, Ordering::SeqCst);
    let noop = &mut Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(noop).is_pending());
    assert_eq!(wait.as_mut().poll(noop), Poll::Ready(Ok(7)));
    drop(wait);
    // Dropped with the future.
    let mut wait = Box::pin(receiver.recv());
    assert!(wait.as_mut().poll(cx).is_pending());
    busy.sends.store(true, Ordering::SeqCst);
    drop(wait);
    assert_eq!(receiver.try_recv(), Ok(7));
    // Woken.
    let mut wait = Box::pin(receiver.recv());
    assert!(wait.as_mut().poll(cx).is_pending());
    busy.sends.store(true, Ordering::SeqCst);
    sender.send(1).unwrap();
    assert_eq!(wait.as_mut().poll(cx), Poll::Ready(Ok(1)));
    drop(wait);
    assert_eq!(receiver.try_recv(), Ok(7));
    assert!(busy.uses.load(Ordering::SeqCst) >= 6);
    drop(waker);
    assert_eq!(Arc::strong_count(&busy), 1);
}

/// A receiver in its own channel: nothing is left when it has gone.
#[test]
fn a_channel_may_hold_its_own_receiver() {
    #[derive(Clone)]
    struct Own(Arc<StdMutex<Option<Receiver<Own>>>>);
    let (sender, receiver) = channel(2);
    let own = Own(Arc::new(StdMutex::new(None)));
    let weak: Weak<_> = Arc::downgrade(&own.0);
    assert!(sender.send(own.clone()).is_ok());
    *own.0.lock().unwrap() = Some(receiver);
    drop(own);
    let receiver = weak.upgrade().unwrap().lock().unwrap().take();
    drop(receiver);
    assert!(weak.upgrade().is_none());
    assert!(sender.is_empty());
}
