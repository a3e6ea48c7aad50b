//! The CPU time of another thread: tells a poll that computes from one that blocks.

use std::time::Duration;

/// Names the CPU clock of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuClock {
    #[cfg(target_os = "linux")]
    id: Option<libc::clockid_t>,
}

impl CpuClock {
    #[cfg(target_os = "linux")]
    pub(crate) fn of_this_thread() -> CpuClock {
        let mut id = 0;
        // SAFETY: the calling thread is alive, which is all `pthread_self` has to be.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: `this` is a live thread and `id` a valid place for the answer.
        let error = unsafe { libc::pthread_getcpuclockid(this, &mut id) };
        CpuClock {
            id: (error == 0).then_some(id),
        }
    }

    /// What the thread has used so far; `None` where that cannot be told, or the thread has ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn now(self) -> Option<Duration> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid place for the answer; an id whose thread has ended is an error.
        let error = unsafe { libc::clock_gettime(self.id?, &mut time) };
        (error == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of_this_thread() -> CpuClock {
        CpuClock {}
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now(self) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, not(gmp_loom), target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn another_thread_that_computes_uses_time() {
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(CpuClock::of_this_thread()).expect("the test");
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {}
        });
        let clock = receive.recv().expect("the thread");
        while clock.now().expect("alive") < Duration::from_millis(5) {
            std::thread::yield_now();
        }
        stop.send(()).expect("the thread");
        thread.join().expect("the thread");
    }
}
