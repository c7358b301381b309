//! `haul dups`: finds duplicate files, and removes, links or moves the duplicates of a report.

mod act;
mod blocks;
mod place;
mod progress;
mod search;
mod treemap;

use crate::args::{DupsAction, DupsArgs};
use crate::report::Result;
use haul_duplicates::act::Action;

/// Finds duplicates, or executes an action on the duplicates of a report.
pub(crate) fn run(args: &DupsArgs) -> Result {
    match &args.action {
        None => search::run(&args.search),
        Some(DupsAction::Remove(args)) => act::run(args, Action::Remove),
        Some(DupsAction::Link(args)) if !args.soft => act::run(&args.action, Action::HardLink),
        Some(DupsAction::Link(args)) => act::run(&args.action, Action::SymLink),
        Some(DupsAction::Symlink(args)) => act::run(args, Action::SymLink),
        Some(DupsAction::Blocks(args)) => blocks::run(args),
        Some(DupsAction::Dedupe(args)) => act::run(args, Action::Dedupe),
        Some(DupsAction::Move(args)) => {
            act::run(&args.action, Action::Move(place::absolute(&args.target)?))
        }
    }
}
