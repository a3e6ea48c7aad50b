//! `GMPDEBUG`: the scheduler's state and the report of retakes, as text on standard error.
//!
//! The lines are Go's, so that whoever reads a `schedtrace` there reads it here.

mod support;

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gmp::runtime::{Handle, Runtime};
use gmp::task;
use support::child::{Outcome, in_child, said};
use support::{builder, compute, current_thread, in_some_round, run_task, threads, wait_until};

/// The names and values of a line `… name=value name=value [ 1 2 ] …`; a list belongs to the name before.
fn fields(line: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut in_list = false;
    for word in line.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if !in_list => fields.push((name.into(), value.into())),
            _ => {
                let last = fields.last_mut().expect("a name comes first");
                last.1 += if last.1.is_empty() { "" } else { " " };
                last.1 += word;
            }
        }
        in_list = (in_list || word.ends_with('[')) && word != "]";
    }
    fields
}

fn names(fields: &[(String, String)]) -> Vec<&str> {
    fields.iter().map(|(name, _)| name.as_str()).collect()
}

fn value<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let field = fields.iter().find(|field| field.0 == name);
    &field.unwrap_or_else(|| panic!("no {name} in {fields:?}")).1
}

fn number(fields: &[(String, String)], name: &str) -> u64 {
    let value = value(fields, name);
    let number = value.parse();
    number.unwrap_or_else(|_| panic!("{name}={value} is no number"))
}

/// The figures of a list like `[ 3 0 0 1 ]`.
fn list(text: &str) -> Vec<u64> {
    let inner = text.strip_prefix("[ ").and_then(|t| t.strip_suffix(" ]"));
    let inner = inner.unwrap_or_else(|| panic!("not a list: {text}"));
    inner.split(' ').map(|n| n.parse().unwrap()).collect()
}

/// `SCHED 1004ms:` and what comes after.
fn sched(line: &str) -> (u64, Vec<(String, String)>) {
    let rest = line.strip_prefix("SCHED ").expect("it begins with SCHED");
    let (time, rest) = rest.split_once("ms: ").expect("a time in milliseconds");
    (time.parse().expect("a number"), fields(rest))
}

fn sched_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|l| l.starts_with("SCHED")).collect()
}

/// Work for four Ps, for about `long`.
fn work_for(long: Duration) -> Runtime {
    let runtime = builder(4).build().unwrap();
    work(&runtime, long);
    runtime
}

fn work(runtime: &Runtime, long: Duration) {
    run_task(runtime, async move {
        let start = std::time::Instant::now();
        while start.elapsed() < long {
            let spawn = |_| task::spawn(async { compute(Duration::from_micros(50), || false) });
            let tasks: Vec<_> = (0..500).map(spawn).collect();
            for task in tasks {
                task.await.unwrap();
            }
        }
    });
}

const SCHED_NAMES: [&str; 7] = [
    "gomaxprocs",
    "idleprocs",
    "threads",
    "spinningthreads",
    "needspinning",
    "idlethreads",
    "runqueue",
];

#[test]
fn schedtrace_prints_gos_line() {
    let trace = [("GMPDEBUG", "schedtrace=20")];
    let outcome = in_child("schedtrace_prints_gos_line", &trace, || {
        let runtime = work_for(Duration::from_millis(100));
        while sched_lines(&said()).len() < 2 {
            work(&runtime, Duration::from_millis(20));
        }
        eprintln!("ends");
        drop(runtime);
    })
    .succeeded();
    let (working, _) = outcome.stderr.split_once("ends").expect("it says so");
    let lines = sched_lines(working);
    assert!(lines.len() >= 2, "{outcome:#?}");
    let mut last = 0;
    let mut last_ticks = 0;
    for (i, line) in lines.into_iter().enumerate() {
        let (time, fields) = sched(line);
        let earliest = 20 * (i as u64 + 1);
        assert!(time >= earliest && time >= last, "every 20 ms: {line}");
        last = time;
        let mut expected = SCHED_NAMES.to_vec();
        expected.push("schedticks");
        assert_eq!(names(&fields), expected, "{line}");
        assert_eq!(number(&fields, "gomaxprocs"), 4);
        assert!(number(&fields, "idleprocs") <= 4);
        assert!(number(&fields, "threads") >= 4, "{line}");
        assert!(number(&fields, "spinningthreads") <= 4);
        assert!(number(&fields, "needspinning") <= 1);
        // The global queue, and in brackets the local ones.
        let (global, local) = value(&fields, "runqueue").split_once(' ').unwrap();
        global.parse::<u64>().unwrap();
        assert_eq!(list(local).len(), 4, "{line}");
        assert!(list(local).iter().all(|&queued| queued <= 257), "{line}");
        let ticks = list(value(&fields, "schedticks"));
        assert_eq!(ticks.len(), 4, "{line}");
        let ticks = ticks.iter().sum();
        assert!(ticks >= last_ticks, "{line}");
        last_ticks = ticks;
    }
    assert!(last_ticks > 0);
}

