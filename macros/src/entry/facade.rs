//! Under which name the user's package knows the crate.
//!
//! An attribute macro has no `$crate`: the code it makes has to name the crate as the package being
//! compiled does. The manifest says how. Which dependency is looked for first depends on the face
//! that the attribute came through: a manifest may hold both gmp and the stand-in for tokio, and
//! only one of them may be switched on.

use proc_macro_crate::FoundCrate;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;

/// The crate through which the user reached the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// gmp itself, under its own name or renamed in the manifest.
    Gmp,
    /// The package `tokio` that stands in for the original.
    Tokio,
}

impl Face {
    /// The name of the package, and what the user calls it in the absence of other information.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Face::Gmp => "gmp",
            Face::Tokio => "tokio",
        }
    }

    /// The path of the crate, for code at `span`.
    pub(crate) fn path(self, span: Span) -> TokenStream {
        self.path_with(span, |package| proc_macro_crate::crate_name(package).ok())
    }

    fn path_with(self, span: Span, find: impl Fn(&str) -> Option<FoundCrate>) -> TokenStream {
        let packages = match self {
            Face::Gmp => ["gmp", "tokio"],
            Face::Tokio => ["tokio", "gmp"],
        };
        for package in packages {
            let name = match find(package) {
                // Tests, examples and documentation of the package itself see it as a crate.
                Some(FoundCrate::Itself) => package.to_owned(),
                Some(FoundCrate::Name(name)) => name,
                None => continue,
            };
            if let Some(name) = identifier(&name, span) {
                return quote_spanned!(span=> ::#name);
            }
        }
        // No manifest, or none that says anything: a build script, a crate that gets at the
        // facade through another one, a build without cargo. Without the leading colons the name
        // is also found where the user has imported it.
        let name = Ident::new(self.name(), span);
        quote_spanned!(span=> #name)
    }
}

fn identifier(name: &str, span: Span) -> Option<Ident> {
    let mut identifier = syn::parse_str::<Ident>(name).ok()?;
    identifier.set_span(span);
    Some(identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(face: Face, manifest: &[(&str, FoundCrate)]) -> String {
        face.path_with(Span::call_site(), |package| {
            manifest
                .iter()
                .find(|(name, _)| *name == package)
                .map(|(_, found)| found.clone())
        })
        .to_string()
        .replace(' ', "")
    }

    fn named(name: &str) -> FoundCrate {
        FoundCrate::Name(name.to_owned())
    }

    #[test]
    fn the_key_of_the_dependency_is_the_name() {
        assert_eq!(path(Face::Gmp, &[("gmp", named("gmp"))]), "::gmp");
        assert_eq!(path(Face::Gmp, &[("gmp", named("tokio"))]), "::tokio");
        assert_eq!(path(Face::Gmp, &[("gmp", named("my_rt"))]), "::my_rt");
        assert_eq!(path(Face::Tokio, &[("tokio", named("tokio"))]), "::tokio");
        assert_eq!(path(Face::Tokio, &[("tokio", named("tokio1"))]), "::tokio1");
    }

    #[test]
    fn each_face_looks_for_its_own_package_first() {
        let both = [("gmp", named("gmp")), ("tokio", named("tokio"))];
        assert_eq!(path(Face::Gmp, &both), "::gmp");
        assert_eq!(path(Face::Tokio, &both), "::tokio");
    }

    #[test]
    fn the_other_package_is_better_than_none() {
        assert_eq!(path(Face::Gmp, &[("tokio", named("tokio"))]), "::tokio");
        assert_eq!(path(Face::Tokio, &[("gmp", named("tokio"))]), "::tokio");
    }

    #[test]
    fn the_package_itself_is_a_crate_to_its_tests() {
        assert_eq!(path(Face::Gmp, &[("gmp", FoundCrate::Itself)]), "::gmp");
        assert_eq!(
            path(Face::Tokio, &[("tokio", FoundCrate::Itself)]),
            "::tokio"
        );
    }

    #[test]
    fn without_a_manifest_the_plain_name_is_used() {
        assert_eq!(path(Face::Gmp, &[]), "gmp");
        assert_eq!(path(Face::Tokio, &[]), "tokio");
        // A key that cannot be written in Rust.
        assert_eq!(path(Face::Gmp, &[("gmp", named("fn"))]), "gmp");
    }

    #[test]
    fn the_manifest_of_this_package_is_read_without_an_error() {
        // It depends on neither.
        assert_eq!(Face::Gmp.path(Span::call_site()).to_string(), "gmp");
    }
}
