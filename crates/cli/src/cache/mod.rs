//! `haul cache`: shows, loads and evicts files in the page cache.

mod bar;
mod errors;
mod evict;
mod show;
mod status;
mod warm;

use crate::args::{CacheArgs, CacheCommand};
use crate::report::Result;

/// Runs a subcommand.
pub(crate) fn run(args: &CacheArgs) -> Result {
    match &args.command {
        CacheCommand::Status(args) => status::run(args),
        CacheCommand::Warm(args) => warm::run(args),
        CacheCommand::Evict(args) => evict::run(args),
    }
}
