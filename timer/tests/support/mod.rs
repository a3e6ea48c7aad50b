//! Runtimes with timers.
#![allow(dead_code)]

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gmp_executor::{Config, Flavor, Runtime};
use gmp_timer::{Duration, TimerDriver};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// A `current_thread` runtime.
pub(crate) fn current() -> Runtime {
    with_driver(Flavor::CurrentThread, 1, false).0
}

/// A `current_thread` runtime whose clock is paused.
pub(crate) fn paused() -> Runtime {
    with_driver(Flavor::CurrentThread, 1, true).0
}

/// A runtime of several threads.
pub(crate) fn multi(procs: usize) -> Runtime {
    with_driver(Flavor::MultiThread, procs, false).0
}

pub(crate) fn without_timers() -> Runtime {
    Runtime::new(Config::new(Flavor::CurrentThread, 1)).expect("nothing to refuse")
}

pub(crate) fn with_driver(
    flavor: Flavor,
    procs: usize,
    start_paused: bool,
) -> (Runtime, Arc<TimerDriver>) {
    let driver = TimerDriver::new(procs, flavor == Flavor::CurrentThread, start_paused);
    let mut config = Config::new(flavor, procs);
    config.timers = Some(driver.clone());
    (Runtime::new(config).expect("threads"), driver)
}

/// Ends the process if `test` does not come to an end.
pub(crate) fn watched<R>(test: impl FnOnce() -> R) -> R {
    let (done, is_done) = mpsc::channel::<()>();
    let name = thread::current().name().unwrap_or("?").to_owned();
    thread::spawn(move || {
        if is_done.recv_timeout(Duration::from_secs(600)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs");
            std::process::abort();
        }
    });
    let result = test();
    drop(done);
    result
}

/// The text and the file of the panic that `f` ends with.
pub(crate) fn panic_of(f: impl FnOnce()) -> (String, String) {
    static HOOK: Mutex<()> = Mutex::new(());
    let _one_at_a_time = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    let found = Arc::new(Mutex::new(None));
    let (id, note) = (thread::current().id(), found.clone());
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == id {
            let payload = info.payload();
            let text = match (
                payload.downcast_ref::<&str>(),
                payload.downcast_ref::<String>(),
            ) {
                (Some(text), _) => (*text).to_owned(),
                (_, Some(text)) => text.clone(),
                _ => String::new(),
            };
            let file = info.location().map_or("", |at| at.file()).to_owned();
            *note.lock().unwrap() = Some((text, file));
        }
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    panic::set_hook(before);
    assert!(result.is_err(), "it does not panic");
    found.lock().unwrap().take().expect("the hook was called")
}
