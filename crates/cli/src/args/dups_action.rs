//! The part of the table for what `haul dups` does about what it found.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ActionArgs {
    /// The report, of the format default or json, of haul or fclones; by default stdin
    #[arg(value_name = "REPORT")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    #[command(flatten)]
    pub(crate) action: ActionArgs,
    /// Make symbolic links: as "haul dups symlink"
    #[arg(short, long)]
    pub(crate) soft: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The directory; it is made when it is not there
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Do nothing, and print what would be done as lines of a shell
    #[arg(long, help_heading = "What is done")]
    pub(crate) dry_run: bool,
    /// Write what --dry-run prints into this file
    #[arg(short, long, value_name = "FILE", requires = "dry_run", help_heading = "What is done")]
    pub(crate) output: Option<PathBuf>,
    /// Leave groups alone in which a file was modified later [default: when the search began]
    ///
    /// Such as 2026-11-21, "2026-11-21 15:42" or 2026-11-21T16:42:04+01:00; in UTC, if it does not
    /// say otherwise.
    #[arg(short, long, value_name = "TIME", help_heading = "What is done")]
    pub(crate) modified_before: Option<String>,
    /// Do not ask whether other programs hold locks on the files
    #[arg(long, help_heading = "What is done")]
    pub(crate) no_lock: bool,
    /// Take files of another length than the report says; they are compared anyway
    #[arg(long, help_heading = "What is done")]
    pub(crate) no_check_size: bool,

    /// How many replicas stay [default: as the search was told]
    #[arg(short = 'n', long, value_name = "N", help_heading = "What stays")]
    pub(crate) rf_over: Option<usize>,
    /// What goes first; may be given several times, the first counts most
    ///
    /// Without any the files lower down in the report go first, so that what is below the first
    /// path of the search stays.
    #[arg(long, value_name = "PRIORITY", help_heading = "What stays")]
    pub(crate) priority: Vec<PriorityArg>,
    /// Keep all files below this directory; may be given several times
    #[arg(long, value_name = "DIR", help_heading = "What stays")]
    pub(crate) keep_root: Vec<PathBuf>,
    /// Keep files with such a name; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "What stays")]
    pub(crate) keep_name: Vec<String>,
    /// Keep files with such a path; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "What stays")]
    pub(crate) keep_path: Vec<String>,
    /// Only files with such a name may go; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "What stays")]
    pub(crate) name: Vec<String>,
    /// Only files with such a path may go; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "What stays")]
    pub(crate) path: Vec<String>,
    /// What is below this directory counts as one replica, and goes or stays together; may be given
    /// several times [default: the paths of the search, if it was told so]
    #[arg(long, value_name = "DIR", help_heading = "What stays")]
    pub(crate) isolate: Vec<PathBuf>,
    /// Each hard link counts as a replica
    #[arg(short = 'H', long, help_heading = "What stays")]
    pub(crate) match_links: bool,
}

/// What goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityArg {
    /// Files higher up in the report
    Top,
    /// Files lower down in the report
    Bottom,
    /// Files made last
    Newest,
    /// Files made first
    Oldest,
    /// Files whose bytes changed last
    MostRecentlyModified,
    /// Files whose bytes did not change for the longest time
    LeastRecentlyModified,
    /// Files read last
    MostRecentlyAccessed,
    /// Files not read for the longest time
    LeastRecentlyAccessed,
    /// Files of which anything changed last
    MostRecentStatusChange,
    /// Files of which nothing changed for the longest time
    LeastRecentStatusChange,
    /// Files deeper down in the tree
    MostNested,
    /// Files higher up in the tree
    LeastNested,
}
