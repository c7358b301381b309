//! What the disk refuses repeatedly, until it works again.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use haul_sync::{AtomicBool, Mutex, now};

use crate::error::{Error, Result};

/// A kind of work that a store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Work {
    /// Storing objects, and all other changes that need space.
    Changes,
    /// Storing objects that have a file of their own, while smaller ones may be stored.
    BigObjects,
    /// Writing the index to the disk, without which opening the store takes longer.
    Indexing,
    /// Compaction, without which the space of dead bytes is not freed.
    Compaction,
}

impl Work {
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

/// Work that fails for now, because the disk is full or refuses files. The store tries it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What fails.
    pub work: Work,
    /// The reason in a few words, without names of files.
    pub reason: String,
    /// The error of the last attempt. It may name files of the store.
    pub error: String,
    /// When the first of the successive failed attempts was made.
    pub since: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Troubles {
    /// `false` if there is none, so that successful work needs no lock.
    is_any: AtomicBool,
    found: Mutex<BTreeMap<Work, Trouble>>,
}

impl Troubles {
    /// Records whether work was successful. Rejections that are the caller's fault, such as a
    /// missing bucket, say nothing about it.
    pub(crate) fn note<T>(&self, work: Work, outcome: &Result<T>) {
        match outcome {
            Ok(_) => self.worked(work),
            Err(error) => {
                if let Some(reason) = disk_reason(error) {
                    self.failed(work, reason, haul_disk::error_chain(error));
                }
            }
        }
    }

    pub(crate) fn worked(&self, work: Work) {
        if self.is_any.load(Ordering::Relaxed) {
            let mut found = self.found.lock();
            found.remove(&work);
            self.is_any.store(!found.is_empty(), Ordering::Relaxed);
        }
    }

    fn failed(&self, work: Work, reason: String, error: String) {
        let mut found = self.found.lock();
        let since = found.get(&work).map_or_else(now, |trouble| trouble.since);
        found.insert(work, Trouble { work, reason, error, since });
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Returns the troubles, sorted by the kind of work.
    pub(crate) fn all(&self) -> Vec<Trouble> {
        self.found.lock().values().cloned().collect()
    }
}

/// Returns why the disk refuses work; `None` if the error has another cause.
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
        let troubles = Troubles::default();
        let fail = |work, waited| {
            let waited = std::time::Duration::from_secs(waited);
            troubles.note::<()>(work, &Err(Error::Stalled { waited }));
        };
        troubles.note::<()>(Work::Changes, &Err(Error::ReadOnly));
        assert_eq!(troubles.all(), []);
        fail(Work::Changes, 1);
        let since = troubles.all()[0].since;
        fail(Work::Changes, 2);
        fail(Work::Compaction, 3);
        let found = troubles.all();
        assert_eq!((found.len(), found[0].work, found[0].since), (2, Work::Changes, since));
        assert!(found[0].error.contains("2s"), "{}", found[0].error);
        assert_eq!(found[0].reason, "the disk is full");
        troubles.note(Work::Changes, &Ok(()));
        assert_eq!(troubles.all().len(), 1);
        troubles.worked(Work::Compaction);
        assert_eq!(troubles.all(), []);
    }
}
