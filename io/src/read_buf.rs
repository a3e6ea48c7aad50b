//! The buffer that readers fill.
//!
//! A [`ReadBuf`] is a slice and two cursors that split it in three:
//!
//! ```text
//! 0            filled          initialized         capacity
//! |  the data  |  garbage, but init  |  perhaps uninit  |
//! ```
//!
//! Invariants, cited by the SAFETY comments:
//!
//! 1. `filled <= initialized <= buf.len()`.
//! 2. The bytes below `initialized` hold values.
//! 3. No byte that holds a value is ever made uninitialized again, wherever the cursors stand: the
//!    slice may belong to somebody who knows more about it than this buffer does
//!    ([`ReadBuf::new`] borrows a plain `&mut [u8]`).
//!
//! Safe code cannot break them. [`inner_mut`](ReadBuf::inner_mut) and
//! [`unfilled_mut`](ReadBuf::unfilled_mut) hand out the raw bytes, so their callers keep the third;
//! callers of [`assume_init`](ReadBuf::assume_init) answer for the second.

use std::fmt;
use std::mem::MaybeUninit;

use bytes::BufMut;
use bytes::buf::UninitSlice;

/// A byte buffer that is filled step by step and knows how much of it is initialized.
///
/// It lets a reader write into memory that nobody cleared before, without either side having to
/// trust the other: bytes count as *filled* when they are data, as *initialized* when they hold some
/// value, and what is filled is always initialized.
///
/// ```text
/// [             capacity              ]
/// [ filled |         unfilled         ]
/// [    initialized    | uninitialized ]
/// ```
///
/// What lies beyond the initialized part *may* be uninitialized. It must be treated as if it were
/// initialized in one respect: writing [`MaybeUninit::uninit`] there is undefined behaviour, since
/// the owner of the memory may rely on the values.
///
/// As `tokio::io::ReadBuf`.
///
/// # Examples
///
/// ```
/// use gmp_io::ReadBuf;
///
/// let mut storage = [0; 8];
/// let mut buf = ReadBuf::new(&mut storage);
/// buf.put_slice(b"data");
/// assert_eq!(buf.filled(), b"data");
/// assert_eq!(buf.remaining(), 4);
/// ```
pub struct ReadBuf<'a> {
    buf: &'a mut [MaybeUninit<u8>],
    filled: usize,
    initialized: usize,
}

impl<'a> ReadBuf<'a> {
    /// Wraps a buffer that is initialized from end to end.
    #[inline]
    pub fn new(buf: &'a mut [u8]) -> ReadBuf<'a> {
        let initialized = buf.len();
        let bytes: *mut [u8] = buf;
        // SAFETY: the layouts are the same, the pointer comes from a unique borrow that lives for
        // `'a`, and invariant 3 keeps the bytes initialized for the owner of the slice.
        let buf = unsafe { &mut *(bytes as *mut [MaybeUninit<u8>]) };
        ReadBuf {
            buf,
            filled: 0,
            initialized,
        }
    }

    /// Wraps a buffer of which nothing is known to be initialized.
    ///
    /// If the start of it is, [`assume_init`](ReadBuf::assume_init) says so.
    #[inline]
    pub fn uninit(buf: &'a mut [MaybeUninit<u8>]) -> ReadBuf<'a> {
        ReadBuf {
            buf,
            filled: 0,
            initialized: 0,
        }
    }

    /// The length of the whole buffer.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buf.len()
    }

    /// The data: the filled part.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: invariants 1 and 2: what is filled is initialized.
        unsafe { as_init(&self.buf[..self.filled]) }
    }

