//! Returns what it is sent: `cargo run --example echo`, then `nc 127.0.0.1 8081` as often as you like.

use gmp::io;
use gmp::net::TcpListener;

#[gmp::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:8081").await?;
    loop {
        let (mut stream, _peer) = listener.accept().await?;
        gmp::spawn(async move {
            let (mut reader, mut writer) = stream.split();
            io::copy(&mut reader, &mut writer).await
        });
    }
}
