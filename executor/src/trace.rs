//! `GMPDEBUG=schedtrace=N`: the scheduler's state in Go's format.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use crate::scheduler::Scheduler;
use crate::task::Meta;

/// One trace: Go's `SCHED` line, and with `scheddetail=1` a line per P, M and G.
pub(crate) fn schedtrace(scheduler: &Scheduler) -> String {
    let mut out = String::new();
    let list = |f: &dyn Fn(&crate::p::P) -> u64| {
        let figures: Vec<String> = scheduler.ps.iter().map(|p| f(p).to_string()).collect();
        figures.join(" ")
    };
    let _ = write!(
        out,
        "SCHED {}ms: gomaxprocs={} idleprocs={} threads={} spinningthreads={} needspinning={} \
         idlethreads={} runqueue={}",
        scheduler.started.elapsed().as_millis(),
        scheduler.procs(),
        scheduler.idle.count(),
        scheduler.pool.threads(),
        scheduler.idle.spinning(),
        u8::from(scheduler.idle.need_spinning()),
        scheduler.pool.idle_threads() + scheduler.idle.count(),
        scheduler.global.len(),
    );
    if scheduler.config.debug.scheddetail {
        out.push('\n');
        detail(scheduler, &mut out);
        return out;
    }
    let _ = writeln!(
        out,
        " [ {} ] schedticks=[ {} ]",
        list(&|p| p.queue.len() as u64 + u64::from(!p.runnext.is_empty())),
        list(&|p| u64::from(p.schedtick.load(Ordering::Relaxed))),
    );
    out
}

fn detail(scheduler: &Scheduler, out: &mut String) {
    for (index, p) in scheduler.ps.iter().enumerate() {
        let holder = p.holder();
        let m = holder
            .as_ref()
            .map_or("nil".into(), |record| record.id.to_string());
        let idle = scheduler.idle.is_idle(index);
        let _ = writeln!(
            out,
            "  P{index}: status={} schedtick={} polltick={} m={m} runqsize={} runnext={} retakes={}",
            if idle { "idle" } else { "running" },
            p.schedtick.load(Ordering::Relaxed),
            p.polltick.load(Ordering::Relaxed),
            p.queue.len(),
            u8::from(!p.runnext.is_empty()),
            p.stats.retakes.load(Ordering::Relaxed),
        );
        if let Some(record) = holder {
            let _ = writeln!(
                out,
                "  M{}: p={index} blocked={idle} cpu={:?}",
                record.id,
                record.cpu_clock.now().unwrap_or_default(),
            );
        }
    }
    if let Some(handle) = scheduler.handle() {
        handle.for_each_task(|meta| task(meta, out));
    }
}

fn task(meta: &Meta, out: &mut String) {
    use crate::task::State;
    let (status, reason) = match meta.state() {
        State::Runnable => ("runnable", ""),
        State::Polling => ("running", ""),
        State::Waiting => ("waiting", meta.wait_reason().as_str()),
    };
    let _ = writeln!(
        out,
        "  G{}: status={status}({reason}) name={} spawned at {}",
        meta.id(),
        meta.name().unwrap_or("-"),
        meta.location(),
    );
}