    /// The data, for changing it in place.
    #[inline]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: invariants 1 and 2: what is filled is initialized.
        unsafe { as_init_mut(&mut self.buf[..self.filled]) }
    }

    /// A new buffer over the unfilled part, of at most `n` bytes.
    ///
    /// It starts as if nothing in it were initialized. What is read into it has to be accounted for
    /// here afterwards, with [`assume_init`](ReadBuf::assume_init) and [`advance`](ReadBuf::advance).
    #[inline]
    pub fn take(&mut self, n: usize) -> ReadBuf<'_> {
        let len = self.remaining().min(n);
        ReadBuf::uninit(&mut self.buf[self.filled..][..len])
    }

    /// The initialized part; it begins with the filled one.
    #[inline]
    pub fn initialized(&self) -> &[u8] {
        // SAFETY: invariant 2.
        unsafe { as_init(&self.buf[..self.initialized]) }
    }

    /// The initialized part, for changing it in place.
    #[inline]
    pub fn initialized_mut(&mut self) -> &mut [u8] {
        // SAFETY: invariant 2.
        unsafe { as_init_mut(&mut self.buf[..self.initialized]) }
    }

    /// The whole buffer, initialized or not.
    ///
    /// The first `filled().len()` bytes are the data and the first `initialized().len()` hold
    /// values. Whoever initializes more reports it with [`assume_init`](ReadBuf::assume_init).
    ///
    /// # Safety
    ///
    /// The caller must not make any byte uninitialized, not even one beyond the initialized part.
    #[inline]
    pub unsafe fn inner_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        self.buf
    }

    /// The unfilled part, initialized or not.
    ///
    /// # Safety
    ///
    /// The caller must not make any byte uninitialized, not even one beyond the initialized part.
    #[inline]
    pub unsafe fn unfilled_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.buf[self.filled..]
    }

    /// The unfilled part as plain bytes; zeroes are written where nothing was initialized before.
    ///
    /// The zeroes are written once in the life of the buffer, so the next call costs nothing.
    #[inline]
    pub fn initialize_unfilled(&mut self) -> &mut [u8] {
        self.initialize_unfilled_to(self.remaining())
    }

    /// The first `n` unfilled bytes as plain bytes; zeroes are written where needed.
    ///
    /// # Panics
    ///
    /// If fewer than `n` bytes remain.
    #[inline]
    #[track_caller]
    pub fn initialize_unfilled_to(&mut self, n: usize) -> &mut [u8] {
        assert!(n <= self.remaining(), "n overflows remaining");
        let end = self.filled + n;
        if self.initialized < end {
            self.buf[self.initialized..end].fill(MaybeUninit::new(0));
            self.initialized = end;
        }
        // SAFETY: `end <= initialized` now, so invariant 2 covers the range.
        unsafe { as_init_mut(&mut self.buf[self.filled..end]) }
    }

    /// How many bytes can still be filled.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.capacity() - self.filled
    }

    /// Forgets the data; the bytes stay as they are, and initialized.
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Counts the next `n` bytes, which must be initialized, as filled.
    ///
    /// # Panics
    ///
    /// If the filled part would reach beyond the initialized one.
    #[inline]
    #[track_caller]
    pub fn advance(&mut self, n: usize) {
        let filled = self.filled.checked_add(n).expect("filled overflow");
        self.set_filled(filled);
    }

    /// Sets the length of the filled part, which may also shrink.
    ///
    /// # Panics
    ///
    /// If the filled part would reach beyond the initialized one.
    #[inline]
    #[track_caller]
    pub fn set_filled(&mut self, n: usize) {
        assert!(
            n <= self.initialized,
            "filled must not become larger than initialized"
        );
        self.filled = n;
    }

    /// Says that the first `n` unfilled bytes are initialized.
    ///
    /// Nothing changes if as many were known to be already.
    ///
    /// # Safety
    ///
    /// The first `n` bytes of the unfilled part exist and hold values.
    #[inline]
    pub unsafe fn assume_init(&mut self, n: usize) {
        debug_assert!(
            n <= self.remaining(),
            "assume_init({n}) of {}",
            self.remaining()
        );
        self.initialized = self.initialized.max(self.filled + n);
    }

    /// Appends `buf` to the data.
    ///
    /// # Panics
    ///
    /// If fewer than `buf.len()` bytes remain.
    #[inline]
    #[track_caller]
    pub fn put_slice(&mut self, buf: &[u8]) {
        let remaining = self.remaining();
        assert!(
            buf.len() <= remaining,
            "buf.len() must fit in remaining(); buf.len() = {}, remaining() = {remaining}",
            buf.len(),
        );
        let end = self.filled + buf.len();
        self.buf[self.filled..end].copy_from_slice(as_uninit(buf));
        self.initialized = self.initialized.max(end);
        self.filled = end;
    }
}

// SAFETY: `chunk_mut` and `remaining_mut` speak of the same unfilled part, and `advance_mut` moves
// its start by exactly `cnt`.
unsafe impl BufMut for ReadBuf<'_> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    #[inline]
    unsafe fn advance_mut(&mut self, cnt: usize) {
        // SAFETY: our caller promises that the next `cnt` bytes of the chunk are initialized.
        unsafe { self.assume_init(cnt) };
        self.advance(cnt);
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        // An `UninitSlice` cannot be written uninitialized bytes through, which keeps invariant 3.
        UninitSlice::uninit(&mut self.buf[self.filled..])
    }
}

impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuf")
            .field("filled", &self.filled)
            .field("initialized", &self.initialized)
            .field("capacity", &self.capacity())
            .finish()
    }
}

fn as_uninit(bytes: &[u8]) -> &[MaybeUninit<u8>] {
    let bytes: *const [u8] = bytes;
    // SAFETY: the layouts are the same, and behind a shared reference nothing can be written.
    unsafe { &*(bytes as *const [MaybeUninit<u8>]) }
}

/// # Safety
///
/// All of `bytes` is initialized.
unsafe fn as_init(bytes: &[MaybeUninit<u8>]) -> &[u8] {
    let bytes: *const [MaybeUninit<u8>] = bytes;
    // SAFETY: the layouts are the same, and the caller promises that the bytes hold values.
    unsafe { &*(bytes as *const [u8]) }
}

/// # Safety
///
/// All of `bytes` is initialized.
unsafe fn as_init_mut(bytes: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    let bytes: *mut [MaybeUninit<u8>] = bytes;
    // SAFETY: the layouts are the same, and the caller promises that the bytes hold values.
    unsafe { &mut *(bytes as *mut [u8]) }
}
