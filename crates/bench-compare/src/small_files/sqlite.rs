//! Stores objects with SQLite, with a write-ahead log and `synchronous = FULL`. Each object is one
//! row, found by its key.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use haul_bench::log::Failure;
use rusqlite::Connection;

use super::database::{Database, Object};
use crate::sqlite::connect;

/// A table with row numbers, as SQLite recommends for rows longer than a twentieth of a page.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, bytes BLOB)";
const INSERT: &str = "INSERT OR REPLACE INTO objects (key, bytes) VALUES (?1, ?2)";

pub(crate) struct Objects {
    /// One connection per writer.
    connections: Vec<Mutex<Connection>>,
}

impl Objects {
    /// Opens the database with `connections` connections.
    pub(crate) fn open(dir: &Path, connections: usize) -> Result<Self, Failure> {
        let path = dir.join("objects.sqlite");
        let connect = |_| connect(&path, TABLE).map(Mutex::new);
        Ok(Self { connections: (0..connections).map(connect).collect::<Result<_, _>>()? })
    }
}

impl Database for Objects {
    fn store(&self, writer: usize, objects: &[Object<'_>]) -> Result<(), Failure> {
        let connection = &self.connections[writer % self.connections.len()];
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock of writers is taken at the beginning: a transaction that first reads fails if
        // another connection writes before it does.
        let behavior = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior)?;
        for object in objects {
            transaction.prepare_cached(INSERT)?.execute((object.key, object.bytes))?;
        }
        Ok(transaction.commit()?)
    }
}
