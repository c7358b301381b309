//! The rivals, each in the forms that are worth measuring.

use std::path::Path;

use haul_bench::log::{Contender, Failure};

use crate::lmdb_pages::Map;
use crate::okaywal::Files;
use crate::sqlite::Sharing;
use crate::walrus::Topics;
use crate::{lmdb_pages, okaywal, raft_engine, sqlite, sqlite_pages, walrus};

/// How a rival is set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tuning {
    /// As it is when nothing is said.
    Default,
    /// So that log files are written again, as its documentation advises for durable appends.
    Recycling,
}

/// What a cell asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) writers: usize,
    /// Of a form for pages: how many there are.
    pub(crate) pages: u64,
}

/// Makes a rival ready to be driven.
pub(crate) type Open = fn(Cell<'_>) -> Result<Box<dyn Contender>, Failure>;

/// (name, how it is opened). Those behind `pages/` change random pages instead of appending. The first form of a rival bears its name alone and is the one that was
/// fastest here; the others say behind a `/` what is different.
pub(crate) const FORMS: &[(&str, Open)] = &[
    ("okaywal", |cell| Ok(Box::new(okaywal::Log::open(cell.dir, Files::Default)?))),
    ("okaywal/long-files", |cell| Ok(Box::new(okaywal::Log::open(cell.dir, Files::Long)?))),
    ("walrus", |cell| Ok(Box::new(walrus::Log::open(Topics::Each, cell.writers)?))),
    ("walrus/one-topic", |cell| Ok(Box::new(walrus::Log::open(Topics::One, cell.writers)?))),
    ("raft-engine", |cell| {
        Ok(Box::new(raft_engine::Log::open(cell.dir, Tuning::Recycling, cell.writers)?))
    }),
    ("raft-engine/default", |cell| {
        Ok(Box::new(raft_engine::Log::open(cell.dir, Tuning::Default, cell.writers)?))
    }),
    #[cfg(feature = "rocksdb")]
    ("rocksdb", |cell| Ok(Box::new(crate::rocksdb::Log::open(cell.dir, Tuning::Recycling)?))),
    #[cfg(feature = "rocksdb")]
    ("rocksdb/default", |cell| Ok(Box::new(crate::rocksdb::Log::open(cell.dir, Tuning::Default)?))),
    ("sqlite", |cell| Ok(Box::new(sqlite::Log::open(cell.dir, Sharing::Each, cell.writers)?))),
    ("sqlite/one-connection", |cell| {
        Ok(Box::new(sqlite::Log::open(cell.dir, Sharing::One, cell.writers)?))
    }),
    ("pages/sqlite", |cell| Ok(Box::new(sqlite_pages::Pages::open(cell, Sharing::Each)?))),
    ("pages/sqlite/one-connection", |cell| {
        Ok(Box::new(sqlite_pages::Pages::open(cell, Sharing::One)?))
    }),
    ("pages/lmdb", |cell| Ok(Box::new(lmdb_pages::Pages::open(cell, Map::ReadOnly)?))),
    ("pages/lmdb/write-map", |cell| Ok(Box::new(lmdb_pages::Pages::open(cell, Map::Writable)?))),
];
