//! The part of the table below `haul bench log`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::bench::ReportArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct BenchLogArgs {
    /// The directory to measure in; some GiB must be free there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Numbers of threads that append at the same time
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) writers: Vec<usize>,
    /// The sizes of a record
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB")]
    #[arg(value_parser = parse_record_bytes)]
    pub(crate) sizes: Vec<usize>,
    /// How often each log is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    /// How long each log is measured in a round, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) seconds: Duration,
    /// The program that drives the rivals, haul-bench-compare
    ///
    /// Without this it is looked for beside this program, then in the directories of PATH. Where
    /// it is not found, the table says so. How to build it: docs/log-bench.md.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Option<PathBuf>,
    /// Measure rivals in all forms, not each in its fastest alone
    #[arg(long)]
    pub(crate) all_forms: bool,
    /// How many changes of segments to time; 0 for none
    #[arg(long, value_name = "N", default_value = "200")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(0..=1_000_000))]
    pub(crate) rotations: usize,
    /// The size of the log whose opening is timed; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_bytes)]
    pub(crate) recovery: u64,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn parse_record_bytes(text: &str) -> Result<usize, String> {
    match parse_bytes(text)? {
        bytes @ 1..=0x10_0000 => usize::try_from(bytes).map_err(|error| error.to_string()),
        _ => Err("a record is of 1 B to 1MiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::bench::{BenchArgs, BenchCommand};
    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<BenchLogArgs, String> {
        let words = ["haul", "bench", "log", "--dir", "d"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Bench(BenchArgs { command: BenchCommand::Log(args) }) = cli.command else {
            panic!("not log")
        };
        Ok(args)
    }

    #[test]
    fn the_defaults_measure_what_the_ratios_are_about() {
        let args = parsed(&[]).unwrap();
        assert_eq!((args.writers, args.sizes), (vec![1, 16], vec![4096]));
        assert!(args.rounds >= 5 && args.rotations > 0 && args.recovery >= 1 << 30);
    }

    #[test]
    fn lists_are_separated_by_commas_and_mistakes_are_explained() {
        let args = parsed(&["--writers", "1,64", "--sizes", "100,1KiB"]).unwrap();
        assert_eq!((args.writers, args.sizes), (vec![1, 64], vec![100, 1024]));
        for (arguments, why) in [
            (["--writers", "0"], "1..="),
            (["--sizes", "2MiB"], "1MiB"),
            (["--sizes", "0"], "1 B"),
            (["--rounds", "0"], "1..="),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
