//! Checks the Markdown pages: their width, the files, links, headings and sources that they name,
//! and that the book contains each of them once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tree::{Source, assert_none, files, root};

/// The widest line outside tables, code and links.
const COLUMNS_MAX: usize = 100;

const SUMMARY: &str = "docs/SUMMARY.md";

fn pages(files: &[Source]) -> impl Iterator<Item = &Source> {
    files.iter().filter(|file| file.path.ends_with(".md"))
}

/// Returns the lines of a page outside code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

fn wide(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    // A line break between two Chinese characters would be shown as a space.
    for page in pages(files).filter(|page| !page.path.starts_with("docs/zh/")) {
        for (number, line) in prose(&page.text) {
            let is_free = line.starts_with('|') || line.contains("](") || line.contains("://");
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !is_free {
                complaints.push(format!("{}:{number}: {columns} columns", page.path));
            }
        }
    }
    complaints
}

/// Returns the files that pages name in backticks, such as `src/lib.rs`, and that do not exist.
fn missing_files(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_plain = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
    for page in pages(files) {
        for (number, line) in prose(&page.text) {
            let names = line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs"));
            for name in names.filter(|name| name.chars().all(is_plain)) {
                let end = format!("/{name}");
                if !files.iter().any(|file| file.path == name || file.path.ends_with(&end)) {
                    complaints.push(format!("{}:{number}: there is no {name}", page.path));
                }
            }
        }
    }
    complaints
}

/// Returns the targets of the links of a page that lead to this repository, with their fragments.
fn targets(text: &str) -> Vec<&str> {
    let links = prose(text).flat_map(|(_, line)| line.split("](").skip(1));
    let links = links.filter_map(|rest| rest.split([')', ' ']).next());
    links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")).collect()
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

/// Returns the links to files that do not exist, and to headings that pages do not have.
fn broken_links(files: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let ids: BTreeMap<_, _> = pages(files).map(|it| (&*it.path, headings(&it.text))).collect();
    let mut broken = Vec::new();
    for page in pages(files) {
        for link in targets(&page.text) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { page.path.clone() } else { resolved(&page.path, path) };
            // The lines of a source file have fragments, too.
            let ids = ids.get(&*target).filter(|_| !fragment.is_empty());
            if !exists(Path::new(&target)) || ids.is_some_and(|ids| !ids.contains(fragment)) {
                broken.push(format!("{}: broken link to {link}", page.path));
            }
        }
    }
    broken
}

/// Returns the identifiers of the headings of a page, by the rules of mdBook and of GitHub.
fn headings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(title) = line.trim_start_matches('#').strip_prefix(' ') else { continue };
        if !line.starts_with('#') {
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

/// Returns the keys of sources, such as `[Haystack10]`, that `docs/sources.md` does not have.
fn unknown_keys(files: &[Source], sources: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    for file in files {
        let brackets = file.text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
        for key in brackets.map(|key| key.trim_end_matches('\\')) {
            let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_key = key.len() >= letters.len() + 2
                && letters.len() >= 3
                && letters.starts_with(|c: char| c.is_ascii_uppercase())
                && letters.chars().all(|c| c.is_ascii_alphabetic());
            if is_key && !sources.contains(&format!("\n| {key} |")) {
                unknown.push(format!("{}: no [{key}] in docs/sources.md", file.path));
            }
        }
    }
    unknown
}

/// Returns the pages that the book must contain, and does not contain once: the pages of the root
/// and of `docs`, and the readme and the format of each crate.
fn not_in_the_book_once(files: &[Source]) -> Vec<String> {
    let summary = files.iter().find(|file| file.path == SUMMARY);
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    for link in summary.map_or(Vec::new(), |file| targets(&file.text)) {
        *times.entry(resolved(SUMMARY, link)).or_default() += 1;
    }
    let is_listed = |path: &&String| match path.split('/').collect::<Vec<_>>()[..] {
        [_] => true,
        ["docs", ..] => *path != SUMMARY,
        ["crates", _, "README.md" | "FORMAT.md"] => true,
        _ => false,
    };
    let count = |path: &String| (path.clone(), times.get(path).copied().unwrap_or_default());
    let counts = pages(files).map(|page| &page.path).filter(is_listed).map(count);
    let wrong = counts.filter(|(_, times)| *times != 1);
    wrong.map(|(path, times)| format!("{SUMMARY}: {path} is listed {times} times")).collect()
}

#[test]
fn pages_are_narrow_and_name_what_exists() {
    let sources = files().iter().find(|file| file.path == "docs/sources.md");
    assert_none(&wide(files()));
    assert_none(&missing_files(files()));
    assert_none(&broken_links(files(), |path| root().join(path).exists()));
    assert_none(&unknown_keys(files(), sources.map_or("", |file| &file.text)));
    assert_none(&not_in_the_book_once(files()));
}

#[test]
fn wide_lines_and_missing_files_are_noticed() {
    let long = "word ".repeat(30);
    let page = |text: &str| [Source::new("docs/a.md", text), Source::new("crates/a/src/b.rs", "")];
    let wide = |text: &str| wide(&page(text)).len();
    let block = format!("```\n{long}\n```");
    assert_eq!([wide(&long), wide(&format!("| {long}")), wide(&block)], [1, 0, 0]);
    let missing = |text: &str| missing_files(&page(text)).len();
    assert_eq!([missing("`src/b.rs`"), missing("`c.rs`"), missing("`x.md`")], [0, 1, 0]);
}

#[test]
fn broken_links_and_unknown_keys_are_reported() {
    let page = "[a](there.md) [b](https://example.org) [c](#part)\n# A part\n## `part`\n\
                ```\n[d](nowhere)\n```\n[`e`](gone.md)[f](#a-part)[g](#no)[h](../i.rs#L3)\n";
    let exists =
        |path: &Path| ["docs/there.md", "docs/a.md", "i.rs"].contains(&path.to_str().unwrap());
    let found = broken_links(&[Source::new("docs/a.md", page)], exists);
    assert_eq!(found.len(), 2, "{found:?}");
    let titles = "# A page\n\n## The `x` of [y](z.md), twice\n\n## 中文, 标题\n## A page\n";
    let known = ["a-page", "the-x-of-y-twice", "中文-标题", "a-page-1"].map(str::to_owned);
    assert_eq!(headings(titles), BTreeSet::from(known));

    let key = concat!("[", "Unknown99]");
    let file = [Source::new("crates/a/src/a.rs", &format!("//! {key} \\{key} [Vec8] [u8; 16]"))];
    assert_eq!(unknown_keys(&file, "").len(), 2);
    assert_none(&unknown_keys(&file, "\n| Unknown99 | it |"));
}

#[test]
fn missing_and_repeated_pages_of_the_book_are_reported() {
    let summary = "# Summary\n\n[a](a.md)\n- [b](../B.md)\n- [again](a.md)\n";
    let files =
        [SUMMARY, "docs/a.md", "docs/c/d.md", "B.md", "crates/e/README.md", "crates/e/f.md"]
            .map(|path| Source::new(path, if path == SUMMARY { summary } else { "" }));
    let found = not_in_the_book_once(&files);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].ends_with("docs/a.md is listed 2 times"), "{found:?}");
}
