//! Runs one benchmark and shows its report.

mod all;
mod compare;
mod measured;
mod programs;

use std::env;

use clap::Args;
use haul_bench::Benchmark;
use haul_bench::options::NetOptions;
use haul_cli_common::report::Result;

use self::measured::measured;
use self::programs::{existing, haul_program, rivals_program};
use crate::args::{BenchCommand, Measured};

/// Runs the benchmark that `command` selects.
pub(crate) fn run(command: BenchCommand) -> Result {
    match command {
        BenchCommand::WriteModes(args) => bench(&args),
        BenchCommand::Log(mut args) => {
            args.options.rivals = args.options.rivals.or_else(rivals_program);
            bench(&args)
        }
        BenchCommand::Duplicates(mut args) => {
            args.options.program = haul_program(None)?;
            args.options.path = env::var_os("PATH").unwrap_or_default();
            bench(&args)
        }
        BenchCommand::Pacing(args) => bench(&args),
        BenchCommand::RandomRead(args) => bench(&args),
        BenchCommand::SequentialRead(args) => bench(&args),
        BenchCommand::ReadOrder(args) => bench(&args),
        BenchCommand::PowerCuts(args) => bench(&args),
        BenchCommand::DirectOrCached(args) => bench(&args),
        BenchCommand::AppCache(args) => bench(&args),
        BenchCommand::RandomWrite(args) => bench(&args),
        BenchCommand::SmallFiles(mut args) => {
            args.options.rivals = args.options.rivals.or_else(rivals_program);
            bench(&args)
        }
        BenchCommand::Haystack(args) => bench(&args),
        BenchCommand::SpinningStore(args) => bench(&args),
        BenchCommand::Splice(args) => bench(&args),
        BenchCommand::Files(mut args) => with_net(&mut args, |options| &mut options.net),
        BenchCommand::Serve(mut args) => with_net(&mut args, |options| &mut options.net),
        BenchCommand::S3(mut args) => with_net(&mut args, |options| &mut options.net),
        BenchCommand::Relay(mut args) => {
            let compare = args.options.compare.as_deref().map(existing).transpose()?;
            args.options.compare = compare.or_else(rivals_program);
            with_net(&mut args, |options| &mut options.net)
        }
        BenchCommand::All(args) => all::all(&args),
        BenchCommand::Compare(args) => compare::compare(&args),
        BenchCommand::Completions { .. } | BenchCommand::Man { .. } => Ok(()),
    }
}

fn bench<B: Benchmark + Args>(args: &Measured<B>) -> Result {
    measured(B::NAME, &args.report, |watcher| args.options.run(watcher))
}

/// Runs a benchmark of servers, with the path of `haul` and the directories to search for rivals.
fn with_net<B: Benchmark + Args>(
    args: &mut Measured<B>,
    net: impl Fn(&mut B) -> &mut NetOptions,
) -> Result {
    let net = net(&mut args.options);
    net.path = env::var_os("PATH").unwrap_or_default();
    net.programs.insert("haul", haul_program(net.program.as_deref())?);
    bench(args)
}
