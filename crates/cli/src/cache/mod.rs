//! `haul cache`: what of files is in memory, and taking it in or out \[Vmtouch\].

mod amount;
mod bar;
mod devices;
mod evict;
mod files;
mod plan;
mod status;
mod warm;

use crate::args::{CacheArgs, CacheCommand};
use crate::report::Result;

/// Carries out one of them.
pub(crate) fn run(args: &CacheArgs) -> Result {
    match &args.command {
        CacheCommand::Status(args) => status::run(args),
        CacheCommand::Warm(args) => warm::run(args),
        CacheCommand::Evict(args) => evict::run(args),
    }
}
