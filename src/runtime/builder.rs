use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gmp_executor::{Config, Debug, Flavor};

use super::{LocalOptions, LocalRuntime, Runtime};

/// Builds a [`Runtime`] with the options of one's choice.
///
/// As `tokio::runtime::Builder`: the same methods, defaults and panics. gmp adds
/// [`retake_after`](Builder::retake_after) and [`max_extra_threads`](Builder::max_extra_threads).
///
/// I/O and time are off until [`enable_io`](Builder::enable_io), [`enable_time`](Builder::enable_time)
/// or [`enable_all`](Builder::enable_all) is called.
#[derive(Clone)]
pub struct Builder {
    config: Config,
    /// `None`: as many as the environment says, or the machine has.
    worker_threads: Option<usize>,
    enable_io: bool,
    enable_time: bool,
    start_paused: bool,
    io_events: IoEvents,
}

/// How many events a poll of the poller takes at most.
#[derive(Clone, Copy)]
struct IoEvents {
    waiting: usize,
    busy: usize,
}

impl Builder {
    fn new(flavor: Flavor) -> Builder {
        let mut config = Config::new(flavor, 1);
        // tokio's current_thread is first in, first out, and tests written for it count on that.
        config.runnext = !(cfg!(feature = "tokio-compat") && flavor == Flavor::CurrentThread);
        Builder {
            config,
            worker_threads: None,
            enable_io: false,
            enable_time: false,
            start_paused: false,
            io_events: IoEvents {
                waiting: 1024,
                busy: 128,
            },
        }
    }

    /// A runtime whose tasks all run on the thread that is in `block_on`.
    ///
    /// It has one P, and no thread of its own but those of the blocking pool.
    pub fn new_current_thread() -> Builder {
        Builder::new(Flavor::CurrentThread)
    }

    /// A runtime with a P a worker, each with a thread of its own.
    #[cfg(feature = "rt-multi-thread")]
    pub fn new_multi_thread() -> Builder {
        Builder::new(Flavor::MultiThread)
    }

    /// Enables both I/O and time, as far as the crate's features have them.
    pub fn enable_all(&mut self) -> &mut Self {
        self.enable_io().enable_time()
    }

    /// Enables sockets, pipes, processes and signals.
    pub fn enable_io(&mut self) -> &mut Self {
        self.enable_io = true;
        self
    }

    /// Enables timers.
    pub fn enable_time(&mut self) -> &mut Self {
        self.enable_time = true;
        self
    }

