//! Runs one benchmark and shows its report.

mod all;
mod compare;
mod measured;
mod programs;

use std::env;
use std::path::PathBuf;

use clap::Args;
use haul_bench::log::LogBench;
use haul_bench::options::NetOptions;
use haul_bench::small_files::SmallFilesBench;
use haul_bench::{Benchmark, duplicates, files, relay, s3, serve};
use haul_cli_common::report::Result;

use self::measured::measured;
use self::programs::{existing, haul_program, rivals_program};
use crate::args::{BenchCommand, Measured};

/// Runs the benchmark that `command` selects.
pub(crate) fn run(command: &BenchCommand) -> Result {
    match command {
        BenchCommand::WriteModes(args) => bench(args, &args.options),
        BenchCommand::Log(args) => {
            let rivals = rivals(args.options.rivals.as_ref());
            bench(args, &LogBench { rivals, ..args.options.clone() })
        }
        BenchCommand::Duplicates(args) => {
            let program = haul_program(None)?;
            let path = env::var_os("PATH").unwrap_or_default();
            bench(args, &duplicates::Options { program, path, ..args.options.clone() })
        }
        BenchCommand::Pacing(args) => bench(args, &args.options),
        BenchCommand::RandomRead(args) => bench(args, &args.options),
        BenchCommand::SequentialRead(args) => bench(args, &args.options),
        BenchCommand::ReadOrder(args) => bench(args, &args.options),
        BenchCommand::PowerCuts(args) => bench(args, &args.options),
        BenchCommand::DirectOrCached(args) => bench(args, &args.options),
        BenchCommand::AppCache(args) => bench(args, &args.options),
        BenchCommand::RandomWrite(args) => bench(args, &args.options),
        BenchCommand::SmallFiles(args) => {
            let rivals = rivals(args.options.rivals.as_ref());
            bench(args, &SmallFilesBench { rivals, ..args.options.clone() })
        }
        BenchCommand::Haystack(args) => bench(args, &args.options),
        BenchCommand::Readahead(args) => bench(args, &args.options),
        BenchCommand::Splice(args) => bench(args, &args.options),
        BenchCommand::Files(args) => {
            let net = with_programs(&args.options.net)?;
            bench(args, &files::Options { net, ..args.options.clone() })
        }
        BenchCommand::Serve(args) => {
            let net = with_programs(&args.options.net)?;
            bench(args, &serve::Options { net, ..args.options.clone() })
        }
        BenchCommand::S3(args) => {
            let net = with_programs(&args.options.net)?;
            bench(args, &s3::Options { net, ..args.options.clone() })
        }
        BenchCommand::Relay(args) => {
            let net = with_programs(&args.options.net)?;
            let compare = args.options.compare.as_deref().map(existing).transpose()?;
            let compare = compare.or_else(rivals_program);
            bench(args, &relay::Options { net, compare, ..args.options.clone() })
        }
        BenchCommand::All(args) => all::all(args),
        BenchCommand::Compare(args) => compare::compare(args),
        BenchCommand::Completions { .. } | BenchCommand::Man { .. } => Ok(()),
    }
}

fn bench<B: Benchmark + Args>(args: &Measured<B>, bench: &B) -> Result {
    measured(B::NAME, &args.report, |watcher| bench.run(watcher))
}

/// Returns the program with the rivals: the chosen one, or the installed one.
fn rivals(chosen: Option<&PathBuf>) -> Option<PathBuf> {
    chosen.cloned().or_else(rivals_program)
}

/// Returns the options with the path of `haul` and the directories to search for rivals.
fn with_programs(options: &NetOptions) -> Result<NetOptions> {
    let mut options = options.clone();
    options.path = env::var_os("PATH").unwrap_or_default();
    options.programs.insert("haul", haul_program(options.program.as_deref())?);
    Ok(options)
}
