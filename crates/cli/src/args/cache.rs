//! Defines the arguments of `haul cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::disk_kind::DiskKind;
use super::examples;
use super::values::ProgressArgs;
use crate::units::parse_bytes;

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show how much of each file is in the page cache
    ///
    /// Does not change the page cache. A bar represents a file from its beginning to its end: full
    /// where all pages are cached, shaded where some are. The kernel reports residency only for
    /// files that the user owns or may write.
    #[command(after_long_help = examples::CACHE_STATUS)]
    Status(StatusArgs),
    /// Load files into the page cache, in the order of their blocks on disk
    ///
    /// Returns when all files are read, and prints how much of them is in the page cache then.
    /// Files are selected in the order in which they are found until --max-bytes is reached: the
    /// file that would exceed --max-bytes is read in part, and all later files are skipped.
    #[command(after_long_help = examples::CACHE_WARM)]
    Warm(WarmArgs),
    /// Evict files from the page cache
    ///
    /// Dirty pages and pages mapped by a program stay; their number is printed.
    #[command(after_long_help = examples::CACHE_EVICT)]
    Evict(EvictArgs),
}

/// The files to process, and the output format.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// Files, and directories with all files below them
    ///
    /// A file with several hard links is processed once. Symbolic links are followed only if named
    /// on the command line.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Do not cross file system boundaries
    #[arg(long, short = 'x')]
    pub(crate) one_file_system: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Number of files to show, those with the most cached bytes first
    ///
    /// Files named on the command line are always shown, and are not counted.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Show all files, sorted by name
    #[arg(long = "files", conflicts_with = "top")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WarmArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Maximum number of bytes to load [default: the available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_bytes: Option<u64>,
    /// Kind of the disk that the files are on [default: as reported by the kernel]
    #[arg(long, value_name = "KIND")]
    pub(crate) disk_kind: Option<DiskKind>,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvictArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Write dirty pages to disk first, so that they can be evicted
    #[arg(long)]
    pub(crate) sync: bool,
}
