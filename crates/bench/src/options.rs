//! Parses the values of command-line options, and defines those of all benchmarks of servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use haul_units::{parse_bytes, parse_time};

/// Returns a parser of whole numbers in `range`.
#[must_use]
pub fn count(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Returns the parser of a number of rounds, from 1 to 1000.
#[must_use]
pub fn rounds() -> RangedU64ValueParser<usize> {
    count(1..=1000)
}

/// Parses a size, and returns it in bytes. `range` is in bytes; `expected` describes the range.
///
/// # Errors
/// Returns an error if `text` is no size, and `expected` if the size is outside the range.
pub fn size(text: &str, range: RangeInclusive<u64>, expected: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if range.contains(&bytes) { Ok(bytes) } else { Err(format!("expected {expected}")) }
}

/// Parses the length of a record in bytes, up to `end`, which `expected` describes.
///
/// # Errors
/// Returns an error if `text` is no such length.
pub(crate) fn length(text: &str, end: u64, expected: &str) -> Result<usize, String> {
    usize::try_from(size(text, 1..=end, expected)?).map_err(|error| error.to_string())
}

/// Returns a parser of sizes in bytes in `range`, which `expected` describes.
pub fn size_in(
    range: RangeInclusive<u64>,
    expected: &'static str,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| size(text, range.clone(), expected)
}

/// Parses the length of a file, at least 1 MiB, and returns it in bytes, rounded down to whole MiB.
///
/// # Errors
/// Returns an error if `text` is no such length.
pub fn file_size(text: &str) -> Result<u64, String> {
    Ok(size(text, 1 << 20..=u64::MAX, "1MiB or more")? >> 20 << 20)
}

/// Parses a length that is a multiple of 4 KiB, up to 64 MiB, and returns it in bytes.
///
/// # Errors
/// Returns an error if `text` is no such length.
pub fn pages(text: &str) -> Result<u64, String> {
    let expected = "a multiple of 4KiB, up to 64MiB";
    let bytes = size(text, 4 << 10..=64 << 20, expected)?;
    if bytes.is_multiple_of(4 << 10) { Ok(bytes) } else { Err(format!("expected {expected}")) }
}

/// The options of every benchmark of servers.
#[derive(Debug, Clone, clap::Args)]
pub struct NetOptions {
    /// Directory for files, configurations and logs, removed at the end; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Programs to measure beside haul, such as nginx,go, or haul alone [default: all installed]
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
