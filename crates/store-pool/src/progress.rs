//! The progress of moving keys.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use haul_sync::Mutex;

/// The progress since the pool was opened.
#[derive(Debug, Default)]
pub(crate) struct MoveCounters {
    /// A copy of a number in the table, whose lock is held while the table is written.
    pub(crate) slots_left: AtomicU64,
    pub(crate) keys: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) last_error: Mutex<Option<String>>,
}

/// The progress of moving keys between the members of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MoveProgress {
    /// The slots whose keys are being moved, or will be.
    pub slots_left: u64,
    /// The keys that were moved since the pool was opened.
    pub keys: u64,
    /// The bytes of these keys' objects.
    pub bytes: u64,
    /// The failed attempts to move a key.
    pub failures: u64,
    /// The last failure.
    pub last_error: Option<String>,
}

impl MoveCounters {
    /// Counts a moved key.
    pub(crate) fn moved(&self, bytes: u64) {
        self.keys.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a failure.
    pub(crate) fn failed(&self, what: String) {
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock() = Some(what);
    }

    pub(crate) fn progress(&self) -> MoveProgress {
        MoveProgress {
            slots_left: self.slots_left.load(Relaxed),
            keys: self.keys.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            failures: self.failures.load(Relaxed),
            last_error: self.last_error.lock().clone(),
        }
    }
}
