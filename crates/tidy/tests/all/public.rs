//! Counts the public items of each library that nothing outside of its crate uses.

use std::collections::BTreeMap;

use crate::tree::{Source, assert_none, files, has_word};

/// Crates with unused public items, and the number of these items. The numbers may only decrease.
const UNUSED: &[(&str, usize)] = &[
    ("admin-endpoint", 1),
    ("append-log", 2),
    ("bench", 1),
    ("bulk-read", 3),
    ("disk", 2),
    ("disk-sim", 2),
    ("duplicates", 1),
    ("file-store", 1),
    ("reactor", 2),
    ("sorted-write", 1),
    ("tcp-relay", 2),
];

/// Returns the names a crate re-exports from its `lib.rs`.
fn exported(lib: &Source) -> Vec<String> {
    let code: String = lib.code().map(|(_, line)| line + " ").collect();
    let mut names = Vec::new();
    for statement in code.split(';') {
        let Some((_, tree)) = statement.split_once("pub use ") else { continue };
        let words = tree.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_name = |word: &&str| {
            word.starts_with(char::is_uppercase)
                || tree.contains(&format!("::{word}"))
                || tree.contains('{') && !word.is_empty()
        };
        // The last word of a path is the name; words before it are modules.
        let last = |word: &&str| !tree.contains(&format!("{word}::"));
        names.extend(words.filter(is_name).filter(last).map(str::to_owned));
    }
    names
}

fn unused(files: &[Source]) -> BTreeMap<&str, Vec<String>> {
    let mut unused = BTreeMap::new();
    for lib in files.iter().filter(|file| file.path.ends_with("/src/lib.rs")) {
        let Some(folder) = lib.crate_folder() else { continue };
        let is_outside =
            |file: &&Source| file.crate_folder() != Some(folder) || !file.path.contains("/src/");
        let others: Vec<_> = files.iter().filter(is_outside).collect();
        let is_unused = |name: &String| !others.iter().any(|file| has_word(&file.text, name));
        let names: Vec<_> = exported(lib).into_iter().filter(is_unused).collect();
        if !names.is_empty() {
            unused.insert(folder, names);
        }
    }
    unused
}

#[test]
fn public_items_are_used_outside_their_crate() {
    let unused = unused(files());
    let folders = files().iter().filter_map(Source::crate_folder);
    let folders: std::collections::BTreeSet<_> = folders.collect();
    let complaint = |folder: &&str| {
        let names = unused.get(folder).cloned().unwrap_or_default();
        let listed = UNUSED.iter().find(|row| row.0 == *folder).map_or(0, |row| row.1);
        (names.len() != listed).then(|| {
            format!(
                "{folder}: {} unused public items, {listed} listed: {}",
                names.len(),
                names.join(" ")
            )
        })
    };
    assert_none(&folders.iter().filter_map(complaint).collect::<Vec<_>>());
}

#[test]
fn an_unused_item_is_noticed() {
    let lib = Source::new(
        "crates/a/src/lib.rs",
        "mod b;\npub use b::{Used, Unused, f};\npub use c::D;\n",
    );
    let user = Source::new("crates/x/src/main.rs", "use haul_a::{Used, f};\n");
    let files = [lib, user];
    let unused = unused(&files);
    assert_eq!(unused["a"], ["Unused", "D"]);
}
