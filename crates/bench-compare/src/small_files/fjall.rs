//! Stores objects with fjall, an LSM tree (a log-structured merge tree) in Rust. The journal is
//! synced after each transaction (`PersistMode::SyncData`).

use std::path::Path;

use fjall::{Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use haul_bench::log::Failure;

use super::database::{Database, Object};

/// The place of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// In files of their own, so that compaction moves only keys.
    Separate,
    /// In the tree, the default.
    Inline,
}

pub(crate) struct Objects {
    database: fjall::Database,
    keyspace: Keyspace,
}

impl Objects {
    pub(crate) fn open(dir: &Path, values: Values) -> Result<Self, Failure> {
        let database = fjall::Database::builder(dir.join("fjall")).open()?;
        let separation = (values == Values::Separate).then(KvSeparationOptions::default);
        let options = || KeyspaceCreateOptions::default().with_kv_separation(separation);
        let keyspace = database.keyspace("objects", options)?;
        Ok(Self { database, keyspace })
    }
}

impl Database for Objects {
    fn store(&self, _writer: usize, objects: &[Object<'_>]) -> Result<(), Failure> {
        if let [object] = objects {
            self.keyspace.insert(object.key, object.bytes)?;
            return Ok(self.database.persist(PersistMode::SyncData)?);
        }
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for object in objects {
            batch.insert(&self.keyspace, object.key, object.bytes);
        }
        Ok(batch.commit()?)
    }
}
