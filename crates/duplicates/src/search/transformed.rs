//! Searches for files with equal output of a transform command.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use haul_bulk_read::Tree;
use parking_lot::Mutex;

use super::candidates::Candidates;
use super::events::{Events, Phase};
use super::replication::ReplicaPolicy;
use super::result::{Groups, SearchResult};
use crate::report::Replication;
use crate::transform::{OutputDigest, Transform};

/// Runs the command on every file, with one process per CPU. Files of all lengths are compared,
/// because files of different lengths may have equal outputs.
pub(super) fn find(
    tree: Tree,
    transform: &Transform,
    policy: &ReplicaPolicy,
    events: &dyn Events,
) -> SearchResult {
    // A policy that selects files of every length as candidates.
    let all = ReplicaPolicy { replication: Replication::Under(usize::MAX), ..*policy };
    let candidates = Candidates::of(&tree, tree.ids(), &all);
    let contents = candidates.len() as usize;
    events.phase(Phase::Transforming, contents as u64, 0);
    let digests: Mutex<Vec<(OutputDigest, u32)>> = Mutex::new(Vec::with_capacity(contents));
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let content = u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX);
            if content >= candidates.len() {
                return;
            }
            match transform.digest_of(&tree.path(candidates.file(content))) {
                Ok(digest) => digests.lock().push((digest, content)),
                Err(error) => events.failed(error),
            }
            events.progress(done.fetch_add(1, Ordering::Relaxed) + 1, 0);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut digests = digests.into_inner();
    digests.sort_unstable();
    let mut groups = Groups::new(0);
    for run in digests.chunk_by(|a, b| a.0 == b.0) {
        let mut replicas = policy.counter();
        let mut members = Vec::new();
        for (_, content) in run {
            for (number, name) in candidates.names(*content).iter().enumerate() {
                replicas.add(tree.root(name.file), number > 0);
                members.push(name.file);
            }
        }
        if policy.reports(replicas.count()) {
            let (bytes, digest) = &run[0].0;
            groups.add(*bytes, Some(digest.as_bytes()), members);
        }
    }
    groups.into_result(tree, policy)
}
