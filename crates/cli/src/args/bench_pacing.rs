//! The part of the table below `haul bench pacing`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use haul_bench::write_modes::VirtualDisk;
use haul_disk::{WINDOW_BYTES_MAX, WINDOW_BYTES_MIN};

use super::bench::ReportArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct BenchPacingArgs {
    /// The directory to measure in; virtual disks are made in it
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File systems to make in files and measure instead: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// Needs root. With a journal, who syncs a little may have to wait for the bulk data of others.
    /// Each request goes through the file system of DIR, too: times hold only against each other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) virtual_disk: Vec<VirtualDisk>,
    /// How much bulk data is written each time
    ///
    /// From some half of the kernel's limit on, a writer may have to wait who syncs nothing at all:
    /// the limit is a fifth of the memory that is free, or --dirty-limit.
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_bulk_bytes)]
    pub(crate) bulk: u64,
    /// The windows of the pacer, 256KiB to 64MiB; ratios are about the first one
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4MiB")]
    #[arg(value_parser = parse_window_bytes)]
    pub(crate) windows: Vec<u64>,
    /// How often each way is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long the two quick writers are measured without bulk data, each time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub(crate) alone: Duration,
    /// Sets the kernel's limit of dirty bytes for a while, and its background limit to half of it
    ///
    /// Needs root. Everybody on the machine has it meanwhile. Both are as before afterwards, also
    /// when the program is killed.
    #[arg(long, value_name = "SIZE", value_parser = parse_dirty_limit)]
    pub(crate) dirty_limit: Option<u64>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn parse_bulk_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x40_0000..=0x1000_0000_0000 => Ok(bytes),
        _ => Err("bulk data is of 4MiB to 16TiB".to_owned()),
    }
}

fn parse_window_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX => Ok(bytes),
        _ => Err("a window is of 256KiB to 64MiB".to_owned()),
    }
}

fn parse_dirty_limit(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x10_0000.. => Ok(bytes),
        _ => Err("the limit is 1MiB at least".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::pacing::Options;

    use super::super::bench::{BenchArgs, BenchCommand};
    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<BenchPacingArgs, String> {
        let words = ["haul", "bench", "pacing", "--dir", "d"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Bench(BenchArgs { command: BenchCommand::Pacing(args) }) = cli.command else {
            panic!("not pacing")
        };
        Ok(args)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let (args, options) = (parsed(&[]).unwrap(), Options::new("d"));
        assert_eq!((args.bulk, args.windows), (options.bulk_bytes, options.window_bytes));
        assert_eq!((args.rounds, args.alone), (options.rounds, options.alone));
        assert_eq!(args.dirty_limit, options.dirty_limit_bytes);
        assert!(args.virtual_disk == options.virtual_disks);
    }

    #[test]
    fn mistakes_are_explained() {
        for (arguments, why) in [
            (["--windows", "4KiB"], "256KiB"),
            (["--windows", "8MiB,65MiB"], "64MiB"),
            (["--bulk", "1MiB"], "4MiB"),
            (["--dirty-limit", "4KiB"], "1MiB"),
            (["--virtual-disk", "zfs"], "ext4-nojournal"),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