    /// Sets the number of Ps, and so of tasks that run at the same time.
    ///
    /// The default is the environment variable `GMPMAXPROCS`, or else what
    /// [`std::thread::available_parallelism`] says, which heeds CPU affinity and the CPU limit of a
    /// container. A `current_thread` runtime has one P whatever this says.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    #[track_caller]
    pub fn worker_threads(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "Worker threads cannot be set to 0");
        self.worker_threads = Some(val);
        self
    }

    /// Bounds the threads that run `spawn_blocking` jobs at the same time. The default is 512.
    ///
    /// Jobs that wait in `block_on` for something that needs the pool, a file for example, would wait
    /// for ever once there are as many of them. So when all threads have waited like that for a while,
    /// one more runs what is queued, and it is said once on standard error.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    #[track_caller]
    pub fn max_blocking_threads(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "Max blocking threads cannot be set to 0");
        self.config.max_blocking_threads = val;
        self
    }

    /// Bounds the threads that exist beside one a worker because tasks block without saying so.
    /// The default is 512. gmp's own.
    ///
    /// At the bound, blocked tasks keep their Ps, as in tokio; it is said once on standard error.
    pub fn max_extra_threads(&mut self, val: usize) -> &mut Self {
        self.config.max_extra_threads = val;
        self
    }

    /// Sets how long a poll may last before its P goes to another thread, or with `None` never takes
    /// it away. The default is 10 ms. gmp's own.
    ///
    /// This bounds the damage that a blocked or computing task does to the others; it is no licence
    /// to block: see [`spawn_blocking`](crate::task::spawn_blocking) and
    /// [`block_in_place`](crate::task::block_in_place), which cost less. `GMPDEBUG=retake=1` in the
    /// environment reports where the tasks were spawned that made it necessary.
    pub fn retake_after(&mut self, after: Option<Duration>) -> &mut Self {
        self.config.retake_after = after;
        self
    }

    /// Runs tasks in the order in which they became ready, without the runnext slot that lets the latest
    /// one go first. tokio's name for it; unstable there.
    pub fn disable_lifo_slot(&mut self) -> &mut Self {
        self.config.runnext = false;
        self
    }

    /// Names the threads. The default is `gmp-worker`.
    pub fn thread_name(&mut self, val: impl Into<String>) -> &mut Self {
        let name = val.into();
        self.thread_name_fn(move || name.clone())
    }

    /// Names each thread by a call of `f`.
    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.config.thread_name = Arc::new(f);
        self
    }

    /// Names the runtime; [`Handle::name`](super::Handle::name) tells.
    ///
    /// # Panics
    ///
    /// If `val` is empty or blank.
    #[track_caller]
    pub fn name(&mut self, val: impl Into<String>) -> &mut Self {
        let val = val.into();
        assert!(!val.trim().is_empty(), "runtime name shouldn't be empty");
        self.config.name = Some(val);
        self
    }

    /// Sets the stack size of the threads, in bytes. The default is std's, 2 MiB.
    pub fn thread_stack_size(&mut self, val: usize) -> &mut Self {
        self.config.stack_size = Some(val);
        self
    }

    /// Calls `f` on each thread when it starts.
    pub fn on_thread_start<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.config.on_thread_start = Some(Arc::new(f));
        self
    }

    /// Calls `f` on each thread before it ends.
    pub fn on_thread_stop<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.config.on_thread_stop = Some(Arc::new(f));
        self
    }

    /// Calls `f` on a worker's thread before it waits for work. Keep it short.
    pub fn on_thread_park<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.config.on_thread_park = Some(Arc::new(f));
        self
    }

    /// Calls `f` on a worker's thread after it waited for work. Keep it short.
    pub fn on_thread_unpark<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.config.on_thread_unpark = Some(Arc::new(f));
        self
    }

    /// Sets how long an idle thread of the blocking pool waits for a job before it ends. The default is
    /// 10 s.
    pub fn thread_keep_alive(&mut self, duration: Duration) -> &mut Self {
        self.config.keep_alive = duration;
        self
    }

    /// Sets after how many polls a busy P takes from the global queue first. The default is 61; a bound
    /// in time (1 ms) stands beside it.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    #[track_caller]
    pub fn global_queue_interval(&mut self, val: u32) -> &mut Self {
        assert!(val > 0, "global_queue_interval must be greater than 0");
        self.config.global_queue_interval = val;
        self
    }

    /// Sets after how many polls a busy P looks at sockets and timers. The default is 61; a bound in
    /// time (1 ms) stands beside it.
    ///
    /// # Panics
    ///
    /// If `val` is zero.
    #[track_caller]
    pub fn event_interval(&mut self, val: u32) -> &mut Self {
        assert!(val > 0, "event_interval must be greater than 0");
        self.config.event_interval = val;
        self
    }

    /// Sets how many events a thread that waits takes from the system at once. The default is 1024.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    #[track_caller]
    pub fn max_io_events_per_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_tick must be non-zero");
        self.io_events.waiting = capacity;
        self
    }

    /// Sets how many events a busy worker takes from the system between polls. The default is 128.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero.
    #[track_caller]
    pub fn max_io_events_per_busy_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_busy_tick must be non-zero");
        self.io_events.busy = capacity;
        self
    }

    /// Starts with the clock paused, as by [`time::pause`](crate::time::pause). `current_thread` only.
    #[cfg(feature = "test-util")]
    pub fn start_paused(&mut self, start_paused: bool) -> &mut Self {
        self.start_paused = start_paused;
        self
    }

    /// Builds the runtime and starts its threads.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a thread or a descriptor.
    ///
    /// # Panics
    ///
    /// If `GMPMAXPROCS` is set to something that is no positive number, and with
    /// `start_paused` on a multi-thread runtime.
    #[track_caller]
    pub fn build(&mut self) -> io::Result<Runtime> {
        Ok(Runtime::from_inner(gmp_executor::Runtime::new(
            self.config()?,
        )?))
    }

    /// Builds a runtime that is bound to this thread, so that its tasks need not be `Send`.
    ///
    /// # Errors
    ///
    /// When the operating system refuses a descriptor.
    ///
    /// # Panics
    ///
    /// On a builder of a multi-thread runtime.
    #[track_caller]
    pub fn build_local(&mut self, options: LocalOptions) -> io::Result<LocalRuntime> {
        assert!(
            self.config.flavor == Flavor::CurrentThread,
            "Only current_thread is supported when building a local runtime"
        );
        let _ = options;
        LocalRuntime::build(self.config()?)
    }

    #[track_caller]
    fn config(&self) -> io::Result<Config> {
        let mut config = self.config.clone();
        config.procs = match config.flavor {
            Flavor::CurrentThread => 1,
            Flavor::MultiThread => self.worker_threads.unwrap_or_else(default_procs),
        };
        if self.enable_io {
            self.add_netpoll(&mut config)?;
        }
        if self.enable_time {
            self.add_timers(&mut config);
        }
        config.debug = Debug::from_env();
        Ok(config)
    }

    #[cfg(any(feature = "net", feature = "process", feature = "signal"))]
    fn add_netpoll(&self, config: &mut Config) -> io::Result<()> {
        let IoEvents { waiting, busy } = self.io_events;
        let netpoll = gmp_net::Netpoll::with_event_limits(config.procs, waiting, busy)?;
        config.netpoll = Some(Arc::new(netpoll));
        Ok(())
    }

    #[cfg(not(any(feature = "net", feature = "process", feature = "signal")))]
    fn add_netpoll(&self, _config: &mut Config) -> io::Result<()> {
        let IoEvents {
            waiting: _,
            busy: _,
        } = self.io_events;
        Ok(())
    }

    #[cfg(feature = "time")]
    #[track_caller]
    fn add_timers(&self, config: &mut Config) {
        #[cfg(feature = "sync")]
        gmp_sync::mpsc::install_sleep(|duration| Box::pin(gmp_timer::sleep(duration)));
        let pausable = config.flavor == Flavor::CurrentThread;
        config.timers = Some(gmp_timer::TimerDriver::new(
            config.procs,
            pausable,
            self.start_paused,
        ));
    }

    #[cfg(not(feature = "time"))]
    fn add_timers(&self, _config: &mut Config) {
        debug_assert!(!self.start_paused, "test-util enables time");
    }
}

/// How many Ps when nobody says.
#[track_caller]
fn default_procs() -> usize {
    let names: &[&str] = if cfg!(feature = "tokio-compat") {
        &["GMPMAXPROCS", "TOKIO_WORKER_THREADS"]
    } else {
        &["GMPMAXPROCS"]
    };
    for name in names {
        if let Ok(text) = std::env::var(name) {
            return match text.parse() {
                Ok(0) => panic!("\"{name}\" cannot be set to 0"),
                Ok(procs) => procs,
                Err(error) => panic!("\"{name}\" must be usize, error: {error}, value: {text}"),
            };
        }
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("worker_threads", &self.worker_threads)
            .field("enable_io", &self.enable_io)
            .field("enable_time", &self.enable_time)
            .finish_non_exhaustive()
    }
}
