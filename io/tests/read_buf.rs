//! `ReadBuf`: two cursors that safe code cannot get out of step.

mod support;

use std::mem::MaybeUninit;

use bytes::BufMut;
use gmp_io::ReadBuf;
use proptest::prelude::*;
use support::panic_of;

#[test]
fn a_new_one_is_initialized_and_not_filled() {
    let mut storage = *b"abcd";
    let buf = ReadBuf::new(&mut storage);
    assert_eq!(buf.capacity(), 4);
    assert_eq!(buf.filled(), b"");
    assert_eq!(buf.initialized(), b"abcd");
    assert_eq!(buf.remaining(), 4);
}

#[test]
fn an_uninit_one_is_neither() {
    let mut storage = [MaybeUninit::uninit(); 4];
    let buf = ReadBuf::uninit(&mut storage);
    assert_eq!(buf.capacity(), 4);
    assert_eq!(buf.filled(), b"");
    assert_eq!(buf.initialized(), b"");
    assert_eq!(buf.remaining(), 4);
}

#[test]
fn put_slice_fills_and_initializes() {
    let mut storage = [MaybeUninit::uninit(); 4];
    let mut buf = ReadBuf::uninit(&mut storage);
    buf.put_slice(b"ab");
    buf.put_slice(b"");
    assert_eq!(buf.filled(), b"ab");
    assert_eq!(buf.initialized(), b"ab");
    buf.filled_mut()[0] = b'A';
    buf.put_slice(b"cd");
    assert_eq!(buf.filled(), b"Abcd");
    assert_eq!(buf.remaining(), 0);
}

#[test]
fn initialize_unfilled_clears_only_what_was_not_initialized() {
    let mut storage = [MaybeUninit::uninit(); 6];
    let mut buf = ReadBuf::uninit(&mut storage);
    buf.put_slice(b"abcd");
    buf.set_filled(1);
    assert_eq!(buf.initialize_unfilled_to(2), b"bc");
    assert_eq!(buf.initialized(), b"abcd");
    assert_eq!(buf.initialize_unfilled(), b"bcd\0\0");
    assert_eq!(buf.initialized(), b"abcd\0\0");
    assert_eq!(buf.filled(), b"a");
}

#[test]
fn clear_and_set_filled_keep_the_bytes() {
    let mut storage = *b"abcd";
    let mut buf = ReadBuf::new(&mut storage);
    buf.advance(3);
    assert_eq!(buf.filled(), b"abc");
    buf.set_filled(2);
    assert_eq!(buf.filled(), b"ab");
    buf.clear();
    assert_eq!(buf.filled(), b"");
    assert_eq!(buf.initialized(), b"abcd");
    buf.initialized_mut()[3] = b'D';
    buf.set_filled(4);
    assert_eq!(buf.filled(), b"abcD");
}

#[test]
fn take_is_the_unfilled_part_and_knows_nothing() {
    let mut storage = *b"abcdef";
    let mut buf = ReadBuf::new(&mut storage);
    buf.advance(2);
    {
        let mut part = buf.take(3);
        assert_eq!(part.capacity(), 3);
        assert_eq!(part.initialized(), b"");
        part.put_slice(b"CD");
    }
    assert_eq!(buf.filled(), b"ab");
    buf.advance(2);
    assert_eq!(buf.filled(), b"abCD");
    assert_eq!(buf.take(100).capacity(), 2);
    assert_eq!(buf.take(0).capacity(), 0);
}

#[test]
fn assume_init_only_grows() {
    let mut storage = [MaybeUninit::new(7); 4];
    let mut buf = ReadBuf::uninit(&mut storage);
    // SAFETY: all of it is initialized.
    unsafe { buf.assume_init(3) };
    assert_eq!(buf.initialized(), &[7, 7, 7]);
    // SAFETY: as above.
    unsafe { buf.assume_init(1) };
    assert_eq!(buf.initialized(), &[7, 7, 7]);
    buf.advance(2);
    // SAFETY: as above; counted from what is filled.
    unsafe { buf.assume_init(2) };
    assert_eq!(buf.initialized(), &[7, 7, 7, 7]);
}

#[test]
fn raw_access_covers_what_it_says() {
    let mut storage = *b"abcd";
    let mut buf = ReadBuf::new(&mut storage);
    buf.advance(1);
    // SAFETY: nothing is made uninitialized.
    assert_eq!(unsafe { buf.inner_mut() }.len(), 4);
    // SAFETY: nothing is made uninitialized.
    let unfilled = unsafe { buf.unfilled_mut() };
    assert_eq!(unfilled.len(), 3);
    unfilled[0].write(b'B');
    buf.advance(1);
    assert_eq!(buf.filled(), b"aB");
}

