//! Defines the arguments of `haul patch`.

use std::path::PathBuf;

use clap::Args;

use super::values::{ProgressArgs, parse_bytes_between};

#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    /// Existing file to write into
    #[arg(value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Read records from files: LIST has lines "offset path"; "-" is stdin
    ///
    /// Each file is written whole, at its offset in bytes. Paths are relative to the current
    /// directory. Empty lines and lines that begin with # are skipped.
    #[arg(long, value_name = "LIST", help_heading = "Records")]
    pub(crate) list: Option<PathBuf>,
    /// Allow records beyond the end of the file, which grows
    #[arg(long, help_heading = "Records")]
    pub(crate) extend: bool,
    /// Write all records or none: make them durable in a journal first
    ///
    /// The journal is the directory FILE.haul-patch; it takes as much space as the records, and is
    /// removed at the end.
    #[arg(long, help_heading = "Safety")]
    pub(crate) atomic: bool,
    /// Complete an interrupted --atomic patch, and read no records
    #[arg(long, help_heading = "Safety")]
    #[arg(conflicts_with_all = ["atomic", "list", "extend", "dry_run"])]
    pub(crate) resume: bool,
    /// Read and check all records and print what would be written; write nothing
    #[arg(long, conflicts_with = "atomic", help_heading = "Safety")]
    pub(crate) dry_run: bool,
    /// Memory for buffered records, 1MiB to 64GiB
    ///
    /// One half is filled from the input while the other half is written to the file. More memory
    /// means shorter seeks between records. By default a quarter of the available memory.
    #[arg(long, value_name = "SIZE", help_heading = "Speed")]
    #[arg(value_parser = parse_bytes_between("1MiB", "64GiB"))]
    pub(crate) memory: Option<u64>,
    /// Maximum number of disk requests in flight, 1 to 128
    ///
    /// By default 32 on a rotational disk and 128 on others. If the kernel reports a rotational disk,
    /// a few timed reads decide, because virtual disks are often reported wrongly.
    #[arg(long, value_name = "N", help_heading = "Speed", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) depth: Option<u32>,
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
