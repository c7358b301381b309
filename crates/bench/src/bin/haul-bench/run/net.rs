//! Runs `haul bench files` and `haul bench relay`.

use std::env;

use haul_bench::{files as bench_files, relay as bench_relay};

use super::measured::measured;
use super::programs::{existing, haul_program, rivals_program};
use crate::args::Measured;
use haul_cli_common::report::Result;

pub(super) fn files(args: &Measured<bench_files::Options>) -> Result {
    let options = bench_files::Options {
        program: Some(haul_program(args.options.program.as_deref())?),
        path: env::var_os("PATH").unwrap_or_default(),
        ..args.options.clone()
    };
    measured("files", &args.report, |watcher| bench_files::run(&options, watcher))
}

pub(super) fn relay(args: &Measured<bench_relay::Options>) -> Result {
    let options = bench_relay::Options {
        program: Some(haul_program(args.options.program.as_deref())?),
        path: env::var_os("PATH").unwrap_or_default(),
        compare: match &args.options.compare {
            Some(named) => Some(existing(named)?),
            None => rivals_program(),
        },
        ..args.options.clone()
    };
    measured("relay", &args.report, |watcher| bench_relay::run(&options, watcher))
}
