//! Reads the object tags that a sweep's rules test.

use std::collections::{BTreeSet, HashMap};

use haul_append_log::{Lsn, Position};

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::tags::{ObjectTags, Tags};

/// The number of objects whose tags one step of a sweep reads. On a disk with a seek time of 8 ms,
/// the step takes a quarter of a second.
pub(crate) const TAG_READS: usize = 32;

/// Tags that were read, by the object's position in the log. Each state of an object has its own
/// position, even if only its tags changed.
///
/// Only tags that a rule requires are stored, so the rules bound their memory.
#[derive(Debug, Default)]
pub(crate) struct KnownTags(HashMap<Lsn, Tags>);

impl KnownTags {
    /// Returns the tags of the object at a position.
    pub(crate) fn at(&self, at: Position) -> ObjectTags<'_> {
        self.0.get(&at.lsn).map_or(ObjectTags::Unknown, ObjectTags::Known)
    }
}

/// Sorts positions in disk order, so that reading them moves the heads the least, and removes
/// duplicates.
pub(crate) fn sort(positions: &mut Vec<Position>) {
    positions.sort_unstable_by_key(|at| at.lsn);
    positions.dedup();
}

/// Reads the tags of the objects at these positions, without their locks. Leaves out objects that
/// cannot be read, because they may have moved: they are read again under their locks.
pub(crate) fn read_tags(
    inner: &Inner,
    lifecycle: &Lifecycle,
    positions: &[Position],
    known: &mut KnownTags,
    report: &mut SweepReport,
) {
    let required: BTreeSet<_> = lifecycle.rules.iter().flat_map(|rule| &rule.tags).collect();
    for at in positions {
        report.tag_reads += 1;
        if let Ok(attributes) = inner.read_attributes(*at) {
            let mut tags = attributes.tags();
            tags.retain(|key, value| required.contains(&(key, &*value)));
            known.0.insert(at.lsn, tags);
        }
    }
}

/// Returns the tags of an object whose key is locked: `None` if they cannot be read, which the
/// report counts as skipped.
///
/// # Errors
/// An error that does not concern this object alone.
pub(crate) fn tags_of(
    inner: &Inner,
    (bucket, key): (&str, &str),
    at: Position,
    known: &KnownTags,
    report: &mut SweepReport,
) -> Result<Option<Tags>> {
    if let ObjectTags::Known(tags) = known.at(at) {
        return Ok(Some(tags.clone()));
    }
    report.tag_reads += 1;
    match inner.read_attributes(at) {
        Ok(attributes) => Ok(Some(attributes.tags())),
        Err(error @ (Error::Damaged { .. } | Error::Log(_) | Error::Disk(_))) => {
            inner.volumes.damage.note(bucket, key, &error);
            report.skipped += 1;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
