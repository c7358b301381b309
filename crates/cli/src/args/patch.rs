//! The part of the table for `haul patch`.

use std::path::PathBuf;

use clap::Args;

use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    /// The file to write into; it must be there
    #[arg(value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Take the records from files: a list of lines "offset path", or "-" for stdin
    ///
    /// The offset is a number of bytes; all of the file is written there. Paths are relative to the
    /// current directory. Empty lines and lines that begin with # are skipped.
    #[arg(long, value_name = "LIST", help_heading = "Records")]
    pub(crate) list: Option<PathBuf>,
    /// Let records end behind the end of the file, which grows
    #[arg(long, help_heading = "Records")]
    pub(crate) extend: bool,
    /// All records or none: make them durable beside the file first
    ///
    /// They go into the directory FILE.haul-patch, which needs as much space as they have bytes,
    /// and is removed at the end.
    #[arg(long, help_heading = "Safety")]
    pub(crate) atomic: bool,
    /// Only complete an --atomic patch that a crash interrupted; read no records
    #[arg(long, help_heading = "Safety")]
    #[arg(conflicts_with_all = ["atomic", "list", "extend", "dry_run"])]
    pub(crate) resume: bool,
    /// Read and check all records, tell what writing them would come to, and write nothing
    #[arg(long, conflicts_with = "atomic", help_heading = "Safety")]
    pub(crate) dry_run: bool,
    /// The memory for records, 1MiB to 64GiB: half of it fills while the other half is written
    ///
    /// The more, the shorter the way from one record to the next.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", help_heading = "Speed")]
    #[arg(value_parser = parse_memory)]
    pub(crate) memory: u64,
    /// How many requests are under way at once, 1 to 64
    ///
    /// As a rule 4 on a disk that turns and 8 on one that does not, as far as the kernel knows.
    #[arg(long, value_name = "N", help_heading = "Speed", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) depth: Option<u32>,
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(1 << 20..=64 << 30).contains(&bytes) {
        return Err("it must lie between 1MiB and 64GiB".to_owned());
    }
    Ok(bytes)
}
