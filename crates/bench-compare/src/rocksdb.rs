//! Appends records with RocksDB; each record is a put with `sync = true` under a new key.
//!
//! The figures of RocksDB include the cost of its memtable (the sorted keys and values in memory),
//! which a database needs and a log does not.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_bench::log::{Contender, Failure};
use rocksdb::{DB, DBCompressionType, DBRecoveryMode, Options, WriteOptions};

use crate::workload::Tuning;

/// The size of a memtable in bytes: a larger memtable is flushed less often. Each memtable has a
/// log file of the same size.
const MEMTABLE_BYTES: usize = 128 << 20;
const RECYCLED: usize = 4;
/// The number of log files that the warm-up fills. Afterwards RocksDB overwrites the first of them,
/// and the second is free to be recycled.
const WARM_UP_FILES: usize = 2;
/// The number of level-0 files at which RocksDB slows down writers. It is so high that it is never
/// reached, although level-0 files are not compacted.
const FILES_MAX: i32 = 1 << 20;
const WARM_UP_BYTES: usize = 1 << 20;

pub(crate) struct Log {
    db: DB,
    synced: WriteOptions,
    tuning: Tuning,
    next: AtomicU64,
}

impl Log {
    pub(crate) fn open(dir: &Path, tuning: Tuning) -> Result<Self, Failure> {
        let mut options = Options::default();
        options.create_if_missing(true);
        if let Tuning::Recycling = tuning {
            recycle_logs(&mut options);
            options.set_disable_auto_compactions(true);
            options.set_level_zero_slowdown_writes_trigger(FILES_MAX);
            options.set_level_zero_stop_writes_trigger(FILES_MAX);
        }
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(Self { db: DB::open(&options, dir)?, synced, tuning, next: AtomicU64::new(0) })
    }

    fn key(&self) -> [u8; 8] {
        self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

/// Sets memtables and recycled log files that suit durable writes of values that cannot be
/// compressed.
pub(crate) fn recycle_logs(options: &mut Options) {
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_max_write_buffer_number(4);
    options.set_recycle_log_file_num(RECYCLED);
    // This is the default mode, and it supports recycling.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
}

/// Writes log files to their full size, so that RocksDB recycles them afterwards. `key` returns a
/// new key at each call.
pub(crate) fn fill_logs<K: AsRef<[u8]>>(db: &DB, key: impl Fn() -> K) -> Result<(), Failure> {
    let record = vec![0; WARM_UP_BYTES];
    for _ in 0..WARM_UP_FILES {
        for _ in 0..MEMTABLE_BYTES / WARM_UP_BYTES {
            db.put(key(), &record)?;
        }
        db.flush()?;
    }
    Ok(())
}

impl Contender for Log {
    fn append(&self, _writer: usize, record: &[u8]) -> Result<(), Failure> {
        self.db.put_opt(self.key(), record, &self.synced)?;
        Ok(())
    }

    /// Writes log files to their full size, so that RocksDB recycles them during the measurement.
    fn warm_up(&self) -> Result<(), Failure> {
        match self.tuning {
            Tuning::Default => Ok(()),
            Tuning::Recycling => fill_logs(&self.db, || self.key()),
        }
    }
}
