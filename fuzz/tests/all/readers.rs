//! Checks the table of readers in the readme.

use std::fs;
use std::path::{Path, PathBuf};

use haul_fuzz::TARGETS;

/// The crates that only measure and test.
const WITHOUT_READERS: &[&str] =
    &["acceptance", "bench", "bench-compare", "cli-common", "disk-sim", "testing", "tidy"];

/// The beginnings of functions that read bytes or text.
const READERS: &[&str] = &["parse", "decode", "unescape", "from_str", "from_bytes"];

/// A row of the table.
#[derive(Debug)]
struct Row {
    /// Files and folders below `crates`.
    paths: Vec<String>,
    /// The names of targets; empty if there are none.
    targets: Vec<String>,
}

fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let page = include_str!("../../README.md");
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').collect();
        let [_, paths, _, targets, _] = cells[..] else { panic!("{line}") };
        let has_none = targets.trim().starts_with("none: ");
        let targets = if has_none { Vec::new() } else { quoted(targets) };
        assert!(has_none || !targets.is_empty(), "no target and no reason: {line}");
        Row { paths: quoted(paths), targets }
    };
    page.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")
}

/// Adds the source files below a folder.
fn add_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_tests = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_tests {
            add_sources(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_tests {
            files.push(path);
        }
    }
}

/// Returns the files of the libraries and of the program that have readers, below `crates`.
fn readers() -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let entry = entry.unwrap();
        if !WITHOUT_READERS.contains(&entry.file_name().to_str().unwrap()) {
            add_sources(&entry.path().join("src"), &mut files);
        }
    }
    let has_reader = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
        code.split("fn ").skip(1).any(|rest| READERS.iter().any(|name| rest.starts_with(name)))
    };
    let root = crates();
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    files.iter().filter(|path| has_reader(path)).map(name).collect()
}

#[test]
fn each_reader_has_a_target_or_a_reason() {
    let (rows, readers) = (rows(), readers());
    assert!(readers.len() > 50, "{readers:?}");
    let is_listed = |file: &str| {
        let paths = rows.iter().flat_map(|row| &row.paths);
        paths.clone().any(|path| Path::new(file).starts_with(path))
    };
    let missing: Vec<_> = readers.iter().filter(|file| !is_listed(file)).collect();
    assert!(missing.is_empty(), "not in the table of fuzz/README.md: {missing:#?}");
    for path in rows.iter().flat_map(|row| &row.paths) {
        assert!(crates().join(path).exists(), "{path} does not exist");
    }
}

#[test]
fn table_names_all_targets() {
    let rows = rows();
    let named: Vec<_> = rows.iter().flat_map(|row| &row.targets).collect();
    for (target, _) in TARGETS {
        assert!(named.iter().any(|name| *name == target), "{target} reads nothing of the table");
    }
    for name in named {
        assert!(haul_fuzz::find(name).is_some(), "{name} is no target");
    }
}
