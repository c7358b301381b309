//! Store options.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::DeviceKind;

use crate::clock::TimeSource;
use crate::error::{Error, Result};
use crate::event_queues::EventQueues;
use crate::expiration::gate::LifecycleGate;
use crate::lifecycle::report::LifecycleObserver;
use crate::lifecycle_events::LifecycleEvents;
use crate::quota_group::SharedQuotas;
use crate::replication::interface::Replication;

/// The minimum number of needles between two checkpoints.
const RECENT_NEEDLES_MIN: u64 = 16;

/// Store options. The defaults suit one machine with one disk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the minimum length of an object that is streamed to its own file. Shorter objects
    /// are stored in volumes and read with one read. A higher value creates fewer files and uses
    /// more memory, because a small object is buffered completely while it is written or read. 64
    /// KiB to 16 MiB. Default: 4 MiB.
    pub big_object_bytes: u64,
    /// Performance: the maximum size of a volume, at least four times `big_object_bytes`. A higher
    /// value makes recovery after a crash read more. The first volume of a new store has 4 MiB, or
    /// `2 * big_object_bytes` if this is more, and each later one is twice as large, up to this
    /// size. 2 MiB to 2 GiB. Default: 128 MiB.
    pub volume_bytes: u64,
    /// Behaviour: the time for which a call on a full disk waits for a running compaction to free
    /// space before it fails with [`Error::Stalled`]. Default: 10 s.
    pub stall_max: Duration,
    /// Behaviour: the time without writes, in milliseconds, after which one more write and sync
    /// ensure that corruption of the last objects is detected. 0 disables it. See
    /// [`haul_append_log::Options::idle_watermark_ms`]. Default: 100.
    pub idle_watermark_ms: u32,
    /// Behaviour: the read rate of the background scrub, in bytes per second. It reads with direct
    /// I/O and verifies the store at most once a day. 0 disables it. Default: 0, because a process
    /// that opens the store only briefly needs no scrub.
    pub scrub_bytes_per_second: u64,
    /// Behaviour: the interval at which a thread looks for buckets to sweep. Zero disables the
    /// thread. The first check follows at most one minute after opening, and the interval is at
    /// most [`Self::lifecycle_day`]. Each bucket is swept at most once a day in UTC, and after a
    /// change of its rules. Default: 1 h.
    pub lifecycle_check_every: Duration,
    /// Behaviour: the length of a day in lifecycle rules. For tests: with another length, all ages
    /// in rules change in proportion and are not rounded, and each bucket is swept at most once in
    /// this time. Default: 24 h.
    pub lifecycle_day: Duration,
    /// Behaviour: keeps lifecycle rules from being applied until it is open. Default: open.
    pub lifecycle_gate: LifecycleGate,
    /// Behaviour: receives the changes that lifecycle rules make. Default: none.
    pub lifecycle_observer: LifecycleObserver,
    /// Behaviour: makes the events of these changes. Default: none.
    pub lifecycle_events: LifecycleEvents,
    /// Behaviour: receives the events that changes queue. Default: none, so that queued events are
    /// only in the store.
    pub event_queues: Option<Arc<EventQueues>>,
    /// Performance: the interval at which the heads of durable needles are written to their
    /// volume's index, which is synced every fifth time. Corruption of bytes that were written
    /// within this time before a kill or power cut cannot be distinguished from a torn write.
    /// Default: 1 s.
    pub index_write_every: Duration,
    /// Performance: the memory for recent index changes. When the changes use half of it, or their
    /// number exceeds one per KiB of it, they are written to disk, so opening the store after a
    /// kill replays few more. The rest of the index uses 10 bytes per object, and 1 byte per 50
    /// bytes of the object's name. Default: 64 MiB.
    pub index_memory_bytes: u64,
    /// Performance: the memory for pinned big objects, which are requested often: their files are
    /// locked in the page cache and verified once, and can then be sent without a copy, see
    /// [`crate::Object::pinned`]. It counts against `RLIMIT_MEMLOCK`. 0 disables it. Default: 0,
    /// because only servers send files.
    pub pinned_bytes_max: u64,
    /// Performance: the memory for objects in volumes that are locked in the page cache, see
    /// [`crate::Store::get_locked_at`]. It counts against `RLIMIT_MEMLOCK`. 0 disables it. Default:
    /// 0, because only servers send files.
    pub locked_bytes_max: u64,
    /// Performance: the kind of the disk. On a rotational one, reads and syncs take turns, see
    /// [`haul_disk::SeekScheduler`]. `None`: rotational if the drive itself reports a rotation rate,
    /// see [`haul_disk::scheduled`]. Default: `None`.
    pub disk_kind: Option<DeviceKind>,
    /// Behaviour: the description of this process in the error that other processes get. Default:
    /// its process id.
    pub holder: String,
    /// Behaviour: the clock for writes and expiration. Default: the system clock.
    pub time: TimeSource,
    /// Behaviour: `true` rejects all changes with [`Error::ReadOnly`] and starts no background
    /// work. The store still writes into its directory to recover, and locks it. Default: `false`.
    pub is_read_only: bool,
    /// Behaviour: `true` rejects a write that exceeds a quota with [`Error::QuotaExceeded`]. A
    /// process that stores objects which other systems have accepted, such as an import, sets
    /// `false`. Default: `true`.
    pub enforces_quotas: bool,
    /// Behaviour: the store's number in a pool of stores, which the locations of its objects
    /// contain. Default: 0.
    pub member: u16,
    /// Behaviour: the quotas that this store shares with the other stores of a pool. Default: none.
    pub shared_quotas: Option<SharedQuotas>,
    /// Behaviour: replicates the store. Each call that changes the store returns once the copy
    /// contains the change. [`crate::Store::start_put`] starts no put while
    /// [`Replication::may_wait`] is `true`. Default: none.
    pub replication: Option<Arc<dyn Replication>>,
    /// Performance: the function that wakes all [`crate::Store::start_put`] futures that resolve
    /// together, by calling its argument. A server can pass a function that wakes its event loop's
    /// thread once for all of them. Default: calls its argument.
    pub wake_all: fn(&mut dyn FnMut()),
}

/// The index changes since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecentChanges {
    /// The memory of the recent keys, without keys that are being written.
    pub(crate) key_bytes: u64,
    /// The number of needles that opening the store would replay. Overwrites count, too.
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
            lifecycle_gate: LifecycleGate::default(),
            lifecycle_observer: LifecycleObserver::default(),
            lifecycle_events: LifecycleEvents::default(),
            event_queues: None,
            index_write_every: Duration::from_secs(1),
            index_memory_bytes: 64 << 20,
            pinned_bytes_max: 0,
            locked_bytes_max: 0,
            disk_kind: None,
            holder: format!("process {}", std::process::id()),
            time: TimeSource::default(),
            is_read_only: false,
            enforces_quotas: true,
            member: 0,
            shared_quotas: None,
            replication: None,
            wake_all: |wake| wake(),
        }
    }
}

impl Options {
    /// Returns the free bytes in the file system that new volumes and big objects leave.
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
