//! Finds the size of the data from which on direct reads are faster than the page cache, as text
//! 003 does: a preset of `haul bench direct-or-cached`.

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::{Result, Watcher};
use haul_units::parse_time;

use super::super::{present, preset, require_space};
use crate::options::{file_size, rounds};
use crate::page_cache::direct_or_cached;
use crate::report::Report;

/// Options of `haul bench seed crossover`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file, which is eight times as long as the memory
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Memory for the page cache and the readers together
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = file_size)]
    pub memory: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_time)]
    pub seconds: Duration,
}

/// Runs the experiment.
///
/// # Errors
/// The errors of [`direct_or_cached::run`].
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let Options { dir, memory, rounds, seconds } = options;
    require_space(dir, 8 * memory)?;
    // The text: 50 threads, reads of 4 KiB, 8 GB of memory, and a crossover at 50 GB.
    let line = format!(
        "direct-or-cached --readers 50 --data-percent 50,100,200,400,600,800 --memory {memory} \
         --rounds {rounds} --seconds {}ms",
        seconds.as_millis()
    );
    let report = direct_or_cached::run(&preset(&line, Some(dir))?, watcher)?;
    Ok(present(report, "seed crossover", &line, &[("crossover", 50.0 / 8.0)]))
}
