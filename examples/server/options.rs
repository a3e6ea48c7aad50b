//! The command line.

use std::time::Duration;

pub(crate) const HELP: &str = "\
An HTTP/1.1 server on gmp.

Usage: server [--addr HOST:PORT]
       server --bench [--connections N] [--seconds N]

  GET  /            says hello
  POST /echo        returns the body
  GET  /sleep?ms=N  answers after N milliseconds
  GET  /block?ms=N  the same, but blocks the thread: the others go on

Options:
  --addr HOST:PORT  where to listen (default 127.0.0.1:8080)
  --bench           load a server of its own over loopback, and print figures
  --connections N   how many connections --bench opens (default 64)
  --seconds N       how long --bench runs (default 5)
  --help            print this

Ctrl-C stops when the requests in flight are answered; a second one stops at once.
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Serve { addr: String },
    Bench { connections: usize, time: Duration },
}

/// Reads the arguments behind the program's name. The error is a sentence for the user.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let (mut addr, mut bench, mut connections, mut seconds) = (None, false, None, None);
    while let Some(arg) = args.next() {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let mut value = || {
            value
                .clone()
                .or_else(|| args.next())
                .ok_or(format!("{name} needs a value"))
        };
        match name {
            "--help" | "-h" => return Ok(Command::Help),
            "--bench" => bench = true,
            "--addr" => addr = Some(value()?),
            "--connections" => connections = Some(number(name, &value()?)?),
            "--seconds" => seconds = Some(number(name, &value()?)?),
            _ => return Err(format!("unknown argument `{arg}`")),
        }
    }
    if !bench {
        return match connections.or(seconds) {
            Some(_) => Err("--connections and --seconds go with --bench".into()),
            None => Ok(Command::Serve {
                addr: addr.unwrap_or_else(|| "127.0.0.1:8080".into()),
            }),
        };
    }
    if addr.is_some() {
        return Err("--bench loads a server of its own; it takes no --addr".into());
    }
    Ok(Command::Bench {
        connections: connections.unwrap_or(64),
        time: Duration::from_secs(seconds.unwrap_or(5) as u64),
    })
}

fn number(name: &str, text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=1_000_000).contains(number));
    number.ok_or(format!(
        "{name} takes a number from 1 to 1000000, not `{text}`"
    ))
}
