//! The accept loop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gmp::net::{TcpListener, TcpStream};
use gmp::sync::SetOnce;
use gmp::task::{JoinError, JoinSet};
use gmp::time::{Instant, sleep};

use super::connection::{Connection, Limits};

/// How long to leave the listener alone when the system cannot give a descriptor.
const RECOVER: Duration = Duration::from_millis(50);
/// How often at most to complain about that.
const COMPLAIN: Duration = Duration::from_secs(60);

/// Serves until `stop` is set; then takes no more connections, and returns when the last request in
/// flight is answered.
pub(crate) async fn serve(listener: TcpListener, limits: Limits, stop: Arc<SetOnce<()>>) {
    let mut connections = JoinSet::new();
    let mut complained: Option<Instant> = None;
    loop {
        let accepted = gmp::select! {
            accepted = listener.accept() => accepted,
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            _ = stop.wait() => break,
        };
        match accepted {
            Ok((stream, _peer)) => {
                connections.spawn(connection(stream, limits, stop.clone()));
            }
            // The client has left before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // No descriptors, most likely. Connections that end give some back.
                if complained.is_none_or(|before| before.elapsed() > COMPLAIN) {
                    eprintln!("server: cannot accept connections for now: {error}");
                    complained = Some(Instant::now());
                }
                sleep(RECOVER).await;
            }
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report(ended);
    }
}

async fn connection(stream: TcpStream, limits: Limits, stop: Arc<SetOnce<()>>) {
    // Responses are written whole: there is nothing to wait for.
    let _ = stream.set_nodelay(true);
    Connection::new(stream, limits, stop).run().await;
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        eprintln!("server: a connection's task failed: {error}");
    }
}
