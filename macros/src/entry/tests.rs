//! What the attributes make of functions and arguments, as tokens.
//!
//! Errors are compared together with their place: each case marks it in the source text.

use super::*;
use std::str::FromStr;

/// Expands `#[attribute(args)] item` through gmp, with all runtimes.
fn expanded(kind: Kind, args: &str, item: &str) -> String {
    expanded_by(Face::Gmp, kind, Runtimes::All, args, item)
}

fn expanded_by(face: Face, kind: Kind, runtimes: Runtimes, args: &str, item: &str) -> String {
    let args = TokenStream::from_str(args).expect("tokens");
    let item = TokenStream::from_str(item).expect("tokens");
    expand(face, kind, runtimes, args, item).to_string()
}

fn text(tokens: TokenStream) -> String {
    tokens.to_string()
}

/// The message and the marked text of the error that the arguments give.
fn argument_error(call: Call, args: &str) -> (String, String) {
    let tokens = TokenStream::from_str(args).expect("tokens");
    let error = Config::parse(call, tokens).err().expect(args);
    let marked = error.span().source_text().unwrap_or_default();
    (error.to_string(), marked)
}

fn call(kind: Kind) -> Call {
    Call {
        face: Face::Gmp,
        kind,
        runtimes: Runtimes::All,
    }
}

fn config(kind: Kind, args: &str) -> Config {
    Config::parse(call(kind), TokenStream::from_str(args).expect("tokens"))
        .unwrap_or_else(|error| panic!("{args}: {error}"))
}

/// Asserts that the expansion is the function made for no arguments at all, and one error.
fn assert_error_beside_the_item(output: &str, message: &str) {
    assert!(
        output.contains("new_current_thread"),
        "the item is missing: {output}"
    );
    assert!(output.contains("compile_error"), "no error in {output}");
    assert!(output.contains(message), "no {message:?} in {output}");
}

#[test]
fn main_runs_the_body_on_a_runtime_with_many_threads() {
    let output = expanded(
        Kind::Main,
        "",
        "#[cold] pub async fn main() -> u8 { first(); 1 }",
    );
    let expected = quote! {
        #[cold]
        pub fn main() -> u8 {
            let body = async {
                #[allow(
                    unknown_lints, unreachable_code, unused_variables,
                    clippy::diverging_sub_expression, clippy::let_unit_value,
                    clippy::needless_return, clippy::unreachable
                )]
                if false {
                    let output: u8 = ::core::unreachable!();
                    return output;
                }
                #[allow(unused_braces)]
                { first(); 1 }
            };
            #[allow(
                clippy::diverging_sub_expression, clippy::expect_used,
                clippy::needless_return, clippy::unwrap_in_result
            )]
            {
                return gmp::runtime::Builder::new_multi_thread().enable_all().build()
                    .expect("failed to build the runtime").block_on(body);
            }
        }
    };
    assert_eq!(output, text(expected));
}

#[test]
fn a_test_is_one_thread_by_default_and_its_body_loses_its_type() {
    let output = expanded(Kind::Test, "", "#[should_panic] async fn works() { a(); }");
    assert!(output.starts_with(&text(quote! {
        #[should_panic]
        #[::core::prelude::v1::test]
        fn works()
    })));
    assert!(output.contains(&text(quote! {
        let body = ::core::pin::pin!(body);
        let body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = ()>> = body;
    })));
    assert!(output.contains(&text(quote!(
        Builder::new_current_thread().enable_all().build()
    ))));
}

#[test]
fn every_argument_reaches_the_builder() {
    let output = expanded(
        Kind::Main,
        r#"flavor = "multi_thread", worker_threads = 3, name = "n", crate = "a::b""#,
        "async fn main() {}",
    );
    assert!(output.contains(&text(quote! {
        return a::b::runtime::Builder::new_multi_thread()
            .worker_threads(3usize).name("n").enable_all().build()
    })));
    let output = expanded(
        Kind::Test,
        r#"flavor = "local", start_paused = true"#,
        "async fn works() {}",
    );
    assert!(output.contains(&text(quote! {
        return gmp::runtime::Builder::new_current_thread()
            .start_paused(true).enable_all().build_local(::core::default::Default::default())
    })));
}

#[test]
fn the_face_decides_the_name() {
    let output = expanded_by(
        Face::Tokio,
        Kind::Main,
        Runtimes::All,
        "",
        "async fn main() {}",
    );
    assert!(output.contains(&text(quote!(
        return tokio::runtime::Builder::new_multi_thread()
    ))));
}

#[test]
fn arguments_generics_and_qualifiers_stay() {
    let head = "unsafe extern \"C\" fn f < T : Copy > (mut a : T , & b : & T) -> T where T : Send";
    let item = format!("{} {{ a }}", head.replace("unsafe", "async unsafe"));
    let output = expanded(Kind::Main, "", &item);
    let expected = text(TokenStream::from_str(head).expect("tokens"));
    assert!(output.starts_with(&expected), "{output}");
}

