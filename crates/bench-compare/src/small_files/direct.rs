//! Stores each object in a transaction of its own, in the thread of its writer.

use std::sync::atomic::{AtomicU64, Ordering};

use haul_bench::log::{Contender, Failure};
use haul_bench::small_files::key;

use super::database::{Database, Object};

/// A database in which each put is one durable transaction.
pub(crate) struct Direct<D> {
    database: D,
    next: AtomicU64,
}

impl<D: Database> Direct<D> {
    pub(crate) fn new(database: D) -> Self {
        Self { database, next: AtomicU64::new(0) }
    }
}

impl<D: Database> Contender for Direct<D> {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed));
        self.database.store(writer, &[Object { key: &key, bytes: record }])
    }

    fn warm_up(&self) -> Result<(), Failure> {
        self.database.warm_up()
    }
}
