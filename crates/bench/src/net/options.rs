//! Defines the options that all benchmarks of servers have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use haul_units::parse_time;

use crate::options::rounds;

/// The options of every benchmark of servers.
#[derive(Debug, Clone, clap::Args)]
pub struct NetOptions {
    /// Directory for files, configurations and logs, removed at the end; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Programs to compare haul with, such as nginx,go [default: all installed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub rivals: Option<Vec<String>>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, in whole seconds
    #[arg(long = "seconds", value_name = "TIME", default_value = "1s", value_parser = whole_seconds)]
    pub time: Duration,
    /// TCP congestion control during the benchmark, such as cubic; needs root
    ///
    /// This is a setting of the machine: it applies to all connections that any program opens
    /// during the benchmark. The previous setting is restored however the benchmark ends.
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Path of the program haul to measure [default: beside haul-bench or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// The directories to search for rivals and load generators, in the format of `PATH`.
    #[arg(skip)]
    pub path: OsString,
    /// The paths of programs that are not searched for, by their names in reports, such as `haul`.
    #[arg(skip)]
    pub programs: BTreeMap<&'static str, PathBuf>,
}

/// Parses a duration that wrk accepts.
fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = parse_time(text)?;
    let is_whole = time >= Duration::from_secs(1) && time.subsec_nanos() == 0;
    is_whole.then_some(time).ok_or_else(|| "expected whole seconds, such as 2s".to_owned())
}
