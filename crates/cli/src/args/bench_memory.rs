//! The part of the table below `haul bench` that is about little memory.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::bench::ReportArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct DirectOrCachedArgs {
    /// The directory to make the file in
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// How much memory there is for the page cache and the readers
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_memory)]
    pub(crate) memory: u64,
    /// How much data there is, in percent of the memory
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "25,50,80,100,125,150,200,400,800,1600")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    pub(crate) data_percent: Vec<u64>,
    /// How many read at a time
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=4096))]
    pub(crate) readers: usize,
    /// How often each is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each is measured in a round, such as 1s
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AppCacheArgs {
    /// The directory to make the file in
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// How much memory there is for both caches and the readers
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_memory)]
    pub(crate) memory: u64,
    /// How much of the data is hot, in percent of the memory
    #[arg(long, value_name = "PERCENT", default_value = "40")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=100))]
    pub(crate) hot_percent: u64,
    /// How much is scanned, in percent of the memory
    #[arg(long, value_name = "PERCENT", default_value = "800")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    pub(crate) cold_percent: u64,
    /// How many read what is hot
    #[arg(long, value_name = "N", default_value = "8")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=4096))]
    pub(crate) readers: usize,
    /// How many pages they read a second, all together, at most; 0 is as many as they can
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) reads_per_second: u64,
    /// How often each way is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each is measured in a round, such as 5s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 0x400_0000.. => Ok(bytes),
        _ => Err("the readers alone need 64MiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_bench::{app_cache, direct_or_cached};

    use super::super::bench::{BenchArgs, BenchCommand};
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<BenchCommand, String> {
        let words = ["haul", "bench"].iter().chain(arguments).chain(&["--dir", "d"]);
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Bench(BenchArgs { command }) = cli.command else { panic!("not bench") };
        Ok(command)
    }

    #[test]
    fn defaults_are_those_of_the_library_and_mistakes_are_explained() {
        let Ok(BenchCommand::DirectOrCached(args)) = parsed(&["direct-or-cached"]) else {
            panic!("not direct-or-cached")
        };
        let options = direct_or_cached::Options::new("d");
        assert_eq!((args.memory, args.readers), (options.memory_bytes, options.readers));
        assert_eq!(args.data_percent, options.data_percents);
        assert_eq!((args.rounds, args.seconds), (options.rounds, options.time));

        let Ok(BenchCommand::AppCache(args)) = parsed(&["app-cache"]) else {
            panic!("not app-cache")
        };
        let options = app_cache::Options::new("d");
        assert_eq!((args.memory, args.readers), (options.memory_bytes, options.readers));
        assert_eq!(
            (args.hot_percent, args.cold_percent),
            (options.hot_percent, options.cold_percent)
        );
        assert_eq!((args.rounds, args.seconds), (options.rounds, options.time));
        assert_eq!(args.reads_per_second, options.reads_per_s);

        let said = parsed(&["app-cache", "--memory", "1MiB"]).unwrap_err();
        assert!(said.contains("64MiB"), "{said}");
    }
}
