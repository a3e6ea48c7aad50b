//! What a runtime is built from.

use std::sync::Arc;
use std::time::Duration;

use crate::seam::{Netpoll, Timers};

/// A hook that the user gave.
pub type Callback = Arc<dyn Fn() + Send + Sync>;

/// Which kind of scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// One P, whose only M is the thread in `block_on`.
    CurrentThread,
    /// As many Ps as workers, each with an M of its own.
    MultiThread,
}

/// Everything that `runtime::Builder` collects. Fields have the meaning of the builder's methods.
#[derive(Clone)]
pub struct Config {
    /// Which kind of scheduler.
    pub flavor: Flavor,
    /// How many Ps, at least one.
    pub procs: usize,
    /// How many threads may run blocking jobs at the same time.
    pub max_blocking_threads: usize,
    /// How many Ms beyond one a P there may be, for Ps that were taken away or handed off.
    pub max_extra_threads: usize,
    /// How long an idle thread waits for something to do before it ends.
    pub keep_alive: Duration,
    /// Names the threads.
    pub thread_name: Arc<dyn Fn() -> String + Send + Sync>,
    /// The stack size of the threads; `None` leaves it to std.
    pub stack_size: Option<usize>,
    /// After how many polls a busy P looks at the global queue first.
    pub global_queue_interval: u32,
    /// After how many polls a busy P looks at netpoll and timers.
    pub event_interval: u32,
    /// How long a poll may last before its P may be taken away; `None` never takes it.
    pub retake_after: Option<Duration>,
    /// Whether a task that is readied goes into runnext. Without it everything is first in, first out.
    pub runnext: bool,
    /// Called by each thread when it starts.
    pub on_thread_start: Option<Callback>,
    /// Called by each thread before it ends.
    pub on_thread_stop: Option<Callback>,
    /// Called by an M before it waits for work.
    pub on_thread_park: Option<Callback>,
    /// Called by an M after it waited for work.
    pub on_thread_unpark: Option<Callback>,
    /// Readiness, when I/O is enabled.
    pub netpoll: Option<Arc<dyn Netpoll>>,
    /// Deadlines, when time is enabled.
    pub timers: Option<Arc<dyn Timers>>,
    /// What `GMPDEBUG` asked for.
    pub debug: Debug,
    /// A name for the runtime.
    pub name: Option<String>,
    /// Set for a `LocalRuntime`: names the only thread that may drive it.
    pub(crate) local_thread: Option<usize>,
}

/// The switches of `GMPDEBUG`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// `schedtrace=N`: a line on standard error every N milliseconds.
    pub schedtrace: Option<Duration>,
    /// `scheddetail=1`: a line per P, M and G with each.
    pub scheddetail: bool,
    /// `retake=1`: report the first poll per spawn location that lasts, on standard error.
    pub retake_report: bool,
    /// `retake=panic`: such a poll ends the process. For continuous integration.
    pub retake_fatal: bool,
    /// `rescue=panic`: queued work beside an idle P ends the process. For gmp's own tests.
    pub rescue_fatal: bool,
    /// `shutdown=1`: name the blocking jobs that hold up a shutdown, on standard error.
    pub shutdown_report: bool,
}

impl Debug {
    /// Reads the `GMPDEBUG` environment variable.
    pub fn from_env() -> Debug {
        std::env::var("GMPDEBUG").map_or_else(|_| Debug::default(), |text| Debug::parse(&text))
    }

    /// Parses `name=value,…` as Go's `GODEBUG`; what it does not know it ignores.
    pub fn parse(text: &str) -> Debug {
        let mut debug = Debug::default();
        for (name, value) in text
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
        {
            match (name, value) {
                ("schedtrace", ms) => {
                    let ms = ms.parse().unwrap_or(0);
                    debug.schedtrace = (ms > 0).then(|| Duration::from_millis(ms));
                }
                ("scheddetail", on) => debug.scheddetail = on == "1",
                ("retake", "panic") => debug.retake_fatal = true,
                ("retake", on) => debug.retake_report = on == "1",
                ("rescue", "panic") => debug.rescue_fatal = true,
                ("shutdown", on) => debug.shutdown_report = on == "1",
                _ => {}
            }
        }
        debug
    }
}

impl Config {
    /// The defaults: tokio's where tokio has the option.
    pub fn new(flavor: Flavor, procs: usize) -> Config {
        Config {
            flavor,
            procs,
            max_blocking_threads: 512,
            max_extra_threads: 512,
            keep_alive: Duration::from_secs(10),
            thread_name: Arc::new(|| "gmp-worker".into()),
            stack_size: None,
            global_queue_interval: 61,
            event_interval: 61,
            retake_after: Some(Duration::from_millis(10)),
            runnext: true,
            on_thread_start: None,
            on_thread_stop: None,
            on_thread_park: None,
            on_thread_unpark: None,
            netpoll: None,
            timers: None,
            debug: Debug::default(),
            name: None,
            local_thread: None,
        }
    }

    /// Binds the runtime to the calling thread, so that it can run tasks that are not `Send`. The caller
    /// sees to it that the runtime is driven and dropped on this thread alone.
    ///
    /// # Safety
    ///
    /// The [`Runtime`](crate::Runtime) that is built from this is used on the calling thread only.
    pub unsafe fn bind_to_this_thread(&mut self) {
        assert_eq!(self.flavor, Flavor::CurrentThread);
        self.local_thread = Some(crate::context::thread_token());
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("flavor", &self.flavor)
            .field("procs", &self.procs)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn gmpdebug_is_parsed_and_nonsense_ignored() {
        let debug = Debug::parse("schedtrace=100, scheddetail=1,retake=1,what=ever,x");
        assert_eq!(debug.schedtrace, Some(Duration::from_millis(100)));
        assert!(debug.scheddetail && debug.retake_report && !debug.retake_fatal);
        assert_eq!(Debug::parse("schedtrace=0"), Debug::default());
        assert_eq!(Debug::parse("schedtrace=x"), Debug::default());
        assert!(Debug::parse("retake=panic").retake_fatal);
        assert!(Debug::parse("shutdown=1").shutdown_report);
    }
}
