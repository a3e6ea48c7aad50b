//! Patterns that only test: what is left of a pattern when it must not move or borrow mutably.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::{Lit, Pat};

/// The pattern with every `ref` and `mut` taken out of its bindings, and without reference patterns.
///
/// The value is matched through a shared reference. There the compiler sees through references by
/// itself, and since edition 2024 it refuses patterns that say so beside those that do not. Before a
/// constant it does not, so there the `&` stays.
///
/// What is no pattern comes back as it is: it stands where a pattern has to stand, so the compiler
/// reports it there, in better words.
pub(crate) fn match_only(tokens: TokenStream) -> TokenStream {
    match Pat::parse_multi_with_leading_vert.parse2(tokens.clone()) {
        Ok(mut pattern) => {
            strip(&mut pattern);
            pattern.into_token_stream()
        }
        Err(_) => tokens,
    }
}

fn strip(pattern: &mut Pat) {
    match pattern {
        Pat::Ident(binding) => {
            binding.by_ref = None;
            binding.mutability = None;
            if let Some((_, inner)) = &mut binding.subpat {
                strip(inner);
            }
        }
        Pat::Reference(reference) => {
            strip(&mut reference.pat);
            if !may_be_constant(&reference.pat) {
                *pattern = (*reference.pat).clone();
            }
        }
        Pat::Or(or) => or.cases.iter_mut().for_each(strip),
        Pat::Paren(paren) => strip(&mut paren.pat),
        Pat::Slice(slice) => slice.elems.iter_mut().for_each(strip),
        Pat::Struct(fields) => fields
            .fields
            .iter_mut()
            .for_each(|field| strip(&mut field.pat)),
        Pat::Tuple(tuple) => tuple.elems.iter_mut().for_each(strip),
        Pat::TupleStruct(tuple) => tuple.elems.iter_mut().for_each(strip),
        Pat::Type(typed) => strip(&mut typed.pat),
        // Literals, constants, paths, ranges, `_`, `..` and macros bind nothing that could be
        // seen here.
        _ => {}
    }
}

/// Whether the pattern may name a constant, whose type has to be matched exactly.
fn may_be_constant(pattern: &Pat) -> bool {
    match pattern {
        Pat::Path(_) | Pat::Macro(_) | Pat::Const(_) | Pat::Verbatim(_) => true,
        Pat::Lit(literal) => matches!(literal.lit, Lit::Str(_) | Lit::ByteStr(_) | Lit::CStr(_)),
        Pat::Ident(name) => {
            let name = name.ident.to_string();
            name.trim_start_matches('_').starts_with(char::is_uppercase)
        }
        Pat::Paren(paren) => may_be_constant(&paren.pat),
        Pat::Or(or) => or.cases.iter().any(may_be_constant),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn check(pattern: TokenStream, expected: TokenStream) {
        assert_eq!(match_only(pattern).to_string(), expected.to_string());
    }

    #[test]
    fn bindings_lose_ref_and_mut() {
        check(quote!(mut x), quote!(x));
        check(quote!(ref x), quote!(x));
        check(quote!(ref mut x), quote!(x));
        check(quote!(x), quote!(x));
        check(quote!(mut x @ Some(_)), quote!(x @ Some(_)));
        check(quote!(x @ Some(ref mut y)), quote!(x @ Some(y)));
    }

    #[test]
    fn every_place_where_a_pattern_may_nest_is_reached() {
        check(quote!(Some(mut x)), quote!(Some(x)));
        check(quote!((mut a, ref b)), quote!((a, b)));
        check(
            quote!([mut first, .., ref mut last]),
            quote!([first, .., last]),
        );
        check(quote!((mut a)), quote!((a)));
        check(
            quote!(Point { x: mut a, y: ref b, .. }),
            quote!(Point { x: a, y: b, .. }),
        );
        check(quote!(Point { mut x, ref y }), quote!(Point { x, y }));
        check(quote!(&mut x), quote!(x));
        check(quote!(&Some(mut x)), quote!(Some(x)));
        check(
            quote!(Ok(Some((mut a, [ref mut b])))),
            quote!(Ok(Some((a, [b])))),
        );
    }

    #[test]
    fn references_go_unless_they_stand_before_a_constant() {
        check(quote!(Some(&x)), quote!(Some(x)));
        check(quote!(Some(&5)), quote!(Some(5)));
        check(quote!((&mut Some(&x), y)), quote!((Some(x), y)));
        check(quote!(Some(&(LIMIT, x))), quote!(Some((LIMIT, x))));
        check(quote!(Some(&LIMIT)), quote!(Some(&LIMIT)));
        check(quote!(Some(&_LIMIT)), quote!(Some(&_LIMIT)));
        check(quote!(Some(&limits::LIMIT)), quote!(Some(&limits::LIMIT)));
        check(quote!(Some(&"text")), quote!(Some(&"text")));
        check(quote!(Some(&(1 | LIMIT))), quote!(Some(&(1 | LIMIT))));
        check(quote!(Some(&(mut x))), quote!(Some((x))));
    }

    #[test]
    fn alternatives_are_stripped_on_both_sides() {
        check(quote!(Ok(mut x) | Err(mut x)), quote!(Ok(x) | Err(x)));
        check(quote!(| Ok(ref x) | Err(ref x)), quote!(|Ok(x)| Err(x)));
        check(
            quote!(Some(Ok(mut x) | Err(mut x))),
            quote!(Some(Ok(x) | Err(x))),
        );
    }

    #[test]
    fn what_binds_nothing_stays() {
        for pattern in [
            quote!(_),
            quote!(1),
            quote!(-1),
            quote!(1..=5),
            quote!(Some(std::cmp::Ordering::Less)),
            quote!(None),
            quote!(()),
            quote!("text"),
            quote!(..),
        ] {
            check(pattern.clone(), pattern);
        }
    }

    #[test]
    fn what_is_no_pattern_comes_back() {
        check(quote!(fn foo), quote!(fn foo));
        check(quote!(a + b), quote!(a + b));
        check(quote!(), quote!());
    }
}
