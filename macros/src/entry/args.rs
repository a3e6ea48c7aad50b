//! The arguments of the attributes: reading them, and refusing what does not go together.
//!
//! An error points at the argument that it is about.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, Meta, MetaNameValue, Path, Result, Token};

use super::{Call, Kind, Runtimes};

/// The kinds of runtime that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    CurrentThread,
    MultiThread,
    /// A `current_thread` runtime whose tasks need not be `Send`.
    Local,
}

/// What the arguments say, after all checks.
pub(crate) struct Config {
    pub(crate) flavor: Flavor,
    pub(crate) worker_threads: Option<usize>,
    pub(crate) start_paused: Option<bool>,
    pub(crate) name: Option<String>,
    pub(crate) crate_path: Option<Path>,
}

impl Config {
    /// For the item that stands beside an error. It asks for nothing, so that it adds no errors of
    /// its own.
    pub(crate) fn after_an_error() -> Config {
        Config {
            flavor: Flavor::CurrentThread,
            worker_threads: None,
            start_paused: None,
            name: None,
            crate_path: None,
        }
    }

    /// Reads the tokens between the parentheses of the attribute.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place.
    pub(crate) fn parse(call: Call, args: TokenStream) -> Result<Config> {
        let mut given = Given::default();
        for arg in Punctuated::<Meta, Token![,]>::parse_terminated.parse2(args)? {
            match arg {
                Meta::NameValue(arg) => given.set(&arg)?,
                Meta::Path(path) => return Err(without_value(call, &path)),
                Meta::List(list) => {
                    return Err(Error::new_spanned(
                        list,
                        "arguments are written `name = value` here, without parentheses",
                    ));
                }
            }
        }
        given.check(call)
    }
}

const KNOWN: &str =
    "`flavor`, `worker_threads`, `start_paused`, `crate`, `unhandled_panic`, `name`";

/// A value and where it stands.
type Placed<T> = Option<(T, Span)>;

/// The arguments as they were read, each at most once.
#[derive(Default)]
struct Given {
    flavor: Placed<Flavor>,
    worker_threads: Placed<usize>,
    start_paused: Placed<bool>,
    name: Placed<String>,
    crate_path: Placed<Path>,
    unhandled_panic: Placed<()>,
}

impl Given {
    fn set(&mut self, arg: &MetaNameValue) -> Result<()> {
        let name = name_of(&arg.path)?;
        let Expr::Lit(ExprLit { lit, .. }) = &arg.value else {
            return Err(Error::new_spanned(
                &arg.value,
                format!("the value of `{name}` must be a literal"),
            ));
        };
        match name.as_str() {
            "flavor" => put(&mut self.flavor, &name, lit, flavor(lit)),
            "worker_threads" => put(&mut self.worker_threads, &name, lit, worker_threads(lit)),
            "start_paused" => put(&mut self.start_paused, &name, lit, boolean(lit)),
            "name" => put(&mut self.name, &name, lit, string(lit, "name")),
            "crate" => put(&mut self.crate_path, &name, lit, path(lit)),
            "unhandled_panic" => put(&mut self.unhandled_panic, &name, lit, unhandled_panic(lit)),
            "core_threads" => Err(Error::new_spanned(
                &arg.path,
                "`core_threads` is called `worker_threads` now",
            )),
            _ => Err(unknown(&arg.path, &name)),
        }
    }

    /// Whether the arguments go together, and with the runtimes that there are.
    fn check(self, call: Call) -> Result<Config> {
        let flavor = match self.flavor {
            Some((flavor, _)) => flavor,
            None if call.kind == Kind::Test => Flavor::CurrentThread,
            None => Flavor::MultiThread,
        };
        let needs = |option: &str, wanted: &str, place: Span| {
            let attribute = call.attribute();
            Error::new(
                place,
                format!(
                    "the option `{option}` requires the runtime flavor `{wanted}`: \
                     write `#[{attribute}(flavor = \"{wanted}\")]`"
                ),
            )
        };
        if flavor == Flavor::MultiThread {
            if let Some((_, place)) = self.start_paused {
                return Err(needs("start_paused", "current_thread", place));
            }
            if let Some((_, place)) = self.unhandled_panic {
                return Err(needs("unhandled_panic", "current_thread", place));
            }
            if call.runtimes == Runtimes::CurrentThread {
                return Err(no_multi_thread(self.flavor));
            }
        } else if let Some((_, place)) = self.worker_threads {
            return Err(needs("worker_threads", "multi_thread", place));
        }
        if let Some((_, place)) = self.unhandled_panic {
            return Err(Error::new(
                place,
                "the option `unhandled_panic` belongs to tokio's unstable interface, \
                 which gmp does not have",
            ));
        }
        Ok(Config {
            flavor,
            worker_threads: self.worker_threads.map(|(value, _)| value),
            start_paused: self.start_paused.map(|(value, _)| value),
            name: self.name.map(|(value, _)| value),
            crate_path: self.crate_path.map(|(value, _)| value),
        })
    }
}

