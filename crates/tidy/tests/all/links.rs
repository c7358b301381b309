//! Links between pages lead somewhere, and so do keys of sources.

use std::path::Path;

use crate::tree::{Source, assert_none, files, root};

/// The targets of the links of a page that point into the tree.
fn relative_links(text: &str) -> Vec<&str> {
    let mut in_block = false;
    let mut links = Vec::new();
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let after = line.split("](").skip(1).filter(|_| !in_block);
        links.extend(after.filter_map(|rest| rest.split([')', '#', ' ']).next()));
    }
    links.retain(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:"));
    links
}

fn complaints(files: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        let broken = |link: &&str| !exists(&folder.join(link));
        let links = relative_links(&file.text).into_iter().filter(broken);
        complaints.extend(links.map(|link| format!("{}: no {link}", file.path)));
    }
    complaints
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    assert_none(&complaints(files(), |path| root().join(path).exists()));
}

#[test]
fn a_link_to_nowhere_is_noticed() {
    let page = "[a](there.md#part) [b](https://example.org) [c](#here)\n\
                ```\n[d](nowhere)\n```\n[`e`](gone.md)[f](sub/gone.md)\n";
    let exists = |path: &Path| path == Path::new("docs/there.md");
    let found = complaints(&[Source::new("docs/a.md", page)], exists);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Keys such as `[Haystack10]`: letters, then a year or a number.
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
fn every_key_of_a_source_is_known() {
    let sources = files().iter().find(|file| file.path == "docs/sources.md");
    assert_none(&unknown_keys(files(), sources.map_or("", |file| &file.text)));
}

#[test]
fn an_unknown_key_of_a_source_is_noticed() {
    let key = concat!("[", "Nobody99]");
    let file = Source::new("crates/a/src/a.rs", &format!("//! {key} \\{key} [Vec8] [u8; 16]"));
    assert_eq!(unknown_keys(std::slice::from_ref(&file), "").len(), 2);
    assert_none(&unknown_keys(&[file], "\n| Nobody99 | it |"));
}
