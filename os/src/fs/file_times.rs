//! [`FileTimes`].

use std::time::SystemTime;

/// The timestamps to set with [`File::set_times`](super::File::set_times).
///
/// What is not named here stays as it is. As [`std::fs::FileTimes`].
#[derive(Clone, Debug, Default)]
#[must_use = "must be applied to a file with `File::set_times` to have any effect"]
pub struct FileTimes {
    accessed: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl FileTimes {
    /// Sets nothing yet.
    pub fn new() -> Self {
        FileTimes::default()
    }

    /// The time of the last access.
    pub fn set_accessed(mut self, t: SystemTime) -> Self {
        self.accessed = Some(t);
        self
    }

    /// The time of the last modification.
    pub fn set_modified(mut self, t: SystemTime) -> Self {
        self.modified = Some(t);
        self
    }

    pub(super) fn into_std(self) -> std::fs::FileTimes {
        let mut times = std::fs::FileTimes::new();
        if let Some(accessed) = self.accessed {
            times = times.set_accessed(accessed);
        }
        if let Some(modified) = self.modified {
            times = times.set_modified(modified);
        }
        times
    }
}
