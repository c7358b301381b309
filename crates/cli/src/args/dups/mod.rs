//! Defines the arguments of `haul dups`.

mod actions;
mod blocks;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::disk_kind::DiskKind;
use super::examples;
use super::hash::Hash;
use super::values::parse_positive;
use crate::progress::ShowProgress;
use crate::units::parse_bytes_decimal as parse_size;
pub(crate) use actions::{ActionArgs, ActionOptions, PriorityArg};
use actions::{LinkArgs, MoveArgs};
pub(crate) use blocks::BlocksArgs;

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
    /// Remove duplicate files listed in a report
    ///
    /// Keeps at least one file of each group. Before each removal, the file is compared byte by
    /// byte with one that is kept. Files that changed since the report, are open for writing or are
    /// locked are skipped and reported.
    #[command(after_long_help = examples::DUPS_REMOVE)]
    Remove(ActionArgs),
    /// Replace duplicates with hard links to the file that is kept
    ///
    /// Afterwards all names refer to one file: a change under one name is visible under all. Files
    /// are compared as by "haul dups remove"; each name refers to a complete file at any time.
    #[command(after_long_help = examples::DUPS_LINK)]
    Link(LinkArgs),
    /// Replace duplicates with symbolic links to the file that is kept
    ///
    /// Files are compared as by "haul dups remove".
    #[command(after_long_help = examples::DUPS_SYMLINK)]
    Symlink(ActionArgs),
    /// Share the blocks of duplicates with the file that is kept (reflink)
    ///
    /// For btrfs, XFS and other file systems with reflinks. The kernel compares both files under
    /// lock; content and times do not change. A file modified later gets blocks of its own.
    #[command(after_long_help = examples::DUPS_DEDUPE)]
    Dedupe(ActionArgs),
    /// Share equal blocks of files, also of files that are equal only in part (as duperemove)
    ///
    /// For btrfs, XFS and other file systems with reflinks. Needs no report: searches the paths, all
    /// hidden and ignored files included. The kernel compares both ranges under lock before it
    /// shares their blocks; content and times do not change.
    #[command(after_long_help = blocks::EXAMPLES)]
    Blocks(BlocksArgs),
    /// Move duplicates below a directory, each with its full path
    ///
    /// Files are compared as by "haul dups remove". No file is overwritten.
    #[command(after_long_help = examples::DUPS_MOVE)]
    Move(MoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Files, and directories to search [default: the current directory]
    ///
    /// The order matters: files below the first path come first in their groups and are kept. If a
    /// path has the name of a subcommand, write it with ./, such as ./remove.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Read paths from stdin, one per line
    #[arg(long, conflicts_with = "paths", help_heading = "Search")]
    pub(crate) stdin: bool,
    /// Paths on stdin, and in --format fdupes, end with NUL instead of newline
    #[arg(short = '0', long, help_heading = "Search")]
    pub(crate) null: bool,
    /// Maximum depth of directories below a PATH; 0 for a PATH that is a file
    ///
    /// As in fclones, 1 includes the files in a PATH and in its subdirectories.
    #[arg(short, long, value_name = "N", help_heading = "Search")]
    pub(crate) depth: Option<usize>,
    /// Include hidden files and directories
    #[arg(short = '.', long, help_heading = "Search")]
    pub(crate) hidden: bool,
    /// Include files excluded by .gitignore, .fdignore or .ignore
    #[arg(short = 'A', long, help_heading = "Search")]
    pub(crate) no_ignore: bool,
    /// Follow symbolic links
    #[arg(short = 'L', long, help_heading = "Search")]
    pub(crate) follow_links: bool,
    /// Report symbolic links to files, as the files they refer to; no subcommand modifies them
    #[arg(short = 'S', long, help_heading = "Search")]
    pub(crate) symbolic_links: bool,
    /// Do not cross file system boundaries
    #[arg(short = '1', long, help_heading = "Search")]
    pub(crate) one_fs: bool,
    /// Base directory of relative paths and patterns [default: current directory]
    #[arg(long, value_name = "DIR", help_heading = "Search")]
    pub(crate) base_dir: Option<PathBuf>,

    /// Minimum size of a file
    ///
    /// As in fclones, 1k, 1M and 1G are powers of 1000, and 1KiB, 1MiB and 1GiB powers of 1024.
    #[arg(short = 's', long, value_name = "SIZE", help_heading = "Filters")]
    #[arg(default_value = "1", value_parser = parse_size)]
    pub(crate) min: u64,
    /// Maximum size of a file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Filters")]
    pub(crate) max: Option<u64>,
    /// Include only files whose name matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(crate) name: Vec<String>,
    /// Include only files whose full path matches; repeatable
    ///
    /// In patterns, * and ? do not match "/", ** does. [a-z], [!a], {a,b}, +(a|b), *(a|b), ?(a|b),
    /// @(a|b) and !(a|b) are supported; the last matches anything but a and b. A pattern must match
    /// the whole path, and is relative to --base-dir unless it begins with / or **.
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(crate) path: Vec<String>,
    /// Exclude files and directories whose path matches; repeatable
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(crate) exclude: Vec<String>,
    /// Match patterns case-insensitively
    #[arg(short, long, help_heading = "Filters")]
    pub(crate) ignore_case: bool,
    /// Interpret patterns as regular expressions
    #[arg(short = 'x', long, help_heading = "Filters")]
    pub(crate) regex: bool,

    /// Report groups with more than N replicas [default: 1]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Groups")]
    #[arg(conflicts_with_all = ["rf_under", "unique"])]
    pub(crate) rf_over: Option<usize>,
    /// Report groups with fewer than N replicas
    #[arg(long, value_name = "N", help_heading = "Groups")]
    pub(crate) rf_under: Option<usize>,
    /// Report files without duplicates, as --rf-under 2
    #[arg(long, conflicts_with = "rf_under", help_heading = "Groups")]
    pub(crate) unique: bool,
    /// Count all equal files below one PATH argument as one replica
    #[arg(short = 'I', long, conflicts_with = "follow_links")]
    #[arg(help_heading = "Groups")]
    pub(crate) isolate: bool,
    /// Count each hard link as a replica, not all links of a file as one
    #[arg(short = 'H', long, help_heading = "Groups")]
    pub(crate) match_links: bool,
    /// Report duplicate directories: same names, same content
    ///
    /// Includes hidden, ignored and empty files. Directories inside a reported one are not reported
    /// separately. The subcommands do not modify directories.
    #[arg(long, help_heading = "Groups")]
    #[arg(conflicts_with_all = [
        "name", "path", "exclude", "max", "depth", "one_fs", "symbolic_links", "rf_over",
        "rf_under", "unique", "isolate", "match_links", "transform", "skip_content_hash",
    ])]
    pub(crate) dirs: bool,
    /// Compare the outputs of this command for the files instead of their contents
    ///
    /// The command reads the file from stdin and writes the result to stdout. In its arguments, $IN
    /// is replaced with the path of a copy of the file, and $OUT with that of a pipe for the
    /// result. The command is not run by a shell.
    #[arg(long, value_name = "COMMAND", help_heading = "Groups")]
    #[arg(conflicts_with_all = ["skip_content_hash", "cache"])]
    pub(crate) transform: Option<String>,
    /// Compare the copy at $IN, which COMMAND modifies, instead of its output
    #[arg(long, requires = "transform", help_heading = "Groups")]
    pub(crate) in_place: bool,
    /// Pass the original file as $IN, not a copy; the command must not modify it
    #[arg(long, requires = "transform", conflicts_with = "in_place")]
    #[arg(help_heading = "Groups")]
    pub(crate) no_copy: bool,

    /// Write the report to FILE instead of stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "default", help_heading = "Report")]
    #[arg(ignore_case = true)]
    pub(crate) format: ReportFormat,
    /// Write the report as one JSON object; read by the subcommands
    ///
    /// The keys are those of fclones: header (with version, timestamp, command, base_dir and stats)
    /// and groups, each with file_len, file_hash and files. Haul adds ids, by which the subcommands
    /// skip files whose inode or mtime changed.
    #[arg(long, conflicts_with = "format", help_heading = "Report")]
    pub(crate) json: bool,
    /// Draw the redundant files to FILE, too, as an SVG treemap of their directories
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) svg: Option<PathBuf>,
    /// Show progress on stderr
    ///
    /// On a terminal, a bar is shown; otherwise, a line is printed at the start of each phase, and
    /// every 10 seconds.
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Report")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) progress: ShowProgress,

    /// Cache digests in a file, and do not read unchanged files again
    ///
    /// The cache is the file DIGESTS, or haul/digests-HASH below $XDG_CACHE_HOME or ~/.cache. A
    /// file is unchanged if its device, inode, length, mtime and ctime are unchanged.
    #[arg(long, value_name = "DIGESTS", num_args = 0..=1, require_equals = true)]
    #[arg(help_heading = "Reading")]
    pub(crate) cache: Option<Option<PathBuf>>,
    /// Hash function for comparison and in the report
    #[arg(long, value_name = "HASH", default_value = "xxh3", help_heading = "Reading")]
    pub(crate) hash_fn: Hash,
    /// Treat files as equal if their heads, tails and samples are equal; read no other bytes
    #[arg(long, help_heading = "Reading")]
    pub(crate) skip_content_hash: bool,
    /// Bytes read from the head of a file first [default: 4KiB; 16KiB on rotational disks]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(hide_short_help = true, help_heading = "Reading")]
    pub(crate) max_prefix_size: Option<u64>,
    /// Bytes read from the tail of a file next [default: as --max-prefix-size]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(hide_short_help = true, help_heading = "Reading")]
    pub(crate) max_suffix_size: Option<u64>,
    /// Kind of disk [default: as reported by the kernel; measured if reported as rotational]
    #[arg(long, value_name = "KIND", help_heading = "Reading")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// Number of threads per device that list directories and read files
    #[arg(short, long, value_name = "N", help_heading = "Reading")]
    #[arg(value_parser = parse_positive::<NonZeroUsize>)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Restore the page cache: evict pages that were not cached before
    ///
    /// By default, small files that were read stay in the page cache, and big files do not.
    #[arg(long, action = ArgAction::SetTrue, help_heading = "Reading")]
    pub(crate) spare_cache: bool,
    /// Leave big files in the page cache, too
    #[arg(long, action = ArgAction::SetTrue, help_heading = "Reading")]
    #[arg(conflicts_with = "spare_cache")]
    pub(crate) fill_cache: bool,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Header and groups; read by the subcommands
    Default,
    /// Paths only, with a blank line after each group
    Fdupes,
    /// One line per group: size,hash,count,files
    Csv,
    /// As --json: the name of this format in fclones
    #[value(hide = true)]
    Json,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};
    use haul_duplicates::report::{OptionValue, SEARCH_OPTIONS};

    use super::*;
    use crate::args::Cli;

    #[test]
    fn reports_know_all_options_of_a_search() {
        let mut cli = Cli::command();
        cli.build();
        let command = cli.find_subcommand("dups").unwrap();
        let options =
            command.get_opts().chain(command.get_arguments().filter(|a| !a.is_positional()));
        let mut known: Vec<_> = SEARCH_OPTIONS.iter().map(|row| row.1).collect();
        for option in options.filter(|option| option.get_id() != "help") {
            let name = option.get_long().unwrap();
            let (short, _, value) = SEARCH_OPTIONS.iter().find(|row| row.1 == name).unwrap();
            let takes = match (option.get_action().takes_values(), option.is_require_equals_set()) {
                (false, _) => OptionValue::Never,
                (true, false) => OptionValue::Required,
                (true, true) => OptionValue::Optional,
            };
            assert_eq!((*short, *value), (option.get_short().unwrap_or('\0'), takes), "{name}");
            assert_eq!(option.get_all_aliases(), None, "{name}");
            known.retain(|known| *known != name);
        }
        assert!(known.is_empty(), "{known:?}");
    }

    #[test]
    fn reports_know_all_hash_functions_by_their_names() {
        use haul_duplicates::report::{Header, Stats, Timestamp};
        for hash in Hash::value_variants() {
            for name in hash.to_possible_value().unwrap().get_name_and_aliases() {
                let command = ["haul", "dups", "--hash-fn", name].map(Into::into).into();
                let (program, timestamp) = (String::new(), Timestamp(0));
                let (base, stats) = ("/".into(), Stats::default());
                let header = Header { program, timestamp, command, base, stats };
                assert_eq!(header.search().unwrap().hash, (*hash).into(), "{name}");
            }
        }
    }
}
