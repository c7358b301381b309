//! What a store counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::lifecycle::stats::LifecycleStats;
use crate::store::Store;

/// The state of a store and its counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Buckets.
    pub buckets: u64,
    /// Objects in all of them.
    pub objects: u64,
    /// Bytes of these objects.
    pub object_bytes: u64,
    /// The memory that the index takes, about.
    pub index_memory_bytes: u64,
    /// Uploads in parts that are going on.
    pub uploads: u64,
    /// Volumes.
    pub volumes: u64,
    /// The length of their files.
    pub volume_bytes: u64,
    /// Bytes in them that are part of a needle that stands.
    pub live_volume_bytes: u64,
    /// Bytes in them of needles that newer ones replaced or that were deleted. Compaction frees
    /// them.
    pub dead_volume_bytes: u64,
    /// Files of big objects.
    pub big_files: u64,
    /// Bytes of objects in them.
    pub big_file_bytes: u64,
    /// Bytes of them that are locked in the page cache.
    pub pinned_bytes: u64,
    /// Bytes of the sorted runs of keys, which are part of the index on disk.
    pub index_run_bytes: u64,
    /// Memory of the recent keys, which no run contains yet.
    pub index_recent_bytes: u64,
    /// Objects stored.
    pub puts: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Objects opened for reading, their attributes alone included.
    pub gets: u64,
    /// Pages of listings.
    pub lists: u64,
    /// Requests made to read needles.
    pub needle_reads: u64,
    /// Bytes of needles read.
    pub needle_read_bytes: u64,
    /// Records appended to the log.
    pub log_records: u64,
    /// Batches they were committed in.
    pub log_batches: u64,
    /// Syncs waited for.
    pub log_syncs: u64,
    /// Bytes handed to the kernel, padding included.
    pub log_written_bytes: u64,
    /// Time spent in syncs of the log, in microseconds.
    pub sync_us_total: u64,
    /// Durations of syncs: element `i` counts those under `2^i` microseconds and not under half
    /// of that.
    pub sync_us: [u64; haul_append_log::SYNC_BUCKETS],
    /// Volumes removed by compaction.
    pub volumes_compacted: u64,
    /// Bytes that small objects can still take before compaction must free more; `None` where the
    /// disk has no limit.
    pub free_bytes: Option<u64>,
    /// Volumes kept for compaction, whose space nothing else can take.
    pub reserve_volumes: u64,
    /// How many should be kept; a small or full disk has fewer.
    pub reserve_volumes_wanted: u64,
    /// Damaged places known, at most 10,000.
    pub damaged_places: u64,
    /// Those that may hide unknown keys, and whose loss was not accepted.
    pub hidden_places: u64,
    /// Bytes read to look for damage.
    pub scrubbed_bytes: u64,
    /// How often everything was read to look for damage.
    pub scrubs: u64,
    /// Sweeps of expired objects and stale uploads.
    pub lifecycle: LifecycleStats,
    /// Whether a sync failed: until the store is opened again nothing more is stored, or, if it was
    /// that of the big objects' directory, no more big objects.
    pub latched: bool,
}

impl Store {
    /// The state of the store and its counters since it was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        let log = inner.log.stats();
        let segments = inner.log.segments();
        // A file system that does not say how full it is is no reason to say nothing.
        let space = inner.space().unwrap_or_default();
        let (damaged_places, hidden_places) = inner.damage.counts();
        let index = inner.index.read();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &inner.counters;
        Stats {
            buckets: index.buckets.len() as u64,
            objects: index.objects(),
            object_bytes: index.bytes(),
            index_memory_bytes: index.memory_bytes(),
            uploads: index.uploads.len() as u64,
            volumes: segments.len() as u64,
            volume_bytes: segments.iter().map(|segment| u64::from(segment.bytes)).sum(),
            live_volume_bytes: index.volumes.live_bytes(),
            dead_volume_bytes: index.volumes.dead_bytes(),
            big_files: index.files.len(),
            big_file_bytes: index.files.bytes(),
            pinned_bytes: inner.objects.pinned.bytes(),
            index_run_bytes: index.keys.runs().iter().map(|run| run.info().bytes).sum(),
            index_recent_bytes: index.keys.recent_bytes() as u64,
            puts: read(&counters.puts),
            deletes: read(&counters.deletes),
            gets: read(&counters.gets),
            lists: read(&counters.lists),
            needle_reads: read(&counters.needle_reads),
            needle_read_bytes: read(&counters.needle_read_bytes),
            log_records: log.records,
            log_batches: log.batches,
            log_syncs: log.syncs,
            log_written_bytes: log.written_bytes,
            sync_us_total: log.sync_us_total,
            sync_us: log.sync_us,
            damaged_places,
            hidden_places,
            scrubbed_bytes: read(&counters.scrubbed_bytes),
            scrubs: read(&counters.scrubs),
            lifecycle: inner.lifecycle.counters.stats(),
            volumes_compacted: read(&counters.volumes_compacted),
            free_bytes: space.free_bytes,
            reserve_volumes: space.reserve_volumes,
            reserve_volumes_wanted: space.reserve_volumes_wanted,
            latched: inner.log.is_latched() || inner.objects.has_failed(),
        }
    }
}
