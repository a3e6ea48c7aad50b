//! `#[gmp::main]` and `#[gmp::test]`: on every kind of function, and without warnings.
//!
//! What they make of wrong arguments is tested in the crate gmp-macros, as tokens.

#![deny(warnings)]
#![allow(clippy::multiple_bound_locations)]

use std::error::Error;
use std::fmt::{self, Display};

use gmp::runtime::Handle;

/// Whether the code runs on a runtime.
fn on_a_runtime() -> bool {
    Handle::try_current().is_ok()
}

#[gmp::test]
async fn a_test_runs_on_a_runtime() {
    assert!(on_a_runtime());
    assert_eq!(gmp::spawn(async { 1 }).await.unwrap(), 1);
}

#[gmp::test]
async fn a_test_and_its_tasks_share_one_thread() {
    let here = std::thread::current().id();
    for _ in 0..10 {
        let there = gmp::spawn(async { std::thread::current().id() }).await;
        assert_eq!(there.unwrap(), here);
    }
}

#[gmp::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_on_many_threads() {
    // The thread of `block_on` waits in a blocking call; only another one can run the task.
    let (send, receive) = std::sync::mpsc::channel();
    gmp::spawn(async move { send.send(5).unwrap() });
    let waited = std::time::Duration::from_secs(30);
    assert_eq!(receive.recv_timeout(waited), Ok(5));
}

#[gmp::test(flavor = "current_thread")]
async fn a_test_with_a_flavor() {
    assert!(on_a_runtime());
}

mod under_its_own_name {
    use gmp::test;

    #[test]
    async fn the_attribute_may_be_imported() {
        assert!(super::on_a_runtime());
    }
}

mod shadowed {
    #![allow(dead_code, unused_imports)]
    /// Not the crate.
    mod gmp {}
    mod core {}
    mod std {}
    struct Builder;
    fn body() {}

    #[::gmp::test]
    async fn names_around_the_test_do_not_matter() {
        assert!(super::on_a_runtime());
    }
}

#[gmp::test]
#[should_panic(expected = "this is expected")]
async fn other_attributes_stay() {
    panic!("this is expected");
}

#[gmp::test]
async fn a_test_may_fail_with_an_error() -> Result<(), Box<dyn Error>> {
    let number: u8 = "7".parse()?;
    if number == 8 {
        return Err("eight".into());
    }
    Ok(())
}

#[gmp::test]
async fn a_test_may_be_empty() {}

#[gmp::main]
async fn sum(a: u32, mut b: u32, (c, d): (u32, u32)) -> u32 {
    b += 1;
    gmp::spawn(async {}).await.unwrap();
    a + b + c + d
}

#[test]
fn arguments_and_a_value() {
    assert_eq!(sum(1, 2, (3, 4)), 11);
}

