//! Store options.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::TimeSource;
use crate::error::{Error, Result};
use crate::lifecycle::report::LifecycleObserver;
use crate::replication::interface::Replication;

/// The minimum number of needles between two checkpoints.
const RECENT_NEEDLES_MIN: u64 = 16;

/// Store options. The defaults suit one machine with one disk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the length from which on an object is streamed to a file of its own. Shorter
    /// objects are stored in volumes and read with one read. 64 KiB to 16 MiB; 4 MiB. A higher
    /// value creates fewer files and uses more memory, because a small object is buffered
    /// completely while it is written or read.
    pub big_object_bytes: u64,
    /// Performance: the maximum size of a volume. 2 MiB to 2 GiB, at least four times
    /// `big_object_bytes`; 128 MiB. A higher value makes recovery after a crash read more. The
    /// first volume of a new store has 4 MiB, or `2 * big_object_bytes` if this is more, and each
    /// later one is twice as large, up to this size.
    pub volume_bytes: u64,
    /// Behaviour: the time for which a call on a full disk waits for a running compaction to free
    /// space before it fails with [`Error::Stalled`]; 10 s.
    pub stall_max: Duration,
    /// Behaviour: the time without writes, in milliseconds, after which one more write and sync
    /// ensure that corruption of the last objects is detected. 0 disables it; 100. See
    /// [`haul_append_log::Options::idle_watermark_ms`].
    pub idle_watermark_ms: u32,
    /// Behaviour: the bytes per second that the background scrub reads and verifies with direct
    /// I/O; everything at most once a day. 0 disables it; 0, because a process that opens the store
    /// briefly does not need it.
    pub scrub_bytes_per_second: u64,
    /// Behaviour: the interval at which a thread looks for buckets to sweep; zero disables the
    /// thread; 1 h. The first check follows at most one minute after opening, and the interval is
    /// at most [`Self::lifecycle_day`]. Each bucket is swept at most once a day in UTC, and after a
    /// change of its rules.
    pub lifecycle_check_every: Duration,
    /// Behaviour: the length of a day in lifecycle rules; 24 h. For tests: with another length, all
    /// ages in rules change in proportion and are not rounded, and each bucket is swept at most
    /// once in this time.
    pub lifecycle_day: Duration,
    /// Behaviour: receives the changes that lifecycle rules make; none.
    pub lifecycle_observer: LifecycleObserver,
    /// Performance: the interval in which the heads of durable needles are written to their
    /// volume's index, which is synced every fifth time. Corruption of bytes that were written
    /// within this time before a kill or power cut cannot be distinguished from a torn write. 1 s.
    pub index_write_every: Duration,
    /// Performance: the memory for recent index changes; 64 MiB. When the changes use half of it,
    /// or their number exceeds one per KiB of it, they are written to disk, so opening the store
    /// after a kill replays few more. The rest of the index uses 10 bytes per object, and 1 byte
    /// per 50 bytes of the object's name.
    pub index_memory_bytes: u64,
    /// Performance: the memory for pinned big objects, which are requested often: their files are
    /// locked in the page cache and verified once, and can then be sent without a copy, see
    /// [`crate::Object::pinned`]. It counts against `RLIMIT_MEMLOCK`. 0 disables it; 0, because
    /// only servers send files.
    pub pinned_bytes_max: u64,
    /// Performance: the memory for objects in volumes that are locked in the page cache, see
    /// [`crate::Store::get_locked_at`]. It counts against `RLIMIT_MEMLOCK`. 0 disables it; 0,
    /// because only servers send files.
    pub locked_bytes_max: u64,
    /// Behaviour: the description of this process in the error that other processes get.
    pub holder: String,
    /// Behaviour: the clock for writes and expiration; the system clock.
    pub time: TimeSource,
    /// Behaviour: `true` if all changes are rejected with [`Error::ReadOnly`], and the store starts
    /// no background work. The store still writes into its directory to recover, and locks it;
    /// `false`.
    pub is_read_only: bool,
    /// Behaviour: `true` if a write that exceeds a quota is rejected with
    /// [`Error::QuotaExceeded`]. A process that stores what others have accepted, such as an import,
    /// sets `false`; `true`.
    pub enforces_quotas: bool,
    /// Behaviour: the copy of the store elsewhere. Each call that changes the store waits until the
    /// copy contains the change, and [`crate::Store::start_put`] starts no put; none.
    pub replication: Option<Arc<dyn Replication>>,
    /// Performance: the function that wakes all [`crate::Store::start_put`] futures that resolve
    /// together, by calling its argument. By default it does only that. A server can pass a
    /// function that wakes its event loop's thread once for all of them.
    pub wake_all: fn(&mut dyn FnMut()),
}

/// The index changes since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecentChanges {
    /// The memory of the recent keys, without keys that are being written.
    pub(crate) key_bytes: u64,
    /// The number of needles, which opening the store would replay; overwrites count, too.
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
            lifecycle_day: Duration::from_hours(24),
            lifecycle_observer: LifecycleObserver::default(),
            index_write_every: Duration::from_secs(1),
            index_memory_bytes: 64 << 20,
            pinned_bytes_max: 0,
            locked_bytes_max: 0,
            holder: format!("process {}", std::process::id()),
            time: TimeSource::default(),
            is_read_only: false,
            enforces_quotas: true,
            replication: None,
            wake_all: |wake| wake(),
        }
    }
}

impl Options {
    /// Returns the number of bytes in the file system that neither new volumes nor big objects use.
    pub(crate) fn free_bytes_min(&self) -> u64 {
        self.volume_bytes / 8
    }

    /// Returns the maximum length of a record that compaction moves, which is also the append
    /// buffers' length. Every record that the store appends with these options is shorter.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        (2 * self.big_object_bytes).next_multiple_of(4096).max(1 << 20)
    }

    /// Returns the limit on recent changes at which a checkpoint is written.
    pub(crate) fn recent_changes_max(&self) -> RecentChanges {
        RecentChanges {
            key_bytes: self.index_memory_bytes / 2,
            needles: (self.index_memory_bytes >> 10).max(RECENT_NEEDLES_MIN),
        }
    }

    /// Checks the options as [`crate::Store::open`] does.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an option is out of range.
    pub fn check(&self) -> Result<()> {
        let complain = |what: &str| Err(Error::Invalid { what: what.to_owned() });
        if !(64 << 10..=16 << 20).contains(&self.big_object_bytes) {
            return complain("big_object_bytes must be between 64 KiB and 16 MiB");
        }
        if !(2 << 20..=2 << 30).contains(&self.volume_bytes)
            || self.volume_bytes < 4 * self.big_object_bytes
        {
            return complain(
                "volume_bytes must be between 2 MiB and 2 GiB, and at least 4 times big_object_bytes",
            );
        }
        if self.lifecycle_day.as_millis() == 0 {
            return complain("lifecycle_day must be at least a millisecond");
        }
        Ok(())
    }
}
