//! The options of the benchmark of logs.

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::Result;
use haul_units::parse_time;

use crate::options::{count, length, rounds as round_count};

/// The benchmark `log`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct LogBench {
    /// Directory for the test files, which needs some GiB
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Numbers of threads that append; each number is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = count(1..=1024))]
    pub writers: Vec<usize>,
    /// Record lengths, 1 B to 1MiB; each length is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB")]
    #[arg(value_parser = record_size)]
    pub sizes: Vec<usize>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = round_count())]
    pub rounds: usize,
    /// Duration of one measurement, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub seconds: Duration,
    /// Path of haul-bench-compare, the program that drives the rivals
    ///
    /// By default it is searched for beside haul-bench and in PATH; without it the rivals are
    /// listed as missing. See docs/log-bench.md for how to build it.
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Option<PathBuf>,
    /// Measure all configurations of each rival, not only its fastest configuration
    #[arg(long)]
    pub all_forms: bool,
}

fn record_size(text: &str) -> Result<usize, String> {
    length(text, 1 << 20, "1 B to 1MiB")
}
