//! The part of the table below `haul bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use haul_bench::write_modes::{Modes, VirtualDisk};

use super::bench_duplicates::BenchDuplicatesArgs;
use super::bench_log::BenchLogArgs;
use super::bench_memory::{AppCacheArgs, DirectOrCachedArgs};
use super::bench_net::{BenchFilesArgs, BenchRelayArgs};
use super::bench_pacing::BenchPacingArgs;
use super::bench_read::{RandomReadArgs, ReadOrderArgs, SequentialReadArgs};
use super::bench_write::RandomWriteArgs;
use super::examples;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
#[command(subcommand_help_heading = "Commands")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Ways of writing records durably, and what each asks of the disk
    ///
    /// Every way to prepare a file (append, fallocate, zero-range, write-zeroes, filled, recycled)
    /// with every way to make a record durable (none, fdatasync, fsync, direct-dsync, msync), each
    /// file written twice. Rows tell times, and for one record the requests to the disk: by its
    /// counters, and as root also by the kernel's trace of them, which knows the journal's writes
    /// from the others. By default it takes about a minute on a solid-state disk, for each file system,
    /// and leaves nothing behind, however it ends.
    #[command(after_long_help = examples::BENCH_WRITE_MODES)]
    WriteModes(WriteModesArgs),
    /// The append log beside the raw disk, a file that grows, and other logs
    ///
    /// Each log is driven by the same threads in the same loop, every record durable when its call
    /// returns, in rounds that change the order. The floor is measured in every round: rounds in
    /// which it moved by more than a fifth are dropped. Rivals are driven by a program of their
    /// own, which is built apart. By default it takes some three minutes.
    #[command(after_long_help = examples::BENCH_LOG)]
    Log(BenchLogArgs),
    /// The search for duplicates, beside the tools others use for it
    ///
    /// Runs haul dups and those of fclones, yadf, jdupes, rdfind and czkawka_cli that are in the
    /// directories of PATH over the same files, in turn, each in all settings that may be its best,
    /// with a warm page cache and, as root, with an empty one. What they find is compared.
    #[command(after_long_help = examples::BENCH_DUPLICATES)]
    Duplicates(BenchDuplicatesArgs),
    /// What quick writers wait for while bulk data is written beside them, paced and not
    ///
    /// One thread appends a little and syncs it every 5 ms, one overwrites pages in memory, and
    /// beside them bulk data is written: as a copying program does, at the pace of windows, so paced
    /// and dropped from memory, and past the page cache. Rows tell percentiles of what the two
    /// took, and the rate of the bulk data until all of it is on the medium.
    #[command(after_long_help = examples::BENCH_PACING)]
    Pacing(BenchPacingArgs),
    /// Random reads of one file, by more and more readers
    ///
    /// pread on one descriptor, on descriptors of their own, seek and read under a lock, and one thread
    /// with io_uring; past the page cache (cold), and with all of the file in memory (warm). Rows tell reads a second, their
    /// times, and requests of the device. By default it takes about a minute and a half.
    #[command(after_long_help = examples::BENCH_RANDOM_READ)]
    RandomRead(RandomReadArgs),
    /// One file from end to end: read, mmap, readahead, direct, uncached
    ///
    /// Nothing of the file is in memory before; how much is afterwards is told too. The kernel's own
    /// readahead is changed by advice for each descriptor, or for the device.
    #[command(after_long_help = examples::BENCH_SEQUENTIAL_READ)]
    SequentialRead(SequentialReadArgs),
    /// Many small files in one order or another, on a simulated spinning disk
    ///
    /// A tree as years of use leave it is read in the order of its directories, by inode, and by where
    /// the files are. Seeks, the way of the arm and the time the drive is busy are the simulator's
    /// own: docs/spinning-disk.md. Needs root and /dev/fuse; nothing is left behind.
    #[command(after_long_help = examples::BENCH_READ_ORDER)]
    ReadOrder(ReadOrderArgs),
    /// From how much data on the page cache does more harm than good
    ///
    /// Many readers of random pages, of a part of the memory up to many times as much: through the page
    /// cache, through it without leaving anything, and past it. The memory of this process, page
    /// cache included, is limited by a cgroup, so this needs root.
    #[command(after_long_help = examples::BENCH_DIRECT_OR_CACHED)]
    DirectOrCached(DirectOrCachedArgs),
    /// What keeps hot pages in memory while somebody scans what is cold
    ///
    /// The page cache alone, a cache of the application in front of it, and scans which leave the
    /// page cache as it was. Memory is limited as for direct-or-cached.
    #[command(after_long_help = examples::BENCH_APP_CACHE)]
    AppCache(AppCacheArgs),
    /// Random writes: as they come, sorted, merged, and durable page by page
    ///
    /// Records go to random places of a big file in batches, each on the medium before the next one
    /// begins, with and without entries of an index in between: on a simulated spinning disk, whose
    /// seeks and times are its own (docs/spinning-disk.md; needs root and /dev/fuse), and, with --dir, on
    /// a directory's disk. There a page file is set beside pwrite with fdatasync, too, and beside
    /// databases where haul-bench-compare is found. It takes some minutes.
    #[command(after_long_help = examples::BENCH_RANDOM_WRITE)]
    RandomWrite(RandomWriteArgs),
    /// Files over HTTP, beside nginx
    ///
    /// haul files and nginx in all settings that may be its best, each on one core, asked from
    /// another: hot small files, big ones that are in memory or not, and how long hot ones take
    /// while cold ones are downloaded. Answers are compared. By default it takes some seven
    /// minutes.
    #[command(after_long_help = examples::BENCH_FILES)]
    Files(BenchFilesArgs),
    /// Relays of TCP connections beside each other: haproxy, nginx, Go, socat, tokio
    ///
    /// haul relay in each of its ways of moving bytes and the others as far as they are there, each
    /// on one core, with clients and backend on another: bytes in bulk, messages of many lengths,
    /// short connections, and the pipes and descriptors they take. What comes is compared with what
    /// was sent. By default it takes some eight minutes.
    #[command(after_long_help = examples::BENCH_RELAY)]
    Relay(BenchRelayArgs),
}