#[gmp::main(flavor = "multi_thread", worker_threads = 2)]
async fn generic<'a, T: Clone + Display, const N: usize>(value: &'a [T; N]) -> (&'a T, String)
where
    T: Send + Sync,
{
    (&value[N - 1], value[0].to_string())
}

#[test]
fn generics_and_borrowed_values() {
    assert_eq!(generic(&["a", "b"]), (&"b", "a".to_owned()));
}

#[gmp::main(flavor = "current_thread")]
async fn anonymous(value: impl Display + 'static) -> impl Iterator<Item = char> {
    if on_a_runtime() {
        return value.to_string().chars().collect::<Vec<_>>().into_iter();
    }
    unreachable!("it runs on a runtime")
}

#[test]
fn impl_trait_on_both_sides() {
    assert_eq!(anonymous(12).collect::<String>(), "12");
}

#[gmp::main(flavor = "current_thread")]
async fn coerced(fail: u8) -> Result<u8, Box<dyn Error>> {
    let number = "3".parse::<u8>()?;
    match fail {
        0 => Ok(number),
        1 => Err("a text".into()),
        // As in an `async fn`, this becomes a `Box<dyn Error>` by itself.
        _ => Err(Box::new(fmt::Error)),
    }
}

#[test]
fn values_are_coerced_to_the_return_type() {
    assert_eq!(coerced(0).unwrap(), 3);
    assert_eq!(coerced(1).unwrap_err().to_string(), "a text");
    assert!(coerced(2).unwrap_err().is::<fmt::Error>());
}

#[gmp::main(flavor = "current_thread")]
async fn boxed() -> Box<dyn Fn(u32) -> u32> {
    Box::new(|n| n + 1)
}

#[test]
fn a_closure_is_coerced_too() {
    assert_eq!(boxed()(1), 2);
}

#[gmp::main]
async fn diverges() -> ! {
    panic!("on purpose")
}

#[gmp::main]
async fn diverges_in_an_error() -> std::io::Result<()> {
    panic!("on purpose")
}

#[test]
fn functions_that_do_not_return() {
    let message = |caught: Box<dyn std::any::Any + Send>| *caught.downcast::<&str>().unwrap();
    let caught = std::panic::catch_unwind(|| -> () { diverges() }).unwrap_err();
    assert_eq!(message(caught), "on purpose");
    let caught = std::panic::catch_unwind(diverges_in_an_error).unwrap_err();
    assert_eq!(message(caught), "on purpose");
}

#[gmp::test]
#[allow(unreachable_code)]
async fn code_behind_a_return() -> std::io::Result<()> {
    return Ok(());
    panic!("not reached")
}

trait Runs {
    fn run(self) -> u8;
    fn number(&self) -> u8;
}

impl Runs for u8 {
    #[gmp::main]
    async fn run(self) -> u8 {
        self.number() + 1
    }

    fn number(&self) -> u8 {
        *self
    }
}

struct Owner(String);

impl Owner {
    #[gmp::main]
    async fn push(&mut self, more: &str) -> &mut Self {
        self.0.push_str(more);
        self
    }

    #[gmp::main]
    async fn into_inner(self) -> String {
        self.0
    }
}

#[test]
fn methods_of_types_and_traits() {
    assert_eq!(4_u8.run(), 5);
    let mut owner = Owner("a".to_owned());
    owner.push("b").push("c");
    assert_eq!(owner.into_inner(), "abc");
}

#[gmp::main]
async unsafe fn dangerous() -> u8 {
    #![inline]
    1
}

#[test]
fn qualifiers_and_inner_attributes_stay() {
    // SAFETY: it asks for nothing.
    assert_eq!(unsafe { dangerous() }, 1);
}

#[rustfmt::skip]
#[gmp::main]
async fn on_one_line() { assert!(on_a_runtime()) }

#[rustfmt::skip]
#[gmp::test]
async fn a_test_on_one_line() { on_one_line_is_fine() }

fn on_one_line_is_fine() {
    std::thread::spawn(on_one_line).join().unwrap();
}

/// Bodies that end in every way, under the lints that look at the end.
pub mod strict {
    #![deny(clippy::all, clippy::pedantic, unused_qualifications)]
    #![allow(
        missing_docs,
        clippy::must_use_candidate,
        clippy::no_effect_underscore_binding
    )]

    #[gmp::main]
    pub async fn ends_with_a_let() {
        let _x = 1;
    }

    #[gmp::main]
    pub async fn ends_with_an_item() {
        fn _f() {}
    }

    #[gmp::main]
    pub async fn ends_with_a_semicolon() {
        super::on_a_runtime();
    }

    #[gmp::main]
    pub async fn begins_with_an_item() -> u8 {
        const ONE: u8 = 1;
        ONE
    }

    #[gmp::main]
    pub async fn is_empty() {
        // Nothing.
    }

    #[gmp::test]
    async fn they_run() {
        let others = || {
            ends_with_a_let();
            ends_with_an_item();
            ends_with_a_semicolon();
            is_empty();
            begins_with_an_item()
        };
        assert_eq!(std::thread::spawn(others).join().ok(), Some(1));
    }
}

/// The attribute comes out of a macro, and so does the body.
mod from_a_macro {
    macro_rules! make {
        (async fn $name:ident() -> $output:ty $body:block) => {
            #[gmp::main]
            async fn $name() -> $output {
                $body
            }
            mod in_a_test {
                #[gmp::test]
                async fn $name() {
                    let _: $output = $body;
                }
            }
        };
    }

    make!(
        async fn seven() -> u8 {
            7
        }
    );

    #[test]
    fn it_works() {
        assert_eq!(seven(), 7);
    }
}

/// The name of the crate can be given.
mod renamed {
    mod deep {
        pub(super) use ::gmp as other;
    }
    use ::gmp as short;
    #[allow(unused_imports)]
    use std as gmp;

    #[short::main(crate = "short")]
    async fn by_an_import() -> u8 {
        1
    }

    #[deep::other::test(crate = "deep::other")]
    async fn by_a_path() {
        assert!(super::on_a_runtime());
    }

    #[short::test(crate = "self::deep::other", flavor = "current_thread")]
    async fn by_a_path_with_self() {
        assert_eq!(std::thread::spawn(by_an_import).join().unwrap(), 1);
    }
}

#[test]
fn a_runtime_inside_of_a_runtime_panics() {
    #[gmp::main(flavor = "current_thread")]
    async fn inner() {}
    #[gmp::main(flavor = "current_thread")]
    async fn outer() {
        inner();
    }
    let caught = std::panic::catch_unwind(outer).unwrap_err();
    let message = caught.downcast_ref::<String>().map(String::as_str);
    let message = message.or(caught.downcast_ref::<&str>().copied()).unwrap();
    assert!(message.contains("runtime"), "{message}");
}

#[test]
fn the_future_of_main_need_not_be_send() {
    #[gmp::main]
    async fn local() -> u8 {
        let shared = std::rc::Rc::new(1);
        gmp::task::yield_now().await;
        *shared
    }
    assert_eq!(local(), 1);
}
