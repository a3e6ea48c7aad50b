//! What one client types, all others read: `cargo run --example chat`, then `nc 127.0.0.1 8082` in
//! several terminals.

use gmp::io::{self, AsyncBufReadExt, AsyncWriteExt, BufReader};
use gmp::net::{TcpListener, TcpStream};
use gmp::sync::broadcast::{self, error::RecvError};

#[gmp::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:8082").await?;
    let (lines, _) = broadcast::channel(100);
    for client in 1.. {
        let (stream, _peer) = listener.accept().await?;
        gmp::spawn(chat(client, stream, lines.clone()));
    }
    Ok(())
}

/// Until the client leaves: its lines go to everybody, those of the others to it.
async fn chat(
    client: u64,
    mut stream: TcpStream,
    lines: broadcast::Sender<(u64, String)>,
) -> io::Result<()> {
    let mut from_others = lines.subscribe();
    let (reader, mut writer) = stream.split();
    let mut from_client = BufReader::new(reader).lines();
    loop {
        gmp::select! {
            line = from_client.next_line() => match line? {
                // Nobody to hear it is no error.
                Some(line) => drop(lines.send((client, line))),
                None => return Ok(()),
            },
            received = from_others.recv() => match received {
                Ok((from, line)) if from != client => {
                    writer.write_all(format!("{from}: {line}\n").as_bytes()).await?;
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    writer.write_all(format!("(you missed {missed} lines)\n").as_bytes()).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}
