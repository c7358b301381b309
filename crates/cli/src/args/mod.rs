//! The table of all commands and options: what `haul --help`, the manual pages and the shell
//! completions are made from.

mod bench;
mod bench_duplicates;
mod bench_log;
mod bench_memory;
mod bench_net;
mod bench_pacing;
mod bench_read;
mod bench_write;
mod cache;
mod disk_kind;
#[cfg(test)]
mod documented;
mod dups;
mod dups_action;
mod examples;
mod files;
mod hash;
mod log;
mod patch;
mod probe;
mod relay;
mod relay_http;
mod store;
mod sum;
mod tune;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use bench::{BenchArgs, BenchCommand, ReportArgs, WriteModesArgs};
pub(crate) use bench_duplicates::BenchDuplicatesArgs;
pub(crate) use bench_log::BenchLogArgs;
pub(crate) use bench_memory::{AppCacheArgs, DirectOrCachedArgs};
pub(crate) use bench_net::{BenchFilesArgs, BenchRelayArgs, NetworkArgs};
pub(crate) use bench_pacing::BenchPacingArgs;
pub(crate) use bench_read::{RandomReadArgs, ReadOrderArgs, SequentialReadArgs};
pub(crate) use bench_write::RandomWriteArgs;
pub(crate) use cache::{CacheArgs, CacheCommand, EvictArgs, FilesArgs, StatusArgs, WarmArgs};
pub(crate) use disk_kind::DiskKind;
pub(crate) use dups::{DupsAction, DupsArgs, ReportFormat, SearchArgs, ShowProgress};
pub(crate) use dups_action::{ActionArgs, HowArgs, PriorityArg};
pub(crate) use files::{AccessLogArgs, FilesServerArgs};
pub(crate) use hash::Hash;
pub(crate) use log::{LogArgs, Stamps};
pub(crate) use patch::PatchArgs;
pub(crate) use probe::ProbeArgs;
pub(crate) use relay::RelayArgs;
pub(crate) use store::{
    ExportArgs, GetArgs, ImportArgs, LsArgs, PutArgs, RmArgs, StatArgs, StoreArgs, StoreCommand,
    VerifyArgs,
};
pub(crate) use sum::SumArgs;
pub(crate) use tune::TuneArgs;

use crate::units::{parse_bytes, parse_time};

