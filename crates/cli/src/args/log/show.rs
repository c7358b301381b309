//! Defines the arguments of `haul log show`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use haul_line_log::{SystemClock, parse_moment};

#[derive(Debug, Args)]
pub(crate) struct LogShowArgs {
    /// Directory of the log
    pub(crate) dir: PathBuf,
    /// Print lines of this time and later [default: from the oldest]
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) since: Option<SystemTime>,
    /// Print lines before this time [default: to the newest]
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) until: Option<SystemTime>,
    /// Print each line as a JSON object with its time, its text and the name of its file
    ///
    /// The time is in UTC (RFC 3339), or null if the line has no timestamp. The text is the rest of
    /// the line; bytes that are not UTF-8 are replaced by U+FFFD.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_time(text: &str) -> Result<SystemTime, String> {
    parse_moment(text, &SystemClock)
}
