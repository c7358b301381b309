//! Runs the experiments of `haul bench seed`.

use clap::Args;
use haul_bench::seed::{crossover, direct, fiemap, fill, gain, haystack, index, journal, mmap};
use haul_bench::seed::{order, prefault, pwrite, readahead, sorted, splice, stall, stdio, threads};
use haul_bench::seed::{trace, writeback};
use haul_bench::{Report, Watcher};
use haul_cli_common::report::Result;

use super::measured::measured;
use crate::args::{Measured, SeedCommand};

/// Runs the experiment that `command` selects.
pub(super) fn seed(command: &SeedCommand) -> Result {
    match command {
        SeedCommand::Fill(args) => experiment("fill", args, fill::run),
        SeedCommand::Trace(args) => experiment("trace", args, trace::run),
        SeedCommand::Readahead(args) => experiment("readahead", args, readahead::run),
        SeedCommand::Pwrite(args) => experiment("pwrite", args, pwrite::run),
        SeedCommand::Stdio(args) => experiment("stdio", args, stdio::run),
        SeedCommand::Prefault(args) => experiment("prefault", args, prefault::run),
        SeedCommand::Sorted(args) => experiment("sorted", args, sorted::run),
        SeedCommand::Order(args) => experiment("order", args, order::run),
        SeedCommand::Fiemap(args) => experiment("fiemap", args, fiemap::run),
        SeedCommand::Threads(args) => experiment("threads", args, threads::run),
        SeedCommand::Crossover(args) => experiment("crossover", args, crossover::run),
        SeedCommand::Stall(args) => experiment("stall", args, stall::run),
        SeedCommand::Splice(args) => experiment("splice", args, splice::run),
        SeedCommand::Journal(args) => experiment("journal", args, journal::run),
        SeedCommand::Gain(args) => experiment("gain", args, gain::run),
        SeedCommand::Mmap(args) => experiment("mmap", args, mmap::run),
        SeedCommand::Haystack(args) => experiment("haystack", args, haystack::run),
        SeedCommand::Direct(args) => experiment("direct", args, direct::run),
        SeedCommand::Index(args) => experiment("index", args, index::run),
        SeedCommand::Writeback(args) => experiment("writeback", args, writeback::run),
    }
}

fn experiment<O: Args>(
    name: &str,
    args: &Measured<O>,
    run: fn(&O, &dyn Watcher) -> haul_bench::Result<Report>,
) -> Result {
    measured(&format!("seed {name}"), &args.report, |watcher| run(&args.options, watcher))
}
