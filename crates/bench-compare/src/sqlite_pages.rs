//! Overwrites random pages with SQLite, with a write-ahead log and `synchronous = FULL`. Each page
//! is the blob of one row. A write is one transaction that updates the row by its number.

use std::sync::{Mutex, PoisonError};

use haul_bench::log::{Contender, Failure};
use haul_bench::random_write::Places;
use rusqlite::{Connection, params};

use crate::sqlite::{RECORDS, Sharing, connect};
use crate::workload::Workload;

const UPDATE: &str = "UPDATE records SET bytes = ?2 WHERE id = ?1";
const INSERT: &str = "INSERT INTO records (id, bytes) VALUES (?1, ?2)";

pub(crate) struct Pages {
    /// One connection per writer, or a single connection.
    connections: Vec<Mutex<Connection>>,
    places: Places,
    pages: u64,
}

impl Pages {
    pub(crate) fn open(load: Workload<'_>, sharing: Sharing) -> Result<Self, Failure> {
        let count = if let Sharing::Each = sharing { load.writers } else { 1 };
        let path = load.dir.join("pages.sqlite");
        let connect = |_| connect(&path, RECORDS).map(Mutex::new);
        let connections = (0..count).map(connect).collect::<Result<_, _>>()?;
        Ok(Self { connections, places: Places::new(load.writers, load.pages), pages: load.pages })
    }
}

impl Contender for Pages {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let page = i64::try_from(self.places.next(writer))?;
        let connection = &self.connections[writer % self.connections.len()];
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        match connection.prepare_cached(UPDATE)?.execute(params![page, record])? {
            1 => Ok(()),
            rows => Err(format!("{rows} rows were changed").into()),
        }
    }

    /// Inserts all pages, and runs a checkpoint that copies them from the log into the database.
    fn warm_up(&self) -> Result<(), Failure> {
        let connection = self.connections[0].lock().unwrap_or_else(PoisonError::into_inner);
        let page = vec![0x5a_u8; 4096];
        connection.execute_batch("BEGIN")?;
        for number in 0..i64::try_from(self.pages)? {
            connection.prepare_cached(INSERT)?.execute(params![number, page])?;
        }
        connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(())
    }

    /// Runs a checkpoint that copies the remaining pages from the log into the database.
    fn finish(&self) -> Result<(), Failure> {
        let connection = self.connections[0].lock().unwrap_or_else(PoisonError::into_inner);
        let busy: i64 =
            connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0))?;
        if busy == 0 { Ok(()) } else { Err("the checkpoint could not be finished".into()) }
    }
}
