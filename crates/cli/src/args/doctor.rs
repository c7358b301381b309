//! Defines the arguments of `haul doctor`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  haul doctor /srv/files
  haul doctor --json /srv/files > report.json
  haul doctor --json | jq -r '.checks[] | select(.status != \"ok\").text'

Exit codes:
  0  no problem was found; there may be warnings
  1  a check found a problem
  2  invalid command line
  3  DIR cannot be examined";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Directory to examine, such as that of a store
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
