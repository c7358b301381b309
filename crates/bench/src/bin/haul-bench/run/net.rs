//! Runs `haul bench files`, `haul bench serve`, `haul bench s3` and `haul bench relay`.

use std::env;
use std::net::TcpListener;

use haul_bench::{
    files as bench_files, relay as bench_relay, s3 as bench_s3, serve as bench_serve,
};

use super::measured::measured;
use super::programs::{existing, haul_program, rivals_program};
use crate::args::Measured;
use haul_cli_common::report::{OrFail, Result};

pub(super) fn files(args: &Measured<bench_files::Options>) -> Result {
    if let Some(address) = args.options.hyper {
        let served = TcpListener::bind(address)
            .and_then(|listener| bench_files::serve_with_hyper(&args.options.dir, listener));
        return served.map(drop).or_fail(|| format!("cannot serve at {address}"));
    }
    let options = bench_files::Options {
        program: Some(haul_program(args.options.program.as_deref())?),
        path: env::var_os("PATH").unwrap_or_default(),
        bench_program: env::current_exe().or_fail(|| "cannot find this program".to_owned())?,
        ..args.options.clone()
    };
    measured("files", &args.report, |watcher| bench_files::run(&options, watcher))
}

pub(super) fn serve(args: &Measured<bench_serve::Options>) -> Result {
    let options = bench_serve::Options {
        program: Some(haul_program(args.options.program.as_deref())?),
        path: env::var_os("PATH").unwrap_or_default(),
        ..args.options.clone()
    };
    measured("serve", &args.report, |watcher| bench_serve::run(&options, watcher))
}

pub(super) fn s3(args: &Measured<bench_s3::Options>) -> Result {
    let options = bench_s3::Options {
        program: Some(haul_program(args.options.program.as_deref())?),
        path: env::var_os("PATH").unwrap_or_default(),
        ..args.options.clone()
    };
    measured("s3", &args.report, |watcher| bench_s3::run(&options, watcher))
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
