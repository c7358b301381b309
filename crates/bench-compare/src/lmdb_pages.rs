//! Overwrites random pages with LMDB; the key of a page is its number. A write is one transaction,
//! synced at commit: the flags `NOSYNC` and `NOMETASYNC`, which skip syncs, are not set. LMDB
//! admits one writer at a time.

use std::path::Path;

use haul_bench::log::{Contender, Failure};
use haul_bench::random_write::Places;
use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use crate::workload::Workload;

/// The method by which LMDB writes the database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Map {
    /// A read-only map and `pwrite`, the default.
    ReadOnly,
    /// A writable map (`MDB_WRITEMAP`) and `msync`.
    Writable,
}

pub(crate) struct Pages {
    env: Env,
    database: Database<U64<BigEndian>, Bytes>,
    places: Places,
    pages: u64,
}

impl Pages {
    pub(crate) fn open(load: Workload<'_>, map: Map) -> Result<Self, Failure> {
        // A value of 4 KiB and its header take two pages. The map has space for four pages per
        // value, because old versions of values take space until LMDB frees them.
        let env = open_env(load.dir, usize::try_from((load.pages + 4096) * 4096 * 4)?, map)?;
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, database, places: Places::new(load.writers, load.pages), pages: load.pages })
    }
}

/// Opens the environment in `dir`, with a map of `map_bytes`. The file grows only as values are
/// stored, unless the map is writable.
#[expect(unsafe_code, reason = "no other process opens the mapped file")]
pub(crate) fn open_env(dir: &Path, map_bytes: usize, map: Map) -> Result<Env, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes);
    if map == Map::Writable {
        // SAFETY: only the writes of LMDB's transactions modify the map.
        unsafe { options.flags(EnvFlags::WRITE_MAP) };
    }
    // SAFETY: only this program uses the directory, and opens the database in it once.
    Ok(unsafe { options.open(dir) }?)
}

impl Contender for Pages {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.database.put(&mut transaction, &self.places.next(writer), record)?;
        Ok(transaction.commit()?)
    }

    /// Writes all pages once, so that the measurement overwrites them.
    fn warm_up(&self) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for page in 0..self.pages {
            self.database.put(&mut transaction, &page, &[0x5a; 4096])?;
        }
        Ok(transaction.commit()?)
    }
}
