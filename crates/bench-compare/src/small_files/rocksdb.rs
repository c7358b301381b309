//! Stores objects with RocksDB, with values in the tree or in blob files (`BlobDB`). Each
//! transaction is a write with `sync = true`; RocksDB groups the writes of concurrent threads.
//!
//! The settings are those that the documentation of RocksDB recommends ("Setup Options and Basic
//! Tuning"), with the recycled log files of the append log's rival.

use std::cell::Cell;
use std::path::Path;
use std::thread::available_parallelism;

use haul_bench::log::Failure;
use rocksdb::{BlockBasedOptions, DB, Options, WriteBatch, WriteOptions};

use super::database::{Database, Object};
use crate::rocksdb::{fill_logs, recycle_logs};

/// The place of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// In the tree, the default.
    Inline,
    /// In blob files, so that compaction moves only keys.
    Blobs,
}

/// The length in bytes of the shortest value in a blob file.
const BLOB_BYTES_MIN: u64 = 1 << 10;
/// The bytes after which files in the background are written back, so that writeback is smooth.
const WRITEBACK_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 16 << 10;

pub(crate) struct Objects {
    db: DB,
    synced: WriteOptions,
}

impl Objects {
    pub(crate) fn open(dir: &Path, values: Values) -> Result<Self, Failure> {
        let mut options = Options::default();
        options.create_if_missing(true);
        recycle_logs(&mut options);
        options.set_level_compaction_dynamic_level_bytes(true);
        let cores = available_parallelism().map_or(2, usize::from);
        options.set_max_background_jobs(i32::try_from(cores.max(2))?);
        options.set_bytes_per_sync(WRITEBACK_BYTES);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_size(BLOCK_BYTES);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        options.set_block_based_table_factory(&blocks);
        if values == Values::Blobs {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(BLOB_BYTES_MIN);
            options.set_enable_blob_gc(true);
        }
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(Self { db: DB::open(&options, dir)?, synced })
    }
}

impl Database for Objects {
    fn store(&self, _writer: usize, objects: &[Object<'_>]) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        for object in objects {
            batch.put(object.key, object.bytes);
        }
        Ok(self.db.write_opt(batch, &self.synced)?)
    }

    /// Writes log files to their full size, so that RocksDB recycles them during the measurement.
    /// The keys sort behind those of the objects.
    fn warm_up(&self) -> Result<(), Failure> {
        let next = Cell::new(0);
        fill_logs(&self.db, || format!("warm-up/{:010}", next.replace(next.get() + 1)))
    }
}
