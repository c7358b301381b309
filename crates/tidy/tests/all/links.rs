//! Checks that the links between pages, and the keys of sources such as `[Haystack10]`, are valid.

use std::path::Path;

use crate::tree::{Source, assert_none, files, root};

/// Returns the targets of the links of a page that lead to this repository, with their fragments.
pub(crate) fn targets(text: &str) -> Vec<&str> {
    let mut in_block = false;
    let mut links = Vec::new();
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let after = line.split("](").skip(1).filter(|_| !in_block);
        links.extend(after.filter_map(|rest| rest.split([')', ' ']).next()));
    }
    links.retain(|link| !link.contains("://") && !link.starts_with("mailto:"));
    links
}

/// Returns the path of a link of a page, relative to the root of the repository.
pub(crate) fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the paths of the relative links of a page.
fn relative_links(text: &str) -> Vec<&str> {
    let paths = targets(text).into_iter().filter_map(|link| link.split('#').next());
    paths.filter(|path| !path.is_empty()).collect()
}

fn violations(files: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        let broken = |link: &&str| !exists(&folder.join(link));
        let links = relative_links(&file.text).into_iter().filter(broken);
        violations.extend(links.map(|link| format!("{}: broken link to {link}", file.path)));
    }
    violations
}

#[test]
fn relative_links_are_valid() {
    assert_none(&violations(files(), |path| root().join(path).exists()));
}

#[test]
fn broken_link_is_reported() {
    let page = "[a](there.md#part) [b](https://example.org) [c](#here)\n\
                ```\n[d](nowhere)\n```\n[`e`](gone.md)[f](sub/gone.md)\n";
    let exists = |path: &Path| path == Path::new("docs/there.md");
    let found = violations(&[Source::new("docs/a.md", page)], exists);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Returns keys such as `[Haystack10]`: letters, then a year or a number.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let brackets = text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    brackets.map(|key| key.trim_end_matches('\\')).filter(|key| {
        let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
        key.len() >= letters.len() + 2
            && letters.len() >= 3
            && letters.starts_with(|c: char| c.is_ascii_uppercase())
            && letters.chars().all(|c| c.is_ascii_alphabetic())
    })
}

fn unknown_keys(files: &[Source], sources: &str) -> Vec<String> {
    let known = |key: &str| sources.contains(&format!("\n| {key} |"));
    let unknown = |file: &Source| {
        let keys = keys(&file.text).filter(|key| !known(key));
        keys.map(|key| format!("{}: no [{key}] in docs/sources.md", file.path)).collect::<Vec<_>>()
    };
    files.iter().flat_map(unknown).collect()
}

#[test]
fn source_keys_are_known() {
    let sources = files().iter().find(|file| file.path == "docs/sources.md");
    assert_none(&unknown_keys(files(), sources.map_or("", |file| &file.text)));
}

#[test]
fn unknown_source_key_is_reported() {
    let key = concat!("[", "Unknown99]");
    let file = Source::new("crates/a/src/a.rs", &format!("//! {key} \\{key} [Vec8] [u8; 16]"));
    assert_eq!(unknown_keys(std::slice::from_ref(&file), "").len(), 2);
    assert_none(&unknown_keys(&[file], "\n| Unknown99 | it |"));
}