/// Moves files as fast as the disk under them allows.
///
/// A file store on one directory: small files merged into volumes, so that each is read back with
/// one disk read, big ones beside them. It is served to S3 clients and to curl, or used without
/// any server. What it acknowledged survives a power cut. A log: lines of a service in rotated
/// files. Files read in bulk: duplicates found and dealt with, sums made and checked. And a look
/// below: what a disk is and can do, what happens to its writers, and what of files is in memory.
#[derive(Debug, Parser)]
#[command(name = "haul", version, max_term_width = 100, after_long_help = examples::HAUL)]
pub(crate) struct Cli {
    /// Tell more on stderr; twice tells everything
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Everywhere")]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a store over S3 and plain HTTP
    ///
    /// The store is made when its directory is empty or not there. One line on stdout tells both
    /// addresses as soon as clients may connect. SIGTERM and Ctrl-C finish the requests in flight
    /// and exit 0; a second one ends at once.
    #[command(after_long_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Serve the files of a directory over HTTP, hot ones from memory, cold ones past the page cache
    ///
    /// GET and HEAD with ranges, conditions and encoded forms. A file that is downloaded once does
    /// not take memory from those that are asked for all the time: it is read past the page cache,
    /// straight into a pipe, and moved to the client without a copy. One line on stdout tells the
    /// addresses as soon as clients may connect. SIGTERM and Ctrl-C finish the answers under way and
    /// exit 0; a second one ends at once.
    #[command(after_long_help = examples::FILES)]
    Files(Box<FilesServerArgs>),
    /// Use a store without a server: import, export, get, list, verify, ...
    ///
    /// One process uses a store at a time: a store that is being served is used over S3.
    #[command(after_long_help = examples::STORE)]
    Store(StoreArgs),
    /// Measure ways of doing a job beside each other on this machine
    #[command(after_long_help = examples::BENCH)]
    Bench(BenchArgs),
    /// Write what a service says into rotated files: service | haul log DIR
    ///
    /// Lines go to DIR/current, which is closed when it is full or its time is over; the newest
    /// closed files are kept, named by the moment they were closed, such as
    /// 20261121T072314.500000Z.log. Every byte is written as it came. Lines reach the kernel within
    /// 0.2 s, or as fast as the disk takes them; a full disk makes the service wait, and nothing is
    /// lost or removed for it.
    ///
    /// The end of the input ends it. SIGTERM writes what is in the pipe, and ends it. Ctrl-C, which
    /// the service gets too, lets it read on to the end of the input; a second one ends it. SIGHUP,
    /// SIGALRM and SIGUSR1 close the current file now.
    #[command(after_long_help = examples::LOG)]
    Log(LogArgs),
    /// What of files is in memory: show it, bring them in, drop them
    #[command(after_long_help = examples::CACHE)]
    Cache(CacheArgs),
    /// Tell what a storage is, what Haul does on it and why, and what it can do
    #[command(after_long_help = examples::PROBE)]
    Probe(ProbeArgs),
    /// Tell what will happen to this machine's writers, and what could be better
    ///
    /// From how much dirty data on the kernel writes, writers are slowed down and wait, and for how
    /// long at the rate of the disk; what settings of the kernel, the disks, the mounts and the
    /// journals do to that. What is recommended comes with its reason, and --apply sets what is safe
    /// to set.
    #[command(after_long_help = examples::TUNE)]
    Tune(TuneArgs),
    /// Find files of equal content: haul dups PATH, and then haul dups remove
    ///
    /// Files are told apart by length, by samples, and then piece by piece, so that of files that
    /// differ little is read; files that share their blocks are not read at all. Options, patterns
    /// and reports are those of "fclones group". The report goes to stdout; the commands below read
    /// it from stdin, or from a file, and do something about it.
    #[command(after_long_help = examples::DUPS)]
    Dups(Box<DupsArgs>),
    /// Write many records into a big file, sorted by their place: records | haul patch FILE
    ///
    /// Records come on stdin, each as its offset in the file (8 bytes, little-endian), its length
    /// (4 bytes, little-endian) and its bytes; or from files, named in a list. They are gathered in
    /// memory, sorted, merged with their neighbours, and written in one direction; of overlapping
    /// ones the last stands. At exit 0 all of them are on the medium. Nobody else may write to the
    /// file meanwhile.
    ///
    /// A run that ends early leaves some of its records in the file, unless it is --atomic: then all
    /// of them are first made durable in FILE.haul-patch beside the file. Until they are, the file
    /// is as it was; from then on the next "haul patch" of the file, or --resume, completes what a
    /// crash interrupted.
    #[command(after_long_help = examples::PATCH)]
    Patch(PatchArgs),
    /// Print or check the sums of files, those of whole directories too
    ///
    /// Files are read in the order the disk likes best, by all cores, and told in the order of their
    /// paths. The lists are those of b3sum, sha256sum, sha512sum, md5sum and xxhsum, and theirs are
    /// checked. A file that cannot be read is told on stderr and does not stop the others.
    #[command(after_long_help = examples::SUM)]
    Sum(SumArgs),
    /// Relay connections: haul relay --listen 127.0.0.1:8080 --to 192.0.2.7:80
    ///
    /// Bytes go between TCP and unix sockets as they come, each end is told to the other side, and a
    /// reset is answered by a reset. Small bursts are copied, large ones spliced through pipes
    /// without touching the bytes. One line on stdout tells when clients may connect, and what was
    /// done is told at the end, or on stderr at SIGUSR1. SIGTERM and Ctrl-C accept nothing more, let
    /// connections end, and exit 0; a second one ends at once.
    #[command(after_long_help = examples::RELAY)]
    Relay(Box<RelayArgs>),
    /// Print the completions for a shell
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a directory
    #[command(after_long_help = examples::MAN)]
    Man {
        /// The directory to write all pages into; it must be there
        dir: Option<PathBuf>,
    },
}

