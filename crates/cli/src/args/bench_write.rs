//! The part of the table below `haul bench` that is about random writes.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use haul_bench::random_write::Way;
use haul_bench::read_order::Drive;

use super::bench::ReportArgs;
use super::bench_read::{parse_file_bytes, parse_time_scale};
use crate::units::{parse_bytes, parse_time};

/// A simulated drive, or none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DriveOrNone(pub(crate) Option<Drive>);

impl FromStr for DriveOrNone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self(None)),
            name => Drive::from_str(name)
                .map(|drive| Self(Some(drive)))
                .map_err(|there_are| format!("{there_are}, none")),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RandomWriteArgs {
    /// A directory to measure in too; some GiB must be free there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The simulated drives; none leaves them out
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "deskstar-7k1000.c")]
    pub(crate) drive: Vec<DriveOrNone>,
    /// The ways: random, random-direct, sorted, sorted-direct, sorted-merged
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "random,random-direct,sorted,sorted-direct,sorted-merged")]
    pub(crate) ways: Vec<Way>,
    /// How many records are written, at most
    #[arg(long, value_name = "N", default_value = "20000")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000))]
    pub(crate) records: usize,
    /// Numbers of records between syncs; more than there are is one sync in the end
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,1000,1000000")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000))]
    pub(crate) batches: Vec<usize>,
    /// How many batches are written at most: short ones cost the same each
    #[arg(long, value_name = "N", default_value = "1000")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000))]
    pub(crate) batches_max: usize,
    /// The length of the file the records go to; zeros of it take no memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_file_bytes)]
    pub(crate) file_size: u64,
    /// The length of the index, which has an entry of 64 B for each record; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_bytes)]
    pub(crate) index_size: u64,
    /// How often each row is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// Seconds by the clock for each second of the drive; at 0 nobody waits
    #[arg(long, value_name = "FACTOR", default_value = "0", value_parser = parse_time_scale)]
    pub(crate) time_scale: f64,
    /// The kernel's scheduler for the simulated disk
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(crate) scheduler: String,
    /// Other places
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Numbers of threads that write pages
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) writers: Vec<usize>,
    /// The length of the file of pages
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_file_bytes)]
    pub(crate) pages_size: u64,
    /// How long pages are written in a round, such as 3s
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    /// How far the log of the page file may be ahead of the file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub(crate) log_size: u64,
    /// Memory of each of the two generations of the page file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub(crate) memory: u64,
    /// The program that drives databases, haul-bench-compare
    ///
    /// Without this it is looked for beside this program, then in the directories of PATH. How to
    /// build it: docs/log-bench.md.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::random_write::Options;

    use super::super::bench::{BenchArgs, BenchCommand};
    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<RandomWriteArgs, String> {
        let words = ["haul", "bench", "random-write"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Bench(BenchArgs { command: BenchCommand::RandomWrite(args) }) = cli.command
        else {
            panic!("not random-write")
        };
        Ok(args)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let (args, options) = (parsed(&[]).unwrap(), Options::default());
        let drives: Vec<_> = args.drive.into_iter().filter_map(|drive| drive.0).collect();
        assert!(drives == options.drives && args.dir == options.dir);
        assert_eq!((args.records, args.batches), (options.records, options.batches));
        assert_eq!(args.ways, options.ways);
        assert_eq!((args.batches_max, args.rounds), (options.batches_max, options.rounds));
        assert_eq!((args.file_size, args.index_size), (options.file_bytes, options.index_bytes));
        assert!((args.time_scale - options.time_scale).abs() < 1e-9);
        assert_eq!((args.scheduler, args.seed), (options.scheduler, options.seed));
        assert_eq!((args.writers, args.seconds), (options.writers, options.time));
        assert_eq!(args.pages_size, options.pages_bytes);
        assert_eq!(args.log_size, options.page_file.log_bytes_max);
        assert_eq!(args.memory, options.page_file.sorted.generation_bytes as u64);
    }

    #[test]
    fn drives_can_be_left_out_and_mistakes_are_explained() {
        assert_eq!(parsed(&["--drive", "none"]).unwrap().drive, [DriveOrNone(None)]);
        for (arguments, why) in [
            (["--drive", "seagate"], "none"),
            (["--ways", "backward"], "sorted-merged"),
            (["--batches", "0"], "1..="),
            (["--file-size", "1KiB"], "1MiB"),
            (["--time-scale", "1001"], "0 to 1000"),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
