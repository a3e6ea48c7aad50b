//! `#[main]` and `#[test]`: an `async fn` becomes a function that runs its body on a runtime.
//!
//! What is made of `async fn f(args) -> T { statements }`:
//!
//! ```text
//! fn f(args) -> T {
//!     let body = async { <hint: returns T> { statements } };
//!     return ::gmp::runtime::Builder::new_multi_thread()
//!         .enable_all().build().expect("…").block_on(body);
//! }
//! ```
//!
//! * The *hint* is a `return` that is never reached. It tells the compiler the type of the async
//!   block before it reads the statements, so a wrong type is reported where it stands in the
//!   body, and coercions (to `Box<dyn Error>`, say) work as they do in an `async fn`.
//! * The tokens that run the body carry the place of the body's last statement. What the hint
//!   cannot catch (it has no name for `impl Trait` and `!`) is reported there.
//! * When something is wrong, the function is made nevertheless, with the error beside it: tools
//!   that complete code while it is being typed go on working in the body.

mod args;
mod facade;
mod item;
#[cfg(test)]
mod tests;

pub(crate) use facade::Face;

use args::{Config, Flavor};
use item::Item;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Meta, Result, ReturnType, Type};

/// The two attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// The runtimes that the facade was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtimes {
    All,
    CurrentThread,
    None,
}

/// Which attribute was called, and through what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    face: Face,
    kind: Kind,
    runtimes: Runtimes,
}

impl Call {
    /// The attribute as the user knows it, for messages.
    fn attribute(self) -> String {
        let kind = match self.kind {
            Kind::Main => "main",
            Kind::Test => "test",
        };
        format!("{}::{kind}", self.face.name())
    }
}

/// Expands one of the attributes.
pub(crate) fn expand(
    face: Face,
    kind: Kind,
    runtimes: Runtimes,
    args: TokenStream,
    tokens: TokenStream,
) -> TokenStream {
    let call = Call {
        face,
        kind,
        runtimes,
    };
    if runtimes == Runtimes::None {
        let message = format!("`#[{}]` requires the feature `rt`", call.attribute());
        return Error::new(Span::call_site(), message).into_compile_error();
    }
    let item: Item = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return beside(tokens, error),
    };
    match check(call, &item).and_then(|()| Config::parse(call, args)) {
        Ok(config) => function(call, item, config),
        Err(error) => beside(function(call, item, Config::after_an_error()), error),
    }
}

fn beside(mut tokens: TokenStream, error: Error) -> TokenStream {
    tokens.extend(error.into_compile_error());
    tokens
}

/// Whether the attribute can stand on this function.
fn check(call: Call, item: &Item) -> Result<()> {
    let signature = &item.signature;
    match call.kind {
        Kind::Main if signature.ident == "main" && !signature.inputs.is_empty() => {
            return Err(Error::new_spanned(
                &signature.ident,
                "`main` cannot take arguments",
            ));
        }
        Kind::Test => {
            if let Some(second) = item.attributes().find(|attribute| is_test(attribute)) {
                return Err(Error::new_spanned(
                    second,
                    format!(
                        "this is a second test attribute beside `#[{}]`: remove one of the two",
                        call.attribute()
                    ),
                ));
            }
        }
        Kind::Main => {}
    }
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            format!(
                "`#[{}]` needs an `async fn`: the `async` is missing",
                call.attribute()
            ),
        ));
    }
    Ok(())
}

/// Whether the attribute is `#[test]`, by that name or by its path in the standard library.
fn is_test(attribute: &Attribute) -> bool {
    let Meta::Path(path) = &attribute.meta else {
        return false;
    };
    if path
        .segments
        .iter()
        .any(|segment| !segment.arguments.is_none())
    {
        return false;
    }
    let names: Vec<String> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => path.leading_colon.is_none(),
        // The third is the edition.
        ["core" | "std", "prelude", _, "test"] => true,
        _ => false,
    }
}

