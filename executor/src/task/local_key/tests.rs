//! Scopes: when the value is there, and that it comes back out in every way a scope can end.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Waker;

use super::*;

/// What `task_local!` makes.
macro_rules! key {
    ($name:ident: $value:ty) => {
        static $name: LocalKey<$value> = {
            thread_local! {
                static SLOT: RefCell<Option<$value>> = const { RefCell::new(None) };
            }
            LocalKey::over(SLOT)
        };
    };
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Pending at the first poll.
fn wait_once() -> impl Future<Output = ()> {
    let mut waited = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

fn message(caught: Box<dyn std::any::Any + Send>) -> String {
    match caught.downcast::<String>() {
        Ok(text) => *text,
        Err(caught) => (*caught.downcast::<&str>().expect("a text")).to_owned(),
    }
}

#[test]
fn without_a_scope_there_is_no_value() {
    key!(KEY: u32);
    let error = KEY.try_with(|_| ()).unwrap_err();
    assert_eq!(error, KEY.try_get().unwrap_err());
    assert_eq!(error.to_string(), "task-local value not set");
    assert_eq!(
        format!("{error:?} {error:>30}"),
        "AccessError       task-local value not set"
    );
    let caught = catch_unwind(|| KEY.get()).unwrap_err();
    let text = "cannot access a task-local storage value without setting it first";
    assert_eq!(message(caught), text);
    assert!(catch_unwind(|| KEY.with(|_| ())).is_err());
}

#[test]
fn the_value_is_there_during_each_poll_and_not_between() {
    key!(KEY: u32);
    let mut scope = pin!(KEY.scope(5, async {
        assert_eq!(KEY.get(), 5);
        wait_once().await;
        KEY.with(|value| assert_eq!(*value, 5));
        KEY.try_get()
    }));
    assert!(KEY.try_get().is_err());
    assert!(poll_once(scope.as_mut()).is_pending());
    assert!(KEY.try_get().is_err());
    assert_eq!(poll_once(scope.as_mut()), Poll::Ready(Ok(5)));
    assert!(KEY.try_get().is_err());
}

#[test]
fn the_value_follows_the_future_to_another_thread() {
    key!(KEY: String);
    let mut scope = Box::pin(KEY.scope("here".to_owned(), async {
        wait_once().await;
        KEY.get()
    }));
    assert!(poll_once(scope.as_mut()).is_pending());
    let seen = thread::spawn(move || poll_once(scope.as_mut())).join();
    assert_eq!(seen.expect("no panic"), Poll::Ready("here".to_owned()));
}

#[test]
fn scopes_of_one_key_nest() {
    key!(KEY: u32);
    let mut scope = pin!(KEY.scope(1, async {
        let mut inner = pin!(KEY.scope(2, async {
            assert_eq!(KEY.get(), 2);
            KEY.sync_scope(3, || assert_eq!(KEY.get(), 3));
            wait_once().await;
            assert_eq!(KEY.get(), 2);
        }));
        poll_fn(|cx| {
            assert_eq!(KEY.get(), 1);
            let polled = inner.as_mut().poll(cx);
            assert_eq!(KEY.get(), 1);
            polled
        })
        .await;
    }));
    assert!(poll_once(scope.as_mut()).is_pending());
    assert!(poll_once(scope.as_mut()).is_ready());
}

#[test]
fn two_scopes_of_one_key_take_turns() {
    key!(KEY: u32);
    let scope = |value| {
        KEY.scope(value, async move {
            for _ in 0..3 {
                assert_eq!(KEY.get(), value);
                wait_once().await;
            }
        })
    };
    let (mut first, mut second) = (pin!(scope(1)), pin!(scope(2)));
    for _ in 0..3 {
        assert!(poll_once(first.as_mut()).is_pending());
        assert!(poll_once(second.as_mut()).is_pending());
    }
    assert!(poll_once(second.as_mut()).is_ready());
    assert!(poll_once(first.as_mut()).is_ready());
}

#[test]
fn keys_are_independent() {
    key!(FIRST: u32);
    key!(SECOND: u32);
    FIRST.sync_scope(1, || {
        assert!(SECOND.try_get().is_err());
        SECOND.sync_scope(2, || assert_eq!((FIRST.get(), SECOND.get()), (1, 2)));
    });
}

/// Notes what the key holds when it is dropped.
struct Looks(&'static LocalKey<u32>, Rc<Cell<Option<u32>>>);

impl Drop for Looks {
    fn drop(&mut self) {
        self.1.set(self.0.try_get().ok());
    }
}

#[test]
fn the_value_is_there_while_the_future_is_dropped() {
    key!(KEY: u32);
    let seen = Rc::new(Cell::new(None));

    // Before it was polled.
    let looks = Looks(&KEY, seen.clone());
    drop(KEY.scope(1, async move { drop(looks) }));
    assert_eq!(seen.take(), Some(1));

    // While it waits.
    let looks = Looks(&KEY, seen.clone());
    let mut scope = Box::pin(KEY.scope(2, async move {
        let _looks = looks;
        pending::<()>().await;
    }));
    assert!(poll_once(scope.as_mut()).is_pending());
    assert_eq!(seen.take(), None);
    drop(scope);
    assert_eq!(seen.take(), Some(2));

    // When it completes: not later, when the scope is dropped.
    let looks = Looks(&KEY, seen.clone());
    let mut done = pin!(KEY.scope(
        3,
        poll_fn(move |_| {
            let _ = &looks;
            Poll::Ready(())
        })
    ));
    assert!(poll_once(done.as_mut()).is_ready());
    assert_eq!(seen.take(), Some(3));
}

#[test]
fn the_value_is_dropped_after_the_future() {
    struct Notes(&'static str, Rc<RefCell<Vec<&'static str>>>);
    impl Drop for Notes {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }
    key!(KEY: Notes);
    let order = Rc::new(RefCell::new(Vec::new()));
    let future = Notes("future", order.clone());
    drop(KEY.scope(Notes("value", order.clone()), async move { drop(future) }));
    assert_eq!(*order.borrow(), ["future", "value"]);

    order.borrow_mut().clear();
    KEY.sync_scope(Notes("value", order.clone()), || {
        order.borrow_mut().push("closure")
    });
    assert_eq!(*order.borrow(), ["closure", "value"]);
}

#[test]
fn a_panic_puts_the_outer_value_back() {
    key!(KEY: u32);
    KEY.sync_scope(1, || {
        let caught = catch_unwind(|| KEY.sync_scope(2, || panic!("inside")));
        assert_eq!(message(caught.unwrap_err()), "inside");
        assert_eq!(KEY.get(), 1);

        let mut scope = pin!(KEY.scope(3, async { panic!("inside") }));
        let polled = catch_unwind(AssertUnwindSafe(|| poll_once::<_>(scope.as_mut())));
        assert!(polled.is_err());
        assert_eq!(KEY.get(), 1);
        assert_eq!(scope.take_value(), Some(3));
    });
}

#[test]
fn a_panic_in_the_futures_drop_puts_the_outer_value_back() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }
    key!(KEY: u32);
    KEY.sync_scope(1, || {
        let panics = Panics;
        let scope = KEY.scope(2, async move { drop(panics) });
        let caught = catch_unwind(AssertUnwindSafe(|| drop(scope)));
        assert_eq!(message(caught.unwrap_err()), "in the drop");
        assert_eq!(KEY.get(), 1);
    });
}

#[test]
fn the_value_can_be_taken_out() {
    key!(KEY: String);
    let mut scope = pin!(KEY.scope("a".to_owned(), async { KEY.try_get().is_ok() }));
    assert_eq!(scope.as_mut().take_value().as_deref(), Some("a"));
    assert_eq!(scope.as_mut().take_value(), None);
    assert_eq!(
        poll_once(scope.as_mut()),
        Poll::Ready(false),
        "the future finds no value then"
    );

    let mut scope = pin!(KEY.scope("b".to_owned(), ready(())));
    assert!(poll_once(scope.as_mut()).is_ready());
    assert_eq!(scope.as_mut().take_value().as_deref(), Some("b"));
}

#[test]
fn an_empty_scope_hides_the_outer_value() {
    key!(KEY: u32);
    KEY.sync_scope(1, || {
        let mut scope = pin!(KEY.scope(2, async { KEY.try_get() }));
        scope.as_mut().take_value();
        assert!(matches!(poll_once(scope.as_mut()), Poll::Ready(Err(_))));
        assert_eq!(KEY.get(), 1);
    });
}

#[test]
fn no_scope_begins_while_the_value_is_borrowed() {
    key!(KEY: u32);
    let text = "cannot enter a task-local scope while the task-local storage is borrowed";
    KEY.sync_scope(1, || {
        KEY.with(|_| {
            // Reading goes on.
            assert_eq!(KEY.get(), 1);
            let caught = catch_unwind(|| KEY.sync_scope(2, || ())).unwrap_err();
            assert_eq!(message(caught), text);
            let mut scope = pin!(KEY.scope(2, ready(())));
            let caught = catch_unwind(AssertUnwindSafe(|| poll_once(scope.as_mut())));
            assert_eq!(message(caught.unwrap_err()), text);
        });
        assert_eq!(KEY.get(), 1);
    });
}

#[test]
fn a_future_dropped_where_no_scope_can_begin_is_dropped_nevertheless() {
    key!(KEY: u32);
    let seen = Rc::new(Cell::new(Some(9)));
    KEY.sync_scope(1, || {
        let looks = Looks(&KEY, seen.clone());
        let scope = KEY.scope(2, async move { drop(looks) });
        KEY.with(|_| drop(scope));
    });
    assert_eq!(seen.take(), Some(1));
}

#[test]
fn polled_after_completion_it_says_so() {
    key!(KEY: u32);
    let mut scope = pin!(KEY.scope(1, poll_fn(|_| Poll::Ready(()))));
    assert!(poll_once(scope.as_mut()).is_ready());
    let caught = catch_unwind(AssertUnwindSafe(|| poll_once(scope.as_mut()))).unwrap_err();
    assert_eq!(message(caught), "`TaskLocalFuture` polled after completion");
    assert!(KEY.try_get().is_err());
}

#[test]
fn panics_name_the_caller() {
    key!(KEY: u32);
    let (send, receive) = mpsc::channel();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map(|place| place.file().to_owned());
        let _ = send.send((thread::current().id(), file));
    }));
    let _ = catch_unwind(|| KEY.get());
    let _ = catch_unwind(|| KEY.with(|_| ()));
    let _ = catch_unwind(|| KEY.sync_scope(1, || KEY.with(|_| KEY.sync_scope(2, || ()))));
    std::panic::set_hook(hook);
    let mine = thread::current().id();
    let places: Vec<_> = receive
        .try_iter()
        .filter(|(thread, _)| *thread == mine)
        .collect();
    assert_eq!(places.len(), 3);
    for (_, place) in places {
        assert!(place.expect("a place").ends_with("local_key/tests.rs"));
    }
}

