//! LMDB with pages: each page the value of its number, changed in a transaction of its own, which is
//! synced when it is committed (no `NOSYNC`, no `NOMETASYNC`). It has one writer at a time.

use haul_bench::log::{Contender, Failure};
use haul_bench::random_write::Places;
use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use crate::forms::Cell;

/// How it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Map {
    /// By `pwrite`, as it is when nothing is said.
    ReadOnly,
    /// Into the map itself, then `msync`: `MDB_WRITEMAP`.
    Writable,
}

pub(crate) struct Pages {
    env: Env,
    database: Database<U64<BigEndian>, Bytes>,
    places: Places,
    pages: u64,
}

impl Pages {
    #[expect(unsafe_code, reason = "the map is of a file that nobody else opens")]
    pub(crate) fn open(cell: Cell<'_>, map: Map) -> Result<Self, Failure> {
        let mut options = EnvOpenOptions::new();
        // Each value takes two pages of its own, for its header; and room for those being replaced.
        options.map_size(usize::try_from((cell.pages + 4096) * 4096 * 4)?);
        if map == Map::Writable {
            // SAFETY: nothing but this transaction's writes goes into the map.
            unsafe { options.flags(EnvFlags::WRITE_MAP) };
        }
        // SAFETY: the directory is this program's own, and it is opened once.
        let env = unsafe { options.open(cell.dir) }?;
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, database, places: Places::new(cell.writers, cell.pages), pages: cell.pages })
    }
}

impl Contender for Pages {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        self.database.put(&mut transaction, &self.places.next(writer), record)?;
        Ok(transaction.commit()?)
    }

    /// All pages are there.
    fn warm_up(&self) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn()?;
        for page in 0..self.pages {
            self.database.put(&mut transaction, &page, &[0x5a; 4096])?;
        }
        Ok(transaction.commit()?)
    }
}
