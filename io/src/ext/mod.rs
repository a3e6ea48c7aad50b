//! The extension traits and the futures that their methods return.
//!
//! The futures have no public path: they are named only by the methods that return them, as in tokio.

mod buf_read;
mod number;
mod read;
mod read_line;
mod read_some;
mod read_to_end;
mod seek;
mod write;
mod write_some;

pub use buf_read::AsyncBufReadExt;
pub use read::AsyncReadExt;
pub use seek::AsyncSeekExt;
pub use write::AsyncWriteExt;

pub(crate) use read_line::poll_read_until;
