//! Ongoing failures of kinds of work, until the disk permits the work again.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use haul_sync::{AtomicBool, Mutex, now};

use crate::error::{Error, Result};

/// A kind of work that a store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WorkKind {
    /// Storing objects, and all other changes that need space.
    Changes,
    /// Storing objects in their own files. Smaller objects may still be stored.
    BigObjects,
    /// Writing the index to the disk, without which opening the store takes longer.
    Indexing,
    /// Compaction, without which the space of dead bytes is not freed.
    Compaction,
}

impl WorkKind {
    /// All kinds of work.
    pub const ALL: [Self; 4] = [Self::Changes, Self::BigObjects, Self::Indexing, Self::Compaction];

    /// Returns the name: `changes`, `big_objects`, `indexing` or `compaction`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::BigObjects => "big_objects",
            Self::Indexing => "indexing",
            Self::Compaction => "compaction",
        }
    }
}

/// A kind of work that currently fails, because the disk is full or rejects files. The store
/// retries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OngoingFailure {
    /// The kind of work.
    pub work: WorkKind,
    /// A short reason, without file names.
    pub reason: String,
    /// The last attempt's error. It may name files of the store.
    pub error: String,
    /// The time of the first of the successive failures.
    pub since: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct OngoingFailures {
    /// `false` if nothing fails, so that successful work needs no lock.
    is_any: AtomicBool,
    found: Mutex<BTreeMap<WorkKind, OngoingFailure>>,
}

impl OngoingFailures {
    /// Records the outcome of work. An error that the disk did not cause, such as a missing bucket,
    /// changes nothing.
    pub(crate) fn note<T>(&self, work: WorkKind, outcome: &Result<T>) {
        match outcome {
            Ok(_) => self.succeeded(work),
            Err(error) => {
                if let Some(reason) = disk_reason(error) {
                    self.failed(work, reason, haul_disk::error_chain(error));
                }
            }
        }
    }

    pub(crate) fn succeeded(&self, work: WorkKind) {
        if self.is_any.load(Ordering::Relaxed) {
            let mut found = self.found.lock();
            found.remove(&work);
            self.is_any.store(!found.is_empty(), Ordering::Relaxed);
        }
    }

    fn failed(&self, work: WorkKind, reason: String, error: String) {
        let mut found = self.found.lock();
        let since = found.get(&work).map_or_else(now, |failure| failure.since);
        found.insert(work, OngoingFailure { work, reason, error, since });
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Returns the ongoing failures, sorted by kind of work.
    pub(crate) fn all(&self) -> Vec<OngoingFailure> {
        self.found.lock().values().cloned().collect()
    }
}

/// Returns the reason why the disk rejects work; `None` if the error has another cause.
fn disk_reason(error: &Error) -> Option<String> {
    Some(match error {
        Error::Full { .. } | Error::Stalled { .. } => "the disk is full".to_owned(),
        Error::Refused { source } => source.source.to_string(),
        Error::Disk(error) => error.source.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_from_the_first_failure_to_the_next_success() {
        let failures = OngoingFailures::default();
        let fail = |work, waited| {
            let waited = std::time::Duration::from_secs(waited);
            failures.note::<()>(work, &Err(Error::Stalled { waited }));
        };
        failures.note::<()>(WorkKind::Changes, &Err(Error::ReadOnly));
        assert_eq!(failures.all(), []);
        fail(WorkKind::Changes, 1);
        let since = failures.all()[0].since;
        fail(WorkKind::Changes, 2);
        fail(WorkKind::Compaction, 3);
        let found = failures.all();
        assert_eq!((found.len(), found[0].work, found[0].since), (2, WorkKind::Changes, since));
        assert!(found[0].error.contains("2s"), "{}", found[0].error);
        assert_eq!(found[0].reason, "the disk is full");
        failures.note(WorkKind::Changes, &Ok(()));
        assert_eq!(failures.all().len(), 1);
        failures.succeeded(WorkKind::Compaction);
        assert_eq!(failures.all(), []);
    }
}