#[test]
fn a_type_without_a_name_gets_no_hint() {
    for output in [
        "!",
        "impl Display",
        "Result<impl Display, E>",
        "(u8, impl Display)",
        "[impl Display; 2]",
        "Box<dyn Iterator<Item = impl Display>>",
        "Box<dyn Fn(u8) -> impl Display>",
    ] {
        let item = format!("async fn f() -> {output} {{ body() }}");
        for kind in [Kind::Main, Kind::Test] {
            let output = expanded(kind, "", &item);
            assert!(output.contains("let body = async { body () }"), "{output}");
            assert!(!output.contains("dyn :: core :: future"), "{output}");
            assert!(!output.contains("compile_error"), "{output}");
        }
    }
}

#[test]
fn a_type_with_a_name_gets_one() {
    for output in [
        "Result<(), Box<dyn Error>>",
        "&'a [u8]",
        "(u8, [u16; 4])",
        "fn(u8) -> u8",
        "<T as Iterator>::Item",
        "std::io::Result<()>",
        "Box<dyn Fn(u8)>",
        "Array<{ N + 1 }>",
    ] {
        let expected = format!("let output: {output} =").replace(' ', "");
        let output = expanded(
            Kind::Main,
            "",
            &format!("async fn f() -> {output} {{ body() }}"),
        );
        assert!(output.replace(' ', "").contains(&expected), "{output}");
    }
}

#[test]
fn defaults_are_tokios() {
    let main = config(Kind::Main, "");
    assert_eq!(main.flavor, Flavor::MultiThread);
    assert_eq!(
        (main.worker_threads, main.start_paused, main.name),
        (None, None, None)
    );
    assert!(main.crate_path.is_none());
    assert_eq!(config(Kind::Test, "").flavor, Flavor::CurrentThread);
}

#[test]
fn arguments_are_read_in_any_order_with_a_comma_at_the_end() {
    let config = config(
        Kind::Test,
        "worker_threads = 0x2, flavor = \"multi_thread\",",
    );
    assert_eq!(
        (config.flavor, config.worker_threads),
        (Flavor::MultiThread, Some(2))
    );
}

#[test]
fn a_wrong_value_is_marked() {
    let cases = [
        ("flavor = 1", "1", "the value of `flavor` must be a string"),
        (
            "flavor = \"green\"",
            "\"green\"",
            "no such runtime flavor: `green`",
        ),
        (
            "flavor = \"single_thread\"",
            "\"single_thread\"",
            "is called `current_thread`",
        ),
        (
            "flavor = \"basic_scheduler\"",
            "\"basic_scheduler\"",
            "is called `current_thread`",
        ),
        (
            "flavor = \"threaded_scheduler\"",
            "\"threaded_scheduler\"",
            "is called `multi_thread`",
        ),
        (
            "worker_threads = \"4\"",
            "\"4\"",
            "the value of `worker_threads` must be an integer",
        ),
        ("worker_threads = 0", "0", "`worker_threads` may not be 0"),
        (
            "worker_threads = -1",
            "-1",
            "the value of `worker_threads` must be an integer: invalid digit",
        ),
        (
            "worker_threads = N",
            "N",
            "the value of `worker_threads` must be a literal",
        ),
        (
            "worker_threads = 99999999999999999999",
            "99999999999999999999",
            "must be an integer",
        ),
        (
            "start_paused = 1",
            "1",
            "the value of `start_paused` must be `true` or `false`",
        ),
        (
            "crate = 1",
            "1",
            "the value of `crate` must be a path in a string",
        ),
        (
            "crate = \"a b\"",
            "\"a b\"",
            "the value of `crate` must be a path: \"a b\"",
        ),
        (
            "crate = gmp",
            "gmp",
            "the value of `crate` must be a literal",
        ),
        (
            "name = true",
            "true",
            "the value of `name` must be a string",
        ),
        (
            "unhandled_panic = true",
            "true",
            "the value of `unhandled_panic` must be a string",
        ),
    ];
    for (args, place, message) in cases {
        for kind in [Kind::Main, Kind::Test] {
            let (found, marked) = argument_error(call(kind), args);
            assert!(found.contains(message), "{args}: {found}");
            assert_eq!(marked, place, "{args}");
        }
    }
}