/// A53: in the destructor of a thread-local, when the key's own may be gone already.
#[test]
fn at_the_end_of_a_thread_nothing_panics() {
    key!(KEY: u32);
    struct AtExit(mpsc::Sender<bool>, Pin<Box<dyn Future<Output = ()> + Send>>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            // Either is right, depending on which is destroyed first.
            let _ = KEY.try_get();
            let dropped = catch_unwind(AssertUnwindSafe(|| {
                self.1 = Box::pin(ready(()));
            }));
            let _ = self.0.send(dropped.is_ok());
        }
    }
    thread_local! {
        static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    }
    for key_first in [false, true] {
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let scope = Box::pin(KEY.scope(1, async { pending::<()>().await }));
            if key_first {
                KEY.sync_scope(0, || ());
            }
            AT_EXIT.with(|slot| *slot.borrow_mut() = Some(AtExit(send, scope)));
            KEY.sync_scope(0, || ());
        })
        .join()
        .expect("no panic");
        assert_eq!(receive.recv(), Ok(true));
    }
}

#[test]
fn debug_shows_the_value() {
    key!(KEY: u32);
    assert_eq!(format!("{KEY:?}"), "LocalKey { .. }");
    let mut scope = pin!(KEY.scope(1, ready(())));
    assert_eq!(format!("{scope:?}"), "TaskLocalFuture { value: 1 }");
    scope.as_mut().take_value();
    assert_eq!(format!("{scope:?}"), "TaskLocalFuture { value: <missing> }");
}