/// The function with its body run on a runtime.
fn function(call: Call, item: Item, config: Config) -> TokenStream {
    let (first, last) = item.last_statement();
    let at_first = Span::call_site().located_at(first);
    let runtime = runtime(call, &config, at_first);
    let output = output(&item);
    let block = match &output {
        Some(output) => hinted(output, output_place(&item), item.block()),
        None => item.block(),
    };
    // Seen by nothing that the user wrote.
    let body = quote_spanned!(Span::mixed_site()=> body);

    let mut statements = quote! {
        let #body = async #block;
    };
    let mut attribute = TokenStream::new();
    if call.kind == Kind::Test {
        attribute = quote!(#[::core::prelude::v1::test]);
        statements.extend(erased(&body, output));
    }
    // A `return`, not the value of the block: clippy would call the statement a unit value that
    // lacks its semicolon.
    statements.extend(quote_spanned! {Span::call_site().located_at(last)=>
        #[allow(
            clippy::diverging_sub_expression,
            clippy::expect_used,
            clippy::needless_return,
            clippy::unwrap_in_result
        )]
        {
            return #runtime.expect("failed to build the runtime").block_on(#body);
        }
    });
    item.with_body(attribute, statements)
}

/// The expression that builds the runtime.
fn runtime(call: Call, config: &Config, span: Span) -> TokenStream {
    let path = match &config.crate_path {
        Some(path) => path.to_token_stream(),
        None => call.face.path(span),
    };
    let new = match config.flavor {
        Flavor::MultiThread => quote_spanned!(span=> new_multi_thread),
        Flavor::CurrentThread | Flavor::Local => quote_spanned!(span=> new_current_thread),
    };
    let build = match config.flavor {
        Flavor::Local => {
            quote_spanned!(span=> build_local(::core::default::Default::default()))
        }
        _ => quote_spanned!(span=> build()),
    };
    let worker_threads = config
        .worker_threads
        .map(|count| quote_spanned!(span=> .worker_threads(#count)));
    let start_paused = config
        .start_paused
        .map(|paused| quote_spanned!(span=> .start_paused(#paused)));
    let name = config
        .name
        .as_ref()
        .map(|name| quote_spanned!(span=> .name(#name)));
    quote_spanned! {span=>
        #path::runtime::Builder::#new() #worker_threads #start_paused #name .enable_all().#build
    }
}

/// The type of the body where it can be written down inside of the function.
fn output(item: &Item) -> Option<TokenStream> {
    match &item.signature.output {
        ReturnType::Default => Some(quote!(())),
        ReturnType::Type(_, output) if is_nameable(output) => Some(output.to_token_stream()),
        ReturnType::Type(..) => None,
    }
}

/// Where the signature says what the function returns: behind its name if it says nothing.
fn output_place(item: &Item) -> Span {
    match &item.signature.output {
        ReturnType::Default => item.signature.ident.span(),
        output @ ReturnType::Type(..) => output.span(),
    }
}

/// The block behind a `return` that is never reached and tells the type of the async block.
///
/// That carries the place of the signature's return type, which the compiler then names as the
/// reason for the type it expected. The user's block stays a block of its own: clippy would call
/// items in it items after a statement.
fn hinted(output: &TokenStream, place: Span, block: TokenStream) -> TokenStream {
    let hint = quote_spanned! {Span::mixed_site().located_at(place)=>
        #[allow(
            unknown_lints,
            unreachable_code,
            unused_variables,
            clippy::diverging_sub_expression,
            clippy::let_unit_value,
            clippy::needless_return,
            clippy::unreachable
        )]
        if false {
            let output: #output = ::core::unreachable!();
            return output;
        }
    };
    quote! {{
        #hint
        #[allow(unused_braces)]
        #block
    }}
}

/// Pins the body and forgets its type: `block_on` is then compiled once for all tests of a crate.
/// Tests have no need of the speed that this may cost.
fn erased(body: &TokenStream, output: Option<TokenStream>) -> TokenStream {
    let coercion = output.map(|output| {
        quote! {
            let #body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = #output>> = #body;
        }
    });
    quote! {
        let #body = ::core::pin::pin!(#body);
        #coercion
    }
}

/// Whether the type can stand in a `let`: it is not `!` and has no `impl Trait` anywhere.
fn is_nameable(output: &Type) -> bool {
    fn has_impl(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => has_impl(group.stream()),
            TokenTree::Ident(ident) => ident == "impl",
            _ => false,
        })
    }
    !matches!(output, Type::Never(_)) && !has_impl(output.to_token_stream())
}
