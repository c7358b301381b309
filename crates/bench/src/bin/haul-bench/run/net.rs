//! Runs `haul bench files`, `haul bench serve`, `haul bench s3` and `haul bench relay`.

use std::env;

use haul_bench::options::NetOptions;
use haul_bench::{files, relay, s3, serve};
use haul_cli_common::report::Result;

use super::measured::measured;
use super::programs::{existing, haul_program, rivals_program};
use crate::args::Measured;

/// Returns the options with the path of `haul` and the directories to search for rivals.
fn with_programs(options: &NetOptions) -> Result<NetOptions> {
    let mut options = options.clone();
    options.path = env::var_os("PATH").unwrap_or_default();
    options.programs.insert("haul", haul_program(options.program.as_deref())?);
    Ok(options)
}

pub(super) fn files(args: &Measured<files::Options>) -> Result {
    let net = with_programs(&args.options.net)?;
    let options = files::Options { net, ..args.options.clone() };
    measured("files", &args.report, |watcher| files::run(&options, watcher))
}

pub(super) fn serve(args: &Measured<serve::Options>) -> Result {
    let net = with_programs(&args.options.net)?;
    let options = serve::Options { net, ..args.options.clone() };
    measured("serve", &args.report, |watcher| serve::run(&options, watcher))
}

pub(super) fn s3(args: &Measured<s3::Options>) -> Result {
    let net = with_programs(&args.options.net)?;
    let options = s3::Options { net, ..args.options.clone() };
    measured("s3", &args.report, |watcher| s3::run(&options, watcher))
}

pub(super) fn relay(args: &Measured<relay::Options>) -> Result {
    let net = with_programs(&args.options.net)?;
    let compare = match &args.options.compare {
        Some(named) => Some(existing(named)?),
        None => rivals_program(),
    };
    let options = relay::Options { net, compare, ..args.options.clone() };
    measured("relay", &args.report, |watcher| relay::run(&options, watcher))
}
