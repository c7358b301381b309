//! Store statistics.

use crate::failures::WorkKind;
use crate::lifecycle::stats::LifecycleStats;
use crate::store::Store;

/// A store's state, and its counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of buckets.
    pub buckets: u64,
    /// The number of objects in all buckets.
    pub objects: u64,
    /// The total length of the objects.
    pub object_bytes: u64,
    /// The number of older versions and delete markers in all buckets.
    pub versions: u64,
    /// The total length of the older versions.
    pub version_bytes: u64,
    /// The approximate memory of the index.
    pub index_memory_bytes: u64,
    /// The number of unfinished multipart uploads.
    pub uploads: u64,
    /// The number of volumes.
    pub volumes: u64,
    /// The total length of the volumes.
    pub volume_bytes: u64,
    /// The bytes of live needles in volumes.
    pub live_volume_bytes: u64,
    /// The bytes of replaced or deleted needles in volumes, which compaction frees.
    pub dead_volume_bytes: u64,
    /// The number of big objects' files.
    pub big_files: u64,
    /// The object bytes in these files.
    pub big_file_bytes: u64,
    /// The bytes of these files that are locked in the page cache.
    pub pinned_bytes: u64,
    /// The bytes of objects in volumes that are locked in the page cache.
    pub locked_bytes: u64,
    /// The bytes in the runs, which are part of the index on disk.
    pub index_run_bytes: u64,
    /// The memory of the recent keys, which no run contains yet.
    pub index_recent_bytes: u64,
    /// Stored objects.
    pub puts: u64,
    /// Deleted objects.
    pub deletes: u64,
    /// Objects opened for reading, also if only the head was read.
    pub gets: u64,
    /// Pages of listings.
    pub lists: u64,
    /// Read requests for needles.
    pub needle_reads: u64,
    /// Bytes of needles that were read.
    pub needle_read_bytes: u64,
    /// Records appended to the log.
    pub log_records: u64,
    /// Batches in which these records were committed.
    pub log_batches: u64,
    /// Log syncs.
    pub log_syncs: u64,
    /// Bytes written to the log, including padding.
    pub log_written_bytes: u64,
    /// The total duration of log syncs, in microseconds.
    pub sync_us_total: u64,
    /// A histogram of sync durations: element `i` counts the syncs shorter than `2^i` microseconds
    /// that the previous elements do not count.
    pub sync_us: [u64; haul_append_log::SYNC_BUCKETS],
    /// Volumes removed by compaction.
    pub volumes_compacted: u64,
    /// The bytes of small objects that fit before compaction must free space; `None` on a disk
    /// without a limit.
    pub free_bytes: Option<u64>,
    /// Volumes in compaction's reserve, whose space only compaction can use.
    pub reserve_volumes: u64,
    /// The intended size of this reserve; a small or full disk has fewer volumes.
    pub reserve_volumes_wanted: u64,
    /// Known reports of damage, at most 10,000.
    pub damaged_locations: u64,
    /// The ranges that may hide unknown keys and whose loss was not accepted.
    pub hidden_ranges: u64,
    /// Bytes that the scrub has read.
    pub scrubbed_bytes: u64,
    /// Completed scrubs of the whole store.
    pub scrubs: u64,
    /// The writes that a quota rejected.
    pub quota_refusals: u64,
    /// The statistics of lifecycle sweeps.
    pub lifecycle: LifecycleStats,
    /// For each kind in [`WorkKind::ALL`], `true` if the work currently fails, because the disk is
    /// full or rejects files.
    pub failing: [bool; WorkKind::ALL.len()],
    /// `true` after a failed sync: until the store is reopened, nothing more is stored. If the sync
    /// of the big objects' directory failed, only big objects are rejected; if the manifest's sync
    /// failed, no volume is removed.
    pub latched: bool,
}

