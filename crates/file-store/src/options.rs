//! The options of a store.

use std::time::Duration;

use crate::clock::TimeSource;
use crate::error::{Error, Result};

/// A checkpoint is never due after fewer needles than this.
const RECENT_NEEDLES_MIN: u64 = 16;

/// Options of a store. The defaults suit one machine with one disk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the size from which on objects are streamed into files of their own; smaller ones
    /// are stored in volumes and read with one read. 64 KiB to 16 MiB; 4 MiB. A higher value
    /// creates fewer files and uses more memory: a small object is buffered whole while it is
    /// written or read.
    pub big_object_bytes: u64,
    /// Performance: the maximum size of a volume. 4 MiB to 2 GiB, at least four times
    /// `big_object_bytes`; 128 MiB. A higher value makes recovery after a crash read more. The
    /// first volume of a new store takes 4 MiB, or `2 * big_object_bytes` if this is more, and each
    /// further one is twice as large, up to this size.
    pub volume_bytes: u64,
    /// Behaviour: the time for which a call on a full disk waits for a running compaction to free
    /// space before it fails with [`Error::Stalled`]; 10 s.
    pub stall_max: Duration,
    /// Behaviour: the time without writes, in milliseconds, after which one more write and sync
    /// ensure that corruption of the last objects is detected. 0 disables it; 100. See
    /// [`haul_append_log::Options::idle_watermark_ms`].
    pub idle_watermark_ms: u32,
    /// Behaviour: the bytes a second that background scrubbing reads and verifies, bypassing the
    /// page cache; everything at most once a day. 0 disables it; 0, because a process that opens
    /// the store briefly does not need it.
    pub scrub_bytes_per_second: u64,
    /// Behaviour: the interval at which a thread looks for buckets whose lifecycle is to be applied;
    /// zero disables the thread; 1 h. The first check is one minute after opening at the latest.
    /// Each bucket is swept at most once a day in UTC, and again after its rules were changed.
    pub lifecycle_check_every: Duration,
    /// Performance: the interval in which the headers of durable needles are written to the index
    /// of their volume, which is synced every fifth time. Corruption of bytes written within that
    /// time before a kill or power cut cannot be distinguished from a torn write. 1 s.
    pub index_write_every: Duration,
    /// Performance: the memory for recent changes of the index; 64 MiB. When they take half of it,
    /// or number one for each KiB of it, they are written to disk: opening the store after a kill
    /// replays not many more. The rest of the index takes 10 bytes an object, and 1 byte in 50 of
    /// the object's name.
    pub index_memory_bytes: u64,
    /// Performance: the memory for big objects that are requested often. Their files are locked in
    /// the page cache, verified once, and can then be sent without a copy, see
    /// [`crate::Object::pinned`]. It counts against `RLIMIT_MEMLOCK`. 0 disables it; 0, because
    /// other users of a store do not send files.
    pub pinned_bytes_max: u64,
    /// Behaviour: the description of this process that other processes get if the store is locked.
    pub holder: String,
    /// Behaviour: the clock of writes and of expiry; that of the machine.
    pub time: TimeSource,
}

/// The changes of the index since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecentChanges {
    /// The memory of the recent keys, without keys that are being written.
    pub(crate) key_bytes: u64,
    /// The number of needles, several of one key included: opening the store replays them.
    pub(crate) needles: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            big_object_bytes: 4 << 20,
            volume_bytes: 128 << 20,
            stall_max: Duration::from_secs(10),
            idle_watermark_ms: 100,
            scrub_bytes_per_second: 0,
            lifecycle_check_every: Duration::from_hours(1),
            index_write_every: Duration::from_secs(1),
            index_memory_bytes: 64 << 20,
            pinned_bytes_max: 0,
            holder: format!("process {}", std::process::id()),
            time: TimeSource::default(),
        }
    }
}

impl Options {
    /// The high-water mark: how many bytes of the file system neither new volumes nor big objects
    /// take.
    pub(crate) fn free_bytes_min(&self) -> u64 {
        self.volume_bytes / 8
    }

    /// The changes of the index at which a checkpoint is written.
    pub(crate) fn recent_changes_max(&self) -> RecentChanges {
        RecentChanges {
            key_bytes: self.index_memory_bytes / 2,
            needles: (self.index_memory_bytes >> 10).max(RECENT_NEEDLES_MIN),
        }
    }

    /// Returns an error if an option is out of range.
    pub(crate) fn check(&self) -> Result<()> {
        let complain = |what: &str| Err(Error::Invalid { what: what.to_owned() });
        if !(64 << 10..=16 << 20).contains(&self.big_object_bytes) {
            return complain("big_object_bytes must be between 64 KiB and 16 MiB");
        }
        if !(4 << 20..=2 << 30).contains(&self.volume_bytes)
            || self.volume_bytes < 4 * self.big_object_bytes
        {
            return complain(
                "volume_bytes must be between 4 MiB and 2 GiB, and at least 4 times big_object_bytes",
            );
        }
        Ok(())
    }
}