#[test]
fn auto_traits_are_those_of_the_parts() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    key!(CELL: Cell<u32>);
    key!(NUMBER: u32);
    is_send(&CELL);
    is_sync(&CELL);
    // `Send` as its value is, which a `Cell` is, though not `Sync`.
    is_send(&CELL.scope(Cell::new(1), ready(())));
    is_sync(&NUMBER.scope(1, ready(())));
}

mod on_the_runtime {
    use super::*;
    use crate::task::{spawn, yield_now};
    use crate::{Config, Flavor, Runtime};

    #[test]
    fn tasks_have_their_own_values_and_children_none() {
        key!(KEY: u32);
        let runtime = Runtime::new(Config::new(Flavor::MultiThread, 2)).expect("threads");
        runtime.block_on(async {
            let tasks: Vec<_> = (0..100)
                .map(|n| {
                    spawn(KEY.scope(n, async move {
                        for _ in 0..10 {
                            assert_eq!(KEY.get(), n);
                            yield_now().await;
                        }
                        spawn(async { KEY.try_get().is_err() })
                            .await
                            .expect("no panic")
                    }))
                })
                .collect();
            for task in tasks {
                assert!(task.await.expect("no panic"));
            }
        });
    }

    #[test]
    fn the_value_is_there_when_a_task_is_aborted() {
        key!(KEY: u32);
        struct Sends(mpsc::Sender<Option<u32>>);
        impl Drop for Sends {
            fn drop(&mut self) {
                let _ = self.0.send(KEY.try_get().ok());
            }
        }
        for flavor in [Flavor::CurrentThread, Flavor::MultiThread] {
            let runtime = Runtime::new(Config::new(flavor, 1)).expect("threads");
            let (send, receive) = mpsc::channel();
            runtime.block_on(async {
                let sends = Sends(send);
                let task = spawn(KEY.scope(42, async move {
                    let _sends = sends;
                    pending::<()>().await;
                }));
                yield_now().await;
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            });
            assert_eq!(receive.recv(), Ok(Some(42)));
        }
    }
}
