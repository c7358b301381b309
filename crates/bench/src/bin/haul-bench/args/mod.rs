//! Defines the command line of `haul-bench`: its benchmarks, their options and the help.

#[cfg(test)]
mod documented;
mod examples;
#[cfg(test)]
mod mistakes;
mod seed;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use haul_bench::file_read::{random_read, sequential_read};
use haul_bench::page_cache::{app_cache, direct_or_cached};
use haul_bench::small_files::{churn, reads, scale};
use haul_bench::{
    all, duplicates, files, log, pacing, power_cuts, random_write, read_order, relay,
};
use haul_bench::{s3, serve, small_files, write_modes};

pub(crate) use self::seed::SeedCommand;

/// Compare methods for the same task, and rival programs, on this machine
///
/// Each benchmark prints a table with the median of interleaved rounds and the ratios that follow
/// from it, and names the machine, kernel, file system and device. Rivals that are not installed
/// are listed as missing.
#[derive(Debug, Parser)]
#[command(name = "haul-bench", bin_name = "haul bench", version, max_term_width = 100)]
#[command(after_long_help = examples::HAUL_BENCH)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// The benchmarks of disks within ten minutes, and a verdict on published claims
    ///
    /// Describes the disk in one line, runs the benchmarks of writes, reads, the page cache and a
    /// simulated spinning disk with limited time, and answers for each claim of five published
    /// texts whether it holds on this disk. The reports are saved after each part, and what is
    /// missing is listed with the reason. Refuses to start if the load average is above the number
    /// of cores. Some parts need root.
    #[command(after_long_help = examples::ALL)]
    All(AllArgs),
    /// Modes of writing records durably, and their requests to the disk
    ///
    /// Every preparation of a file (append, fallocate, zero-range, write-zeroes, filled, recycled)
    /// with every sync of a record (none, fdatasync, fsync, open-datasync, open-sync, direct-dsync,
    /// msync), each file written twice. Rows have latencies and the requests per record: from the
    /// device's counters, and as root from the block trace, which separates journal writes from
    /// other writes. By default the benchmark takes about a minute per file system on a solid-state
    /// disk. It removes all its files.
    #[command(after_long_help = examples::WRITE_MODES)]
    WriteModes(Measured<write_modes::Options>),
    /// The append log compared with the raw disk, a growing file and other logs
    ///
    /// The same loop drives each log, every record durable when its call returns, in interleaved
    /// rounds. Each round also measures the floor, which is the rate of durable writes to a plain
    /// file; a round is dropped if its floor is more than a fifth off the median. A separate
    /// program drives the rivals. By default the benchmark takes some three minutes.
    #[command(after_long_help = examples::LOG)]
    Log(Measured<log::Options>),
    /// The search for duplicates compared with other tools
    ///
    /// Runs haul dups and those of fclones, yadf, jdupes, rdfind and czkawka_cli that are in the
    /// directories of PATH over the same files in interleaved rounds, each in all settings that may
    /// be its fastest, with a warm page cache and, as root, with a cold one. The groups that the
    /// tools find are compared.
    #[command(after_long_help = examples::DUPLICATES)]
    Duplicates(Measured<duplicates::Options>),
    /// Latencies of small writes during bulk writes, paced and unpaced
    ///
    /// One thread appends and syncs a record every 5 ms, another overwrites cached pages, and
    /// meanwhile bulk data is written: unpaced, paced by windows, paced and dropped from the page
    /// cache, and with O_DIRECT. Rows have percentiles of both threads, and the rate of the bulk
    /// data including its final sync.
    #[command(after_long_help = examples::PACING)]
    Pacing(Measured<pacing::Options>),
    /// Random reads of one file by increasing numbers of readers
    ///
    /// pread on one shared descriptor, pread on one descriptor per reader, seek and read under a
    /// lock, and one thread with io_uring; with O_DIRECT (cold), and with the whole file in the
    /// page cache (warm). Rows have rates, latencies and requests of the device. By default it
    /// takes 90 seconds.
    #[command(after_long_help = examples::RANDOM_READ)]
    RandomRead(Measured<random_read::Options>),
    /// Sequential reads of one file: read, mmap, readahead, direct, uncached
    ///
    /// "direct" bypasses the page cache (O_DIRECT); "uncached" reads through it and drops the pages
    /// afterwards (RWF_DONTCACHE). The file is not in the page cache at the start; rows have the
    /// part of it that is cached at the end. The readahead of the kernel is set by advice for each
    /// descriptor, or for the device.
    #[command(after_long_help = examples::SEQUENTIAL_READ)]
    SequentialRead(Measured<sequential_read::Options>),
    /// Many small files in several orders, on a simulated spinning disk
    ///
    /// A directory tree, aged by replacing files, is read in directory order, by inode, and by
    /// physical position. Seeks, travel of the arm and busy time are those of the simulator:
    /// docs/spinning-disk.md. Needs root and /dev/fuse.
    #[command(after_long_help = examples::READ_ORDER)]
    ReadOrder(Measured<read_order::Options>),
    /// Power cuts on a simulated disk: the synced records that survive, by file system
    ///
    /// Records are written to a file, and synced one by one or all at once, until the power of the
    /// disk is cut; its write cache is volatile. Rows have the durable records that were lost, the
    /// files with holes, and the records that a later file overwrites: on ext4 with each mode of its
    /// journal, without one, and on xfs. Needs root and /dev/fuse. Takes about two minutes.
    #[command(after_long_help = examples::POWER_CUTS)]
    PowerCuts(Measured<power_cuts::Options>),
    /// The data size above which direct reads are faster than the page cache
    ///
    /// Many threads read random pages of data from a part to a multiple of the memory: through the
    /// page cache, with RWF_DONTCACHE, and with O_DIRECT. A cgroup limits the memory of this
    /// process, page cache included, so this needs root.
    #[command(after_long_help = examples::DIRECT_OR_CACHED)]
    DirectOrCached(Measured<direct_or_cached::Options>),
    /// Reads of hot pages during a scan of cold data
    ///
    /// Compares the page cache alone, an application's cache in front of the page cache, and scans
    /// that bypass the page cache. Memory is limited as for direct-or-cached.
    #[command(after_long_help = examples::APP_CACHE)]
    AppCache(Measured<app_cache::Options>),
    /// Random writes: in arrival order, sorted, merged, and durable page by page
    ///
    /// Records go to random offsets of a big file in durable batches, with and without entries of
    /// an index: on a simulated spinning disk with its own clock (docs/spinning-disk.md; needs root
    /// and /dev/fuse), and, with --dir, on the disk of a directory. A page file is compared with
    /// pwrite and fdatasync, and with databases if haul-bench-compare is installed. Takes some
    /// minutes.
    #[command(after_long_help = examples::RANDOM_WRITE)]
    RandomWrite(Measured<random_write::Options>),
    /// Durable puts of small files: the file store, a plain group commit, synced files, databases
    ///
    /// The same loop drives each target, in new directories and interleaved rounds. The floor is a
    /// group commit into blocks that were written before. A separate program drives the databases.
    /// Rows have rates, latencies, CPU time and the bytes written to the device for each byte of the
    /// files. By default it takes five minutes, and 15 with the databases.
    #[command(after_long_help = examples::SMALL_FILES)]
    SmallFiles(Measured<small_files::Options>),
    /// Reads of small files: the file store, and as many bytes from one file
    ///
    /// Many threads read whole objects, and ranges of long objects, in random order: cold, evicted
    /// from the page cache before, and hot. The floor is pread at random offsets of one file. Rows
    /// have rates, latencies, CPU time, and requests and bytes of the device. By default it takes
    /// three minutes.
    #[command(after_long_help = examples::SMALL_FILES_GET)]
    SmallFilesGet(Measured<reads::Options>),
    /// A file store with many objects: memory, disk space, opening after a kill, listing
    ///
    /// A child process stores objects of 100 bytes and is killed; others open the store. The report
    /// has the memory and the disk space for each object, the time and CPU time of opening with cold
    /// and with cached files, keys per second of a listing, and percentiles of its pages. A million
    /// objects take about half a minute.
    #[command(after_long_help = examples::SMALL_FILES_SCALE)]
    SmallFilesScale(Measured<scale::Options>),
    /// Overwriting objects on a nearly full disk: the file store, renamed files, slots in place
    ///
    /// Each measurement stores objects in a new file system in an image file, until they take a
    /// share of its space, and then overwrites random ones. Rows have the rate and latencies of puts
    /// and reads, the bytes written to the device for each byte stored, and the space used. Needs
    /// root. By default it takes about 20 minutes.
    #[command(after_long_help = examples::SMALL_FILES_CHURN)]
    SmallFilesChurn(Measured<churn::Options>),
    /// Files over HTTP, compared with nginx
    ///
    /// Measures haul files and nginx with several settings, each on one core, with the load
    /// generator on another core: small files in memory, big files in memory and not in memory, and
    /// the latency of hot files during downloads of cold files. Responses are verified. Takes about
    /// eight minutes by default.
    #[command(after_long_help = examples::FILES)]
    Files(Measured<files::Options>),
    /// CPU time of haul serve per request, compared with haul files, nginx and the store
    ///
    /// Measures GET of objects in memory, anonymous and signed, beside haul files and nginx with
    /// the same bytes, and PUT of 4 KiB beside calls of the store in one process. Each server runs
    /// on one core, with the load generator on another core. Responses are verified. Takes about
    /// two minutes by default.
    #[command(after_long_help = examples::SERVE)]
    Serve(Measured<serve::Options>),
    /// S3 servers: haul serve, SeaweedFS, versitygw and Garage; signed PUT and GET, and listings
    ///
    /// Each server runs on one core, with the load generator on another core, and has its files in
    /// the same file system. haul serve has synced an object when it responds; by default, the
    /// others have not. Responses are verified. Takes about ten minutes by default, most of them to
    /// store the objects that are listed.
    #[command(after_long_help = examples::S3)]
    S3(Measured<s3::Options>),
    /// TCP relays, compared with haproxy, nginx, Go, socat and tokio
    ///
    /// Measures haul relay with each --move mode and the installed rivals, each on one core, with
    /// clients and backend on another core: bulk data, messages of many sizes, short connections,
    /// and the pipes and descriptors per connection. Received bytes are verified. Takes about eight
    /// minutes by default.
    #[command(after_long_help = examples::RELAY)]
    Relay(Measured<relay::Options>),
    /// The ratios of two reports in JSON side by side
    ///
    /// Two ratios agree if they differ by at most a tenth, or if their intervals overlap; otherwise
    /// the ratio moved. The reports are of one benchmark each, or of all. The exit code is 0 if no
    /// ratio moved, 1 if one moved, and 3 if a report cannot be read.
    #[command(after_long_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// The experiments of the texts after which Haul was designed
    ///
    /// Each repeats one experiment of a text, with the figures of the text beside those of this
    /// machine: docs/experiments.md.
    #[command(subcommand, after_long_help = examples::SEED)]
    Seed(SeedCommand),
    /// Print the completions for a shell
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to print the completions for
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all benchmarks into a directory
    #[command(after_long_help = examples::MAN)]
    Man {
        /// Existing directory to write the pages to
        dir: Option<PathBuf>,
    },
}

/// Options of `haul bench all`, and its reports.
#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    pub(crate) options: all::Options,
    /// Start even if the load average is above the number of cores
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the report to FILE as one HTML page, which needs no other file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the results to FILE as JSON, for haul bench compare
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of `haul bench compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// First report
    #[arg(value_name = "A.json")]
    pub(crate) a: PathBuf,
    /// Second report
    #[arg(value_name = "B.json")]
    pub(crate) b: PathBuf,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of a benchmark and of its report.
#[derive(Debug, Args)]
pub(crate) struct Measured<T: Args> {
    #[command(flatten)]
    pub(crate) options: T,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Files for the report, besides the terminal.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportArgs {
    /// Also write the report to FILE as JSON, with the figures of each round
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report to FILE as Markdown, with all columns
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}
