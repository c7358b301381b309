//! `haul bench files` and `haul bench relay`.

use std::env;
use std::path::{Path, PathBuf};

use haul_bench::{files as bench_files, relay as bench_relay};

use super::log::rivals_program;
use super::measured;
use crate::args::{BenchFilesArgs, BenchRelayArgs, NetworkArgs};
use crate::report::{OrFail, Result};

pub(super) fn files(args: &BenchFilesArgs) -> Result {
    let options = bench_files::Options {
        dir: args.dir.clone(),
        program: Some(program(&args.network)?),
        path: env::var_os("PATH").unwrap_or_default(),
        parts: args.only.clone(),
        hot_bytes: args.sizes.clone(),
        hot_files: args.files,
        big_bytes: args.big,
        big_files: args.big_files,
        memory_bytes: args.memory,
        connections: args.connections,
        rounds: args.rounds,
        time: args.seconds,
        congestion: args.network.congestion.clone(),
    };
    measured("files", &args.report, |watcher| bench_files::run(&options, watcher))
}

pub(super) fn relay(args: &BenchRelayArgs) -> Result {
    let options = bench_relay::Options {
        dir: args.dir.clone(),
        program: Some(program(&args.network)?),
        path: env::var_os("PATH").unwrap_or_default(),
        compare: match &args.compare {
            Some(named) => Some(found(named)?),
            None => rivals_program(),
        },
        rivals: args.rivals.clone(),
        parts: args.only.clone(),
        flows: args.flows.clone(),
        message_bytes: args.sizes.clone(),
        rounds: args.rounds,
        time: args.seconds,
        congestion: args.network.congestion.clone(),
    };
    measured("relay", &args.report, |watcher| bench_relay::run(&options, watcher))
}

/// A program that was named: to be without it is no choice of ours.
fn found(program: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot find the program {}", program.display());
    program.metadata().or_fail(cannot).map(|_| program.to_owned())
}

/// The program that is measured as ours.
fn program(args: &NetworkArgs) -> Result<PathBuf> {
    match &args.program {
        Some(named) => found(named),
        None => env::current_exe().or_fail(|| "cannot find this program".to_owned()),
    }
}
