//! The part of the table for `haul tune`.

use std::path::PathBuf;

use clap::Args;

use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Files or directories on the file systems it is about [default: the current directory]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// All file systems on block devices that are mounted to be written to
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Measure how fast each disk takes what is written, and whether it rotates
    ///
    /// Writes 256 MiB in sequence into a file without a name and syncs it; less on a slow disk, and
    /// never more than an eighth of what is free. Nothing is left behind, however it ends. Without
    /// it, times are told for the rates that the kind of disk lets expect.
    #[arg(long)]
    pub(crate) measure: bool,
    /// How much a disk takes in a second, where you know it: 400MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "measure")]
    pub(crate) rate: Option<u64>,
    /// Set what is safe to set at run time: limits on dirty data, readahead, scheduler
    ///
    /// As root. Each setting is told as old → new with the line that undoes it, and read back. It
    /// lasts until the machine is started again. Mount options, and what else is marked "by hand",
    /// are never touched.
    #[arg(long)]
    pub(crate) apply: bool,
    /// With --apply: show what would be set, and set nothing
    #[arg(long, requires = "apply")]
    pub(crate) dry_run: bool,
    /// With --apply: write a script that undoes it, before anything is set
    #[arg(long, value_name = "FILE", requires = "apply", conflicts_with = "dry_run")]
    pub(crate) undo_to: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where /proc and /sys are laid out, for trying it on another machine's files
    #[arg(long, value_name = "DIR", hide = true, requires = "all", conflicts_with = "measure")]
    pub(crate) system_root: Option<PathBuf>,
}
