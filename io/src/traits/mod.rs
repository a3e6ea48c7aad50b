//! The four traits, and their implementations for pointers and for bytes in memory.

mod buf_read;
mod read;
mod seek;
mod write;

pub use buf_read::AsyncBufRead;
pub use read::AsyncRead;
pub use seek::AsyncSeek;
pub use write::AsyncWrite;
