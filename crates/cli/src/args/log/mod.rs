//! Defines the arguments of `haul log`.

pub(super) mod examples;
mod show;
mod write;

use clap::{Args, Subcommand};

pub(crate) use show::LogShowArgs;
pub(crate) use write::{LogWriteArgs, WhenFullPolicy};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(subcommand_help_heading = "Commands", subcommand_value_name = "COMMAND")]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LogCommand>,
    #[command(flatten)]
    pub(crate) write: Option<LogWriteArgs>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Print the lines of a log, all or those of a time
    ///
    /// Prints the closed files, compressed or not, and the current file, in order. A process may be
    /// writing the log. The times are the timestamps of the lines (--timestamps, in any format),
    /// which must ascend; lines without one belong to the line before. If the lines of a file have
    /// no timestamps, the whole file is printed if it was written in the time.
    ///
    /// TIME is absolute, such as 2026-11-21T07:23:14Z or 2026-11-21T08:23+01:00; in local time, such
    /// as "2026-11-21 07:23", 2026-11-21, today or yesterday; or that long ago, such as 10m, -10m or
    /// "1h30m ago".
    #[command(after_long_help = examples::SHOW)]
    Show(LogShowArgs),
}