#[test]
fn it_is_a_buf_mut() {
    let mut storage = [MaybeUninit::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut storage);
    assert_eq!(buf.remaining_mut(), 8);
    buf.put_u16(0x0102);
    buf.put_bytes(9, 3);
    assert_eq!(buf.filled(), &[1, 2, 9, 9, 9]);
    assert_eq!(buf.chunk_mut().len(), 3);
    assert!(buf.has_remaining_mut());
    buf.put(&b"xyz"[..]);
    assert!(!buf.has_remaining_mut());
}

#[test]
fn debug_tells_the_cursors_and_not_the_bytes() {
    let mut storage = [MaybeUninit::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut storage);
    buf.put_slice(b"abc");
    buf.set_filled(1);
    assert_eq!(
        format!("{buf:?}"),
        "ReadBuf { filled: 1, initialized: 3, capacity: 8 }"
    );
}

#[track_caller]
fn assert_panics(text: &str, f: impl FnOnce(&mut ReadBuf<'_>)) {
    let mut storage = [MaybeUninit::uninit(); 4];
    let mut buf = ReadBuf::uninit(&mut storage);
    buf.put_slice(b"abc");
    let (file, message) = panic_of(|| f(&mut buf)).expect("a panic");
    assert_eq!(message, text);
    assert_eq!(file, file!());
    assert_eq!(buf.filled(), b"abc");
}

#[test]
fn what_does_not_fit_panics_at_the_caller() {
    assert_panics("n overflows remaining", |buf| {
        buf.initialize_unfilled_to(2);
    });
    assert_panics("filled must not become larger than initialized", |buf| {
        buf.advance(1)
    });
    assert_panics("filled overflow", |buf| buf.advance(usize::MAX));
    assert_panics("filled must not become larger than initialized", |buf| {
        buf.set_filled(4)
    });
    assert_panics(
        "buf.len() must fit in remaining(); buf.len() = 2, remaining() = 1",
        |buf| buf.put_slice(b"de"),
    );
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>),
    InitializeTo(usize),
    Initialize,
    Advance(usize),
    SetFilled(usize),
    Clear,
    Take(usize, Vec<u8>),
    BufMut(Vec<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        bytes().prop_map(Op::Put),
        (0usize..40).prop_map(Op::InitializeTo),
        Just(Op::Initialize),
        (0usize..40).prop_map(Op::Advance),
        (0usize..40).prop_map(Op::SetFilled),
        Just(Op::Clear),
        (0usize..40, bytes()).prop_map(|(n, bytes)| Op::Take(n, bytes)),
        bytes().prop_map(Op::BufMut),
    ]
}

/// The same with vectors: `bytes` is the initialized part.
#[derive(Debug)]
struct Model {
    bytes: Vec<u8>,
    filled: usize,
    capacity: usize,
}

impl Model {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.filled + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
    }

    fn room(&self) -> usize {
        self.capacity - self.filled
    }

    fn apply(&mut self, op: &Op, buf: &mut ReadBuf<'_>) {
        match op {
            Op::Put(bytes) if bytes.len() <= self.room() => {
                self.put(bytes);
                buf.put_slice(bytes);
            }
            Op::BufMut(bytes) if bytes.len() <= self.room() => {
                self.put(bytes);
                BufMut::put_slice(buf, bytes);
            }
            Op::Initialize => {
                self.bytes.resize(self.capacity, 0);
                assert_eq!(buf.initialize_unfilled(), &self.bytes[self.filled..]);
            }
            Op::InitializeTo(n) if *n <= self.room() => {
                let end = self.filled + n;
                self.bytes.resize(self.bytes.len().max(end), 0);
                assert_eq!(
                    buf.initialize_unfilled_to(*n),
                    &self.bytes[self.filled..end]
                );
            }
            Op::Advance(n) if self.filled + n <= self.bytes.len() => {
                self.filled += n;
                buf.advance(*n);
            }
            Op::SetFilled(n) if *n <= self.bytes.len() => {
                self.filled = *n;
                buf.set_filled(*n);
            }
            Op::Clear => {
                self.filled = 0;
                buf.clear();
            }
            Op::Take(n, bytes) => {
                let mut part = buf.take(*n);
                assert_eq!(part.capacity(), self.room().min(*n));
                if bytes.len() <= part.capacity() {
                    part.put_slice(bytes);
                    // SAFETY: these bytes have just been put there.
                    unsafe { buf.assume_init(bytes.len()) };
                    buf.advance(bytes.len());
                    self.put(bytes);
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn it_behaves_as_two_vectors(capacity in 0usize..40, ops in proptest::collection::vec(op(), 0..40)) {
        let mut storage = vec![MaybeUninit::uninit(); capacity];
        let mut buf = ReadBuf::uninit(&mut storage);
        let mut model = Model { bytes: Vec::new(), filled: 0, capacity };
        for op in &ops {
            model.apply(op, &mut buf);
            prop_assert_eq!(buf.initialized(), &model.bytes[..], "after {:?}", op);
            prop_assert_eq!(buf.filled(), &model.bytes[..model.filled]);
            prop_assert_eq!(buf.remaining(), model.room());
            prop_assert_eq!(buf.capacity(), capacity);
        }
    }
}
