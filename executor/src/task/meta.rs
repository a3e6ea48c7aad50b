//! The metadata of a G.
use std::sync::atomic::{AtomicU8, Ordering};
use crate::wait::WaitReason;

pub(crate) struct Meta { wait: AtomicU8 }
impl Meta {
    pub(crate) fn set_wait_reason(&self, reason: WaitReason) {
        self.wait.store(reason as u8, Ordering::Relaxed);
    }
}
