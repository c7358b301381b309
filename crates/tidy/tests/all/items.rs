//! Counts items that make code hard to follow: long files, scattered types, tuples as parameters, and
//! names that begin with "of".

use std::collections::{BTreeMap, BTreeSet};

use crate::excess::Found;
use crate::modules::programs;
use crate::tree::{Source, is_word_char};

/// Returns the lines of each file, without its tests.
pub(crate) fn lines(files: &[Source]) -> Vec<Found> {
    let files = files.iter().filter(|file| file.is_rust());
    let found = |file: &Source| {
        let number = file.production().lines().count();
        Found { place: file.path.clone(), number, detail: String::new() }
    };
    files.map(found).collect()
}

/// Returns the files with inherent impls of each type, which the file of its definition names.
pub(crate) fn impl_files(files: &[Source]) -> Vec<Found> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for program in programs(files) {
        for (module, file) in program.files() {
            let names: BTreeSet<_> = inherent_impls(file.code()).collect();
            for name in names {
                let Some(owner) = program.definition(module, &name) else { continue };
                let place = format!("{}:{}", owner.path, name.last().map_or("", |name| name));
                types.entry(place).or_default().push(file.path[program.root.len()..].to_owned());
            }
        }
    }
    types.iter().map(|(place, files)| Found::new(place, files)).collect()
}

/// Returns the paths of types in `impl Type {` and `impl<T> path::Type<T> where …`.
fn inherent_impls(code: &str) -> impl Iterator<Item = Vec<String>> {
    let heads = code.split("\nimpl").skip(1).filter(|rest| rest.starts_with(['<', ' ']));
    heads.filter_map(|rest| {
        let head = without_generics(rest.split('{').next()?.split("\nwhere").next()?);
        let path = head.split_whitespace().next()?;
        let is_inherent = !head.split_whitespace().any(|word| word == "for");
        is_inherent.then(|| path.split("::").map(str::to_owned).collect())
    })
}

/// Replaces everything between `<` and `>` by spaces.
fn without_generics(text: &str) -> String {
    let (mut depth, mut last) = (0, ' ');
    let plain = |c: char| {
        depth += i32::from(c == '<');
        let is_plain = depth == 0;
        depth -= i32::from(c == '>' && last != '-');
        last = c;
        if is_plain { c } else { ' ' }
    };
    text.chars().map(plain).collect()
}

/// Returns the functions of each crate that have tuples, or references to tuples, as parameters.
pub(crate) fn tuple_parameters(files: &[Source]) -> Vec<Found> {
    let functions = |file: &Source| -> Vec<String> {
        let functions = file.code().split("fn ").skip(1).flat_map(|function| {
            let (name, rest) = function.split_at(function.find(['<', '(']).unwrap_or(0));
            let tuples = parameters(rest).into_iter().filter(|it| is_tuple(it));
            tuples.map(|_| name.to_owned()).collect::<Vec<_>>()
        });
        functions.collect()
    };
    found_by_crate(by_crate(files.iter().filter(|file| file.is_production()), functions))
}

/// Returns the parameters of a function, with whose generics or parameters the text begins.
fn parameters(text: &str) -> Vec<&str> {
    let text = if text.starts_with('<') { parts(text).1 } else { text };
    if text.starts_with('(') { parts(text).0 } else { Vec::new() }
}

/// Returns the parts between the commas of the bracket with which the text begins, and the text
/// after the bracket.
fn parts(text: &str) -> (Vec<&str>, &str) {
    let (mut depth, mut begin, mut last) = (0, 1, ' ');
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if last == '-' || last == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        last = c;
        if depth == 0 || c == ',' && depth == 1 {
            parts.extend(Some(text[begin..at].trim()).filter(|part| !part.is_empty()));
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    (parts, &text[begin..])
}

fn is_tuple(parameter: &str) -> bool {
    let mut kind = parameter.split_once(": ").map_or("", |(_, kind)| kind);
    while let Some(rest) = kind.strip_prefix(['&', '\'']) {
        let word = rest.find([' ', '(']).filter(|_| kind.starts_with('\''));
        kind = rest[word.unwrap_or(0)..].trim_start().trim_start_matches("mut ");
    }
    parameter.starts_with('(') || kind.starts_with('(') && parts(kind).0.len() > 1
}

/// Returns the names of each crate that begin with `of_` or `is_of_`.
pub(crate) fn prefixed_names(files: &[Source]) -> Vec<Found> {
    let names = |file: &Source| -> Vec<String> {
        let words = file.code().split(|c| !is_word_char(c));
        let names = words.filter(|word| word.starts_with("of_") || word.starts_with("is_of_"));
        names.map(str::to_owned).collect()
    };
    let mut names = by_crate(files.iter().filter(|file| file.is_rust()), names);
    for names in names.values_mut() {
        names.sort();
        names.dedup();
    }
    found_by_crate(names)
}

/// Applies a function to the files of each crate.
fn by_crate<'a>(
    files: impl Iterator<Item = &'a Source>,
    names: impl Fn(&'a Source) -> Vec<String>,
) -> BTreeMap<&'a str, Vec<String>> {
    let mut crates: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for file in files {
        let place = file.path.split("/src/").next().unwrap_or_default();
        let place = file.crate_folder().unwrap_or(place);
        crates.entry(place).or_default().extend(names(file));
    }
    crates
}

fn found_by_crate(crates: BTreeMap<&str, Vec<String>>) -> Vec<Found> {
    crates.iter().map(|(place, names)| Found::new(place, names)).collect()
}

#[test]
fn parameters_that_are_tuples_are_counted() {
    for (function, expected) in [
        ("fn f((a, b): (&str, &str), c: u8) {}", 1),
        ("fn f<F: Fn(A, B) -> (C, D)>(a: &'a (u8, u8), b: F) {}", 1),
        ("fn f(\n    self,\n    a: &mut (A, B),\n    (b, c): &Pair,\n) {}", 2),
        ("fn f(a: &(dyn Fn(u8, u8) + Sync), b: (), c: Vec<(u8, u8)>, d: [(A, B); 2]) {}", 0),
        ("fn f() -> (A, B) { g(|(a, b): (A, B)| 1) }", 0),
    ] {
        let file = Source::new("crates/a/src/lib.rs", function);
        assert_eq!(tuple_parameters(&[file])[0].number, expected, "{function}");
    }
}

#[test]
fn types_are_known_by_their_definition() {
    let files = [
        ("lib", "mod a;\nmod b;\nmod c;\n"),
        ("a", "pub struct T<X>(X);\n\nimpl<X: Fn(u8) -> u8> T<X> {\n}\n"),
        (
            "b",
            "use crate::a::T;\n\nimpl<X> T<X>\nwhere\n    X: for<'a> Y<'a>,\n{\n}\nimpl Z for T {\n}\n",
        ),
        ("c", "struct T;\n\nimpl T {\n}\n\nimpl crate::a::T<u8> {\n}\n"),
    ];
    let files = files.map(|(name, text)| Source::new(&format!("crates/x/src/{name}.rs"), text));
    let found = impl_files(&files);
    let found: Vec<_> = found.iter().map(|it| (&*it.place, it.number)).collect();
    assert_eq!(found, [("crates/x/src/a.rs:T", 3), ("crates/x/src/c.rs:T", 1)]);
}
