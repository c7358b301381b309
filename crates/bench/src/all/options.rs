//! Defines the command-line options of `haul bench all`.

use std::path::PathBuf;

use super::part::Part;

/// Options of `haul bench all`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory whose disk is measured; all test files are in a directory below it
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure for at most a minute, with less data and fewer parts
    #[arg(long)]
    pub quick: bool,
    /// Run only these parts
    ///
    /// Parts: disk, write-modes, journal, journal-cost, random-read, sequential-read,
    /// direct-or-cached, app-cache, pacing, read-order, random-write, splice, log.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<Part>,
}

impl Options {
    /// Returns `true` if a part was selected.
    pub(super) fn selects(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