/// Which store, and how it keeps new objects.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct OpenArgs {
    /// The directory of the store
    #[arg(long, global = true, value_name = "DIR", default_value = "./haul-data")]
    pub(crate) data: PathBuf,
    /// Objects of at least this size go into files of their own
    ///
    /// 64KiB to 16MiB. Smaller objects go into volumes and are read back with one read; one of
    /// them is held whole in memory while it is written or read. It applies to new objects.
    #[arg(long, global = true, hide_short_help = true)]
    #[arg(value_name = "SIZE", default_value = "4MiB", value_parser = parse_bytes)]
    pub(crate) big_object: u64,
    /// The size of a volume
    ///
    /// 4MiB to 2GiB, and at least four times --big-object. It applies to new volumes.
    #[arg(long, global = true, hide_short_help = true)]
    #[arg(value_name = "SIZE", default_value = "128MiB", value_parser = parse_bytes)]
    pub(crate) volume: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address of S3 and plain HTTP; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000", help_heading = "Server")]
    #[arg(value_parser = parse_address)]
    pub(crate) listen: SocketAddr,
    /// The address of the admin page, the metrics and the health check
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9001", help_heading = "Server")]
    #[arg(value_parser = parse_address)]
    pub(crate) admin: SocketAddr,
    /// The file with the access key and the secret key clients sign with
    ///
    /// Two lines, first the access key; or lines such as access_key = ... and secret_key = ... .
    /// Others must not be able to read it. Without it the environment variables HAUL_ACCESS_KEY and
    /// HAUL_SECRET_KEY are used; without those everybody who can connect may do everything, and
    /// only addresses of this machine itself (127.0.0.1 or `[::1]`) are accepted.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) credentials: Option<PathBuf>,
    /// How long requests in flight may take to finish once the server is told to stop
    #[arg(long, value_name = "TIME", help_heading = "Server")]
    #[arg(default_value = "30s", value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

/// Reads an address and a port, such as `127.0.0.1:9000`. Names are not looked up: what they lead to
/// may change, and with it who can connect.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    const HOW: &str = "write an IP address and a port, like 127.0.0.1:9000 or '[::1]:9000'";
    text.parse().map_err(|_no_address| HOW.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        assert!(parse_address("127.0.0.1:9000").is_ok() && parse_address("[::1]:0").is_ok());
        for text in ["9000", ":9000", "localhost:9000", "127.0.0.1", "127.0.0.1:99999", "::1:9"] {
            let why = parse_address(text).err();
            assert!(why.is_some_and(|why| why.contains("127.0.0.1:9000")), "{text}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let cli = Cli::try_parse_from(["haul", "serve"]).unwrap();
        let Command::Serve(args) = cli.command else { panic!("not serve") };
        let (store, server) =
            (haul_file_store::Options::default(), haul_s3_server::Config::default());
        assert_eq!(args.open.big_object, store.big_object_bytes);
        assert_eq!(args.open.volume, store.volume_bytes);
        assert_eq!((args.listen, args.admin), (server.listen, server.admin));
        assert_eq!(args.drain_time, server.limits.drain_time_max);
    }

    #[test]
    fn defaults_of_the_log_are_those_of_its_library() {
        let cli = Cli::try_parse_from(["haul", "log", "d"]).unwrap();
        let Command::Log(args) = cli.command else { panic!("not log") };
        let (ours, log) = (args.options("me"), haul_line_log::Options::default());
        assert_eq!((ours.file_bytes_max, ours.file_time), (log.file_bytes_max, log.file_time));
        assert_eq!((ours.keep, ours.sync, ours.when_full), (log.keep, log.sync, log.when_full));
        assert_eq!((ours.buffers, ours.buffer_bytes), (log.buffers, log.buffer_bytes));
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
