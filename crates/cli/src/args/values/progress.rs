//! Defines the option that shows progress.

use clap::Args;

use crate::progress::ShowProgress;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ProgressArgs {
    /// Show progress on stderr
    ///
    /// On a terminal, a bar is shown; otherwise, a line is printed every 10 seconds, and at the end.
    #[arg(long = "progress", value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) show: ShowProgress,
}
