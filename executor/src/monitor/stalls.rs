//! Who holds others up: the reports of `GMPDEBUG=retake=1`, one for each place that spawns such tasks.
//!
//! A poll is reported when it is over, since only then is it known how long it took. One that goes on for
//! [`REPORT_AFTER`] after its P was taken away is reported then, or when the runtime ends: it may never end itself.

use std::collections::HashSet;
use std::io::Write;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::Debug;

/// After what time a poll is reported that is not over.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// A poll that lasted, or lasts.
#[derive(Debug)]
pub(crate) struct Stall {
    /// Where its task was spawned.
    pub(super) location: Option<&'static Location<'static>>,
    /// When the monitor first saw the poll: up to one of its periods after it began.
    pub(super) since: Instant,
    /// Whether its thread used the CPU for more than half of the time, when the P was taken away.
    pub(super) computes: bool,
    /// A time since when it lasts, and the CPU time of its thread then.
    pub(super) cpu_before: (Instant, Option<Duration>),
    /// Its P was taken away.
    pub(super) taken: bool,
    pub(super) over: AtomicBool,
}

/// Whether a thread used the CPU for more than half of the time between two readings of its CPU time. `None` where
/// that is not known: without such a clock, or of a single reading.
pub(super) fn computes(
    before: (Instant, Option<Duration>),
    after: (Instant, Option<Duration>),
) -> Option<bool> {
    let used = after.1?.saturating_sub(before.1?);
    let time = after.0.saturating_duration_since(before.0);
    (!time.is_zero()).then_some(used * 2 > time)
}

/// What has been reported.
pub(super) struct Stalls {
    /// Ends the process at the first report.
    fatal: bool,
    reported: Mutex<HashSet<&'static Location<'static>>>,
}

impl Stalls {
    /// `None` if nobody asked for reports.
    pub(super) fn new(debug: &Debug) -> Option<Stalls> {
        (debug.retake_report || debug.retake_fatal).then(|| Stalls {
            fatal: debug.retake_fatal,
            reported: Mutex::new(HashSet::new()),
        })
    }

    /// The poll is over. `cpu` is a time and the CPU time of its thread then, at the end or close to it.
    pub(super) fn ended(&self, stall: &Stall, cpu: (Instant, Option<Duration>)) {
        let did = match computes(stall.cpu_before, cpu) {
            Some(true) => "computed",
            Some(false) => "blocked",
            None => "was polled",
        };
        self.report(stall, |lasted| format!("{did} for {lasted} ms"));
    }

    /// The P of the poll was taken away, and it goes on. Says whether it is to be asked for again.
    pub(super) fn goes_on(&self, stall: &Stall) -> bool {
        if stall.over.load(Ordering::Relaxed) {
            return false;
        }
        if stall.since.elapsed() < REPORT_AFTER && !self.fatal {
            return true;
        }
        self.not_over(stall);
        false
    }

    fn not_over(&self, stall: &Stall) {
        let does = if stall.computes { "computes" } else { "blocks" };
        self.report(stall, |lasted| format!("{does} for {lasted} ms already,"));
    }

    fn report(&self, stall: &Stall, what: impl FnOnce(u128) -> String) {
        let Some(location) = stall.location else {
            return;
        };
        if !self.reported.lock().insert(location) {
            return;
        }
        let what = what(stall.since.elapsed().as_millis());
        let taken = if stall.taken {
            "; its P was taken away"
        } else {
            ""
        };
        // Not `eprintln`, which the test harness would swallow.
        let _ = writeln!(
            std::io::stderr(),
            "gmp: task spawned at {location} {what} without reaching an await{taken}"
        );
        if self.fatal {
            std::process::abort();
        }
    }
}

/// The polls that went on when the monitor looked last, after their Ps were taken away. Kept if there are reports.
#[derive(Default)]
pub(super) struct GoingOn(Vec<Arc<Stall>>);

impl GoingOn {
    /// Says whether there are any that may have to be reported later.
    pub(super) fn look(&mut self, stalls: &Stalls) -> bool {
        self.0.retain(|stall| stalls.goes_on(stall));
        !self.0.is_empty()
    }

    /// The monitor ends: reports what still goes on.
    pub(super) fn end(&self, stalls: &Stalls) {
        let lasting = |stall: &&Arc<Stall>| !stall.over.load(Ordering::Relaxed);
        let lasting = self.0.iter().filter(lasting);
        lasting.for_each(|stall| stalls.not_over(stall));
    }

    pub(super) fn add(&mut self, stall: Arc<Stall>) {
        self.0.push(stall);
    }
}
