//! The part of the table below `haul cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::disk_kind::DiskKind;
use super::examples;
use crate::units::parse_bytes;

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show how much of files is in the page cache, without changing that
    ///
    /// A bar stands for a file from its beginning to its end: full where all is in memory, shaded
    /// where some of it is. The kernel tells this of files that you own or may write.
    #[command(after_long_help = examples::CACHE_STATUS)]
    Status(StatusArgs),
    /// Bring files into the page cache, in the order they lie on the disk
    ///
    /// It ends when all has been read, and tells what is in the page cache then. Files that do not
    /// fit into --max-bytes, in the order they were found, are left out.
    #[command(after_long_help = examples::CACHE_WARM)]
    Warm(WarmArgs),
    /// Drop files from the page cache
    ///
    /// What was written and is not yet on the medium stays, and so does what a program has mapped:
    /// how much that is is told.
    #[command(after_long_help = examples::CACHE_EVICT)]
    Evict(EvictArgs),
}

/// Which files, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// Files, and directories with everything below them
    ///
    /// Each file counts once, whatever number of names it has. Symbolic links are followed when
    /// they are named here, and not below.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Stay on the file systems of the paths
    #[arg(long, short = 'x')]
    pub(crate) one_file_system: bool,
    /// Write JSON, an object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// How many files are shown, those with the most in the page cache first; named ones always are
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Show all files, in the order of their names
    #[arg(long = "files", conflicts_with = "top")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WarmArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// How much to read, at most [default: as much memory as is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_bytes: Option<u64>,
    /// What kind of disk the files are on [default: what it says]
    #[arg(long, value_name = "KIND")]
    pub(crate) disk_kind: Option<DiskKind>,
}

#[derive(Debug, Args)]
pub(crate) struct EvictArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    /// Write what is dirty to the medium first, so that it can go
    #[arg(long)]
    pub(crate) sync: bool,
}