#[test]
fn schedtrace_goes_on_while_the_runtime_is_idle_and_ends_with_it() {
    let test = "schedtrace_goes_on_while_the_runtime_is_idle_and_ends_with_it";
    let outcome = in_child(test, &[("GMPDEBUG", "schedtrace=10")], || {
        let runtime = builder(2).build().unwrap();
        wait_until("it goes on when all Ms wait", || {
            let text = said();
            let lines = sched_lines(&text);
            let idle = |line: &&str| line.contains("idleprocs=2") && line.contains("idlethreads=2");
            lines.len() >= 2 && lines.last().is_some_and(idle)
        });
        eprintln!("ends");
        drop(runtime);
        wait_until("the monitor ends", || threads::named("gmp-monitor") == 0);
        eprintln!("gone");
        std::thread::sleep(Duration::from_millis(100));
    })
    .succeeded();
    let (before, after) = outcome.stderr.split_once("ends").expect("it says so");
    let after = after.split_once("gone").expect("it says so").1;
    assert_eq!(after.matches("SCHED").count(), 0, "{outcome:#?}");
    let lines = sched_lines(before);
    assert!(lines.len() >= 2, "{outcome:#?}");
    let (_, fields) = sched(lines.last().unwrap());
    assert_eq!(number(&fields, "idleprocs"), 2);
    assert_eq!(number(&fields, "idlethreads"), 2);
    assert_eq!(value(&fields, "runqueue"), "0 [ 0 0 ]");
}

#[test]
fn scheddetail_adds_a_line_per_p_m_and_g() {
    let trace = [("GMPDEBUG", "schedtrace=20,scheddetail=1")];
    let outcome = in_child("scheddetail_adds_a_line_per_p_m_and_g", &trace, || {
        let runtime = builder(2).build().unwrap();
        runtime.spawn(std::future::pending::<()>());
        runtime.spawn(async { gmp::time::sleep(Duration::from_secs(3_600)).await });
        wait_until("both wait", || {
            let text = said();
            let last = &text[text.rfind("SCHED").unwrap_or(text.len())..];
            last.matches("status=waiting").count() == 2 && last.contains("idleprocs=2")
        });
        eprintln!("ends");
        drop(runtime);
    })
    .succeeded();
    let (idle, _) = outcome.stderr.split_once("ends").expect("it says so");
    let mut detail = idle[idle.rfind("SCHED").expect("a line")..].lines();
    let (_, fields) = sched(detail.next().unwrap());
    assert_eq!(names(&fields), SCHED_NAMES);
    let detail: Vec<&str> = detail.collect();
    let of = |letter: char| -> Vec<&&str> {
        let numbered = |line: &str| {
            let rest = line.strip_prefix("  ").and_then(|l| l.strip_prefix(letter));
            let number = rest.and_then(|rest| rest.split_once(": "));
            number.is_some_and(|(number, _)| number.parse::<u64>().is_ok())
        };
        detail.iter().filter(|line| numbered(line)).collect()
    };
    assert_eq!(of('P').len(), 2, "{outcome:#?}");
    assert_eq!(of('M').len(), 2, "{outcome:#?}");
    assert_eq!(of('G').len(), 2, "{outcome:#?}");
    let p = fields_of(of('P')[0]);
    for name in ["status", "schedtick", "m", "runqsize"] {
        value(&p, name);
    }
    assert_eq!(value(&p, "status"), "idle");
    assert_eq!(value(&fields_of(of('M')[0]), "p"), "0");
    // What each waits for, and where it was spawned.
    let sleeper = of('G').into_iter().find(|g| g.contains("(sleep)"));
    let sleeper = sleeper.expect("one of them sleeps");
    assert!(sleeper.contains("status=waiting(sleep)"), "{sleeper}");
    assert!(sleeper.contains("tests/seeds_debug.rs:"), "{sleeper}");
}

