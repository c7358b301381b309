//! Runs one benchmark and shows its report.

mod all;
mod compare;
mod measured;
mod net;
mod programs;
mod seed;
mod store;

use std::env;

use haul_cli_common::report::Result;

use self::measured::measured;
use self::programs::{haul_program, rivals_program};
use crate::args::BenchCommand;
use haul_bench::file_read::{random_read, sequential_read};
use haul_bench::page_cache::{app_cache, direct_or_cached};
use haul_bench::small_files::{churn, reads};
use haul_bench::write_modes;
use haul_bench::{duplicates, log, pacing, power_cuts, random_write, read_order, small_files};

/// Runs the benchmark that `command` selects.
pub(crate) fn run(command: &BenchCommand) -> Result {
    match command {
        BenchCommand::WriteModes(args) => measured("write-modes", &args.report, |watcher| {
            write_modes::run(&args.options, watcher)
        }),
        BenchCommand::Log(args) => {
            let rivals = args.options.rivals.clone().or_else(rivals_program);
            let options = log::Options { rivals, ..args.options.clone() };
            measured("log", &args.report, |watcher| log::run(&options, watcher))
        }
        BenchCommand::Duplicates(args) => {
            let program = haul_program(None)?;
            let path = env::var_os("PATH").unwrap_or_default();
            let options = duplicates::Options { program, path, ..args.options.clone() };
            measured("duplicates", &args.report, |watcher| duplicates::run(&options, watcher))
        }
        BenchCommand::Pacing(args) => {
            measured("pacing", &args.report, |watcher| pacing::run(&args.options, watcher))
        }
        BenchCommand::RandomRead(args) => measured("random-read", &args.report, |watcher| {
            random_read::run(&args.options, watcher)
        }),
        BenchCommand::SequentialRead(args) => {
            measured("sequential-read", &args.report, |watcher| {
                sequential_read::run(&args.options, watcher)
            })
        }
        BenchCommand::ReadOrder(args) => {
            measured("read-order", &args.report, |watcher| read_order::run(&args.options, watcher))
        }
        BenchCommand::PowerCuts(args) => {
            measured("power-cuts", &args.report, |watcher| power_cuts::run(&args.options, watcher))
        }
        BenchCommand::DirectOrCached(args) => {
            measured("direct-or-cached", &args.report, |watcher| {
                direct_or_cached::run(&args.options, watcher)
            })
        }
        BenchCommand::AppCache(args) => {
            measured("app-cache", &args.report, |watcher| app_cache::run(&args.options, watcher))
        }
        BenchCommand::RandomWrite(args) => {
            let rivals = args.options.rivals.clone().or_else(rivals_program);
            let options = random_write::Options { rivals, ..args.options.clone() };
            measured("random-write", &args.report, |watcher| random_write::run(&options, watcher))
        }
        BenchCommand::SmallFiles(args) => {
            let rivals = args.options.rivals.clone().or_else(rivals_program);
            let options = small_files::Options { rivals, ..args.options.clone() };
            measured("small-files", &args.report, |watcher| small_files::run(&options, watcher))
        }
        BenchCommand::SmallFilesGet(args) => {
            measured("small-files-get", &args.report, |watcher| reads::run(&args.options, watcher))
        }
        BenchCommand::SmallFilesScale(args) => store::scale(args),
        BenchCommand::SmallFilesChurn(args) => {
            measured("small-files-churn", &args.report, |watcher| {
                churn::run(&args.options, watcher)
            })
        }
        BenchCommand::Files(args) => net::files(args),
        BenchCommand::Serve(args) => net::serve(args),
        BenchCommand::S3(args) => net::s3(args),
        BenchCommand::Relay(args) => net::relay(args),
        BenchCommand::All(args) => all::all(args),
        BenchCommand::Compare(args) => compare::compare(args),
        BenchCommand::Seed(command) => seed::seed(command),
        BenchCommand::Completions { .. } | BenchCommand::Man { .. } => Ok(()),
    }
}