impl Stats {
    /// Returns the statistics of two stores of a pool together, which have the same buckets.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            buckets: self.buckets.max(other.buckets),
            objects: self.objects + other.objects,
            object_bytes: self.object_bytes + other.object_bytes,
            versions: self.versions + other.versions,
            version_bytes: self.version_bytes + other.version_bytes,
            index_memory_bytes: self.index_memory_bytes + other.index_memory_bytes,
            uploads: self.uploads + other.uploads,
            volumes: self.volumes + other.volumes,
            volume_bytes: self.volume_bytes + other.volume_bytes,
            live_volume_bytes: self.live_volume_bytes + other.live_volume_bytes,
            dead_volume_bytes: self.dead_volume_bytes + other.dead_volume_bytes,
            big_files: self.big_files + other.big_files,
            big_file_bytes: self.big_file_bytes + other.big_file_bytes,
            pinned_bytes: self.pinned_bytes + other.pinned_bytes,
            locked_bytes: self.locked_bytes + other.locked_bytes,
            index_run_bytes: self.index_run_bytes + other.index_run_bytes,
            index_recent_bytes: self.index_recent_bytes + other.index_recent_bytes,
            puts: self.puts + other.puts,
            deletes: self.deletes + other.deletes,
            gets: self.gets + other.gets,
            lists: self.lists + other.lists,
            needle_reads: self.needle_reads + other.needle_reads,
            needle_read_bytes: self.needle_read_bytes + other.needle_read_bytes,
            log_records: self.log_records + other.log_records,
            log_batches: self.log_batches + other.log_batches,
            log_syncs: self.log_syncs + other.log_syncs,
            log_written_bytes: self.log_written_bytes + other.log_written_bytes,
            sync_us_total: self.sync_us_total + other.sync_us_total,
            sync_us: std::array::from_fn(|at| self.sync_us[at] + other.sync_us[at]),
            volumes_compacted: self.volumes_compacted + other.volumes_compacted,
            free_bytes: self.free_bytes.zip(other.free_bytes).map(|(one, other)| one + other),
            reserve_volumes: self.reserve_volumes + other.reserve_volumes,
            reserve_volumes_wanted: self.reserve_volumes_wanted + other.reserve_volumes_wanted,
            damaged_locations: self.damaged_locations + other.damaged_locations,
            hidden_ranges: self.hidden_ranges + other.hidden_ranges,
            scrubbed_bytes: self.scrubbed_bytes + other.scrubbed_bytes,
            scrubs: self.scrubs + other.scrubs,
            // The stores share their quotas.
            quota_refusals: self.quota_refusals.max(other.quota_refusals),
            lifecycle: self.lifecycle.plus(&other.lifecycle),
            failing: std::array::from_fn(|at| self.failing[at] || other.failing[at]),
            latched: self.latched || other.latched,
        }
    }
}

impl Store {
    /// Returns the memory of the big objects' files that are pinned in the page cache, in bytes.
    #[must_use]
    pub fn pinned_bytes(&self) -> u64 {
        self.inner.objects.pinned.bytes()
    }

    /// Returns the store's state, and its counters since it was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        let log = inner.volumes.log.stats();
        let segments = inner.volumes.log.segments();
        // If the free space is unknown, the other statistics are still returned.
        let space = inner.space().unwrap_or_default();
        let (damaged_locations, hidden_ranges) = inner.volumes.damage.counts();
        let index = inner.keyspace.index.read();
        let (objects, versions) = index.current_and_older();
        let (object_bytes, version_bytes) = index.current_and_older_bytes();
        let counters = &inner.counters;
        let failures = inner.maintenance.failures.all();
        Stats {
            failing: WorkKind::ALL.map(|work| failures.iter().any(|failure| failure.work == work)),
            buckets: index.named_buckets().count() as u64,
            objects,
            object_bytes,
            versions,
            version_bytes,
            index_memory_bytes: index.memory_bytes(),
            uploads: index.uploads.len() as u64,
            volumes: segments.len() as u64,
            volume_bytes: segments.iter().map(|segment| u64::from(segment.bytes)).sum(),
            live_volume_bytes: index.volumes.live_bytes(),
            dead_volume_bytes: index.volumes.dead_bytes(),
            big_files: index.files.len(),
            big_file_bytes: index.files.bytes(),
            pinned_bytes: inner.objects.pinned.bytes(),
            locked_bytes: inner.volumes.locked.bytes(),
            index_run_bytes: index.keys.runs().iter().map(|run| run.info().bytes).sum(),
            index_recent_bytes: index.keys.recent_bytes() as u64,
            puts: counters.sum(|part| &part.puts),
            deletes: counters.sum(|part| &part.deletes),
            gets: counters.sum(|part| &part.gets),
            lists: counters.sum(|part| &part.lists),
            needle_reads: counters.sum(|part| &part.needle_reads),
            needle_read_bytes: counters.sum(|part| &part.needle_read_bytes),
            log_records: log.records,
            log_batches: log.batches,
            log_syncs: log.syncs,
            log_written_bytes: log.written_bytes,
            sync_us_total: log.sync_us_total,
            sync_us: log.sync_us,
            damaged_locations,
            hidden_ranges,
            scrubbed_bytes: counters.sum(|part| &part.scrubbed_bytes),
            scrubs: counters.sum(|part| &part.scrubs),
            quota_refusals: inner.keyspace.quotas().refusals(),
            lifecycle: inner.maintenance.lifecycle.counters.stats(),
            volumes_compacted: counters.sum(|part| &part.volumes_compacted),
            free_bytes: space.free_bytes,
            reserve_volumes: space.reserve_volumes,
            reserve_volumes_wanted: space.reserve_volumes_wanted,
            latched: inner.volumes.log.is_latched()
                || inner.objects.has_failed()
                || inner.volumes.check_manifest().is_err(),
        }
    }
}
