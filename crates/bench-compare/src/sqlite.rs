//! Appends records with SQLite, with a write-ahead log and `synchronous = FULL`; each record is one
//! row and one transaction. Pages have the default size of 4 KiB, because larger pages only
//! increased the bytes written.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haul_bench::log::{Contender, Failure};
use rusqlite::Connection;

/// The time for which a writer waits for another transaction before its own transaction fails.
const BUSY_MAX: Duration = Duration::from_secs(60);
/// The number of pages in the log at which a checkpoint copies them into the database; SQLite then
/// overwrites the log from its start. The default of 1000 causes a checkpoint every few hundred
/// rows.
const CHECKPOINT_PAGES: u32 = 4000;
/// The table of records.
const RECORDS: &str = "CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, bytes BLOB)";
const INSERT: &str = "INSERT INTO records (bytes) VALUES (?1)";

/// The assignment of connections to writers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sharing {
    /// One connection per writer; SQLite's lock of the file serialises the writers.
    Each,
    /// One connection for all writers, behind a lock of this process.
    One,
}

pub(crate) struct Log {
    /// One connection per writer, or a single connection.
    connections: Vec<Mutex<Connection>>,
}

impl Log {
    pub(crate) fn open(dir: &Path, sharing: Sharing, writers: usize) -> Result<Self, Failure> {
        let path = dir.join("records.sqlite");
        let count = match sharing {
            Sharing::Each => writers,
            Sharing::One => 1,
        };
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(Mutex::new(connect(&path, RECORDS)?));
        }
        Ok(Self { connections })
    }
}

/// Opens a connection to the database at `path`, in which the statement `table` creates the table.
pub(crate) fn connect(path: &Path, table: &str) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_MAX)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(format!("the journal mode is {mode}, not wal").into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.execute(table, [])?;
    Ok(connection)
}

impl Contender for Log {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let connection = &self.connections[writer % self.connections.len()];
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.prepare_cached(INSERT)?.execute([record])?;
        Ok(())
    }

    /// Writes until after the first checkpoint, from which on SQLite overwrites the log in place.
    fn warm_up(&self) -> Result<(), Failure> {
        let connection = self.connections[0].lock().unwrap_or_else(PoisonError::into_inner);
        let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let rows = CHECKPOINT_PAGES + CHECKPOINT_PAGES / 8;
        let record = vec![0_u8; (page_bytes - page_bytes / 4) as usize];
        connection.execute_batch("BEGIN")?;
        for _ in 0..rows {
            connection.prepare_cached(INSERT)?.execute([&record])?;
        }
        connection.execute_batch("COMMIT")?;
        Ok(())
    }
}
