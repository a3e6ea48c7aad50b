//! A runtime's life: built from a [`Config`], driven by `block_on`, ended by a shutdown.

use std::future::Future;
use std::io;
use std::panic::Location;
use std::time::Duration;

use crate::config::{Config, Flavor};
use crate::context::{self, Entered};
use crate::current_thread;
use crate::handle::{CANNOT_START, EnterGuard, Handle};
use crate::monitor::Monitor;
use crate::task;

/// How long a drop waits before it names what holds it up, if `GMPDEBUG=shutdown=1` asked for it.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// The owner of a runtime's threads and tasks. The facade wraps it as `gmp::runtime::Runtime`.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    /// The shutdown has begun.
    down: bool,
    built_at: &'static Location<'static>,
}

impl Runtime {
    /// Builds the scheduler and starts its threads.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a thread.
    #[track_caller]
    pub fn new(config: Config) -> io::Result<Runtime> {
        assert!(config.procs > 0, "Worker threads cannot be set to 0");
        let handle = Handle::build(config);
        let runtime = Runtime {
            handle,
            down: false,
            built_at: Location::caller(),
        };
        let scheduler = runtime.handle.scheduler();
        let debug = &scheduler.config.debug;
        match scheduler.config.flavor {
            Flavor::MultiThread => {
                for p in 0..scheduler.procs() {
                    if let Err(error) = scheduler.pool.start_m(scheduler, p) {
                        // The Ps that nobody took up.
                        (p..scheduler.procs()).for_each(|_| scheduler.retire_p());
                        return Err(error);
                    }
                }
                Monitor::start(scheduler.clone())?;
            }
            Flavor::CurrentThread => {
                if debug.retake_report || debug.retake_fatal || debug.schedtrace.is_some() {
                    Monitor::start(scheduler.clone())?;
                }
            }
        }
        Ok(runtime)
    }

    /// The runtime's handle.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Enters the runtime's context.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Runs a future to completion; a `current_thread` runtime is driven meanwhile.
    ///
    /// # Panics
    ///
    /// On a thread that already drives async tasks; and with the future.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        // Before it is moved any further, as in `task::spawn`.
        if size_of::<F>() > task::BOX_ABOVE {
            self.block_on_sized(Box::pin(future))
        } else {
            self.block_on_sized(future)
        }
    }

    #[track_caller]
    fn block_on_sized<F: Future>(&self, future: F) -> F::Output {
        if self.handle.scheduler().is_multi_thread() {
            return self.handle.block_on(future);
        }
        let Some(_entered) = context::enter_runtime(false) else {
            panic!("{CANNOT_START}");
        };
        let _context = self.handle.enter();
        current_thread::block_on(&self.handle, future)
    }

    /// Begins the shutdown: tasks are dropped, threads end when they have nothing more to do.
    fn close(&mut self) {
        if std::mem::replace(&mut self.down, true) {
            return;
        }
        let scheduler = self.handle.scheduler();
        if scheduler.is_multi_thread() {
            self.handle.close_tasks();
            scheduler.close();
        } else {
            // In the destructor of a thread-local there may be no context any more.
            let _context = self.handle.try_enter();
            scheduler.close();
            self.handle.close_tasks();
            current_thread::shut_down(&self.handle);
        }
    }

    /// Shuts down and waits at most `timeout` for the threads.
    pub fn shutdown_timeout(mut self, timeout: Duration) {
        self.close();
        self.wait(Some(timeout));
    }

    /// Shuts down without waiting. Blocking jobs go on; tasks are dropped in the background.
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }

    fn wait(&self, timeout: Option<Duration>) {
        if timeout == Some(Duration::ZERO) {
            return;
        }
        if context::entered() != Entered::No {
            // Never a panic within a panic: that would abort.
            if !std::thread::panicking() {
                self.refuse_to_wait();
            }
            return;
        }
        let scheduler = self.handle.scheduler();
        if !scheduler.config.debug.shutdown_report {
            scheduler.pool.wait(timeout);
        } else if !scheduler.pool.wait(timeout.or(Some(REPORT_AFTER))) {
            scheduler.pool.report_jobs();
            if timeout.is_none() {
                scheduler.pool.wait(None);
            }
        }
    }

    #[cold]
    #[track_caller]
    fn refuse_to_wait(&self) -> ! {
        let message = format!(
            "Cannot drop a runtime in a context where blocking is not allowed. This happens when a runtime is \
             dropped from within an asynchronous context. Use `shutdown_background`, or drop it on a thread of \
             `spawn_blocking`. The runtime was built at {}.",
            self.built_at
        );
        // In tokio the payload is a `&'static str`, and there is code that expects one. What is leaked is once a
        // bug in the program.
        std::panic::panic_any(&*message.leak());
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.down {
            self.close();
            self.wait(None);
        }
    }
}
