//! The function that an attribute stands on, read only as far as needed.
//!
//! The body stays a list of tokens: parsing the statements would cost time in every build and fail
//! on code that only a macro or a later compiler understands.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Signature, Visibility, braced, token};

/// An `async fn` with its body unread.
pub(crate) struct Item {
    outer: Vec<Attribute>,
    inner: Vec<Attribute>,
    visibility: Visibility,
    /// The head of the function, `async` included until [`Item::with_body`].
    pub(crate) signature: Signature,
    brace: token::Brace,
    body: TokenStream,
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Item> {
        let outer = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = input.parse()?;
        let content;
        let brace = braced!(content in input);
        let inner = content.call(Attribute::parse_inner)?;
        Ok(Item {
            outer,
            inner,
            visibility,
            signature,
            brace,
            body: content.parse()?,
        })
    }
}

impl Item {
    /// The attributes outside and inside of the function.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.outer.iter().chain(&self.inner)
    }

    /// The body in its braces: a block with the spans of the source.
    pub(crate) fn block(&self) -> TokenStream {
        let mut block = TokenStream::new();
        self.brace
            .surround(&mut block, |block| block.extend(self.body.clone()));
        block
    }

    /// Where the last statement begins and ends, for errors that are about the value of the body;
    /// the place of the attribute when the body is empty.
    pub(crate) fn last_statement(&self) -> (Span, Span) {
        let mut first = None;
        let mut last = Span::call_site();
        let mut ended = true;
        for token in self.body.clone() {
            last = token.span();
            if ended {
                first = Some(last);
            }
            ended = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';');
        }
        (first.unwrap_or(last), last)
    }

    /// The function with other statements in its body, and `attribute` behind its own.
    ///
    /// Attributes from inside the body come outside, because the block they were written in is no
    /// longer the function's.
    pub(crate) fn with_body(self, attribute: TokenStream, statements: TokenStream) -> TokenStream {
        let mut tokens = TokenStream::new();
        tokens.append_all(self.outer);
        for mut attribute in self.inner {
            attribute.style = syn::AttrStyle::Outer;
            attribute.to_tokens(&mut tokens);
        }
        // Behind the others, so that the macros among them see that the function is a test.
        tokens.extend(attribute);
        self.visibility.to_tokens(&mut tokens);
        Signature {
            asyncness: None,
            ..self.signature
        }
        .to_tokens(&mut tokens);
        self.brace
            .surround(&mut tokens, |tokens| tokens.extend(statements));
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn item(tokens: TokenStream) -> Item {
        syn::parse2(tokens).expect("a function")
    }

    #[test]
    fn attributes_are_kept_in_order_and_inner_ones_come_out() {
        let item = item(quote! {
            /// Text.
            #[cold]
            pub(crate) async unsafe fn f<T: Copy>(mut a: T, (b, c): (u8, u8)) -> T where T: Send {
                #![inline]
                a
            }
        });
        assert_eq!(item.attributes().count(), 3);
        let output = item.with_body(quote!(#[last]), quote!(replaced()));
        let expected = quote! {
            /// Text.
            #[cold]
            #[inline]
            #[last]
            pub(crate) unsafe fn f<T: Copy>(mut a: T, (b, c): (u8, u8)) -> T where T: Send {
                replaced()
            }
        };
        assert_eq!(output.to_string(), expected.to_string());
    }

    #[test]
    fn the_body_is_not_read() {
        let item = item(quote!(async fn f() { this is @ not Rust; [yet] }));
        assert_eq!(
            item.block().to_string(),
            quote!({ this is @ not Rust; [yet] }).to_string()
        );
    }

    #[test]
    fn the_last_statement_is_found() {
        let source = "async fn f() {\n    let a = 1;\n    call(a)\n        .other();\n}";
        let item: Item = syn::parse_str(source).expect("a function");
        let (first, last) = item.last_statement();
        assert_eq!((first.start().line, first.start().column), (3, 4));
        assert_eq!((last.end().line, last.end().column), (4, 17));
    }

    #[test]
    fn a_value_at_the_end_is_the_last_statement() {
        let item: Item =
            syn::parse_str("async fn f() -> u8 {\n    a();\n    1\n}").expect("a function");
        let (first, last) = item.last_statement();
        assert_eq!((first.start().line, last.start().line), (3, 3));
    }

    #[test]
    fn an_empty_body_has_no_statement() {
        item(quote!(
            async fn f() {}
        ))
        .last_statement();
    }

    #[test]
    fn what_is_no_function_is_refused() {
        assert!(
            syn::parse2::<Item>(quote!(
                struct S;
            ))
            .is_err()
        );
        assert!(
            syn::parse2::<Item>(quote!(
                async fn f();
            ))
            .is_err()
        );
    }
}
