//! `haul wal`: prints, verifies, follows, copies and cuts an append log.

mod copy;
mod cut;
mod dump;
mod open;
mod print;
mod tail;
mod verify;

use crate::args::{WalArgs, WalCommand};
use crate::report::Result;

/// Runs a subcommand.
pub(crate) fn run(args: &WalArgs) -> Result {
    match &args.command {
        WalCommand::Dump(args) => dump::run(args),
        WalCommand::Verify(args) => verify::run(args),
        WalCommand::Tail(args) => tail::run(args),
        WalCommand::Copy(args) => copy::run(args),
        WalCommand::Cut(args) => cut::run(args),
    }
}