#[test]
fn a_wrong_option_is_marked() {
    let cases = [
        (
            "foo",
            "foo",
            "unknown option `foo`; expected one of `flavor`",
        ),
        (
            "foo = 1",
            "foo",
            "unknown option `foo`; expected one of `flavor`",
        ),
        ("foo::bar", "foo", "expected the name of an option"),
        ("foo::bar = 1", "foo", "expected the name of an option"),
        (
            "core_threads = 2",
            "core_threads",
            "`core_threads` is called `worker_threads` now",
        ),
        ("flavor(\"local\")", "flavor", "without parentheses"),
        ("flavor", "flavor", "the option `flavor` requires a value"),
        ("crate", "crate", "the option `crate` requires a value"),
        (
            "start_paused",
            "start_paused",
            "the option `start_paused` requires a value",
        ),
    ];
    for (args, place, message) in cases {
        let (found, marked) = argument_error(call(Kind::Main), args);
        assert!(found.contains(message), "{args}: {found}");
        assert!(marked.starts_with(place), "{args}: {marked}");
    }
}

#[test]
fn a_flavor_without_its_name_is_told_how_to_write_it() {
    for (args, flavor) in [
        ("multi_thread", "multi_thread"),
        ("threaded_scheduler", "multi_thread"),
        ("current_thread", "current_thread"),
        ("basic_scheduler", "current_thread"),
        ("single_threaded", "current_thread"),
        ("local", "local"),
    ] {
        let (found, marked) = argument_error(call(Kind::Main), args);
        assert!(
            found.contains(&format!("`#[gmp::main(flavor = \"{flavor}\")]`")),
            "{found}"
        );
        assert_eq!(marked, args);
        let (found, _) = argument_error(call(Kind::Test), args);
        assert!(found.contains("`#[gmp::test("), "{found}");
    }
}

#[test]
fn an_option_set_twice_is_marked_at_the_second() {
    for (first, second) in [
        ("flavor = \"local\"", "\"multi_thread\""),
        ("worker_threads = 1", "2"),
        ("start_paused = true", "false"),
        ("name = \"a\"", "\"b\""),
        ("crate = \"a\"", "\"b\""),
        ("unhandled_panic = \"ignore\"", "\"shutdown_runtime\""),
    ] {
        let name = first.split(' ').next().expect("a name");
        let (found, marked) =
            argument_error(call(Kind::Main), &format!("{first}, {name} = {second}"));
        assert_eq!(found, format!("`{name}` is set more than once"));
        assert_eq!(marked, second);
    }
}

#[test]
fn options_that_do_not_fit_the_flavor_are_marked() {
    let cases = [
        (Kind::Test, "worker_threads = 2", "2", "multi_thread"),
        (
            Kind::Main,
            "flavor = \"current_thread\", worker_threads = 2",
            "2",
            "multi_thread",
        ),
        (
            Kind::Main,
            "worker_threads = 2, flavor = \"local\"",
            "2",
            "multi_thread",
        ),
        (Kind::Main, "start_paused = true", "true", "current_thread"),
        (
            Kind::Test,
            "start_paused = false, flavor = \"multi_thread\"",
            "false",
            "current_thread",
        ),
        (
            Kind::Main,
            "unhandled_panic = \"ignore\"",
            "\"ignore\"",
            "current_thread",
        ),
    ];
    for (kind, args, place, flavor) in cases {
        let (found, marked) = argument_error(call(kind), args);
        assert!(
            found.contains(&format!("requires the runtime flavor `{flavor}`")),
            "{found}"
        );
        assert!(
            found.contains(&format!("(flavor = \"{flavor}\")]`")),
            "{found}"
        );
        assert_eq!(marked, place, "{args}");
    }
}

#[test]
fn unhandled_panic_is_refused_but_checked() {
    let (found, marked) = argument_error(call(Kind::Test), "unhandled_panic = \"ignore\"");
    assert!(found.contains("tokio's unstable interface"), "{found}");
    assert_eq!(marked, "\"ignore\"");
    let (found, _) = argument_error(call(Kind::Test), "unhandled_panic = \"explode\"");
    assert!(
        found.contains("no such behavior on unhandled panics: `explode`"),
        "{found}"
    );
}

#[test]
fn the_feature_that_is_missing_is_named() {
    let one_thread = Call {
        runtimes: Runtimes::CurrentThread,
        ..call(Kind::Main)
    };
    let (found, _) = argument_error(one_thread, "");
    assert!(found.contains("by default, but the feature `rt-multi-thread` is disabled"));
    let (found, marked) = argument_error(one_thread, "flavor = \"multi_thread\"");
    assert!(found.contains("`multi_thread` requires the feature `rt-multi-thread`"));
    assert_eq!(marked, "\"multi_thread\"");
    assert_eq!(
        config(Kind::Main, "flavor = \"current_thread\"").flavor,
        Flavor::CurrentThread
    );

    let output = expanded_by(
        Face::Tokio,
        Kind::Test,
        Runtimes::None,
        "",
        "async fn works() {}",
    );
    assert!(
        output.contains("`#[tokio::test]` requires the feature `rt`"),
        "{output}"
    );
    let output = expanded_by(
        Face::Gmp,
        Kind::Test,
        Runtimes::CurrentThread,
        "",
        "async fn f() {}",
    );
    assert!(!output.contains("compile_error"), "{output}");
}

