//! `haul store`: runs commands on a store that no server has open.

mod backup;
mod buckets;
mod compact;
mod export;
mod failure;
mod get;
mod import;
mod lifecycle;
mod ls;
mod map;
mod missing;
mod objects;
mod put;
mod rm;
mod stat;
mod tar;
mod verify;
mod versioning;

use haul_file_store::Damage;
use haul_store_pool::Pool;

use crate::args::{StoreArgs, StoreCommand};
use crate::open_store::{IfMissing, with_store};
use crate::report::Result;

/// Opens the store and runs a subcommand on it.
pub(crate) fn run(args: &StoreArgs) -> Result {
    let with_store = |name: &str, work: &mut dyn FnMut(&Pool, &[Damage]) -> Result| {
        let if_missing = if name == "mb" { IfMissing::Create } else { IfMissing::Fail };
        with_store(&args.open, name, if_missing, work)
    };
    match &args.command {
        StoreCommand::Import(import) => import::run(&args.open, import),
        StoreCommand::Restore(restore) => backup::restore::run(&args.open, restore),
        StoreCommand::Export(args) => {
            with_store("export", &mut |store, damage| export::run(store, damage, args))
        }
        StoreCommand::ImportTar(import) => tar::import::run(&args.open, import),
        StoreCommand::ExportTar(args) => {
            with_store("export-tar", &mut |store, damage| tar::export::run(store, damage, args))
        }
        StoreCommand::Put(args) => with_store("put", &mut |store, _| put::run(store, args)),
        StoreCommand::Get(args) => with_store("get", &mut |store, _| get::run(store, args)),
        StoreCommand::Ls(args) => with_store("ls", &mut |store, _| ls::run(store, args)),
        StoreCommand::Stat(args) => with_store("stat", &mut |store, _| stat::run(store, args)),
        StoreCommand::Rm(args) => with_store("rm", &mut |store, _| rm::run(store, args)),
        StoreCommand::Mb { bucket } => {
            with_store("mb", &mut |store, _| buckets::create(store, bucket))
        }
        StoreCommand::Rb { bucket } => {
            with_store("rb", &mut |store, _| buckets::remove(store, bucket))
        }
        StoreCommand::Versioning(args) => {
            with_store("versioning", &mut |store, _| versioning::run(store, args))
        }
        StoreCommand::Verify(args) => {
            with_store("verify", &mut |store, damage| verify::run(store, damage, args))
        }
        StoreCommand::AcceptDamage(args) => {
            with_store("accept-damage", &mut |store, _| verify::accept_damage(store, args))
        }
        StoreCommand::Lifecycle(args) => {
            with_store("lifecycle", &mut |store, _| lifecycle::run(store, args))
        }
        StoreCommand::Snapshot(args) => {
            with_store("snapshot", &mut |store, _| backup::snapshot::run(store, args))
        }
        StoreCommand::Map(args) => with_store("map", &mut |store, _| map::run(store, args)),
        StoreCommand::Compact(args) => {
            with_store("compact", &mut |store, _| compact::run(store, args))
        }
    }
}
