//! Deletes several objects and versions in a bucket with versions, with shared syncs.

use std::collections::{HashMap, HashSet};

use crate::counters::Counters;
use crate::deletion::request::Deletion;
use crate::deletion::version::{append_version_deletions, start_marker};
use crate::error::Result;
use crate::inner::Inner;
use crate::needles::apply::Pending;
use crate::object::{Deleted, VersionId, Versioning};

/// The maximum number of versions that one record deletes from a key.
const RECORD_VERSIONS: usize = 64;

/// Indexes of deletions that have the same key and are executed together: one deletion of the
/// current object, or deletions of several different versions.
type Step = Vec<usize>;

/// A batch of deletions in a bucket with versions, whose keys are locked.
struct Batch<'a> {
    inner: &'a Inner,
    bucket: &'a str,
    versioning: Versioning,
    deletions: &'a [Deletion<'a>],
    /// The versions that the batch has deleted, or not found. A search for a nonexistent version
    /// may visit all of the key's versions, so it is not repeated.
    absent: HashSet<(&'a str, VersionId)>,
}

/// Executes deletions in a bucket with versions. The caller has locked the keys.
///
/// Each key's deletions are executed in their order; successive deletions of versions are executed
/// together. A round executes one step per key: it appends all steps' records, and then waits until
/// they are durable, usually for one sync. After a crash the log has a prefix of the records.
pub(super) fn delete_with_versions(
    inner: &Inner,
    bucket: &str,
    deletions: &[Deletion<'_>],
    versioning: Versioning,
) -> Vec<Result<Deleted>> {
    let absent = HashSet::new();
    let mut batch = Batch { inner, bucket, versioning, deletions, absent };
    let mut outcomes: Vec<(usize, Result<Deleted>)> = Vec::with_capacity(deletions.len());
    for round in rounds(deletions) {
        let started: Vec<_> = round.iter().map(|step| batch.start(step)).collect();
        for (step, pending) in round.into_iter().zip(started) {
            let finished = batch.finish(&step, pending);
            outcomes.extend(step.into_iter().zip(finished));
        }
    }
    outcomes.sort_unstable_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

impl<'a> Batch<'a> {
    /// Appends a step's records.
    fn start(&self, step: &[usize]) -> Pending<Vec<Result<Deleted>>> {
        let deletions: Vec<_> = step.iter().map(|number| &self.deletions[*number]).collect();
        let deletion = deletions[0];
        if deletion.version.is_none() {
            let marker = start_marker(self.inner, self.bucket, deletion, self.versioning);
            return marker.map(|deleted| vec![Ok(deleted)]);
        }
        let key = (self.bucket, deletion.key);
        Pending::start(|records| {
            append_version_deletions(self.inner, key, &deletions, &self.absent, records)
        })
    }

    /// Waits until a step's records are durable and applies them. Returns the outcomes of its
    /// deletions.
    fn finish(
        &mut self,
        step: &[usize],
        pending: Pending<Vec<Result<Deleted>>>,
    ) -> Vec<Result<Deleted>> {
        let outcomes = match self.inner.finish(pending) {
            Ok(outcomes) => outcomes,
            Err(error) if step.len() == 1 => return vec![Err(error)],
            Err(_) => {
                // Some of the deletions may be possible, such as on a full disk.
                let alone = |number: &usize| {
                    let pending = self.start(&[*number]);
                    self.finish(&[*number], pending)
                };
                return step.iter().flat_map(alone).collect();
            }
        };
        for (number, outcome) in step.iter().zip(&outcomes) {
            let Deletion { key, version, .. } = self.deletions[*number];
            let Ok(deleted) = outcome else { continue };
            match version {
                Some(version) => self.absent.insert((key, version)),
                // The delete marker may have the ID of a version that was deleted before.
                None => self.absent.remove(&(key, VersionId::Null)),
            };
            if deleted.existed || deleted.is_delete_marker {
                Counters::count(&self.inner.counters.local().deletes);
            }
        }
        outcomes
    }
}

/// Divides deletions into rounds, each with at most one step per key. A key's steps are in the
/// order of its deletions.
fn rounds(deletions: &[Deletion<'_>]) -> Vec<Vec<Step>> {
    let mut rounds: Vec<Vec<Step>> = Vec::new();
    // For each key, its last step's round and index in that round.
    let mut last: HashMap<&str, (usize, usize)> = HashMap::new();
    for (number, deletion) in deletions.iter().enumerate() {
        let place = last.get(deletion.key).copied();
        if let Some((round, step)) = place
            && joins(deletions, &rounds[round][step], deletion)
        {
            rounds[round][step].push(number);
            continue;
        }
        let round = place.map_or(0, |(round, _)| round + 1);
        if round == rounds.len() {
            rounds.push(Vec::new());
        }
        last.insert(deletion.key, (round, rounds[round].len()));
        rounds[round].push(vec![number]);
    }
    rounds
}

/// Returns `true` if a deletion can join its key's last step.
fn joins(deletions: &[Deletion<'_>], step: &[usize], deletion: &Deletion<'_>) -> bool {
    let is_other = |number: &usize| {
        let version = deletions[*number].version;
        version.is_some() && version != deletion.version
    };
    deletion.version.is_some() && step.len() < RECORD_VERSIONS && step.iter().all(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_key_are_one_step_and_steps_of_different_keys_one_round() {
        let id = |number| Some(VersionId::Id(number));
        let planned = |requested: &[(&'static str, Option<VersionId>)]| {
            let deletion = |(key, version): &(&'static str, _)| {
                let version: Option<VersionId> = *version;
                Deletion { version, ..Deletion::of(key) }
            };
            rounds(&requested.iter().map(deletion).collect::<Vec<_>>())
        };
        assert_eq!(planned(&[]), Vec::<Vec<Step>>::new());
        assert_eq!(planned(&[("a", None), ("b", None), ("c", id(1))]), [[[0], [1], [2]]]);
        let versions = [("a", id(1)), ("b", id(1)), ("a", id(2)), ("a", Some(VersionId::Null))];
        assert_eq!(planned(&versions), [[vec![0, 2, 3], vec![1]]]);
        assert_eq!(planned(&[("a", id(1)), ("a", id(1))]), [[[0]], [[1]]], "a repetition");
        let mixed = [("a", id(1)), ("a", None), ("b", None), ("a", None), ("a", id(2))];
        assert_eq!(planned(&mixed), [vec![[0], [2]], vec![[1]], vec![[3]], vec![[4]]]);
        let many: Vec<_> = (0..130).map(|number| ("a", id(number))).collect();
        let lengths: Vec<_> = planned(&many).iter().map(|round| round[0].len()).collect();
        assert_eq!(lengths, [RECORD_VERSIONS, RECORD_VERSIONS, 2]);
    }
}
