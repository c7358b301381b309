//! Defines the arguments of `haul dups blocks`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::args::disk_kind::DiskKind;
use crate::args::values::parse_positive;
use crate::progress::ShowProgress;
use crate::units::parse_bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  haul dups blocks --dry-run /images        print what would be shared, as xfs_io commands
  haul dups blocks /images
  haul dups blocks --block-size 16KiB --json /vm > shared.jsonl

Exit codes:
  0  all equal blocks are shared
  1  some files or ranges were skipped; stderr has the reasons
  2  invalid command line
  3  a path of the command line does not exist; the others were processed";

#[derive(Debug, Args)]
pub(crate) struct BlocksArgs {
    /// Files, and directories with all files below them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Print the commands that would share the blocks, and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Length of a block: a power of 2 from 4KiB to 16MiB
    ///
    /// Equal ranges are found if they begin at a multiple of it in both files. Smaller blocks find
    /// more, and take more memory: 16 bytes per block.
    #[arg(short, long, value_name = "SIZE", default_value = "128KiB", value_parser = block_size)]
    pub(crate) block_size: u64,
    /// Minimum size of a file
    #[arg(short = 's', long, value_name = "SIZE", default_value = "4KiB")]
    #[arg(value_parser = parse_bytes)]
    pub(crate) min: u64,
    /// Do not cross file system boundaries
    #[arg(short = '1', long)]
    pub(crate) one_fs: bool,
    /// Print one JSON object for each shared range, one per line, and one with the totals
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Show progress on stderr
    ///
    /// On a terminal, a bar is shown; otherwise, a line is printed at the start of each phase, and
    /// every 10 seconds.
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) progress: ShowProgress,
    /// Kind of disk [default: as reported by the kernel; measured if reported as rotational]
    #[arg(long, value_name = "KIND", help_heading = "Reading")]
    pub(crate) disk_kind: Option<DiskKind>,
    /// Number of threads per device that list directories and read files
    #[arg(short, long, value_name = "N", help_heading = "Reading")]
    #[arg(value_parser = parse_positive::<NonZeroUsize>)]
    pub(crate) threads: Option<NonZeroUsize>,
}

fn block_size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if bytes.is_power_of_two() && (4 << 10..=16 << 20).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("expected a power of 2 from 4KiB to 16MiB".to_owned())
    }
}
