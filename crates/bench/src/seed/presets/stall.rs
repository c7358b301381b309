//! Measures the stalls of writers at the dirty limit of the kernel, with bulk data that is never
//! synced and that is written back in time, as text 003 describes them: a preset of
//! `haul bench pacing`.

use std::path::PathBuf;

use haul_measure::{Result, Watcher};

use super::super::{present, preset, require_space};
use crate::options::{file_size, rounds};
use crate::pacing;
use crate::report::Report;

/// Options of `haul bench seed stall`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Dirty limit of the kernel during the experiment; affects the whole machine
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = file_size)]
    pub dirty_limit: u64,
    /// Amount of bulk data written in one measurement
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub bulk: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
}

/// Runs the experiment. The dirty limits are restored when this returns, and also when the process
/// is killed.
///
/// # Errors
/// The errors of [`pacing::run`], which include that of a missing root.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let Options { dir, dirty_limit, bulk, rounds } = options;
    require_space(dir, *bulk)?;
    let line =
        format!("pacing --alone 1s --bulk {bulk} --rounds {rounds} --dirty-limit {dirty_limit}");
    let mut report = pacing::run(&preset(&line, Some(dir))?, watcher)?;
    report.notes.push(
        "The text: at the dirty limit a write stalls for up to five minutes, and not at all if the \
         program syncs at the right moment. \"longest bulk\" is the longest write of the bulk \
         data: unpaced, without a sync, and paced, with writeback started in time."
            .to_owned(),
    );
    Ok(present(report, "seed stall", &line, &[]))
}
