//! Reads a directory of small files in directory order, by inode and by physical position, as text
//! 004 does: a preset of `haul bench read-order`.

use haul_measure::{Result, Watcher};

use super::super::{present, preset};
use crate::read_order;
use crate::report::Report;

/// Options of `haul bench seed order`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Read 50,000 files instead of 5,000
    #[arg(long)]
    pub whole: bool,
}

/// Runs the experiment on a simulated drive.
///
/// # Errors
/// The errors of [`read_order::run`].
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let files = if options.whole { 50_000 } else { 5_000 };
    let line = format!(
        "read-order --drive travelstar-7k320 --dirs 1 --replacements 0 --threads 1 --rounds 1 \
         --time-scale 0 --longest 8KiB --files {files}"
    );
    let report = read_order::run(&preset(&line, None)?, watcher)?;
    Ok(present(
        report,
        "seed order",
        &line,
        &[("physical_vs_unsorted", 217.0 / 19.0), ("physical_vs_inode", 28.0 / 19.0)],
    ))
}