/// The fields behind `  P0: `.
fn fields_of(line: &str) -> Vec<(String, String)> {
    fields(line.split_once(": ").expect("a name and a colon").1)
}

#[test]
fn nonsense_in_gmpdebug_is_ignored() {
    for nonsense in [
        "",
        "schedtrace",
        "schedtrace=x",
        "schedtrace=0",
        "a=b,,=",
        "=",
    ] {
        let outcome = in_child(
            "nonsense_in_gmpdebug_is_ignored",
            &[("GMPDEBUG", nonsense)],
            || drop(work_for(Duration::from_millis(20))),
        );
        assert_eq!(outcome.succeeded().stderr, "", "{nonsense:?}");
    }
}

fn reports(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines.filter(|line| line.starts_with("gmp: task")).collect()
}

/// Checks `gmp: task spawned at FILE:LINE:COLUMN DID for N ms without reaching an await`, behind which
/// `; its P was taken away` may come, and returns the milliseconds.
#[track_caller]
fn assert_report(report: &str, line: u32, did: &[&str]) -> u64 {
    let start = format!("gmp: task spawned at tests/seeds_debug.rs:{line}:");
    let rest = report.strip_prefix(&start);
    let rest = rest.unwrap_or_else(|| panic!("{report} does not begin with {start}"));
    let (column, rest) = rest.split_once(' ').unwrap();
    column.parse::<u32>().expect("a column");
    let did = did.iter().find_map(|did| rest.strip_prefix(did));
    let rest = did.unwrap_or_else(|| panic!("{report} does not say what the task did"));
    let rest = rest.strip_suffix("; its P was taken away").unwrap_or(rest);
    let rest = rest.strip_prefix(" for ").expect(report);
    let ms = rest.strip_suffix(" ms without reaching an await");
    let ms = ms.expect(report).parse().expect("milliseconds");
    assert!((10..50_000).contains(&ms), "{report}");
    ms
}

/// Runs `body`, and says whether the only P was taken away meanwhile.
fn is_retaken(body: impl FnOnce()) -> bool {
    let metrics = Handle::current().metrics();
    let before = metrics.retake_count();
    body();
    metrics.retake_count() > before
}

/// Keeps the only P from two places in turns, each time until a task that is queued behind has run: only a
/// retake lets it, unless that one came first. Returns the lines of the two places.
fn block_from_two_places() -> [u32; 2] {
    let lines = [line!() + 7, line!() + 19];
    let runtime = builder(1).build().unwrap();
    run_task(&runtime, async move {
        for _ in 0..3 {
            loop {
                let (ran, has_run) = mpsc::channel();
                let queued = task::spawn(async move { ran.send(()).unwrap() });
                let blocks = task::spawn(async { is_retaken(move || has_run.recv().unwrap()) });
                queued.await.unwrap();
                if blocks.await.unwrap() {
                    break;
                }
            }
            loop {
                let (ran, has_run) = mpsc::channel();
                let queued = task::spawn(async move { ran.send(()).unwrap() });
                let stop = move || has_run.try_recv().is_ok();
                let body = || _ = compute(Duration::from_secs(20), stop);
                // As above.
                let computes = task::spawn(async { is_retaken(body) });
                queued.await.unwrap();
                if computes.await.unwrap() {
                    break;
                }
            }
        }
    });
    lines
}

