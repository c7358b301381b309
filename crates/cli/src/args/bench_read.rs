//! The part of the table below `haul bench` that is about reading.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use haul_bench::read_order::{Drive, FileSystem};
use haul_bench::sequential_read::Advice;

use super::bench::ReportArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct RandomReadArgs {
    /// The directory to make the file in
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The length of a read, a multiple of 4KiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_pages)]
    pub(crate) size: u64,
    /// The length of the file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_file_bytes)]
    pub(crate) file_size: u64,
    /// Numbers of readers
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "1,2,4,8,16,32,64,128,256")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=4096))]
    pub(crate) readers: Vec<usize>,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each is measured in a round, such as 1s
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SequentialReadArgs {
    /// The directory to make the file in
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The length of the file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_file_bytes)]
    pub(crate) file_size: u64,
    /// The lengths of a read, multiples of 4KiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64KiB,1MiB")]
    #[arg(value_parser = parse_pages)]
    pub(crate) sizes: Vec<u64>,
    /// How far ahead of the reader the kernel is told to fetch, by madvise and fadvise
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1MiB,8MiB")]
    #[arg(value_parser = parse_pages)]
    pub(crate) windows: Vec<u64>,
    /// What the kernel is told of each descriptor: normal, sequential, random
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "normal,sequential,random")]
    pub(crate) advice: Vec<Advice>,
    /// Change the device's own readahead instead, in KiB, such as 0,128,4096
    ///
    /// Needs root, and holds for everybody who uses the device as long as the bench takes. It is
    /// set as it was at the end, also after Ctrl-C, and when the program is killed.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "advice")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(0..=1_048_576))]
    pub(crate) read_ahead_kb: Vec<u64>,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReadOrderArgs {
    /// The simulated drives
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "travelstar-7k320,deskstar-7k1000.c")]
    pub(crate) drive: Vec<Drive>,
    /// What the tree is on: ext4, xfs
    #[arg(long, value_name = "FS", default_value = "ext4")]
    pub(crate) fs: FileSystem,
    /// The size of the disk; what is written to it is kept in memory
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_disk_bytes)]
    pub(crate) disk_size: u64,
    /// How many files the tree has
    #[arg(long, value_name = "N", default_value = "2000")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(10..=1_000_000))]
    pub(crate) files: usize,
    /// In how many directories they are
    #[arg(long, value_name = "N", default_value = "40")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) dirs: usize,
    /// How often half as many files were written anywhere and as many removed; 0 is a fresh tree
    #[arg(long, value_name = "N", default_value = "6")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(0..=100))]
    pub(crate) replacements: usize,
    /// Numbers of threads that read
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Vec<usize>,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// Seconds by the clock for each second of the drive: 1 is as slow as the drive, 0 does not wait
    #[arg(long, value_name = "FACTOR", default_value = "0.1", value_parser = parse_time_scale)]
    pub(crate) time_scale: f64,
    /// The kernel's scheduler for the disk
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(crate) scheduler: String,
    /// Another tree
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn parse_pages(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x1000..=0x400_0000 if bytes.is_multiple_of(4096) => Ok(bytes),
        _ => Err("write a multiple of 4KiB, up to 64MiB".to_owned()),
    }
}

pub(super) fn parse_file_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x10_0000.. => Ok(bytes >> 20 << 20),
        _ => Err("the file has 1MiB at least".to_owned()),
    }
}

fn parse_disk_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x4000_0000.. => Ok(bytes),
        _ => Err("the disk has 1GiB at least".to_owned()),
    }
}

pub(super) fn parse_time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| (0.0..=1000.0).contains(scale));
    scale.ok_or_else(|| "write a number from 0 to 1000, such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::{random_read, read_order, sequential_read};

    use super::super::bench::{BenchArgs, BenchCommand};
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<BenchCommand, String> {
        let words = ["haul", "bench"].iter().chain(arguments);
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Bench(BenchArgs { command }) = cli.command else { panic!("not bench") };
        Ok(command)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let Ok(BenchCommand::RandomRead(args)) = parsed(&["random-read", "--dir", "d"]) else {
            panic!("not random-read")
        };
        let options = random_read::Options::new("d");
        assert_eq!((args.size, args.file_size), (options.read_bytes, options.file_bytes));
        assert_eq!((args.readers, args.rounds), (options.readers, options.rounds));
        assert_eq!(args.seconds, options.time);

        let Ok(BenchCommand::SequentialRead(args)) = parsed(&["sequential-read", "--dir", "d"])
        else {
            panic!("not sequential-read")
        };
        let options = sequential_read::Options::new("d");
        assert_eq!((args.file_size, args.sizes), (options.file_bytes, options.request_bytes));
        assert_eq!((args.windows, args.advice), (options.window_bytes, options.advices));
        assert_eq!((args.read_ahead_kb, args.rounds), (options.read_ahead_kib, options.rounds));

        let Ok(BenchCommand::ReadOrder(args)) = parsed(&["read-order"]) else {
            panic!("not read-order")
        };
        let options = read_order::Options::default();
        assert!(args.drive == options.drives && args.fs == options.file_system);
        assert_eq!((args.files, args.dirs), (options.files, options.dirs));
        assert_eq!((args.disk_size, args.threads), (options.disk_bytes, options.threads));
        assert_eq!((args.rounds, args.seed), (options.rounds, options.seed));
        assert_eq!(args.replacements, options.replacements);
        assert!((args.time_scale - options.time_scale).abs() < 1e-9);
        assert_eq!(args.scheduler, options.scheduler);
    }

    #[test]
    fn mistakes_are_explained() {
        for (arguments, why) in [
            (["random-read", "--dir", "d", "--size", "5000B"], "4KiB"),
            (["random-read", "--dir", "d", "--file-size", "4KiB"], "1MiB"),
            (["random-read", "--dir", "d", "--readers", "0"], "1..="),
            (["sequential-read", "--dir", "d", "--advice", "often"], "sequential"),
            (["sequential-read", "--dir", "d", "--windows", "1GiB"], "64MiB"),
            (["read-order", "--rounds", "1", "--drive", "seagate"], "travelstar-7k320"),
            (["read-order", "--rounds", "1", "--fs", "ntfs"], "xfs"),
            (["read-order", "--rounds", "1", "--time-scale", "1001"], "0 to 1000"),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
