//! The netpoll of a runtime without I/O: nothing ever becomes ready, and waiting is sleeping.

use std::any::Any;
use std::io;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::seam::Netpoll;

#[derive(Debug)]
pub(crate) struct ParkOnly {
    seats: Box<[Seat]>,
}

#[derive(Debug, Default)]
struct Seat {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl ParkOnly {
    pub(crate) fn new(procs: usize) -> ParkOnly {
        ParkOnly {
            seats: (0..procs).map(|_| Seat::default()).collect(),
        }
    }
}

impl Netpoll for ParkOnly {
    fn poll(&self, p: usize, _by: usize, timeout: Option<Duration>) -> io::Result<usize> {
        if timeout == Some(Duration::ZERO) {
            return Ok(0);
        }
        let seat = &self.seats[p];
        let mut notified = seat.notified.lock();
        if !*notified {
            match timeout {
                None => seat.changed.wait(&mut notified),
                // A wake-up too early is no harm: the caller looks at what is due.
                Some(timeout) => {
                    seat.changed.wait_for(&mut notified, timeout);
                }
            }
        }
        *notified = false;
        Ok(0)
    }

    fn notify(&self, p: usize) {
        let seat = &self.seats[p];
        *seat.notified.lock() = true;
        seat.changed.notify_one();
    }

    fn has_sources(&self, _p: usize) -> bool {
        false
    }

    fn shutdown(&self) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}