#[test]
fn retake_reports_the_first_retake_per_spawn_location() {
    let test = "retake_reports_the_first_retake_per_spawn_location";
    let outcome = in_child(test, &[("GMPDEBUG", "retake=1")], || {
        let lines = block_from_two_places();
        println!("lines {} {}", lines[0], lines[1]);
    })
    .succeeded();
    let lines = outcome.stdout.lines();
    let lines = lines.filter_map(|line| line.split_once("lines ")).next();
    let lines: Vec<u32> = lines
        .unwrap()
        .1
        .split(' ')
        .map(|n| n.parse().unwrap())
        .collect();
    let reports = reports(&outcome);
    let place = |report: &&str| report.split(' ').nth(4).map(str::to_owned);
    let distinct: BTreeSet<_> = reports.iter().map(place).collect();
    assert_eq!(distinct.len(), reports.len(), "one a place: {reports:#?}");
    for line in lines {
        let of = |report: &&&str| report.contains(&format!(".rs:{line}:"));
        let report = reports.iter().find(of);
        let report = report.unwrap_or_else(|| panic!("none for line {line}: {outcome:#?}"));
        // A thread that computes, but that the system does not run, looks as if it blocked.
        assert_report(report, line, &["blocked", "computed", "was polled"]);
    }
}

#[test]
fn without_the_switch_nothing_is_reported() {
    let outcome = in_child("without_the_switch_nothing_is_reported", &[], || {
        block_from_two_places();
    });
    assert_eq!(outcome.succeeded().stderr, "");
}

#[test]
fn a_current_thread_runtime_reports_without_retaking() {
    let test = "a_current_thread_runtime_reports_without_retaking";
    let outcome = in_child(test, &[("GMPDEBUG", "retake=1")], || {
        let runtime = current_thread();
        runtime.block_on(async {
            let line = line!() + 5;
            println!("lines {line}");
            let report = format!("tests/seeds_debug.rs:{line}:");
            // Once is enough; the monitor may be late for some of them.
            while !said().contains(&report) {
                let blocks = task::spawn(async {
                    std::thread::sleep(Duration::from_millis(60));
                });
                task::spawn(async {}).await.unwrap();
                blocks.await.unwrap();
                // The monitor sees the end of it at its next look.
                gmp::time::sleep(Duration::from_millis(40)).await;
            }
        });
    })
    .succeeded();
    let line = outcome.stdout.split_once("lines ").unwrap().1;
    let line: u32 = line.split_whitespace().next().unwrap().parse().unwrap();
    // A thread that the system did not run for a while looks as if it blocked, too.
    let of_the_task = format!(".rs:{line}:");
    let mut reports = reports(&outcome);
    reports.retain(|report| report.contains(&of_the_task));
    assert_eq!(reports.len(), 1, "{outcome:#?}");
    assert!(!reports[0].contains("taken away"), "{outcome:#?}");
    assert_report(reports[0], line, &["blocked", "was polled"]);
}

/// Where `beside_another` spawns the task that does something.
const SPAWNED_IN: u32 = line!() + 8;

/// A task does `body` on the only P while another one is queued there: the P is taken away.
fn beside_another(body: impl FnOnce() + Send + 'static) {
    let runtime = builder(1).build().unwrap();
    run_task(&runtime, async {
        let queued = task::spawn(async {});
        // Runs next, with the other one behind it.
        task::spawn(async { body() }).await.unwrap();
        queued.await.unwrap();
    });
}

/// What a child says of a task that does `body` in `beside_another`.
fn reported(test: &str, body: impl FnOnce() + Send + 'static) -> Outcome {
    in_child(test, &[("GMPDEBUG", "retake=1")], || beside_another(body)).succeeded()
}

/// The reports of the task that did something in `beside_another`.
fn reports_of_it(outcome: &Outcome) -> Vec<&str> {
    let mut reports = reports(outcome);
    let place = format!("tests/seeds_debug.rs:{SPAWNED_IN}:");
    reports.retain(|report| report.contains(&place));
    assert!(reports.len() <= 1, "{outcome:#?}");
    reports
}

