//! Files that are equal once a command has transformed them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use haul_bulk_read::Tree;
use parking_lot::Mutex;

use super::candidates::Candidates;
use super::counting::{Counting, Replication};
use super::found::{Found, Groups};
use super::{Events, Phase};
use crate::transform::{Made, Transform};

/// Runs the command on every file, as many at a time as there are processors. The length of a
/// file says nothing about what becomes of it.
pub(super) fn find(
    tree: Tree,
    transform: &Transform,
    counting: &Counting,
    events: &dyn Events,
) -> Found {
    // All of them: with none too many, every length may be reported.
    let all = Counting { replication: Replication::Under(usize::MAX), ..*counting };
    let candidates = Candidates::of(&tree, &all);
    let contents = candidates.len() as usize;
    events.phase(Phase::Transforming, contents as u64, 0);
    let made: Mutex<Vec<(Made, u32)>> = Mutex::new(Vec::with_capacity(contents));
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let content = u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX);
            if content >= candidates.len() {
                return;
            }
            match transform.digest_of(&tree.path(candidates.file(content))) {
                Ok(digest) => made.lock().push((digest, content)),
                Err(error) => events.failed(error),
            }
            events.progress(done.fetch_add(1, Ordering::Relaxed) + 1, 0);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut made = made.into_inner();
    made.sort_unstable();
    let mut groups = Groups::new(0);
    for run in made.chunk_by(|a, b| a.0 == b.0) {
        let mut replicas = counting.replicas();
        let mut members = Vec::new();
        for (_, content) in run {
            for (number, name) in candidates.names(*content).iter().enumerate() {
                replicas.add(tree.root(name.file), number > 0);
                members.push(name.file);
            }
        }
        if counting.reports(replicas.count()) {
            let (bytes, digest) = &run[0].0;
            groups.add(*bytes, Some(digest.as_bytes()), members);
        }
    }
    groups.with(tree, counting)
}
