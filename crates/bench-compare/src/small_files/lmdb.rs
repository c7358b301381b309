//! Stores objects with LMDB. The flags `NOSYNC` and `NOMETASYNC`, which skip syncs, are not set, and
//! LMDB admits one transaction that writes at a time.

use std::path::Path;

use haul_bench::log::Failure;
use heed::types::{Bytes, Str};
use heed::{Env, EnvOpenOptions};

use super::database::{Database, Object};

/// The length of the map in bytes, more than the objects of any measurement. The file grows only as
/// objects are stored.
const MAP_BYTES: usize = 64 << 30;

pub(crate) struct Objects {
    env: Env,
    database: heed::Database<Str, Bytes>,
}

impl Objects {
    pub(crate) fn open(dir: &Path) -> Result<Self, Failure> {
        let env = open_env(dir)?;
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, database })
    }
}

#[expect(unsafe_code, reason = "no other process opens the mapped file")]
fn open_env(dir: &Path) -> Result<Env, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES);
    // SAFETY: only this program uses the directory, and opens the database in it once.
    Ok(unsafe { options.open(dir) }?)
}

impl Database for Objects {
    fn store(&self, _writer: usize, objects: &[Object<'_>]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for object in objects {
            self.database.put(&mut transaction, object.key, object.bytes)?;
        }
        Ok(transaction.commit()?)
    }
}
