//! The part of the table below `haul bench files` and `haul bench relay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use haul_bench::files::Part as FilesPart;
use haul_bench::relay::{Part as RelayPart, RIVALS};

use super::bench::ReportArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct BenchFilesArgs {
    /// The directory to make the files in; some GiB must be free there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What to measure: hot, warm, cold, latency
    ///
    /// hot: requests for small files that are in memory. warm, cold: CPU seconds for a GB of big
    /// files that are in memory, or not, and how much of them the page cache has afterwards.
    /// latency: how long hot files take at a fixed rate while cold ones are downloaded, with little
    /// memory; it needs root and the memory cgroup.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "hot,warm,cold,latency"
    )]
    pub(crate) only: Vec<FilesPart>,
    /// The lengths of hot files
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1KiB,4KiB,16KiB")]
    #[arg(value_parser = parse_hot_bytes)]
    pub(crate) sizes: Vec<u64>,
    /// How many hot files there are of each length
    #[arg(long, value_name = "N", default_value = "1000")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=20_000))]
    pub(crate) files: usize,
    /// The length of a big file
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_big_bytes)]
    pub(crate) big: u64,
    /// How many big files there are; four of them are downloaded for CPU
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub(crate) big_files: usize,
    /// How much memory a server has while its latency is measured, page cache included
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_memory_bytes)]
    pub(crate) memory: u64,
    /// How many connections ask for hot files
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) connections: usize,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each is measured in a round, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRelayArgs {
    /// A directory for configurations and what relays say; nothing stays in it
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub(crate) dir: PathBuf,
    /// What to measure: bulk, messages, connections, pipes
    ///
    /// bulk: CPU seconds for a GB in one direction. messages: CPU, rate and times of messages there
    /// and back, of a chat with many connections, and of files with a connection each.
    /// connections: short ones, without a byte and with 1 KiB. pipes: those made for a connection, which
    /// strace counts, and descriptors of an idle one.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "bulk,messages,connections,pipes")]
    pub(crate) only: Vec<RelayPart>,
    /// The rivals: haproxy, nginx, go, socat, tokio; all that are there, by default
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(RIVALS), hide_possible_values = true)]
    pub(crate) rivals: Option<Vec<String>>,
    /// The program that holds the relay of tokio, haul-bench-compare
    ///
    /// By default it is looked for beside this program, and then in PATH.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compare: Option<PathBuf>,
    /// Numbers of flows in bulk
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) flows: Vec<usize>,
    /// The lengths of messages
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB")]
    #[arg(value_parser = parse_message_bytes)]
    pub(crate) sizes: Vec<u64>,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each is measured in a round, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// What both have in common.
#[derive(Debug, Args)]
pub(crate) struct NetworkArgs {
    /// Another congestion control of TCP for as long as it takes, such as cubic; needs root
    ///
    /// It is a setting of the machine, so all connections made meanwhile have it, and all that are
    /// measured alike. The one before is set again, however the bench ends.
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// The program to measure as ours, such as another build; this one, by default
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Option<PathBuf>,
}

fn parse_within(text: &str, least: u64, most: u64, what: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if (least..=most).contains(&bytes) { Ok(bytes) } else { Err(what.to_owned()) }
}

fn parse_hot_bytes(text: &str) -> Result<u64, String> {
    parse_within(text, 1, 16 << 20, "a hot file is of 1 B to 16MiB")
}

fn parse_big_bytes(text: &str) -> Result<u64, String> {
    parse_within(text, 1 << 20, 1 << 40, "a big file is of 1MiB to 1TiB")
}

fn parse_memory_bytes(text: &str) -> Result<u64, String> {
    parse_within(text, 32 << 20, 1 << 44, "a server needs 32MiB at least")
}

fn parse_message_bytes(text: &str) -> Result<u64, String> {
    parse_within(text, 8, 1 << 30, "a message is of 8 B to 1GiB")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::{files, relay};

    use super::super::bench::{BenchArgs, BenchCommand};
    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(words: &[&str]) -> Result<BenchCommand, String> {
        let cli = Cli::try_parse_from(["haul", "bench"].iter().chain(words));
        match cli.map_err(|error| error.to_string())?.command {
            Command::Bench(BenchArgs { command }) => Ok(command),
            _ => panic!("no bench"),
        }
    }

    #[test]
    fn defaults_of_files_are_those_of_the_library() {
        let Ok(BenchCommand::Files(args)) = parsed(&["files", "--dir", "d"]) else {
            panic!("not files")
        };
        let options = files::Options::new("d");
        assert!(args.only == options.parts && args.sizes == options.hot_bytes);
        assert_eq!((args.files, args.big), (options.hot_files, options.big_bytes));
        assert_eq!((args.big_files, args.memory), (options.big_files, options.memory_bytes));
        assert_eq!((args.connections, args.rounds), (options.connections, options.rounds));
        assert_eq!((args.seconds, args.network.congestion), (options.time, options.congestion));
    }

    #[test]
    fn defaults_of_relay_are_those_of_the_library() {
        let Ok(BenchCommand::Relay(args)) = parsed(&["relay"]) else { panic!("not relay") };
        let options = relay::Options::new("/tmp");
        assert!(args.only == options.parts && args.dir == options.dir);
        assert_eq!((args.flows, args.sizes), (options.flows, options.message_bytes));
        assert_eq!((args.rounds, args.seconds), (options.rounds, options.time));
        assert_eq!((args.rivals, args.network.congestion), (options.rivals, options.congestion));
    }

    #[test]
    fn lists_are_separated_by_commas_and_mistakes_are_explained() {
        let words = ["relay", "--rivals", "haproxy,go", "--only", "bulk,pipes"];
        let Ok(BenchCommand::Relay(args)) = parsed(&words) else { panic!("not relay") };
        assert_eq!(args.rivals.map(|rivals| rivals.len()), Some(2));
        assert_eq!(args.only, [RelayPart::Bulk, RelayPart::Pipes]);
        for (words, why) in [
            (["relay", "--rivals", "envoy"], "haproxy"),
            (["relay", "--only", "all"], "messages"),
            (["relay", "--sizes", "4"], "8 B"),
            (["relay", "--flows", "65"], "64"),
            (["files", "--only", "tepid"], "latency"),
            (["files", "--memory", "1MiB"], "32MiB"),
        ] {
            let said = parsed(&words).err().unwrap();
            assert!(said.contains(why), "{words:?}: {said}");
        }
    }
}
