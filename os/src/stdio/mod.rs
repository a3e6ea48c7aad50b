//! Standard input, output and error.
//!
//! They may be anything (a terminal, a pipe, a file), none of which can be switched to non-blocking
//! mode without surprising whoever shares it. So they are read and written on the blocking pool,
//! through the standard library's handles, as in tokio.

mod blocking;
mod stderr;
mod stdin;
mod stdout;

pub use self::stderr::{Stderr, stderr};
pub use self::stdin::{Stdin, stdin};
pub use self::stdout::{Stdout, stdout};
