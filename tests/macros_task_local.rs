//! `task_local!`: what can be declared, and how it is seen from elsewhere.

#![deny(warnings)]

use futures::executor::block_on;

mod keys {
    gmp::task_local! {
        /// Documented.
        pub static PUBLIC: u32;
        pub(crate) static OF_THE_CRATE: String;
        pub(in crate::keys) static OF_A_PATH: Vec<Option<&'static str>>;
        #[allow(dead_code)]
        static PRIVATE: [u8; 4];
    }

    pub(crate) fn private() -> [u8; 4] {
        OF_A_PATH.sync_scope(vec![None], || PRIVATE.sync_scope([1; 4], || PRIVATE.get()))
    }
}

gmp::task_local! {}
gmp::task_local!(static WITHOUT_SEMICOLON: Box<dyn Fn(u32) -> u32>);
gmp::task_local!(
    static WITH_SEMICOLON: u8;
);

/// The caller's own, which the macro's code must not be taken for.
#[allow(dead_code)]
mod std {}

#[test]
fn every_visibility() {
    keys::PUBLIC.sync_scope(1, || assert_eq!(keys::PUBLIC.get(), 1));
    keys::OF_THE_CRATE.sync_scope("x".to_owned(), || {
        keys::OF_THE_CRATE.with(|text| assert_eq!(text, "x"));
    });
    assert_eq!(keys::private(), [1; 4]);
}

#[test]
fn values_need_not_be_clone() {
    let value: Box<dyn Fn(u32) -> u32> = Box::new(|n| n + 1);
    let two = WITHOUT_SEMICOLON.sync_scope(value, || WITHOUT_SEMICOLON.with(|add| add(1)));
    assert_eq!(two, 2);
    assert_eq!(WITH_SEMICOLON.sync_scope(3, || WITH_SEMICOLON.get()), 3);
}

#[test]
fn inside_of_a_function() {
    const SIZE: usize = 2;
    gmp::task_local! {
        static LOCAL: [u8; SIZE];
        static OTHER: u8;
    }
    let seen = block_on(LOCAL.scope([1, 2], async {
        OTHER.scope(3, async { (LOCAL.get(), OTHER.get()) }).await
    }));
    assert_eq!(seen, ([1, 2], 3));
}

#[test]
fn many_declarations() {
    // More than the recursion limit of a crate.
    macro_rules! many {
        ($($x:tt)*) => {
            gmp::task_local! { $(static KEY: $x;)* }
        };
    }
    many!(u8);
    macro_rules! modules {
        ($($name:ident)*) => {
            gmp::task_local! { $(static $name: u8;)* }
            fn sum() -> u8 {
                0 $(+ $name.sync_scope(1, || $name.get()))*
            }
        };
    }
    modules!(A B C D E F G H I J K L M N O P Q R S T U V W X Y Z AA AB AC AD AE AF AG AH AI AJ AK AL
        AM AN AO AP AQ AR AS AT AU AV AW AX AY AZ BA BB BC BD BE BF BG BH BI BJ BK BL BM BN BO BP BQ
        BR BS BT BU BV BW BX BY BZ CA CB CC CD CE CF CG CH CI CJ CK CL CM CN CO CP CQ CR CS CT CU CV
        CW CX CY CZ DA DB DC DD DE DF DG DH DI DJ DK DL DM DN DO DP DQ DR DS DT DU DV DW DX DY DZ);
    assert_eq!(sum(), 130);
    assert_eq!(KEY.sync_scope(1, || KEY.get()), 1);
}
