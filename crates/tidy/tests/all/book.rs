//! Checks the pages of the book: `docs/SUMMARY.md` lists each page once, and each link with a
//! fragment leads to a heading.

use std::collections::{BTreeMap, BTreeSet};

use crate::links::{resolved, targets};
use crate::tree::{Source, assert_none, files};

const SUMMARY: &str = "docs/SUMMARY.md";

/// `true` if the book must contain a page: all pages of the root, of `docs`, and the readme and the
/// format of each crate.
fn is_listed(path: &str) -> bool {
    let Some(page) = path.strip_suffix(".md") else { return false };
    match page.split('/').collect::<Vec<_>>()[..] {
        [_] => true,
        ["docs", ..] => path != SUMMARY,
        ["crates", _, "README" | "FORMAT"] => true,
        _ => false,
    }
}

fn unlisted(files: &[Source]) -> Vec<String> {
    let summary = files.iter().find(|file| file.path == SUMMARY);
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for link in summary.map_or(Vec::new(), |file| targets(&file.text)) {
        *times.entry(resolved(SUMMARY, link)).or_default() += 1;
    }
    let pages = files.iter().map(|file| &file.path).filter(|path| is_listed(path));
    let count = |path: &String| (path.clone(), times.get(path).copied().unwrap_or_default());
    let wrong = pages.map(count).filter(|(_, times)| *times != 1);
    wrong.map(|(path, times)| format!("{SUMMARY}: {path} is listed {times} times")).collect()
}

#[test]
fn every_page_is_in_the_book_once() {
    assert_none(&unlisted(files()));
}

#[test]
fn missing_and_repeated_pages_are_reported() {
    let summary = "# Summary\n\n[a](a.md)\n- [b](../B.md)\n- [again](a.md)\n";
    let files =
        [SUMMARY, "docs/a.md", "docs/c/d.md", "B.md", "crates/e/README.md", "crates/e/f.md"]
            .map(|path| Source::new(path, if path == SUMMARY { summary } else { "" }));
    let found = unlisted(&files);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].ends_with("docs/a.md is listed 2 times"), "{found:?}");
}

/// Returns the identifiers of the headings of a page, by the rules of mdBook and of GitHub.
fn headings(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len() && title.starts_with(' ');
        if in_block || !is_heading {
            continue;
        }
        // Of a link, only the text counts.
        let parts = title.trim().split("](").enumerate();
        let texts = parts.map(|(at, part)| match at {
            0 => part,
            _ => part.split_once(')').map_or("", |(_, text)| text),
        });
        let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let id: String = texts.collect::<String>().chars().filter(is_kept).collect();
        let id = id.to_lowercase().replace(' ', "-");
        let same = (1..).map(|number| format!("{id}-{number}"));
        let free = std::iter::once(id.clone()).chain(same).find(|id| !found.contains(id));
        found.extend(free);
    }
    found
}

fn dead_fragments(files: &[Source]) -> Vec<String> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let ids: BTreeMap<_, _> = pages.map(|file| (&*file.path, headings(&file.text))).collect();
    let mut dead = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for link in targets(&file.text) {
            let Some((path, fragment)) = link.split_once('#') else { continue };
            let page = match path {
                "" => file.path.clone(),
                path => resolved(&file.path, path),
            };
            // The lines of a source file have fragments, too.
            if ids.get(&*page).is_some_and(|ids| !ids.contains(fragment)) {
                dead.push(format!("{}: no heading {link}", file.path));
            }
        }
    }
    dead
}

#[test]
fn fragments_of_links_are_headings() {
    assert_none(&dead_fragments(files()));
}

#[test]
fn missing_heading_is_reported() {
    let a =
        "# A page\n\n## The `x` of [y](z.md), twice\n\n## 中文, 标题\n```\n# no\n```\n## A page\n";
    let known = ["a-page", "the-x-of-y-twice", "中文-标题", "a-page-1"].map(str::to_owned);
    assert_eq!(headings(a), BTreeSet::from(known));
    let b = "[1](a.md#a-page) [2](a.md#no \"t\") [3](#gone) [4](../b.rs#L3)\n# Here\n[5](#here)\n";
    let found = dead_fragments(&[Source::new("docs/a.md", a), Source::new("docs/b.md", b)]);
    assert_eq!(found.len(), 2, "{found:?}");
}
