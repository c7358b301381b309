//! Runs a search: walks the roots, then compares the contents of the files or the outputs of a
//! command.

use std::path::{Path, PathBuf};

use haul_bulk_read::{DeviceKind, FileId, ReadOptions, SkipReason, Tree, WalkEvents, WalkOptions};

use super::cache::Cache;
use super::candidates::Candidates;
use super::events::{Events, Phase};
use super::options::Options;
use super::plan::Plan;
use super::replication::ReplicaPolicy;
use super::result::SearchResult;
use super::rounds::Rounds;
use super::{device_kind, transformed};
use crate::file_systems::FileSystems;

/// A receiver of the events of the walk, which forwards them to the receiver of the search.
pub(crate) struct WalkForwarder<'a, E: Events + ?Sized>(pub(crate) &'a E);

impl<E: Events + ?Sized> WalkEvents for WalkForwarder<'_, E> {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.0.failed(error.into());
    }

    fn skipped(&self, path: &Path, reason: SkipReason) {
        self.0.skipped(path, reason);
    }

    fn progress(&self, files: u64, bytes: u64) {
        self.0.progress(files, bytes);
    }
}

/// Finds groups of files with equal content below `roots`.
///
/// A file that cannot be read, or that changes while it is read, is reported to `events` and left
/// out.
pub fn find(
    roots: &[PathBuf],
    walk: &WalkOptions<'_>,
    options: &Options<'_>,
    events: &dyn Events,
) -> SearchResult {
    events.phase(Phase::Walking, 0, 0);
    let walk = WalkOptions { sort: true, ..walk.clone() };
    let tree = haul_bulk_read::walk(roots, &walk, &WalkForwarder(events));
    find_in(tree, options, events)
}

/// Searches a tree that is sorted by path.
fn find_in(tree: Tree, options: &Options<'_>, events: &dyn Events) -> SearchResult {
    let policy = ReplicaPolicy {
        replication: options.replication,
        isolate: options.isolate,
        match_links: options.match_links,
    };
    let file_systems = FileSystems::of(&tree);
    if let Some(transform) = options.transform {
        return transformed::find(tree, transform, &policy, events);
    }
    let has_known_length = |file: &FileId| {
        let has = file_systems.has_known_length(&tree, *file);
        if !has {
            events.skipped(&tree.path(*file), SkipReason::LengthUnknown);
        }
        has
    };
    let candidates = Candidates::of(&tree, tree.ids().filter(has_known_length), &policy);
    let kind = device_kind::detect(&tree, &candidates, &options.read);
    let options =
        &Options { read: ReadOptions { kind, ..options.read.clone() }, ..options.clone() };
    let fingerprint = read_plan(options).fingerprint();
    let open = |path| Cache::open(path, options.hash, fingerprint, events);
    let mut cache = options.cache.as_deref().and_then(open);
    let rounds = Rounds::new(&tree, &candidates, &file_systems, options, policy, events);
    let found = rounds.run(read_plan(options), cache.as_mut());
    if let (Some(cache), Some(path)) = (cache, &options.cache)
        && let Err(error) = cache.save(path, &tree)
    {
        events.failed(error);
    }
    found.into_result(tree, &policy)
}

fn read_plan(options: &Options<'_>) -> Plan {
    let plan = match options.read.kind {
        Some(DeviceKind::Rotational) => Plan::rotational(),
        _ => Plan::solid_state(),
    };
    Plan {
        head_bytes: options.head_bytes.unwrap_or(plan.head_bytes),
        tail_bytes: options.tail_bytes.unwrap_or(plan.tail_bytes),
        skip_content: options.skip_content,
        ..plan
    }
}
