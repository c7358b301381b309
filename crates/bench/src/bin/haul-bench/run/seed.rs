//! Runs the experiments of `haul bench seed`.

use haul_bench::seed::{crossover, fiemap, fill, order, prefault, pwrite, readahead, sorted};
use haul_bench::seed::{splice, stall, stdio, threads, trace};
use haul_cli_common::report::Result;

use super::measured::measured;
use crate::args::SeedCommand;

/// Runs the experiment that `command` selects.
pub(super) fn seed(command: &SeedCommand) -> Result {
    match command {
        SeedCommand::Fill(args) => {
            measured("seed fill", &args.report, |watcher| fill::run(&args.options, watcher))
        }
        SeedCommand::Trace(args) => {
            measured("seed trace", &args.report, |watcher| trace::run(&args.options, watcher))
        }
        SeedCommand::Readahead(args) => measured("seed readahead", &args.report, |watcher| {
            readahead::run(&args.options, watcher)
        }),
        SeedCommand::Pwrite(args) => {
            measured("seed pwrite", &args.report, |watcher| pwrite::run(&args.options, watcher))
        }
        SeedCommand::Stdio(args) => {
            measured("seed stdio", &args.report, |watcher| stdio::run(&args.options, watcher))
        }
        SeedCommand::Prefault(args) => {
            measured("seed prefault", &args.report, |watcher| prefault::run(&args.options, watcher))
        }
        SeedCommand::Sorted(args) => {
            measured("seed sorted", &args.report, |watcher| sorted::run(&args.options, watcher))
        }
        SeedCommand::Order(args) => {
            measured("seed order", &args.report, |watcher| order::run(&args.options, watcher))
        }
        SeedCommand::Fiemap(args) => {
            measured("seed fiemap", &args.report, |watcher| fiemap::run(&args.options, watcher))
        }
        SeedCommand::Threads(args) => {
            measured("seed threads", &args.report, |watcher| threads::run(&args.options, watcher))
        }
        SeedCommand::Crossover(args) => measured("seed crossover", &args.report, |watcher| {
            crossover::run(&args.options, watcher)
        }),
        SeedCommand::Stall(args) => {
            measured("seed stall", &args.report, |watcher| stall::run(&args.options, watcher))
        }
        SeedCommand::Splice(args) => {
            measured("seed splice", &args.report, |watcher| splice::run(&args.options, watcher))
        }
    }
}
