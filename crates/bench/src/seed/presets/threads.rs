//! Reads random pages of one file with 1 to 256 threads, as text 003 does: a preset of
//! `haul bench random-read`.

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Result, Watcher};
use haul_units::parse_time;

use super::super::{present, preset, require_space};
use crate::file_read::random_read;
use crate::options::{file_size, rounds};
use crate::report::Report;

/// Options of `haul bench seed threads`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Length of the test file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_time)]
    pub seconds: Duration,
}

/// Runs the experiment.
///
/// # Errors
/// The errors of [`random_read::run`].
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let Options { dir, file_size, rounds, seconds } = options;
    require_space(dir, *file_size)?;
    let line = format!(
        "random-read --readers 1,4,16,64,256 --file-size {file_size} --rounds {rounds} \
         --seconds {}ms",
        seconds.as_millis()
    );
    let report = random_read::run(&preset(&line, Some(dir))?, watcher)?;
    // The text has "more than ten times" the rate of one thread.
    Ok(present(report, "seed threads", &line, &[("shared_256_vs_1_cold", 10.0)]))
}
