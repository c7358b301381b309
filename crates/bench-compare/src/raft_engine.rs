//! Appends records with raft-engine: one engine, one raft group (a sequence of entries) per writer,
//! and one batch with `sync = true` per record.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_bench::log::{Contender, Failure};
use protobuf::well_known_types::Any;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize};

use crate::workload::Tuning;

/// The size of a log file in MiB; the default is 128 MiB.
const FILE_MIB: u64 = 64;
/// The total size of the log files in MiB above which raft-engine frees files. With recycling, it
/// preallocates files of this total size on opening.
const PURGE_MIB: u64 = 512;
/// The number of newest entries retained per group. Older entries are released, as if a state
/// machine had applied them.
const RETAINED: u64 = 64;

/// The interval at which applied entries are released; each release costs a small write per group.
const COMPACT_EVERY: Duration = Duration::from_secs(1);

/// The type of a raft log's entries. An `Any` holds the index and the bytes of one entry; it is
/// encoded like `eraftpb::Entry`, without a dependency on that crate.
#[derive(Clone)]
struct Entries;

impl MessageExt for Entries {
    type Entry = Any;

    fn index(entry: &Any) -> u64 {
        entry.type_url.parse().unwrap_or_default()
    }
}

pub(crate) struct Log {
    engine: Engine,
    /// The index of the last entry of each group.
    last: Vec<AtomicU64>,
    compacted: Mutex<Instant>,
}

impl Log {
    pub(crate) fn open(dir: &Path, tuning: Tuning, writers: usize) -> Result<Self, Failure> {
        let dir = dir.to_str().ok_or("the directory's name is not UTF-8")?.to_owned();
        let config = match tuning {
            Tuning::Default => Config { dir, ..Config::default() },
            Tuning::Recycling => Config {
                dir,
                target_file_size: ReadableSize::mb(FILE_MIB),
                purge_threshold: ReadableSize::mb(PURGE_MIB),
                enable_log_recycle: true,
                prefill_for_recycle: true,
                // The records are incompressible, so compression would only cost time.
                batch_compression_threshold: ReadableSize(0),
                ..Config::default()
            },
        };
        let last = (0..writers).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { engine: Engine::open(config)?, last, compacted: Mutex::new(Instant::now()) })
    }

    fn write(&self, writer: usize, record: &[u8], sync: bool) -> Result<(), Failure> {
        // Each group has one writer, so no other thread changes its index.
        let index = self.last[writer].load(Ordering::Relaxed) + 1;
        let entry = Any { type_url: index.to_string(), value: record.to_vec(), ..Any::default() };
        let mut batch = LogBatch::with_capacity(1);
        batch.add_entries::<Entries>(group(writer), &[entry])?;
        self.engine.write(&mut batch, sync)?;
        self.last[writer].store(index, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the group of a writer; 0 is not a valid group.
fn group(writer: usize) -> u64 {
    writer as u64 + 1
}

impl Contender for Log {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        self.write(writer, record, true)
    }

    /// Fills the first file, which is new, so that the measurement writes only to the later files,
    /// which were preallocated on opening.
    fn warm_up(&self) -> Result<(), Failure> {
        let record = vec![0; 1 << 20];
        for _ in 0..=FILE_MIB {
            self.write(0, &record, false)?;
        }
        self.engine.sync()?;
        Ok(())
    }

    fn housekeep(&self) -> Result<(), Failure> {
        let mut compacted = self.compacted.lock().unwrap_or_else(PoisonError::into_inner);
        if compacted.elapsed() < COMPACT_EVERY {
            return Ok(());
        }
        *compacted = Instant::now();
        for (writer, last) in self.last.iter().enumerate() {
            self.engine
                .compact_to(group(writer), last.load(Ordering::Relaxed).saturating_sub(RETAINED));
        }
        self.engine.purge_expired_files()?;
        Ok(())
    }
}
