//! The part of the table for `haul sum`.

use std::path::PathBuf;

use clap::Args;

use super::disk_kind::DiskKind;
use super::hash::Hash;

#[derive(Debug, Args)]
pub(crate) struct SumArgs {
    /// The files, and directories with all files below them; "-" is the standard input
    ///
    /// Without any, and without --check, the standard input is hashed. Symbolic links are followed
    /// only when they are named here. With --check: directories whose files all have to be in the
    /// list.
    pub(crate) paths: Vec<PathBuf>,
    /// The hash
    ///
    /// With --check it is that of lines that do not tell their own.
    #[arg(long, value_name = "NAME", default_value = "blake3")]
    pub(crate) hash: Hash,
    /// Compare the files with this list of sums; "-" is the standard input
    ///
    /// Lists of b3sum, sha256sum and their like are understood, in both of their forms.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
    /// Read the paths from this file, one on each line; "-" is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "check", help_heading = "Input")]
    pub(crate) files_from: Option<PathBuf>,
    /// The paths of --files-from end with a zero byte instead of a newline
    #[arg(short = '0', long, requires = "files_from", help_heading = "Input")]
    pub(crate) null: bool,
    /// Write lines such as "SHA256 (name) = sum"
    #[arg(long, conflicts_with = "check", help_heading = "Output")]
    pub(crate) tag: bool,
    /// End lines with a zero byte, and write names as they are
    #[arg(short, long, conflicts_with = "check", help_heading = "Output")]
    pub(crate) zero: bool,
    /// Write a JSON object on a line for each file
    #[arg(long, conflicts_with_all = ["tag", "zero"], help_heading = "Output")]
    pub(crate) json: bool,
    /// Do not tell the files that are as they should be
    #[arg(long, requires = "check", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Tell nothing: the exit code says it
    #[arg(long, requires = "check", help_heading = "Output")]
    pub(crate) status: bool,
    /// Files of the list that are not there are no failure
    #[arg(long, requires = "check", help_heading = "Checking")]
    pub(crate) ignore_missing: bool,
    /// A line of the list that cannot be understood is a failure
    #[arg(long, requires = "check", help_heading = "Checking")]
    pub(crate) strict: bool,
    /// Leave the page cache as it is: what was not in memory before does not stay there
    #[arg(long, help_heading = "Reading")]
    pub(crate) spare_cache: bool,
    /// What kind of disk the files are on [default: what it says; measured if it says it rotates]
    #[arg(long, value_name = "KIND", help_heading = "Reading")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// How many threads read from each disk; by default as suits it
    #[arg(long, value_name = "N", help_heading = "Reading")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
