//! `haul store`: a store without a server.

mod buckets;
mod compact;
mod content;
mod export;
mod get;
mod import;
mod ls;
mod mtime;
mod objects;
pub(crate) mod place;
mod put;
mod rm;
mod stat;
mod verify;
mod workers;

use haul_file_store::{Damage, Store};

use crate::args::{OpenArgs, StoreArgs, StoreCommand};
use crate::opening::{Missing, open};
use crate::report::{OrFail, Result};

/// Carries out one command on a store.
pub(crate) fn run(args: &StoreArgs) -> Result {
    let with_store = |name: &str, work: &mut dyn FnMut(&Store, &[Damage]) -> Result| {
        let missing = if name == "mb" { Missing::Make } else { Missing::Refuse };
        with_store(&args.open, name, missing, work)
    };
    match &args.command {
        StoreCommand::Import(import) => import::run(&args.open, import),
        StoreCommand::Export(args) => {
            with_store("export", &mut |store, damage| export::run(store, damage, args))
        }
        StoreCommand::Put(args) => with_store("put", &mut |store, _| put::run(store, args)),
        StoreCommand::Get(args) => with_store("get", &mut |store, _| get::run(store, args)),
        StoreCommand::Ls(args) => with_store("ls", &mut |store, _| ls::run(store, args)),
        StoreCommand::Stat(args) => with_store("stat", &mut |store, _| stat::run(store, args)),
        StoreCommand::Rm(args) => with_store("rm", &mut |store, _| rm::run(store, args)),
        StoreCommand::Mb { bucket } => {
            with_store("mb", &mut |store, _| buckets::make(store, bucket))
        }
        StoreCommand::Rb { bucket } => {
            with_store("rb", &mut |store, _| buckets::remove(store, bucket))
        }
        StoreCommand::Verify(args) => {
            with_store("verify", &mut |store, damage| verify::run(store, damage, args))
        }
        StoreCommand::Compact => with_store("compact", &mut |store, _| compact::run(store)),
    }
}

/// Opens the store for `work`, hands over the damage found by that, and closes the store whatever
/// came of the work.
fn with_store(
    args: &OpenArgs,
    name: &str,
    missing: Missing,
    work: impl FnOnce(&Store, &[Damage]) -> Result,
) -> Result {
    let (store, damage) = open(args, &format!("haul store {name}"), missing)?;
    let worked = work(&store, &damage);
    let closed =
        store.close().or_fail(|| format!("cannot close the store in {}", args.data.display()));
    worked.and(closed)
}