fn put<T>(slot: &mut Placed<T>, name: &str, lit: &Lit, value: Result<T>) -> Result<()> {
    if slot.is_some() {
        return Err(Error::new(
            lit.span(),
            format!("`{name}` is set more than once"),
        ));
    }
    *slot = Some((value?, lit.span()));
    Ok(())
}

fn name_of(path: &Path) -> Result<String> {
    match path.get_ident() {
        Some(name) => Ok(name.to_string()),
        None => Err(Error::new_spanned(
            path,
            format!("expected the name of an option: {KNOWN}"),
        )),
    }
}

fn unknown(place: &Path, name: &str) -> Error {
    Error::new_spanned(
        place,
        format!("unknown option `{name}`; expected one of {KNOWN}"),
    )
}

/// An option without a value, or a flavor where an option should stand.
fn without_value(call: Call, path: &Path) -> Error {
    let name = match name_of(path) {
        Ok(name) => name,
        Err(error) => return error,
    };
    let attribute = call.attribute();
    let flavor = |flavor: &str| {
        Error::new_spanned(
            path,
            format!("the runtime flavor is set with `#[{attribute}(flavor = \"{flavor}\")]`"),
        )
    };
    match name.as_str() {
        "multi_thread" | "threaded_scheduler" => flavor("multi_thread"),
        "current_thread" | "basic_scheduler" | "single_threaded" => flavor("current_thread"),
        "local" => flavor("local"),
        "flavor" | "worker_threads" | "start_paused" | "crate" | "unhandled_panic" | "name" => {
            Error::new_spanned(path, format!("the option `{name}` requires a value"))
        }
        _ => unknown(path, &name),
    }
}

fn no_multi_thread(flavor: Placed<Flavor>) -> Error {
    match flavor {
        Some((_, place)) => Error::new(
            place,
            "the runtime flavor `multi_thread` requires the feature `rt-multi-thread`",
        ),
        None => Error::new(
            Span::call_site(),
            "the runtime flavor is `multi_thread` by default, \
             but the feature `rt-multi-thread` is disabled",
        ),
    }
}

fn flavor(lit: &Lit) -> Result<Flavor> {
    let renamed = |new: &str| {
        let message = format!("this runtime flavor is called `{new}`");
        Err(Error::new(lit.span(), message))
    };
    match string(lit, "flavor")?.as_str() {
        "current_thread" => Ok(Flavor::CurrentThread),
        "multi_thread" => Ok(Flavor::MultiThread),
        "local" => Ok(Flavor::Local),
        "single_thread" | "basic_scheduler" => renamed("current_thread"),
        "threaded_scheduler" => renamed("multi_thread"),
        other => Err(Error::new(
            lit.span(),
            format!(
                "no such runtime flavor: `{other}`; \
                 there are `current_thread`, `multi_thread` and `local`"
            ),
        )),
    }
}

fn worker_threads(lit: &Lit) -> Result<usize> {
    let Lit::Int(int) = lit else {
        return Err(expected(lit, "worker_threads", "an integer"));
    };
    match int.base10_parse() {
        Ok(0) => Err(Error::new(lit.span(), "`worker_threads` may not be 0")),
        Ok(count) => Ok(count),
        Err(error) => Err(Error::new(
            lit.span(),
            format!("the value of `worker_threads` must be an integer: {error}"),
        )),
    }
}

fn boolean(lit: &Lit) -> Result<bool> {
    match lit {
        Lit::Bool(value) => Ok(value.value),
        _ => Err(expected(lit, "start_paused", "`true` or `false`")),
    }
}

fn string(lit: &Lit, option: &str) -> Result<String> {
    match lit {
        Lit::Str(value) => Ok(value.value()),
        _ => Err(expected(lit, option, "a string")),
    }
}

fn path(lit: &Lit) -> Result<Path> {
    let Lit::Str(value) = lit else {
        return Err(expected(lit, "crate", "a path in a string"));
    };
    value.parse_with(Path::parse_mod_style).map_err(|_| {
        let message = format!("the value of `crate` must be a path: \"{}\"", value.value());
        Error::new(lit.span(), message)
    })
}

fn unhandled_panic(lit: &Lit) -> Result<()> {
    match string(lit, "unhandled_panic")?.as_str() {
        "ignore" | "shutdown_runtime" => Ok(()),
        other => Err(Error::new(
            lit.span(),
            format!(
                "no such behavior on unhandled panics: `{other}`; \
                 there are `ignore` and `shutdown_runtime`"
            ),
        )),
    }
}

fn expected(lit: &Lit, option: &str, what: &str) -> Error {
    Error::new(
        lit.span(),
        format!("the value of `{option}` must be {what}"),
    )
}
