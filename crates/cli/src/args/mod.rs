//! Defines the command line of all commands. `haul --help`, the manual pages and the shell
//! completions are generated from these definitions.

mod cache;
mod disk_kind;
mod doctor;
#[cfg(test)]
mod documented;
mod dups;
mod examples;
mod files;
mod hash;
mod help;
mod import_s3;
mod keys;
mod log;
mod patch;
mod probe;
mod relay;
mod remote;
mod serve;
mod server;
mod store;
mod sum;
mod tune;
mod values;
mod wal;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::units::parse_time;

pub(crate) use cache::{CacheArgs, CacheCommand, EvictArgs, FilesArgs, StatusArgs, WarmArgs};
pub(crate) use disk_kind::DiskKind;
pub(crate) use doctor::DoctorArgs;
pub(crate) use dups::{
    ActionArgs, ActionOptions, BlocksArgs, DupsAction, DupsArgs, PriorityArg, ReportFormat,
    SearchArgs,
};
pub(crate) use files::{AccessLogArgs, FilesServerArgs};
pub(crate) use hash::SumHash;
pub(crate) use import_s3::ImportS3Args;
pub(crate) use keys::{
    Allowed, AttachArgs, GroupArgs, GroupCommand, KeyFileArgs, KeysArgs, KeysCommand,
    KeysCreateArgs, KeysRightsArgs, KeysRotateArgs, KeysSetArgs, PolicyCommand, ServerRights,
    parse_allow,
};
pub(crate) use log::{LogArgs, LogCommand, LogShowArgs, LogWriteArgs, WhenFullPolicy};
pub(crate) use patch::PatchArgs;
pub(crate) use probe::ProbeArgs;
pub(crate) use relay::RelayArgs;
pub(crate) use remote::{Acknowledge, RemoteArgs, ReplicationArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use server::{ConfigArgs, TlsArgs};
pub(crate) use store::{
    AcceptDamageArgs, CompactArgs, ExportArgs, ExportTarArgs, GetArgs, ImportArgs, ImportTarArgs,
    LifecycleArgs, LifecycleCommand, LifecycleRunArgs, LifecycleSetArgs, LifecycleShowArgs, LsArgs,
    MapArgs, OpenArgs, PutArgs, RestoreArgs, RmArgs, SnapshotArgs, StatArgs, StoreArgs,
    StoreCommand, VerifyArgs, VersioningArgs, VersioningChange,
};
pub(crate) use sum::SumArgs;
pub(crate) use tune::TuneArgs;
pub(crate) use values::ProgressArgs;
pub(crate) use wal::{
    RecordFormat, WalArgs, WalCommand, WalCopyArgs, WalCutArgs, WalDumpArgs, WalTailArgs,
    WalVerifyArgs,
};

/// Durable S3 server for small files, and tools for fast file I/O.
///
/// A store merges small files into volumes and reads each back with one disk read; acknowledged
/// writes survive a power failure. It is served over S3 and HTTP, or used without a server. The
/// other commands serve directories over HTTP, relay connections, find duplicates, compute
/// checksums, rotate logs, and report the behaviour of disks and of the page cache.
#[derive(Debug, Parser)]
#[command(name = "haul", version, max_term_width = 100, after_long_help = examples::HAUL)]
pub(crate) struct Cli {
    /// Log more to stderr; -vv: debug, -vvv: trace
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Returns the definition of the command line, with its commands grouped in the help.
pub(crate) fn command() -> clap::Command {
    help::grouped(with_negative_numbers(Cli::command()))
}

/// Lets options take values such as -5, whose parsers then print the reason why they are invalid.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let option = |arg: clap::Arg| match !arg.is_positional() && arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(option).mut_subcommands(with_negative_numbers)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a store over S3 and HTTP
    ///
    /// Creates the store if its directory is missing or empty. Prints one line with both addresses
    /// to stdout once clients can connect. SIGTERM or Ctrl-C finishes the requests in flight and
    /// exits with 0; a second one exits immediately.
    #[command(after_long_help = examples::SERVE)]
    Serve(Box<ServeArgs>),
    /// Serve the files of a directory over HTTP
    ///
    /// Supports GET and HEAD, ranges, conditional requests and precompressed files. Hot files are
    /// served from memory. Large cold files are read with direct I/O, so that one download does not
    /// evict hot files from the page cache. Prints one line with its addresses to stdout once
    /// clients can connect. SIGTERM or Ctrl-C finishes the responses in progress and exits with 0;
    /// a second one exits immediately.
    #[command(after_long_help = examples::FILES)]
    Files(Box<FilesServerArgs>),
    /// Use a store without a server: import, export, verify, ...
    ///
    /// Only one process can use a store at a time. To use a store that is being served, send S3
    /// requests to its server.
    #[command(after_long_help = examples::STORE)]
    Store(StoreArgs),
    /// Create, change and list the keys of a server
    ///
    /// Each key has rights to buckets or prefixes. The keys are in a file that "haul serve --keys"
    /// reads again when it changes, so that no restart is needed. The secret keys in it are
    /// encrypted, and the whole file is authenticated, with a key in another file.
    #[command(after_long_help = keys::examples::KEYS)]
    Keys(KeysArgs),
    /// Ask a server whether it is healthy
    ///
    /// For health checks of containers, and for scripts. Prints what the server says, and exits
    /// with 0 if it serves requests, also if it is degraded, and with 1 if it does not, or does not
    /// answer in time.
    #[command(after_long_help = examples::HEALTH)]
    Health(HealthArgs),
    /// Show the queues of events for the targets of a server
    ///
    /// Prints a line for each target of "haul serve --event-targets": how many events are queued,
    /// and were delivered and dropped since the server started, and why a target accepts none. Also
    /// prints the targets that the server does not have, if events are queued for them or a bucket
    /// names them. Exits with 1 if a target accepts no events.
    #[command(after_long_help = examples::EVENTS)]
    Events(EventsArgs),
    /// Copy buckets of MinIO or another S3 server into a server
    ///
    /// Both servers serve meanwhile. Copies the settings of buckets, and objects with metadata,
    /// tags, locks, and all versions. Each further run copies only what differs, and so continues
    /// an interrupted one. Objects are compared by length and ETag. In buckets with versioning,
    /// missing versions are added; a key with other versions at the target is reported and left
    /// alone. Settings that the target does not support are named, and do not count as failures.
    #[command(name = "import-s3", after_long_help = import_s3::EXAMPLES)]
    ImportS3(ImportS3Args),
    /// Run benchmarks with the program haul-bench
    #[command(disable_help_flag = true, after_long_help = examples::BENCH)]
    Bench(BenchArgs),
    /// Write stdin to rotated log files: service | haul log DIR
    ///
    /// Lines are written to DIR/current, which is closed when it reaches --max-size, and at the
    /// times of --rotate-every or --rotate-at. Closed files are named by the time of closing, such
    /// as 20261121T072314.500000Z.log; the newest are kept. Input is written unchanged, and reaches
    /// the kernel within 0.2 s if the disk keeps up. On a full disk the service blocks, and no line
    /// is lost or removed, unless --when-full is given. "haul log show" prints the lines of a log.
    ///
    /// With --compress, closed files are compressed in the background, to names that end in .zst. A
    /// crash leaves each file complete, compressed or not; the next run continues.
    ///
    /// Ends at the end of the input, after closed files are compressed. At SIGTERM, haul log writes
    /// what is in the pipe and the rest of a line that was begun, for at most 4 s, closes stdin,
    /// and ends. The service receives Ctrl-C, too, so haul log continues to the end of the input;
    /// at a second Ctrl-C, haul log ends immediately. SIGHUP, SIGALRM and SIGUSR1 rotate now.
    #[command(after_long_help = log::examples::LOG)]
    Log(Box<LogArgs>),
    /// Print, verify, follow, copy or cut an append log
    ///
    /// The log is a directory of segments that a program writes with the library haul-append-log.
    /// An LSN is the number of a segment and an offset in it, such as 3:4096. All commands except
    /// cut only read, also while a process writes the log.
    #[command(after_long_help = wal::examples::WAL)]
    Wal(WalArgs),
    /// Show, load or evict files in the page cache
    #[command(after_long_help = examples::CACHE)]
    Cache(CacheArgs),
    /// Print what a disk supports and how Haul uses it
    #[command(after_long_help = examples::PROBE)]
    Probe(ProbeArgs),
    /// Check this machine, and print the facts for a problem report
    ///
    /// Prints the versions, the kernel, the file system and the disk below DIR, the limits of this
    /// process and the settings of the kernel, without keys and passwords. Then
    /// prints the result of each check: ok, a warning, or a problem, with its remedy. Changes and
    /// measures nothing.
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Explain writeback and stalls of writers, and recommend settings
    ///
    /// Shows the amounts of dirty data at which the kernel begins to write back, to throttle
    /// writers and to block them; how long a stall lasts at the disk's write rate; and how settings
    /// of the kernel, disks, mounts and journals affect stalls. Each recommendation has its reason.
    /// --apply changes the settings that are safe to change.
    #[command(after_long_help = examples::TUNE)]
    Tune(TuneArgs),
    /// Find duplicate files, and remove or link them
    ///
    /// Candidates are compared by length, by samples, and then piece by piece, so that little is
    /// read of files that differ. Files that share all their blocks are not read. Options, patterns
    /// and reports are those of "fclones group". The report is written to stdout; the subcommands
    /// read it from a file or stdin, and act on it.
    #[command(after_long_help = examples::DUPS)]
    Dups(Box<DupsArgs>),
    /// Write many records into a large file in offset order
    ///
    /// Each record on stdin is an offset in the file (8 bytes, little-endian), a length (4 bytes,
    /// little-endian) and the bytes; --list takes records from files instead. Records are buffered
    /// in memory, sorted, merged with adjacent ones and written in ascending order. If records
    /// overlap, the last one wins. At exit 0 all records are synced. No other process may write to
    /// the file meanwhile.
    ///
    /// An interrupted run leaves some of its records in the file, unless --atomic is given: then
    /// all records are first made durable in the directory FILE.haul-patch. Until then the file is
    /// unchanged; after that, the next "haul patch" of the file, or --resume, completes an
    /// interrupted run.
    #[command(after_long_help = examples::PATCH)]
    Patch(PatchArgs),
    /// Print or verify checksums of files and directory trees
    ///
    /// Files are read in an order that suits the disk, hashed on all cores and printed in the order
    /// of their paths. Reads and writes the lists of b3sum, sha256sum, sha512sum, md5sum and
    /// xxhsum. A file that cannot be read is reported on stderr; all other files are processed.
    #[command(after_long_help = examples::SUM)]
    Sum(SumArgs),
    /// Relay TCP and unix-socket connections to one or more targets
    ///
    /// The end of a stream is forwarded as an end, a reset as a reset. Small bursts are copied,
    /// large bursts spliced through pipes without copying. Prints one line to stdout once clients
    /// can connect, and statistics at exit; SIGUSR1 prints them to stderr. SIGTERM or Ctrl-C stops
    /// accepting, waits for open connections and exits with 0; a second one exits immediately.
    #[command(after_long_help = examples::RELAY)]
    Relay(Box<RelayArgs>),
    /// Print a shell completion script
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to print the script for
        shell: Shell,
    },
    /// Print the manual page, or write all pages to a directory
    #[command(after_long_help = examples::MAN)]
    Man {
        /// Existing directory to write the pages of all commands to
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Admin address of a server, or its S3 address with the path /health
    ///
    /// An address without http:// or https:// is asked by HTTP, and by HTTPS if its server has TLS.
    /// Certificates are verified, except at addresses of this machine.
    #[arg(default_value = "127.0.0.1:9001")]
    pub(crate) url: String,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Time to wait for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(crate) timeout: Duration,
    /// Print one JSON object
    ///
    /// The keys are healthy, status (of HTTP) and lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Admin address of a server
    ///
    /// An address without http:// or https:// is asked by HTTP, and by HTTPS if its server has TLS.
    /// Certificates are verified, except at addresses of this machine.
    #[arg(default_value = "127.0.0.1:9001")]
    pub(crate) url: String,
    /// Try to deliver the queued events now
    ///
    /// After a failure, a target is tried again in intervals of up to 30 s. Prints the queues after
    /// each failing target has been tried, for at most twice its timeout.
    #[arg(long)]
    pub(crate) retry: bool,
    /// Read the key that logs in from FILE, as "haul serve --credentials"
    ///
    /// By default HAUL_ACCESS_KEY and HAUL_SECRET_KEY are used. Needed for public addresses, and,
    /// if the server has keys, for --retry.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Time to wait for the response
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(crate) timeout: Duration,
    /// Print one JSON object a line
    ///
    /// The keys are name, configured, url, queued_events, queued_bytes, delivered_events,
    /// dropped_events, failures, error, failing_since_unix_s, retrying and timeout_s. A target that
    /// the server does not have is not configured, and has the key buckets: those whose
    /// notification names it.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The command line of `haul-bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Benchmark and its options; see "haul bench --help"
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let cli = Cli::try_parse_from(["haul", "serve"]).unwrap();
        let Command::Serve(args) = cli.command else { panic!("not serve") };
        let (store, server) =
            (haul_file_store::Options::default(), haul_s3_server::Config::default());
        assert_eq!(args.open.big_object, store.big_object_bytes);
        assert_eq!(args.open.volume, store.volume_bytes);
        assert_eq!(args.lifecycle_check, store.lifecycle_check_every);
        assert_eq!(args.lifecycle_day, store.lifecycle_day);
        for (ours, library) in [(&args.listen, server.listen), (&args.admin, server.admin)] {
            assert_eq!(ours.to_string(), library.to_string());
        }
        let (ours, library) = (args.limits(64 << 30), server.limits);
        assert_eq!(ours.body_memory_bytes_max, library.body_memory_bytes_max);
        assert_eq!(ours.peer_body_memory_bytes_max, library.peer_body_memory_bytes_max);
        assert_eq!(ours.drain_time_max, library.drain_time_max);
        assert_eq!(ours.connections_max, library.connections_max);
        assert_eq!(ours.peer_connections_max, library.peer_connections_max);
        assert_eq!(ours.head_time_max, library.head_time_max);
        assert_eq!(ours.idle_time_max, library.idle_time_max);
    }

    #[test]
    fn memory_of_a_server_is_divided() {
        let shares = |options: &[&str], memory_mib: u64| {
            let all = ["haul", "serve"].iter().chain(options);
            let Command::Serve(args) = Cli::try_parse_from(all).unwrap().command else {
                panic!("not serve")
            };
            let shares = args.memory_shares(memory_mib << 20);
            [shares.bodies, shares.pinned, shares.cache, shares.shared, shares.free]
                .map(|bytes| bytes >> 20)
        };
        for (options, memory_mib, expected) in [
            (&[][..], 24 << 10, [256, 3064, 12_256, 12_256, 3072]),
            (&[], 1024, [120, 120, 480, 480, 128]),
            (&[], 128, [16, 8, 32, 32, 16]),
            (&[], 16, [16, 0, 0, 0, 2]),
            (&["--memory", "2GiB"], 24 << 10, [256, 512, 2048, 2048, 3072]),
            (&["--memory", "2GiB", "--cache", "0"], 24 << 10, [256, 512, 0, 0, 3072]),
            (&["--cache", "64MiB", "--pinned-memory", "0"], 24 << 10, [256, 0, 64, 0, 3072]),
            (&["--body-memory", "1GiB"], 4096, [1024, 504, 2016, 2016, 512]),
        ] {
            assert_eq!(shares(options, memory_mib), expected, "{options:?} {memory_mib}");
        }
    }

    #[test]
    fn defaults_of_the_log_are_those_of_its_library() {
        let cli = Cli::try_parse_from(["haul", "log", "d"]).unwrap();
        let Command::Log(args) = cli.command else { panic!("not log") };
        let args = args.write.unwrap();
        let (ours, log) = (args.options("me"), haul_line_log::Options::default());
        assert_eq!((ours.file_bytes_max, ours.file_times), (log.file_bytes_max, log.file_times));
        assert_eq!((ours.keep, ours.sync, ours.when_full), (log.keep, log.sync, log.when_full));
        assert_eq!((ours.buffers, ours.buffer_bytes), (log.buffers, log.buffer_bytes));
        let full_disk = (ours.full_disk_files_min, log.full_disk_files_min);
        assert_eq!((ours.compress, full_disk), (log.compress, (None, None)));
    }

    #[test]
    fn every_command_ends_its_long_help_with_examples() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{name} has no examples");
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
