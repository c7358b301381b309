//! Checks the number of source files in each folder.

use std::collections::BTreeMap;

use crate::tree::{Source, assert_none, files};

/// The maximum number of files in a folder of a crate's sources.
const FILES_MAX: usize = 15;

/// Folders that exceed the maximum, with the number of files in each. The numbers may only
/// decrease.
const CROWDED: &[(&str, usize)] = &[("crates/file-server/src", 32)];

fn complaints(files: &[Source], crowded: &[(&str, usize)]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let sources = files.iter().filter(|file| file.is_production());
    for (folder, _) in sources.filter_map(|file| file.path.rsplit_once('/')) {
        *folders.entry(folder).or_default() += 1;
    }
    let complaint = |(folder, count): (&str, usize)| {
        let listed = crowded.iter().find(|row| row.0 == folder).map(|row| row.1);
        match listed {
            Some(listed) if count < listed => {
                Some(format!("{folder}: only {count} files left: lower its number"))
            }
            Some(listed) if count <= listed => None,
            _ if count <= FILES_MAX => None,
            _ => Some(format!(
                "{folder}: {count} files; {} is the most",
                listed.unwrap_or(FILES_MAX)
            )),
        }
    };
    folders.into_iter().filter_map(complaint).collect()
}

#[test]
fn folders_have_few_files() {
    assert_none(&complaints(files(), CROWDED));
}

#[test]
fn crowded_folders_are_noticed() {
    let files = |count: usize| -> Vec<Source> {
        (0..count).map(|n| Source::new(&format!("crates/a/src/f{n}.rs"), "")).collect()
    };
    let found = |count, crowded: &[(&str, usize)]| complaints(&files(count), crowded).len();
    assert_eq!([found(15, &[]), found(16, &[])], [0, 1]);
    let listed = [("crates/a/src", 20)];
    assert_eq!([found(20, &listed), found(21, &listed), found(19, &listed)], [0, 1, 1]);
}
