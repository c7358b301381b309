//! Defines the command line of `haul-bench`: its benchmarks, their options and the help.

mod examples;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use haul_bench::all::AllOptions;
use haul_bench::file_read::{RandomReadBench, SequentialReadBench};
use haul_bench::log::LogBench;
use haul_bench::pacing::PacingBench;
use haul_bench::page_cache::{AppCacheBench, DirectOrCachedBench};
use haul_bench::power_cuts::PowerCutsBench;
use haul_bench::random_write::RandomWriteBench;
use haul_bench::read_order::ReadOrderBench;
use haul_bench::small_files::{HaystackBench, SmallFilesBench, SpinningStoreBench};
use haul_bench::splice::SpliceBench;
use haul_bench::write_modes::WriteModesBench;
use haul_bench::{duplicates, files, relay, s3, serve};

use self::examples::examples;

/// Compare methods for the same task, and rival programs, on this machine
///
/// Each benchmark prints a table with the median of interleaved rounds and the ratios that follow
/// from it, and names the machine, kernel, file system and device. Rivals that are not installed
/// are listed as missing.
#[derive(Debug, Parser)]
#[command(name = "haul-bench", bin_name = "haul bench", version, max_term_width = 100)]
#[command(after_long_help = examples("haul-bench"))]
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
    #[command(after_long_help = examples("all"))]
    All(AllArgs),
    /// Modes of writing records durably, and their requests to the disk
    ///
    /// Every preparation of a file (append, fallocate, zero-range, write-zeroes, filled, recycled)
    /// with every sync of a record (none, fdatasync, fsync, open-datasync, open-sync, direct-dsync,
    /// msync), each file written twice. Rows have latencies and the requests per record: from the
    /// device's counters, and as root from the block trace, which separates journal writes from
    /// other writes. By default the benchmark takes about a minute per file system on a solid-state
    /// disk. It removes all its files.
    #[command(after_long_help = examples("write-modes"))]
    WriteModes(Measured<WriteModesBench>),
    /// The append log compared with the raw disk, a growing file and other logs
    ///
    /// The same loop drives each log, every record durable when its call returns, in interleaved
    /// rounds. Each round also measures the floor, which is the rate of durable writes to a plain
    /// file; a round is dropped if its floor is more than a fifth off the median. A separate
    /// program drives the rivals. By default the benchmark takes some three minutes.
    #[command(after_long_help = examples("log"))]
    Log(Measured<LogBench>),
    /// The search for duplicates compared with other tools
    ///
    /// Runs haul dups and those of fclones, yadf, jdupes, rdfind and czkawka_cli that are in the
    /// directories of PATH over the same files in interleaved rounds, each in all settings that may
    /// be its fastest, with a warm page cache and, as root, with a cold one. The groups that the
    /// tools find are compared.
    #[command(after_long_help = examples("duplicates"))]
    Duplicates(Measured<duplicates::Options>),
    /// Latencies of small writes during bulk writes, paced and unpaced
    ///
    /// One thread appends and syncs a record every 5 ms, another overwrites cached pages, and
    /// meanwhile bulk data is written: unpaced, paced by windows, paced and dropped from the page
    /// cache, and with O_DIRECT. Rows have percentiles of both threads, and the rate of the bulk
    /// data including its final sync.
    #[command(after_long_help = examples("pacing"))]
    Pacing(Measured<PacingBench>),
    /// Random reads of one file by increasing numbers of readers
    ///
    /// pread on one shared descriptor, pread on one descriptor per reader, seek and read under a
    /// lock, and one thread with io_uring; with O_DIRECT (cold), and with the whole file in the
    /// page cache (warm). Rows have rates, latencies and requests of the device. By default it
    /// takes 90 seconds.
    #[command(after_long_help = examples("random-read"))]
    RandomRead(Measured<RandomReadBench>),
    /// Sequential reads of one file: read, mmap, readahead, direct, uncached
    ///
    /// "direct" bypasses the page cache (O_DIRECT); "uncached" reads through it and drops the pages
    /// afterwards (RWF_DONTCACHE). The file is not in the page cache at the start; rows have the
    /// part of it that is cached at the end. The readahead of the kernel is set by advice for each
    /// descriptor, or for the device.
    #[command(after_long_help = examples("sequential-read"))]
    SequentialRead(Measured<SequentialReadBench>),
    /// Many small files in several orders, on a simulated spinning disk
    ///
    /// A directory tree, aged by replacing files, is read in directory order, by inode, and by
    /// physical position. Seeks, travel of the arm and busy time are those of the simulator:
    /// docs/spinning-disk.md. Needs root and /dev/fuse.
    #[command(after_long_help = examples("read-order"))]
    ReadOrder(Measured<ReadOrderBench>),
    /// Power cuts on a simulated disk: the synced records that survive, by file system
    ///
    /// Records are written to a file, and synced one by one or all at once, until the power of the
    /// disk is cut; its write cache is volatile. Rows have the durable records that were lost, the
    /// files with holes, and the records that a later file overwrites: on ext4 with each mode of its
    /// journal, without one, and on xfs. Needs root and /dev/fuse. Takes about two minutes.
    #[command(after_long_help = examples("power-cuts"))]
    PowerCuts(Measured<PowerCutsBench>),
    /// The data size above which direct reads are faster than the page cache
    ///
    /// Many threads read random pages of data from a part to a multiple of the memory: through the
    /// page cache, with RWF_DONTCACHE, and with O_DIRECT. A cgroup limits the memory of this
    /// process, page cache included, so this needs root.
    #[command(after_long_help = examples("direct-or-cached"))]
    DirectOrCached(Measured<DirectOrCachedBench>),
    /// Reads of hot pages during a scan of cold data
    ///
    /// Compares the page cache alone, an application's cache in front of the page cache, and scans
    /// that bypass the page cache. Memory is limited as for direct-or-cached.
    #[command(after_long_help = examples("app-cache"))]
    AppCache(Measured<AppCacheBench>),
    /// Random writes: in arrival order, sorted and merged
    ///
    /// Records go to random offsets of a big file in durable batches, with and without entries of
    /// an index: on a simulated spinning disk with its own clock (docs/spinning-disk.md; needs root
    /// and /dev/fuse), and, with --dir, on the disk of a directory. Takes some minutes.
    #[command(after_long_help = examples("random-write"))]
    RandomWrite(Measured<RandomWriteBench>),
    /// Durable puts of small files: the file store, a plain group commit, synced files, databases
    ///
    /// The same loop drives each target, in new directories and interleaved rounds. The floor is a
    /// group commit into blocks that were written before. A separate program drives the databases.
    /// Rows have rates, latencies, CPU time and the bytes written to the device for each byte of the
    /// files. By default it takes five minutes, and 15 with the databases.
    #[command(after_long_help = examples("small-files"))]
    SmallFiles(Measured<SmallFilesBench>),
    /// Reads of a cold small file: two for a file, one for an object of the store
    ///
    /// Counts the requests to a simulated drive for one file of each of many directories, with and
    /// without cached names, and for the same bytes in a file store. Needs root and /dev/fuse.
    #[command(after_long_help = examples("haystack"))]
    Haystack(Measured<HaystackBench>),
    /// A file store on a spinning disk: cold GETs beside PUTs, scrub and compaction
    ///
    /// A simulated drive runs at its own speed. The rate of GETs is compared with the rate at which
    /// the model of the drive serves as many random reads, and the latency of PUTs with that of PUTs
    /// alone. Needs root and /dev/fuse.
    #[command(after_long_help = examples("spinning-store"))]
    SpinningStore(Measured<SpinningStoreBench>),
    /// A file sent to a socket by splice and by copies
    ///
    /// Through a new pipe for each call, through a pipe that is reused, and through buffers of 1 KiB
    /// and 64 KiB. Rows have rates, latencies, system calls and CPU time for each body.
    #[command(after_long_help = examples("splice"))]
    Splice(Measured<SpliceBench>),
    /// Files over HTTP, compared with nginx, Caddy and Go
    ///
    /// Measures haul files and the installed rivals, each on one core, with the load generator wrk
    /// on another core: small files in memory, big files that are not in memory, and the latency of
    /// hot files during downloads of cold files. All bodies are compared before.
    #[command(after_long_help = examples("files"))]
    Files(Measured<files::Options>),
    /// CPU time of haul serve per request, compared with haul files, nginx and the store
    ///
    /// Measures GET of objects in memory, anonymous and presigned, beside haul files and nginx with
    /// the same bytes, and PUT of 4 KiB beside calls of the store in one process. Each server runs
    /// on one core, with the load generator wrk on another core.
    #[command(after_long_help = examples("serve"))]
    Serve(Measured<serve::Options>),
    /// S3 servers: haul serve, MinIO, SeaweedFS, versitygw and Garage
    ///
    /// Each server runs on one core, with the load generator on another core, and has its files in
    /// the same file system. MinIO's warp stores objects; wrk reads and lists them with presigned
    /// requests. haul serve has synced an object when it responds; by default, the others have not.
    #[command(after_long_help = examples("s3"))]
    S3(Measured<s3::Options>),
    /// Relays, compared with haproxy, nginx, Go and tokio
    ///
    /// Measures haul relay with each --move mode, with --http, and the installed rivals, each on one
    /// core, with the load generator wrk and the backend on another core: long and short responses,
    /// short connections, and the descriptors of idle connections.
    #[command(after_long_help = examples("relay"))]
    Relay(Measured<relay::Options>),
    /// The ratios of two reports in JSON side by side
    ///
    /// Two ratios agree if they differ by at most a tenth, or if their intervals overlap; otherwise
    /// the ratio moved. The reports are of one benchmark each, or of all. The exit code is 0 if no
    /// ratio moved, 1 if one moved, and 3 if a report cannot be read.
    #[command(after_long_help = examples("compare"))]
    Compare(CompareArgs),
    /// Print the completions for a shell
    #[command(after_long_help = examples("completions"))]
    Completions {
        /// Shell to print the completions for
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all benchmarks into a directory
    #[command(after_long_help = examples("man"))]
    Man {
        /// Existing directory to write the pages to
        dir: Option<PathBuf>,
    },
}

/// Options of `haul bench all`, and its reports.
#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    pub(crate) options: AllOptions,
    /// Start even if the load average is above the number of cores
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
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
