//! gmp's types in the hands of libraries that ask for the traits of `futures` or of the registry's tokio.

use std::io::SeekFrom;

use gmp::fs::File;
use gmp::io::{BufReader, BufStream, DuplexStream, ReadHalf, WriteHalf, duplex};
use gmp::net::{TcpListener, TcpStream, UnixStream};
use gmp::process::{ChildStdin, ChildStdout, Command};

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (client, accepted) = gmp::join!(TcpStream::connect(addr), listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

/// A file of this process alone, which has no name any more.
async fn nameless() -> File {
    let path = std::env::temp_dir().join(format!(
        "gmp-other-traits-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true);
    let file = file.open(&path).await.unwrap();
    gmp::fs::remove_file(path).await.unwrap();
    file
}

mod of_futures {
    use futures::io::{
        AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite,
        AsyncWriteExt, copy,
    };
    use futures::{AsyncSeek, TryStreamExt};

    use super::*;

    #[test]
    fn the_types_have_them() {
        fn reads<T: AsyncRead>() {}
        fn writes<T: AsyncWrite>() {}
        fn buffers<T: AsyncBufRead>() {}
        fn seeks<T: AsyncSeek>() {}
        reads::<TcpStream>();
        writes::<TcpStream>();
        reads::<gmp::net::tcp::ReadHalf<'_>>();
        writes::<gmp::net::tcp::OwnedWriteHalf>();
        reads::<UnixStream>();
        writes::<UnixStream>();
        reads::<gmp::net::unix::pipe::Receiver>();
        writes::<gmp::net::unix::pipe::Sender>();
        buffers::<BufReader<TcpStream>>();
        buffers::<BufStream<DuplexStream>>();
        reads::<ReadHalf<TcpStream>>();
        writes::<WriteHalf<TcpStream>>();
        seeks::<File>();
        reads::<ChildStdout>();
        writes::<ChildStdin>();
        reads::<gmp::io::Stdin>();
        writes::<gmp::io::Stdout>();
    }

    #[gmp::test]
    async fn a_stream_echoes() {
        let (client, server) = connected().await;
        let echo = gmp::spawn(async move {
            let (reader, mut writer) = server.split();
            let n = copy(reader, &mut writer).await.unwrap();
            writer.close().await.unwrap();
            n
        });
        let (mut reader, mut writer) = client.split();
        let send = async {
            for _ in 0..100 {
                writer.write_all(&[7; 10_000]).await.unwrap();
            }
            writer.close().await.unwrap();
        };
        let mut back = Vec::new();
        let (received, ()) = gmp::join!(reader.read_to_end(&mut back), send);
        assert_eq!(received.unwrap(), 1_000_000);
        assert_eq!(echo.await.unwrap(), 1_000_000);
        assert!(back.iter().all(|byte| *byte == 7));
    }

    #[gmp::test]
    async fn lines_of_a_buffered_pipe() {
        let (mut a, b) = duplex(5);
        let writing = gmp::spawn(async move { a.write_all(b"one\ntwo\nthree").await.unwrap() });
        let lines: Vec<String> = BufReader::new(b).lines().try_collect().await.unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        writing.await.unwrap();
    }

    #[gmp::test]
    async fn a_file_seeks() {
        let mut file = nameless().await;
        file.write_all(b"0123456789").await.unwrap();
        assert_eq!(file.seek(SeekFrom::Start(2)).await.unwrap(), 2);
        let mut two = [0; 2];
        file.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"23");
        // The same seek twice is two seeks.
        for expected in [5, 6, 7] {
            assert_eq!(file.seek(SeekFrom::Current(1)).await.unwrap(), expected);
        }
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 9);
        let error = file.seek(SeekFrom::Current(-100)).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        file.read_exact(&mut two[..1]).await.unwrap();
        assert_eq!(two[0], b'9');
    }

    /// A seek to another place does not return the outcome of the one that was given up.
    #[gmp::test]
    async fn a_seek_that_was_given_up_is_not_taken_for_the_next() {
        let mut file = nameless().await;
        file.write_all(b"0123456789").await.unwrap();
        for _ in 0..20 {
            let mut given_up = file.seek(SeekFrom::Start(3));
            let _ = futures::poll!(&mut given_up);
            assert_eq!(file.seek(SeekFrom::Start(8)).await.unwrap(), 8);
        }
    }
}

mod of_tokio {
    use tokio::io::{
        AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt,
        AsyncWrite, AsyncWriteExt, copy_bidirectional,
    };

    use super::*;

    #[test]
    fn the_types_have_them() {
        fn reads<T: AsyncRead>() {}
        fn writes<T: AsyncWrite>() {}
        fn buffers<T: AsyncBufRead>() {}
        fn seeks<T: AsyncSeek>() {}
        reads::<TcpStream>();
        writes::<TcpStream>();
        reads::<gmp::net::tcp::ReadHalf<'_>>();
        writes::<gmp::net::tcp::OwnedWriteHalf>();
        reads::<UnixStream>();
        writes::<UnixStream>();
        reads::<gmp::net::unix::pipe::Receiver>();
        writes::<gmp::net::unix::pipe::Sender>();
        buffers::<BufReader<TcpStream>>();
        seeks::<BufReader<File>>();
        seeks::<File>();
        reads::<ChildStdout>();
        writes::<ChildStdin>();
        reads::<gmp::io::Stdin>();
        writes::<gmp::io::Stdout>();
    }

    #[gmp::test]
    async fn tokios_proxy_runs_between_our_sockets() {
        let ((mut client, mut near), (mut far, mut server)) = gmp::join!(connected(), connected());
        let proxy =
            gmp::spawn(async move { copy_bidirectional(&mut near, &mut far).await.unwrap() });
        let serving = gmp::spawn(async move {
            let mut question = Vec::new();
            server.read_to_end(&mut question).await.unwrap();
            server.write_all(&question).await.unwrap();
        });
        client.write_all(&[5; 100_000]).await.unwrap();
        client.shutdown().await.unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, [5; 100_000]);
        assert_eq!(proxy.await.unwrap(), (100_000, 100_000));
        serving.await.unwrap();
    }

    #[gmp::test]
    async fn lines_of_a_child() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
        for line in ["one", "two"] {
            stdin
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            stdin.flush().await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), line);
        }
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
    }

    #[gmp::test]
    async fn a_file_seeks() {
        let mut file = nameless().await;
        file.write_all(b"0123456789").await.unwrap();
        assert_eq!(file.seek(SeekFrom::End(-3)).await.unwrap(), 7);
        let mut rest = String::new();
        file.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "789");
    }
}
