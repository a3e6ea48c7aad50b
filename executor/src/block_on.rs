//! `block_on`: a thread that polls a future of its own.

use std::future::Future;

use crate::context;
use crate::handle::Handle;

/// Polls `future` on this thread, which is in the runtime's context already.
pub(crate) fn multi_thread<F: Future>(_handle: &Handle, future: F) -> F::Output {
    context::park_on(future)
}