/// Where a report goes besides the terminal.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportArgs {
    /// Write the report into a file too, as one JSON object: bench, host, rows, ratios, notes
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report into a file too, as Markdown with all columns
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WriteModesArgs {
    /// The directory to measure in; virtual disks are made in it
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File systems to make in files and measure instead: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// Needs root. Nobody else uses such a disk, so its counts are exact; but each of its requests
    /// goes through the file system of DIR, so its times hold only against each other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) virtual_disk: Vec<VirtualDisk>,
    /// Only these ways, syncs, or both, such as append,recycled+fdatasync
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) modes: Vec<Modes>,
    /// The sizes of a record
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "512,4KiB,64KiB")]
    #[arg(value_parser = parse_record_bytes)]
    pub(crate) sizes: Vec<u64>,
    /// How many records a pass over a file writes, at most
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000_000))]
    pub(crate) records: u64,
    /// How often each row is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long all rounds of a row may write, at most, such as 500ms; slow disks write fewer records
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub(crate) seconds_per_row: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn parse_record_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 1..=0x100_0000 => Ok(bytes),
        _ => Err("a record is of 1 B to 16MiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::write_modes::Options;

    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<WriteModesArgs, String> {
        let words = ["haul", "bench", "write-modes", "--dir", "d"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Bench(BenchArgs { command: BenchCommand::WriteModes(args) }) = cli.command
        else {
            panic!("not write-modes")
        };
        Ok(args)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let (args, options) = (parsed(&[]).unwrap(), Options::new("d"));
        assert_eq!(args.sizes, options.record_bytes);
        assert_eq!((args.records, args.rounds), (options.records, options.rounds));
        assert_eq!(args.seconds_per_row, options.time_per_row);
        assert!(args.modes == options.modes && args.virtual_disk == options.virtual_disks);
    }

    #[test]
    fn lists_are_separated_by_commas_and_mistakes_are_explained() {
        let args = parsed(&["--modes", "append,recycled+fdatasync", "--virtual-disk", "ext4,xfs"]);
        let args = args.unwrap();
        assert_eq!((args.modes.len(), args.virtual_disk.len()), (2, 2));
        for (arguments, why) in [
            (["--modes", "sync"], "recycled+fdatasync"),
            (["--virtual-disk", "zfs"], "ext4-nojournal"),
            (["--sizes", "17MiB"], "16MiB"),
            (["--sizes", "0"], "1 B"),
            (["--records", "0"], "1..="),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
