//! Numbers for the branches of `join!`, whose macros cannot count by themselves.

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

/// Turns `path!{ head } [a] [b]` into `path!{ head 2 [0 a] [1 b] }`.
///
/// The items are groups in brackets at the end; whatever stands before the group in braces is
/// repeated.
pub(crate) fn number(input: TokenStream) -> TokenStream {
    let mut call: Vec<TokenTree> = Vec::new();
    let mut head = TokenStream::new();
    let mut items: Vec<Group> = Vec::new();
    for token in input {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => items.push(group),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                head = group.stream();
            }
            token => call.push(token),
        }
    }
    let mut body = head;
    body.extend([TokenTree::from(Literal::usize_unsuffixed(items.len()))]);
    body.extend(items.into_iter().enumerate().map(numbered));
    call.push(Group::new(Delimiter::Brace, body).into());
    call.into_iter().collect()
}

fn numbered((index, item): (usize, Group)) -> TokenTree {
    let mut content = TokenStream::from(TokenTree::from(Literal::usize_unsuffixed(index)));
    content.extend(item.stream());
    let mut group = Group::new(Delimiter::Bracket, content);
    group.set_span(item.span());
    group.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn items_are_numbered_and_counted() {
        let output = number(quote!(a::b!{ mode = x; } [first()] [second, third]));
        assert_eq!(
            output.to_string(),
            quote!(a::b! { mode = x; 2 [0 first()] [1 second, third] }).to_string()
        );
    }

    #[test]
    fn no_item_is_zero_items() {
        assert_eq!(
            number(quote!(m! { x })).to_string(),
            quote!(m! { x 0 }).to_string()
        );
    }

    #[test]
    fn there_is_no_limit() {
        let items = (0..1_000).map(|_| quote!([x]));
        let output = number(quote!(m!{} #(#items)*)).to_string();
        assert!(output.contains("1000"), "the count");
        assert!(output.contains("[999 x]"), "the last index");
    }
}
