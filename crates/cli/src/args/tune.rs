//! Defines the arguments of `haul tune`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::units::parse_bytes;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["apply", "persist", "revert"]).multiple(true))]
pub(crate) struct TuneArgs {
    /// Files or directories on the file systems to examine [default: the current directory]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Examine all writable mounted file systems on block devices
    #[arg(long, conflicts_with = "paths")]
    pub(crate) all: bool,
    /// Measure the write rate of each disk, and check whether it is rotational
    ///
    /// Writes and syncs 256 MiB sequentially (less on a slow disk, and at most an eighth of the
    /// free space) in an unnamed file, which is freed however the program ends. Without this
    /// option, estimates use a rate typical of the kind of disk.
    #[arg(long)]
    pub(crate) measure: bool,
    /// Known write rate of the disk per second, such as 400MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "measure")]
    pub(crate) rate: Option<u64>,
    /// Change settings that are safe to change at run time: dirty limits, readahead, scheduler
    ///
    /// Requires root. Prints each setting as old → new with the command that undoes it, and
    /// verifies the new value. Settings last until reboot. Mount options and all other settings
    /// marked "by hand" are never changed. With --measure, each disk is measured three times;
    /// nothing is changed if the load average exceeds the number of cores, the rates differ by
    /// more than 25 %, or only loop devices were measured.
    #[arg(long)]
    pub(crate) apply: bool,
    /// Change settings as --apply does, and write them to files, so that they last
    ///
    /// The files are /etc/sysctl.d/90-haul.conf and /etc/udev/rules.d/90-haul.rules. They have the
    /// values before, too, in comments. Files that --persist did not write, or that were changed
    /// since, are not replaced.
    #[arg(long)]
    pub(crate) persist: bool,
    /// Restore the values before --persist, and remove its files
    ///
    /// A setting that was changed since is left as it is. If a setting cannot be restored, its file
    /// remains.
    #[arg(long, conflicts_with_all = ["paths", "measure", "rate", "apply", "persist", "undo_to"])]
    pub(crate) revert: bool,
    /// With --apply, --persist or --revert: print the changes, and make none
    #[arg(long, requires = "change")]
    pub(crate) dry_run: bool,
    /// With --apply or --persist: write a script that undoes the changes before making them
    #[arg(long, value_name = "FILE", requires = "change", conflicts_with = "dry_run")]
    pub(crate) undo_to: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Root of copied /proc and /sys trees, to examine another machine
    #[arg(long, value_name = "DIR", hide = true, requires = "all", conflicts_with = "measure")]
    pub(crate) system_root: Option<PathBuf>,
}

impl TuneArgs {
    /// `true` if recommended settings are to be changed.
    pub(crate) fn applies(&self) -> bool {
        self.apply || self.persist
    }
}
