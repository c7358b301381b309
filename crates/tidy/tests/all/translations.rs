//! Checks that translated pages show the same commands, names, figures and links as the originals.

use std::collections::BTreeMap;

use crate::pages::resolved;
use crate::tree::{Source, assert_none, files};

/// Each original and its translation.
const PAGES: [(&str, &str); 2] =
    [("README.md", "docs/zh/README.md"), ("docs/tour.md", "docs/zh/tour.md")];

/// The parts of a page that a translation must not change, and the number of times that each occurs.
/// Their order may differ, except that of the lines in code blocks.
fn facts(page: &Source) -> BTreeMap<String, i32> {
    let mut facts = BTreeMap::new();
    let mut add = |kind: &str, text: &str| {
        *facts.entry(format!("{kind} {text}")).or_default() += 1;
    };
    let (mut block, mut prose): (Option<String>, _) = (None, String::new());
    for line in page.text.lines() {
        match block.take() {
            Some(lines) if line == "```" => add("block", &lines),
            Some(lines) => block = Some(format!("{lines}{line}\n")),
            None if line.starts_with("```") => block = Some(format!("{line}\n")),
            None if line.starts_with("<!--") => add("comment", line),
            None => prose += &format!("{line}\n"),
        }
    }
    // Text in backticks is at odd places, if no backtick is left over.
    let mut plain = String::new();
    for (at, part) in prose.split('`').enumerate() {
        // A code span that is broken by the end of a line is the same span.
        match at % 2 {
            0 => plain += part,
            _ => add("code", &part.replace('\n', " ")),
        }
    }
    let mut text = String::new();
    for (at, part) in plain.split("](").enumerate() {
        let (target, rest) =
            if at == 0 { ("", part) } else { part.split_once(')').unwrap_or_default() };
        if at > 0 {
            add("link", &original(&page.path, target));
        }
        text += rest;
    }
    let is_figure = |c: char| c.is_ascii_digit() || ".,".contains(c);
    for figure in text.split(|c| !is_figure(c)).map(|figure| figure.trim_matches(['.', ','])) {
        if !figure.is_empty() {
            add("figure", figure);
        }
    }
    facts
}

/// Returns a target of a link as a path from the root; translated pages count as their originals.
fn original(page: &str, target: &str) -> String {
    let (path, rest) = target.split_at(target.find(['#', ' ']).unwrap_or(target.len()));
    if path.is_empty() || path.contains("://") {
        return target.to_owned();
    }
    let path = resolved(page, path);
    let page = PAGES.iter().find(|(_, translation)| *translation == path);
    format!("{}{rest}", page.map_or(&*path, |(original, _)| original))
}

fn differences(original: &Source, translation: &Source) -> Vec<String> {
    let mut difference = facts(original);
    for (fact, times) in facts(translation) {
        *difference.entry(fact).or_default() -= times;
    }
    let path = &translation.path;
    difference.retain(|_, times| *times != 0);
    let complaint = |(fact, times): (String, i32)| match times > 0 {
        true => format!("{path}: {times} times missing: {fact}"),
        false => format!("{path}: {} times not in the original: {fact}", -times),
    };
    difference.into_iter().map(complaint).collect()
}

#[test]
fn translations_show_the_same_commands_and_figures() {
    let page = |path: &str| files().iter().find(|file| file.path == path);
    let mut all = Vec::new();
    for (original, translation) in PAGES {
        match (page(original), page(translation)) {
            (Some(original), Some(translation)) => all.extend(differences(original, translation)),
            _ => all.push(format!("{original} or {translation} is missing")),
        }
    }
    assert_none(&all);
}

#[test]
fn different_translation_is_noticed() {
    let original =
        "Run `haul sum` on 1,024 files [here](docs/tour.md#sum).\n\n```sh\nhaul sum\n```\n";
    let count = |translation: &str| {
        let translation = Source::new("docs/zh/README.md", translation);
        differences(&Source::new("README.md", original), &translation).len()
    };
    let same = "对 1,024 个文件[运行](tour.md#sum) `haul sum`。\n\n```sh\nhaul sum\n```\n";
    assert_eq!(count(same), 0);
    for (old, new) in [("1,024", "1,025"), ("`haul sum`", "`haul dups`"), ("sh\nhaul", "sh\nhau")] {
        assert_eq!(count(&same.replace(old, new)), 2, "{new}");
    }
    assert_eq!(count(&same.replace("tour.md", "../sum.md")), 2);
}
