//! Child processes: [`std::process`] with the waiting done asynchronously.
//!
//! A [`Command`] is built as in the standard library; [`spawn`](Command::spawn) gives a [`Child`]
//! to wait for, whose pipes are asynchronous; [`status`](Command::status) and
//! [`output`](Command::output) do the whole of it.
//!
//! # Dropping a child
//!
//! A child goes on when its [`Child`] is dropped, unless
//! [`kill_on_drop`](Command::kill_on_drop) was set. Either way it does not stay behind as a zombie:
//! while the runtime that spawned it runs, it is reaped when it ends, without anybody's doing.
//! (On Linux through its pidfd; elsewhere, and when the runtime is gone, at the next `SIGCHLD` that
//! a runtime of the process receives, and whenever another child is spawned.) To know that it *has*
//! been reaped, wait for it.
//!
//! # Pipes and deadlocks
//!
//! A pipe holds 64 KiB. A child that fills its output pipe stops until somebody reads; a parent that
//! first waits for it, or first writes all its input, waits for ever. Read the output in another
//! task, or use [`wait_with_output`](Child::wait_with_output), which reads both pipes while it waits.
//!
//! # Examples
//!
//! ```no_run
//! use std::process::Stdio;
//! use gmp::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//! use gmp::process::Command;
//!
//! #[gmp::main]
//! async fn main() -> std::io::Result<()> {
//!     let mut sort = Command::new("sort")
//!         .stdin(Stdio::piped())
//!         .stdout(Stdio::piped())
//!         .kill_on_drop(true)
//!         .spawn()?;
//!
//!     let mut input = sort.stdin.take().expect("stdin is piped");
//!     gmp::spawn(async move { input.write_all(b"pear\napple\nplum\n").await });
//!
//!     let mut lines = BufReader::new(sort.stdout.take().expect("stdout is piped")).lines();
//!     while let Some(line) = lines.next_line().await? {
//!         println!("{line}");
//!     }
//!     println!("{}", sort.wait().await?);
//!     Ok(())
//! }
//! ```

mod child;
mod command;
mod notice;
mod orphan;
mod pipes;
mod reaper;
#[cfg(all(test, not(gmp_loom)))]
mod tests;

pub use self::child::Child;
pub use self::command::Command;
pub use self::pipes::{ChildStderr, ChildStdin, ChildStdout};
