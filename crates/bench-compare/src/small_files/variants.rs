//! Lists the rivals of Haul's file store, each with the settings worth measuring.

use haul_bench::log::{Contender, Failure};

use super::batched::Batched;
use super::database::Database;
use super::direct::Direct;
#[cfg(feature = "rocksdb")]
use super::rocksdb;
use super::{fjall, lmdb, sqlite};
use crate::workload::{Open, Workload};

/// The name and the constructor of each variant. In a variant whose name ends with `batched`, one
/// thread commits all waiting puts in one transaction; in the others each put is one transaction.
pub(crate) const VARIANTS: &[(&str, Open)] = &[
    #[cfg(feature = "rocksdb")]
    ("small-files/rocksdb", |load| {
        direct(rocksdb::Objects::open(load.dir, rocksdb::Values::Inline))
    }),
    #[cfg(feature = "rocksdb")]
    ("small-files/rocksdb/batched", |load| {
        batched(rocksdb::Objects::open(load.dir, rocksdb::Values::Inline), load)
    }),
    #[cfg(feature = "rocksdb")]
    ("small-files/rocksdb/blobs", |load| {
        direct(rocksdb::Objects::open(load.dir, rocksdb::Values::Blobs))
    }),
    #[cfg(feature = "rocksdb")]
    ("small-files/rocksdb/blobs-batched", |load| {
        batched(rocksdb::Objects::open(load.dir, rocksdb::Values::Blobs), load)
    }),
    ("small-files/lmdb", |load| direct(lmdb::Objects::open(load.dir))),
    ("small-files/lmdb/batched", |load| batched(lmdb::Objects::open(load.dir), load)),
    ("small-files/sqlite", |load| direct(sqlite::Objects::open(load.dir, load.writers))),
    ("small-files/sqlite/batched", |load| batched(sqlite::Objects::open(load.dir, 1), load)),
    ("small-files/fjall", |load| direct(fjall::Objects::open(load.dir, fjall::Values::Separate))),
    ("small-files/fjall/batched", |load| {
        batched(fjall::Objects::open(load.dir, fjall::Values::Separate), load)
    }),
    ("small-files/fjall/inline", |load| {
        direct(fjall::Objects::open(load.dir, fjall::Values::Inline))
    }),
    ("small-files/fjall/inline-batched", |load| {
        batched(fjall::Objects::open(load.dir, fjall::Values::Inline), load)
    }),
];

fn direct(opened: Result<impl Database, Failure>) -> Result<Box<dyn Contender>, Failure> {
    Ok(Box::new(Direct::new(opened?)))
}

fn batched(
    opened: Result<impl Database, Failure>,
    load: Workload<'_>,
) -> Result<Box<dyn Contender>, Failure> {
    Ok(Box::new(Batched::new(opened?, load.writers)))
}
