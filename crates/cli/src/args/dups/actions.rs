//! Defines the arguments of the subcommands of `haul dups`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ActionArgs {
    /// Report of haul or fclones, in format default or json [default: stdin]
    #[arg(value_name = "REPORT")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: ActionOptions,
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    #[command(flatten)]
    pub(crate) action: ActionArgs,
    /// Create symbolic links, as "haul dups symlink"
    #[arg(short, long)]
    pub(crate) soft: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// Target directory; created if missing
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ActionOptions {
    /// Print the commands that would be executed, and change nothing
    #[arg(long, help_heading = "Actions")]
    pub(crate) dry_run: bool,
    /// Write the output of --dry-run to FILE
    #[arg(short, long, value_name = "FILE", requires = "dry_run", help_heading = "Actions")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object for each file, one per line, and one with the totals
    ///
    /// The keys of a processed file are kind (file), path, kept (the file with the same content) and
    /// bytes; those of a skipped one are kind (skipped), path and reason; those of the totals are
    /// kind (summary), action, dry_run, files, bytes and skipped. With --dry-run, replaces the
    /// commands.
    #[arg(long, conflicts_with = "output", help_heading = "Actions")]
    pub(crate) json: bool,
    /// Skip groups with a file modified after TIME [default: the start of the search]
    ///
    /// Such as 2026-11-21, "2026-11-21 15:42" or 2026-11-21T16:42:04+01:00; without an offset, in
    /// UTC.
    #[arg(short, long, value_name = "TIME", help_heading = "Actions")]
    pub(crate) modified_before: Option<String>,
    /// Do not check for locks held by other programs
    #[arg(long, help_heading = "Actions")]
    pub(crate) no_lock: bool,
    /// Link files whose owner, mode, ACL or attributes differ from the kept file; move without them
    ///
    /// A link has the owner, group, mode, ACL, capabilities, security label, other extended
    /// attributes and flags (lsattr) of the file it refers to. By default, "link" and "symlink" skip
    /// a file for which one of these would change, and "move" skips a file if the destination cannot
    /// have its ACL or another extended attribute.
    #[arg(long, help_heading = "Actions")]
    pub(crate) ignore_permissions: bool,
    /// Process files whose length differs from the report; contents are still compared
    #[arg(long, help_heading = "Actions")]
    pub(crate) no_check_size: bool,

    /// Number of replicas to keep in each group [default: --rf-over of the search]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Selection")]
    pub(crate) rf_over: Option<usize>,
    /// Order in which files are removed; if repeated, later priorities break ties
    ///
    /// By default, files are removed from the end of each group, so that those below the first path
    /// of the search are kept.
    #[arg(long, value_name = "PRIORITY", help_heading = "Selection")]
    pub(crate) priority: Vec<PriorityArg>,
    /// Keep all files below this directory; repeatable
    #[arg(long, value_name = "DIR", help_heading = "Selection")]
    pub(crate) keep_root: Vec<PathBuf>,
    /// Keep files whose name matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub(crate) keep_name: Vec<String>,
    /// Keep files whose path matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub(crate) keep_path: Vec<String>,
    /// Remove only files whose name matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub(crate) name: Vec<String>,
    /// Remove only files whose path matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Selection")]
    pub(crate) path: Vec<String>,
    /// Count the files below this directory as one replica, kept or removed together; repeatable
    /// [default: the paths of the search, if it used --isolate]
    #[arg(long, value_name = "DIR", help_heading = "Selection")]
    pub(crate) isolate: Vec<PathBuf>,
    /// Count each hard link as a replica, not all links of a file as one
    #[arg(short = 'H', long, help_heading = "Selection")]
    pub(crate) match_links: bool,
}

/// The order in which files are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityArg {
    /// First in the report
    Top,
    /// Last in the report
    Bottom,
    /// Created last
    Newest,
    /// Created first
    Oldest,
    /// Latest mtime
    MostRecentlyModified,
    /// Earliest mtime
    LeastRecentlyModified,
    /// Latest atime
    MostRecentlyAccessed,
    /// Earliest atime
    LeastRecentlyAccessed,
    /// Latest ctime
    MostRecentStatusChange,
    /// Earliest ctime
    LeastRecentStatusChange,
    /// Deepest in the directory tree
    MostNested,
    /// Highest in the directory tree
    LeastNested,
}
