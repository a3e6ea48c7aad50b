//! `Send`, `Sync`, `Unpin`, `UnwindSafe`: as tokio's types and futures have them.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::rc::Rc;

use gmp_io::*;

/// `does_not!(Type: Trait)` compiles only if `Type` lacks `Trait`: else two impls fit.
macro_rules! does_not {
    ($type:ty: $trait:path) => {{
        trait Ambiguous<Marker> {
            fn check() {}
        }
        struct Has;
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + $trait> Ambiguous<Has> for T {}
        let _ = <$type as Ambiguous<_>>::check;
    }};
}

fn all<T: Send + Sync + Unpin>() {}
fn unwinds<T: UnwindSafe + RefUnwindSafe>() {}

type NotSend = io_of::Stream<Rc<Cell<u8>>>;
type Pinned = io_of::Stream<PhantomPinned>;
type Plain = io_of::Stream<()>;

mod io_of {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use gmp_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

    /// A stream with the auto traits of `T`.
    pub(crate) struct Stream<T>(pub(crate) T);

    impl<T> AsyncRead for Stream<T> {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl<T> AsyncBufRead for Stream<T> {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            Poll::Ready(Ok(&[]))
        }

        fn consume(self: Pin<&mut Self>, _: usize) {}
    }

    impl<T> AsyncWrite for Stream<T> {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl<T> AsyncSeek for Stream<T> {
        fn start_seek(self: Pin<&mut Self>, _: io::SeekFrom) -> io::Result<()> {
            Ok(())
        }

        fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
            Poll::Ready(Ok(0))
        }
    }
}

#[test]
fn types_pass_on_what_they_hold() {
    macro_rules! check {
        ($($type:ident)*) => {$(
            all::<$type<Plain>>();
            unwinds::<$type<Plain>>();
            does_not!($type<NotSend>: Send);
            does_not!($type<NotSend>: Sync);
            does_not!($type<Pinned>: Unpin);
        )*};
    }
    check!(BufReader BufWriter BufStream Lines Split Take);
    all::<Chain<Plain, Plain>>();
    unwinds::<Chain<Plain, Plain>>();
    does_not!(Chain<Plain, NotSend>: Send);
    does_not!(Chain<Pinned, Plain>: Unpin);
    all::<Join<Plain, Plain>>();
    unwinds::<Join<Plain, Plain>>();
    does_not!(Join<NotSend, Plain>: Sync);
    does_not!(Join<Plain, Pinned>: Unpin);
}

#[test]
fn types_of_their_own() {
    all::<DuplexStream>();
    all::<SimplexStream>();
    unwinds::<SimplexStream>();
    all::<Empty>();
    unwinds::<Empty>();
    all::<Sink>();
    unwinds::<Sink>();
    all::<Repeat>();
    unwinds::<Repeat>();
    all::<ReadBuf<'_>>();
    fn read_buf_unwinds<T: RefUnwindSafe>() {}
    read_buf_unwinds::<ReadBuf<'_>>();
    does_not!(ReadBuf<'_>: UnwindSafe);
}

#[test]
fn halves_are_unpin_whatever_they_are_halves_of() {
    all::<ReadHalf<Plain>>();
    all::<WriteHalf<Plain>>();
    unwinds::<ReadHalf<Plain>>();
    unwinds::<WriteHalf<Plain>>();
    fn unpin<T: Unpin>() {}
    unpin::<ReadHalf<Pinned>>();
    unpin::<WriteHalf<Pinned>>();
    does_not!(ReadHalf<NotSend>: Send);
    does_not!(ReadHalf<NotSend>: Sync);
    does_not!(WriteHalf<NotSend>: Send);
    does_not!(WriteHalf<NotSend>: Sync);
}

/// Like tokio's, a future is `!Unpin` even when it could be: it may become an `async fn` one day.
macro_rules! future {
    ($reader:ident, $future:expr) => {{
        fn checks<F: Future + Send + Sync>(_: &F) {}
        let $reader = &mut io_of::Stream(());
        let future = $future;
        checks(&future);
        // The inherent method is found if there is one, that is, if the type is `Unpin`.
        trait IsUnpin {
            fn is_unpin(&self) -> bool;
        }
        struct Probe<T>(std::marker::PhantomData<T>);
        impl<T: Unpin> Probe<T> {
            #[allow(dead_code, reason = "that nobody calls it is the point")]
            fn is_unpin(&self) -> bool {
                true
            }
        }
        impl<T> IsUnpin for Probe<T> {
            fn is_unpin(&self) -> bool {
                false
            }
        }
        fn probe<T>(_: &T) -> Probe<T> {
            Probe(std::marker::PhantomData)
        }
        let probe = probe(&future);
        assert!(!probe.is_unpin());
    }};
}

#[test]
fn futures_of_methods() {
    let mut bytes = [0; 1];
    let mut vec = Vec::new();
    let mut string = String::new();
    let mut source = &b""[..];
    future!(s, s.read(&mut bytes));
    future!(s, s.read_exact(&mut bytes));
    future!(s, s.read_buf(&mut vec));
    future!(s, s.read_to_end(&mut vec));
    future!(s, s.read_to_string(&mut string));
    future!(s, s.read_u8());
    future!(s, s.read_i128_le());
    future!(s, s.read_f64());
    future!(s, s.read_until(0, &mut vec));
    future!(s, s.read_line(&mut string));
    future!(s, s.fill_buf());
    future!(s, s.seek(SeekFrom::Start(0)));
    future!(s, s.rewind());
    future!(s, s.write(b""));
    future!(s, s.write_vectored(&[]));
    future!(s, s.write_buf(&mut source));
    future!(s, s.write_all_buf(&mut source));
    future!(s, s.write_all(b""));
    future!(s, s.write_u8(0));
    future!(s, s.write_f32_le(0.0));
    future!(s, s.flush());
    future!(s, s.shutdown());
    let mut other = empty();
    future!(s, copy(&mut other, s));
    future!(s, copy_buf(&mut other, s));
    future!(s, copy_bidirectional(&mut other, s));
}

#[test]
fn futures_of_dynamic_streams_are_send_and_sync() {
    fn check<F: Future + Send + Sync>(_: F) {}
    type Reader = Pin<Box<dyn AsyncBufRead + Send + Sync>>;
    type Writer = Pin<Box<dyn AsyncWrite + Send + Sync>>;
    let reader: &mut Reader = &mut (Box::pin(io_of::Stream(())) as Reader);
    let writer: &mut Writer = &mut (Box::pin(io_of::Stream(())) as Writer);
    check(reader.read_u32());
    check(writer.write_u32(0));
    check(copy(reader, writer));
}
