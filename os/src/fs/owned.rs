//! Taking bytes along with a job, without a copy where the caller gave them away.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use bytes::Bytes;

/// Bytes that a job owns.
#[derive(Debug)]
pub(super) enum OwnedBytes {
    Vec(Vec<u8>),
    Bytes(Bytes),
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            OwnedBytes::Vec(vec) => vec,
            OwnedBytes::Bytes(bytes) => bytes,
        }
    }
}

/// Keeps a `Vec<u8>`, a `String` or a `Bytes` as it is and copies everything else.
pub(super) fn into_owned<B: AsRef<[u8]>>(bytes: B) -> OwnedBytes {
    let bytes = match same_type::<B, Vec<u8>>(bytes) {
        Ok(vec) => return OwnedBytes::Vec(vec),
        Err(bytes) => bytes,
    };
    let bytes = match same_type::<B, String>(bytes) {
        Ok(string) => return OwnedBytes::Vec(string.into_bytes()),
        Err(bytes) => bytes,
    };
    match same_type::<B, Bytes>(bytes) {
        Ok(bytes) => OwnedBytes::Bytes(bytes),
        Err(bytes) => OwnedBytes::Vec(bytes.as_ref().to_vec()),
    }
}

/// The value as a `To`, if `From` is that type.
fn same_type<From, To: 'static>(value: From) -> Result<To, From> {
    if type_id::<From>() != TypeId::of::<To>() {
        return Err(value);
    }
    let value = ManuallyDrop::new(value);
    // SAFETY: the two are one type. `To` holds no lifetime, so there is none that the comparison
    // could have missed; and `ManuallyDrop` leaves the original to this copy.
    Ok(unsafe { std::mem::transmute_copy::<From, To>(&value) })
}

/// [`TypeId::of`] for a type that may hold lifetimes; they are not told apart.
fn type_id<T>() -> TypeId {
    trait Identify {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Identify for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let phantom = PhantomData::<T>;
    let identify: &dyn Identify = &phantom;
    // SAFETY: the lifetime is stretched for one call, which looks at the type alone: it reads
    // nothing through the reference and keeps nothing of it.
    let identify = unsafe {
        std::mem::transmute::<&dyn Identify, &'static (dyn Identify + 'static)>(identify)
    };
    identify.id()
}

#[cfg(all(test, not(gmp_loom)))]
mod tests {
    use super::*;

    #[test]
    fn given_away_memory_is_kept() {
        let vec = vec![1u8; 100];
        let at = vec.as_ptr();
        assert_eq!(into_owned(vec).as_ref().as_ptr(), at);

        let string = "x".repeat(100);
        let at = string.as_ptr();
        assert_eq!(into_owned(string).as_ref().as_ptr(), at);

        let bytes = Bytes::from(vec![2u8; 100]);
        let at = bytes.as_ptr();
        let owned = into_owned(bytes.clone());
        assert_eq!(owned.as_ref().as_ptr(), at);
        drop(owned);
        assert_eq!(bytes, [2u8; 100][..]);
    }

    #[test]
    fn borrowed_memory_is_copied() {
        let vec = vec![3u8; 100];
        let owned = into_owned(&vec);
        assert_ne!(owned.as_ref().as_ptr(), vec.as_ptr());
        assert_eq!(owned.as_ref(), vec);
        let slice: &[u8] = &vec[10..20];
        assert_eq!(into_owned(slice).as_ref(), [3; 10]);
        assert_eq!(into_owned("text").as_ref(), b"text");
        assert_eq!(into_owned([4u8; 3]).as_ref(), [4; 3]);
        assert_eq!(into_owned(Box::<[u8]>::from([5, 6])).as_ref(), [5, 6]);
    }

    #[test]
    fn what_is_copied_is_dropped_once() {
        use std::cell::Cell;
        struct Counted<'a>(&'a Cell<usize>);
        impl AsRef<[u8]> for Counted<'_> {
            fn as_ref(&self) -> &[u8] {
                b"counted"
            }
        }
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = Cell::new(0);
        assert_eq!(into_owned(Counted(&drops)).as_ref(), b"counted");
        assert_eq!(drops.get(), 1);
    }
}