#[test]
fn an_error_leaves_the_function_in_place() {
    let output = expanded(
        Kind::Main,
        "flavor = \"green\", name = \"n\"",
        "async fn main() { a() }",
    );
    assert_error_beside_the_item(&output, "no such runtime flavor");
    assert!(output.contains("{ a () }"), "{output}");
    assert!(!output.contains(".name"), "{output}");
}

#[test]
fn arguments_that_cannot_be_read_are_an_error() {
    for args in ["= 1", "flavor = ", "\"local\"", "1"] {
        let output = expanded(Kind::Main, args, "async fn main() {}");
        assert_error_beside_the_item(&output, "");
    }
}

#[test]
fn main_takes_no_arguments_but_others_may() {
    let output = expanded(Kind::Main, "", "async fn main(a: u8) {}");
    assert_error_beside_the_item(&output, "`main` cannot take arguments");
    let output = expanded(Kind::Main, "", "async fn other(a: u8) {}");
    assert!(!output.contains("compile_error"), "{output}");
}

#[test]
fn the_async_must_not_be_missing() {
    let output = expanded(Kind::Main, "", "fn main() {}");
    assert_error_beside_the_item(&output, "`#[gmp::main]` needs an `async fn`");
    let output = expanded_by(Face::Tokio, Kind::Test, Runtimes::All, "", "fn works() {}");
    assert_error_beside_the_item(&output, "`#[tokio::test]` needs an `async fn`");
}

#[test]
fn what_is_no_function_stays_beside_the_error() {
    let output = expanded(Kind::Main, "", "struct S ;");
    assert!(output.starts_with("struct S ;"), "{output}");
    assert!(output.contains("compile_error"), "{output}");
}

#[test]
fn a_second_test_attribute_is_found_under_all_its_names() {
    for attribute in [
        "#[test]",
        "#[core::prelude::v1::test]",
        "#[::core::prelude::v1::test]",
        "#[std::prelude::rust_2021::test]",
        "#[::std::prelude::rust_2024::test]",
    ] {
        let item = format!("{attribute} async fn works() {{}}");
        let output = expanded(Kind::Test, "", &item);
        assert_error_beside_the_item(&output, "a second test attribute beside `#[gmp::test]`");
        // Not an error for `main`.
        let output = expanded(Kind::Main, "", &item);
        assert!(!output.contains("compile_error"), "{output}");
    }
}

#[test]
fn other_attributes_are_no_test_attributes() {
    for attribute in [
        "#[test_case(1)]",
        "#[rstest::test]",
        "#[::test]",
        "#[test(x)]",
        "#[prelude::v1::test]",
        "#[alloc::prelude::v1::test]",
    ] {
        let output = expanded(
            Kind::Test,
            "",
            &format!("{attribute} async fn works() {{}}"),
        );
        assert!(!output.contains("compile_error"), "{attribute}: {output}");
    }
}

#[test]
fn the_tokens_that_run_the_body_stand_at_its_last_statement() {
    let source = "async fn f() -> ! {\n    first();\n    second()\n}";
    let output = expand(
        Face::Gmp,
        Kind::Main,
        Runtimes::All,
        TokenStream::new(),
        TokenStream::from_str(source).expect("tokens"),
    );
    let place = place_of(output, "block_on").expect("block_on").start();
    assert_eq!((place.line, place.column), (3, 10));
}

#[test]
fn the_hint_stands_at_the_return_type() {
    let source = "async fn f()\n-> u8 {\n    first();\n    second()\n}";
    let output = expand(
        Face::Gmp,
        Kind::Main,
        Runtimes::All,
        TokenStream::new(),
        TokenStream::from_str(source).expect("tokens"),
    );
    let place = place_of(output, "output").expect("output").start();
    assert_eq!((place.line, place.column), (2, 0));

    let source = "async fn f() {\n    first()\n}";
    let output = expand(
        Face::Gmp,
        Kind::Main,
        Runtimes::All,
        TokenStream::new(),
        TokenStream::from_str(source).expect("tokens"),
    );
    let place = place_of(output, "output").expect("output").start();
    assert_eq!((place.line, place.column), (1, 9));
}

/// The place of the first identifier of that name, in depth-first order.
fn place_of(tokens: TokenStream, name: &str) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        proc_macro2::TokenTree::Group(group) => place_of(group.stream(), name),
        proc_macro2::TokenTree::Ident(ident) if ident == name => Some(ident.span()),
        _ => None,
    })
}
