//! An HTTP/1.1 server, small enough to read: `cargo run --release --example server -- --help`.
//!
//! `request` makes requests of bytes, `routes` says what to do with them, `response` makes bytes of
//! the answers; all three are pure. `connection` and `serve` do the I/O. `bench` loads it all.

mod bench;
mod connection;
mod histogram;
mod options;
mod request;
mod response;
mod routes;
mod serve;

use std::process::ExitCode;
use std::sync::Arc;

use gmp::net::TcpListener;
use gmp::signal::unix::{Signal, SignalKind, signal};
use gmp::sync::SetOnce;

use connection::Limits;
use options::Command;

#[gmp::main]
async fn main() -> ExitCode {
    let result = match options::parse(std::env::args().skip(1)) {
        Err(message) => {
            eprintln!("server: {message}; --help tells more");
            return ExitCode::from(2);
        }
        Ok(Command::Help) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Command::Serve { addr }) => run(&addr).await,
        Ok(Command::Bench { connections, time }) => match bench::bench(connections, time).await {
            Ok(figures) => {
                print!("{figures}");
                Ok(())
            }
            Err(error) => Err(format!("the bench failed: {error}")),
        },
    };
    if let Err(message) = result {
        eprintln!("server: {message}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn run(addr: &str) -> Result<(), String> {
    let signals = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let (interrupt, terminate) =
        signals.map_err(|error| format!("cannot listen for signals: {error}"))?;
    let listening = async {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, addr))
    };
    let (listener, addr) = listening
        .await
        .map_err(|error| format!("cannot listen on {addr}: {error}"))?;
    println!("listening on http://{addr}");

    let stop = Arc::new(SetOnce::new());
    gmp::spawn(stop_on_signal(interrupt, terminate, stop.clone()));
    serve::serve(listener, Limits::default(), stop).await;
    println!("stopped");
    Ok(())
}

/// The first signal stops the server when its work is done, the second at once.
async fn stop_on_signal(mut interrupt: Signal, mut terminate: Signal, stop: Arc<SetOnce<()>>) {
    let mut next = async || {
        gmp::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    println!("stopping when the requests in flight are answered; once more to stop at once");
    stop.set(()).expect("set here only");
    next().await;
    std::process::exit(130);
}