/// What the task did according to the report, and the milliseconds.
fn report(outcome: &Outcome) -> Option<(String, u64)> {
    let report = reports_of_it(outcome)
        .first()?
        .strip_suffix(" without reaching an await; its P was taken away")?;
    let (did, ms) = report.strip_suffix(" ms")?.rsplit_once(" for ")?;
    let (_, did) = did.rsplit_once(' ')?;
    Some((did.to_owned(), ms.parse().expect("a number")))
}

/// Does `body`, and prints for how many milliseconds and how many of those on the CPU.
fn timed(body: impl FnOnce() -> Duration) {
    let begins = Instant::now();
    let used = body();
    println!("took {} {}", begins.elapsed().as_millis(), used.as_millis());
}

/// What `timed` printed.
fn took(outcome: &Outcome) -> (u64, u64) {
    let (_, took) = outcome.stdout.split_once("took ").expect("it says so");
    let mut took = took
        .split_whitespace()
        .map(|ms| ms.parse().expect("a number"));
    (took.next().unwrap(), took.next().unwrap())
}

/// The monitor sees a poll up to 10 ms after it began.
fn says_how_long(outcome: &Outcome, does: &[&str]) -> bool {
    let (took, _) = took(outcome);
    let as_long = |ms| (took.saturating_sub(15)..=took + 5).contains(&ms);
    report(outcome).is_some_and(|(did, ms)| does.contains(&&*did) && as_long(ms))
}

#[test]
fn a_report_says_how_long_a_task_blocked_whose_p_was_taken_away() {
    let test = "a_report_says_how_long_a_task_blocked_whose_p_was_taken_away";
    let block = || {
        std::thread::sleep(Duration::from_millis(80));
        Duration::ZERO
    };
    let round = || reported(test, move || timed(block));
    in_some_round(round, |outcome| says_how_long(outcome, &["blocked"]));
}

#[test]
fn a_report_says_how_long_a_task_computed_whose_p_was_taken_away() {
    let test = "a_report_says_how_long_a_task_computed_whose_p_was_taken_away";
    let ends_after = Duration::from_millis(80);
    let round = || {
        reported(test, move || {
            timed(|| {
                let begins = Instant::now();
                compute(Duration::from_secs(20), || begins.elapsed() >= ends_after)
            });
        })
    };
    in_some_round(round, |outcome| {
        // Where others have the CPU for half of the time, it looks as if the task blocked.
        let (took, used) = took(outcome);
        let does = ["computed", "blocked"];
        says_how_long(outcome, &does[..if used * 4 < took * 3 { 2 } else { 1 }])
    });
}

#[test]
fn a_task_that_blocks_for_ever_is_reported_meanwhile() {
    let test = "a_task_that_blocks_for_ever_is_reported_meanwhile";
    let outcome = reported(test, || {
        while !said().contains("already") {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let [report] = reports_of_it(&outcome)[..] else {
        panic!("{outcome:#?}");
    };
    assert!(report.contains(" blocks for 1"), "{report}");
    assert!(
        report.ends_with(" ms already, without reaching an await; its P was taken away"),
        "{report}"
    );
}

#[test]
fn retake_panic_ends_the_process() {
    let test = "retake_panic_ends_the_process";
    let outcome = in_child(test, &[("GMPDEBUG", "retake=panic")], || {
        block_from_two_places();
    });
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(outcome.status.signal(), Some(libc::SIGABRT), "{outcome:#?}");
    assert_eq!(reports(&outcome).len(), 1, "{outcome:#?}");
}

#[test]
fn rescue_panic_leaves_a_runtime_alone_that_needs_no_rescue() {
    let test = "rescue_panic_leaves_a_runtime_alone_that_needs_no_rescue";
    in_child(test, &[("GMPDEBUG", "rescue=panic")], || {
        drop(work_for(Duration::from_millis(100)));
        block_from_two_places();
    })
    .succeeded();
}
