//! Lists the rivals of Haul's append log and file store, each with the settings worth
//! measuring.

use crate::okaywal::Files;
use crate::sqlite::Sharing;
use crate::walrus::Topics;
use crate::workload::{Open, Tuning};
use crate::{okaywal, raft_engine, small_files, sqlite, walrus};

/// Returns the names and constructors of all variants.
pub(crate) fn all() -> impl Iterator<Item = &'static (&'static str, Open)> {
    VARIANTS.iter().chain(small_files::VARIANTS)
}

/// The name and the constructor of each variant. The first variant of a rival was the fastest when
/// measured and has no suffix; the suffix of any other variant names its setting.
pub(crate) const VARIANTS: &[(&str, Open)] = &[
    ("okaywal", |load| Ok(Box::new(okaywal::Log::open(load.dir, Files::Default)?))),
    ("okaywal/long-files", |load| Ok(Box::new(okaywal::Log::open(load.dir, Files::Long)?))),
    ("walrus", |load| Ok(Box::new(walrus::Log::open(Topics::Each, load.writers)?))),
    ("walrus/one-topic", |load| Ok(Box::new(walrus::Log::open(Topics::One, load.writers)?))),
    ("raft-engine", |load| {
        Ok(Box::new(raft_engine::Log::open(load.dir, Tuning::Recycling, load.writers)?))
    }),
    ("raft-engine/default", |load| {
        Ok(Box::new(raft_engine::Log::open(load.dir, Tuning::Default, load.writers)?))
    }),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |load| Ok(Box::new(crate::rocksdb::Log::open(load.dir, Tuning::Recycling)?))),
    #[cfg(feature = "rocksdb")]
    ("rocksdb/default", |load| Ok(Box::new(crate::rocksdb::Log::open(load.dir, Tuning::Default)?))),
    ("sqlite", |load| Ok(Box::new(sqlite::Log::open(load.dir, Sharing::Each, load.writers)?))),
    ("sqlite/one-connection", |load| {
        Ok(Box::new(sqlite::Log::open(load.dir, Sharing::One, load.writers)?))
    }),
];
