//! The threads of this process, as `/proc` shows them.

use std::fs;
use std::path::PathBuf;

/// One thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    /// Its name, of which the system keeps 15 bytes.
    pub(crate) name: String,
    /// How often it was switched out, because it waited or because its time was over.
    pub(crate) switches: u64,
    /// How often it waited.
    pub(crate) waits: u64,
    /// Its CPU time in nanoseconds.
    pub(crate) cpu_ns: u64,
    state: String,
}

fn directories() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").expect("the process's threads");
    tasks.filter_map(|task| Some(task.ok()?.path())).collect()
}

/// All threads. One that ends meanwhile is left out.
pub(crate) fn all() -> Vec<Thread> {
    let threads = directories().into_iter().filter_map(|directory| {
        let status = fs::read_to_string(directory.join("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_string())
        };
        let number = |name: &str| field(name)?.parse::<u64>().ok();
        let schedstat = fs::read_to_string(directory.join("schedstat")).ok();
        let cpu = schedstat.and_then(|text| text.split(' ').next()?.parse().ok());
        Some(Thread {
            id: directory.file_name()?.to_str()?.parse().ok()?,
            name: field("Name:")?,
            switches: number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?,
            waits: number("voluntary_ctxt_switches:")?,
            cpu_ns: cpu.unwrap_or(0),
            state: field("State:")?,
        })
    });
    threads.collect()
}

/// How many threads have `name`.
pub(crate) fn named(name: &str) -> usize {
    assert!(name.len() <= 15, "the system cuts {name}");
    all().iter().filter(|thread| thread.name == name).count()
}

/// The threads other than the calling one.
pub(crate) fn others() -> Vec<Thread> {
    // SAFETY: the call has no preconditions.
    let own = unsafe { libc::gettid() } as u32;
    all()
        .into_iter()
        .filter(|thread| thread.id != own)
        .collect()
}

/// What every thread is doing, for the report of a test that is stuck.
pub(crate) fn describe() -> String {
    let mut text = String::from("threads:\n");
    for thread in all() {
        let read = |file| {
            let path = format!("/proc/self/task/{}/{file}", thread.id);
            fs::read_to_string(path).unwrap_or_default()
        };
        text += &format!(
            "  {} {:15} {:12} in {} ({})\n",
            thread.id,
            thread.name,
            thread.state,
            read("wchan"),
            read("syscall").split(' ').next().unwrap_or("?"),
        );
    }
    text
}
