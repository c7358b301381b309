//! Tests that other duplicate finders find the same groups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use haul_duplicates::Options;
use haul_testing::{Random, skip};

use crate::oracle::{Count, files, groups, plant};
use crate::{Groups, disk_dir, found, paths};
use haul_duplicates::Replication;

/// Runs a program and returns its output; `None` if it is not installed.
fn output(program: &str, arguments: &[&str], dir: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(dir).output() {
        Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
        Err(_) => {
            skip(&format!("{program} is not installed"));
            None
        }
    }
}

/// Creates a tree with plain names and without hard links, which the programs treat differently.
fn tree(random: &mut Random) -> tempfile::TempDir {
    let (planted, dir) = (disk_dir(), disk_dir());
    plant(planted.path(), random, 60);
    for (number, path) in files(planted.path()).iter().enumerate() {
        std::fs::copy(path, dir.path().join(format!("{number}"))).unwrap();
    }
    dir
}

#[test]
fn jdupes_finds_the_same_groups() {
    let mut random = Random::from_environment();
    let dir = tree(&mut random);
    let Some(text) = output("jdupes", &["-rq"], dir.path()) else { return };
    let group = |group: &str| group.lines().map(PathBuf::from).collect();
    let theirs: Groups = text.trim_end().split("\n\n").map(group).collect();
    assert_eq!(paths(&found(dir.path(), &Options::default())), theirs);
    assert_eq!(groups(&[dir.path()], Replication::Over(1), Count::Files), theirs);
}

#[test]
fn rdfind_finds_the_same_groups() {
    let mut random = Random::from_environment();
    let dir = tree(&mut random);
    let results = disk_dir();
    let results = results.path().join("results");
    let arguments = ["-outputname", results.to_str().unwrap()];
    if output("rdfind", &arguments, dir.path()).is_none() {
        return;
    }
    let text = std::fs::read_to_string(results).unwrap();
    let mut theirs: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // The columns are: duptype id depth size device inode priority name. The id of a copy is
        // negative.
        let words: Vec<_> = line.splitn(8, ' ').collect();
        let id = words[1].parse::<i64>().unwrap().unsigned_abs();
        theirs.entry(id).or_default().push(words[7].into());
    }
    let theirs: Groups = theirs.into_values().map(|paths| paths.into_iter().collect()).collect();
    assert_eq!(paths(&found(dir.path(), &Options::default())), theirs);
}
