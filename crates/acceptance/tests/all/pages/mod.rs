//! Executes the commands of the pages that an operator follows.

mod block;
mod build;
mod example;
mod operations;
mod readme;
mod shell;

use std::path::PathBuf;

use crate::program::root;
use block::{Block, blocks};

/// The languages of code blocks: commands, commands with their output, other text, and files.
const LANGUAGES: [&str; 6] = ["sh", "console", "text", "ini", "toml", "yaml"];

/// The sections whose blocks are executed or used by a test, for each page. A block of a session is
/// executed by the test of the session.
fn executed() -> [(&'static str, Vec<&'static str>); 4] {
    [
        ("README.md", vec![build::SECTION]),
        ("docs/tour.md", example::SECTIONS.to_vec()),
        ("docs/operations.md", operations::sections()),
        ("docs/monitoring.md", vec![crate::monitoring::SECTION]),
    ]
}

/// Returns the text of a page.
fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// Returns the blocks of a section.
pub(crate) fn section(page: &str, heading: &str) -> Vec<Block> {
    blocks(&read(page)).into_iter().filter(|block| block.heading == heading).collect()
}

#[test]
fn every_block_is_executed_by_a_test() {
    for (page, sections) in executed() {
        let blocks = blocks(&read(page));
        let mut complaints = Vec::new();
        for block in &blocks {
            let (heading, language) = (&*block.heading, &*block.language);
            if !LANGUAGES.contains(&language) {
                complaints.push(format!("a block of {heading:?} has the language {language:?}"));
            }
            let is_executed = block.is_session || sections.contains(&heading);
            if language != "text" && !is_executed {
                complaints.push(format!("no test executes the block of {heading:?}"));
            }
        }
        let is_unused = |heading: &&&str| !blocks.iter().any(|block| block.heading == **heading);
        let unused: Vec<_> = sections.iter().filter(is_unused).collect();
        assert!(complaints.is_empty() && unused.is_empty(), "{page}: {complaints:#?} {unused:?}");
    }
}

/// Returns the directories that a build needs: the sources, and those of the compiler and of the
/// libraries. `None` if the compiler is not in a directory of its own.
fn build_directories() -> Option<[PathBuf; 3]> {
    let sysroot = PathBuf::from(env!("CARGO")).parent()?.parent()?.to_owned();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let libraries = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home)?;
    let directories = [root().to_owned(), sysroot, libraries];
    let directories = directories.map(|each| std::fs::canonicalize(each).unwrap_or_default());
    let is_own = |path: &PathBuf| path.components().count() > 2;
    directories.iter().all(is_own).then_some(directories)
}
