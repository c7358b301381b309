//! The part of the table for `haul dups`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::disk_kind::DiskKind;
use super::dups_action::{ActionArgs, LinkArgs, MoveArgs};
use super::examples;
use super::hash::Hash;
use crate::units::parse_bytes;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_help_heading = "Commands")]
#[command(subcommand_value_name = "COMMAND")]
pub(crate) struct DupsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<DupsAction>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DupsAction {
    /// Remove files of which a report says that others equal them
    ///
    /// Of each group at least one file stays. Each file is compared once more, byte by byte, with
    /// one that stays, at the moment it goes; what changed since the report, is being written to or
    /// is locked stays too, and is told.
    #[command(after_long_help = examples::DUPS_REMOVE)]
    Remove(ActionArgs),
    /// Replace them by hard links to the one that stays
    ///
    /// All names lead to one file then: what is changed under one name is changed under all. Files
    /// are compared as for "haul dups remove", and each name leads to a whole file at any time.
    #[command(after_long_help = examples::DUPS_LINK)]
    Link(LinkArgs),
    /// Replace them by symbolic links to the one that stays
    ///
    /// Files are compared as for "haul dups remove".
    #[command(after_long_help = examples::DUPS_SYMLINK)]
    Symlink(ActionArgs),
    /// Let them share the blocks of the one that stays, and be files of their own
    ///
    /// For btrfs, xfs and other file systems with shared blocks. The kernel compares the files with
    /// both locked, and changes neither bytes nor times; a file that is changed later gets blocks
    /// of its own.
    #[command(after_long_help = examples::DUPS_DEDUPE)]
    Dedupe(ActionArgs),
    /// Move them below a directory, each with its whole path
    ///
    /// Files are compared as for "haul dups remove". No file is overwritten.
    #[command(after_long_help = examples::DUPS_MOVE)]
    Move(MoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Files, and directories to look below; by default the current directory
    ///
    /// The order counts: files below the first of them come first in their groups, and what comes
    /// first is what stays. A path named as a command is written as ./remove.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Read the paths from stdin, one a line
    #[arg(long, conflicts_with = "paths", help_heading = "Where")]
    pub(crate) stdin: bool,
    /// Paths on stdin end with a zero byte, and so do those of --format fdupes
    #[arg(short = '0', long, help_heading = "Where")]
    pub(crate) null: bool,
    /// How deep to go: 0 takes only the files named, 1 only what is in the directories named
    #[arg(short, long, value_name = "N", help_heading = "Where")]
    pub(crate) depth: Option<usize>,
    /// Take hidden files too: names that begin with a dot
    #[arg(short = '.', long, help_heading = "Where")]
    pub(crate) hidden: bool,
    /// Take what .gitignore, .fdignore and .ignore say to leave out
    #[arg(short = 'A', long, help_heading = "Where")]
    pub(crate) no_ignore: bool,
    /// Go where symbolic links lead
    #[arg(short = 'L', long, help_heading = "Where")]
    pub(crate) follow_links: bool,
    /// List symbolic links to files too; they count as what they lead to, and no command touches them
    #[arg(short = 'S', long, help_heading = "Where")]
    pub(crate) symbolic_links: bool,
    /// Stay on the file system of each path
    #[arg(short = '1', long, help_heading = "Where")]
    pub(crate) one_fs: bool,
    /// The directory that relative paths and patterns begin at
    #[arg(long, value_name = "DIR", help_heading = "Where")]
    pub(crate) base_dir: Option<PathBuf>,

    /// The least length of a file
    #[arg(short = 's', long, value_name = "SIZE", help_heading = "Which files")]
    #[arg(default_value = "1", value_parser = parse_bytes)]
    pub(crate) min: u64,
    /// The greatest length of a file
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Which files")]
    pub(crate) max: Option<u64>,
    /// Only files with such a name; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "Which files")]
    pub(crate) name: Vec<String>,
    /// Only files with such a whole path; may be given several times
    ///
    /// In patterns * and ? stay within a name, ** does not; [a-z], [!a], {a,b}, +(a|b), *(a|b),
    /// ?(a|b), @(a|b) and !(a|b) are known; the last stands for what is neither. A pattern matches
    /// all of a path. One that begins neither with / nor ** begins at --base-dir.
    #[arg(long, value_name = "PATTERN", help_heading = "Which files")]
    pub(crate) path: Vec<String>,
    /// No files and directories with such a path; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = "Which files")]
    pub(crate) exclude: Vec<String>,
    /// Upper and lower case are the same in patterns
    #[arg(short, long, help_heading = "Which files")]
    pub(crate) ignore_case: bool,
    /// Patterns are regular expressions
    #[arg(short = 'x', long, help_heading = "Which files")]
    pub(crate) regex: bool,

    /// Report contents with more replicas than this [default: 1]
    #[arg(short = 'n', long, value_name = "N", help_heading = "What is a duplicate")]
    #[arg(conflicts_with_all = ["rf_under", "unique"])]
    pub(crate) rf_over: Option<usize>,
    /// Report contents with fewer replicas than this
    #[arg(long, value_name = "N", help_heading = "What is a duplicate")]
    pub(crate) rf_under: Option<usize>,
    /// Report files that equal no other: as --rf-under 2
    #[arg(long, conflicts_with = "rf_under", help_heading = "What is a duplicate")]
    pub(crate) unique: bool,
    /// All files below one path count as one replica
    #[arg(short = 'I', long, conflicts_with = "follow_links")]
    #[arg(help_heading = "What is a duplicate")]
    pub(crate) isolate: bool,
    /// Each hard link counts as a replica; otherwise all of a file's are one
    #[arg(short = 'H', long, help_heading = "What is a duplicate")]
    pub(crate) match_links: bool,
    /// Report directories that hold the same files under the same names, not files
    ///
    /// Everything below them counts, so that hidden, ignored and empty files are taken too. Those
    /// within others that are reported are not reported themselves; the commands touch none.
    #[arg(long, help_heading = "What is a duplicate")]
    #[arg(conflicts_with_all = [
        "name", "path", "exclude", "max", "depth", "one_fs", "symbolic_links", "rf_over",
        "rf_under", "unique", "isolate", "match_links", "transform", "skip_content_hash",
    ])]
    pub(crate) dirs: bool,
    /// Compare what this command makes of the files
    ///
    /// The file comes on its stdin and the result is read from its stdout. $IN in the command is the
    /// path of a copy of the file instead, $OUT that of a pipe to write the result to. No shell
    /// reads the command.
    #[arg(long, value_name = "COMMAND", help_heading = "What is a duplicate")]
    #[arg(conflicts_with_all = ["skip_content_hash", "cache"])]
    pub(crate) transform: Option<String>,
    /// The command changes $IN, and that is the result
    #[arg(long, requires = "transform", help_heading = "What is a duplicate")]
    pub(crate) in_place: bool,
    /// $IN is the file itself, not a copy: the command must not change it
    #[arg(long, requires = "transform", conflicts_with = "in_place")]
    #[arg(help_heading = "What is a duplicate")]
    pub(crate) no_copy: bool,

    /// Write the report into this file instead of stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub(crate) output: Option<PathBuf>,
    /// How the report is written
    #[arg(short, long, value_name = "FORMAT", default_value = "default", help_heading = "Report")]
    pub(crate) format: ReportFormat,
    /// Whether to show how far it is on stderr
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Report")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) progress: ShowProgress,

    /// Keep digests in a file, and read unchanged files no more
    ///
    /// The file is DIGESTS, or haul/digests-HASH below $XDG_CACHE_HOME or ~/.cache. A file is taken
    /// for unchanged when its device, inode, length and both times are as they were.
    #[arg(long, value_name = "DIGESTS", num_args = 0..=1, require_equals = true)]
    #[arg(help_heading = "How files are read")]
    pub(crate) cache: Option<Option<PathBuf>>,
    /// The hash that tells contents apart, and is reported
    #[arg(long, value_name = "HASH", default_value = "xxh3", help_heading = "How files are read")]
    pub(crate) hash_fn: Hash,
    /// Take files for equal that agree in head, tail and samples between
    #[arg(long, help_heading = "How files are read")]
    pub(crate) skip_content_hash: bool,
    /// How much of the beginning is read first [default: 4KiB; 16KiB of rotating disks]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[arg(hide_short_help = true, help_heading = "How files are read")]
    pub(crate) max_prefix_size: Option<u64>,
    /// How much of the end is read then [default: as much]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    #[arg(hide_short_help = true, help_heading = "How files are read")]
    pub(crate) max_suffix_size: Option<u64>,
    /// What kind of disk the files are on [default: what it says; measured if it says it rotates]
    #[arg(long, value_name = "KIND", help_heading = "How files are read")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// How many threads list directories and read from each device
    #[arg(short, long, value_name = "N", help_heading = "How files are read")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Leave the page cache as it is: nothing that was not in memory before stays there
    ///
    /// Without it what is read of small files stays, so that it is found there the next time, and
    /// what is read of big ones does not.
    #[arg(long, action = ArgAction::SetTrue, help_heading = "How files are read")]
    pub(crate) spare_cache: bool,
    /// Let what is read of big files stay in the page cache, too
    #[arg(long, action = ArgAction::SetTrue, help_heading = "How files are read")]
    #[arg(conflicts_with = "spare_cache")]
    pub(crate) fill_cache: bool,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A header, then each group; the commands read it
    Default,
    /// Paths alone, a blank line after each group
    Fdupes,
    /// size,hash,count,files
    Csv,
    /// One object; the commands read it, and check who each file is
    Json,
}

/// When progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowProgress {
    /// When stderr is a terminal
    Auto,
    /// Always
    True,
    /// Never
    False,
}
