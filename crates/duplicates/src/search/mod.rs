//! Finding files of equal content, with as little reading as will do.

mod cache;
mod candidates;
mod counting;
mod found;
mod keys;
mod kinds;
mod plan;
mod reading;
mod reflinks;
mod rounds;
mod transformed;

use std::path::PathBuf;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Kind, ReadOptions, Skipped, Tree, WalkEvents, WalkOptions};

use crate::error::Error;
use crate::transform::Transform;

pub use counting::Replication;
pub use found::Found;

use cache::Cache;
use candidates::Candidates;
use counting::Counting;
use plan::Plan;
use rounds::Rounds;

/// What is looked for, and how. Where files are looked for is up to [`WalkOptions`].
#[derive(Clone)]
pub struct Options<'a> {
    /// How many replicas are too many, or too few.
    pub replication: Replication,
    /// All files below one root count as one replica.
    pub isolate: bool,
    /// Each hard link counts as a replica; otherwise all of a file's are one.
    pub match_links: bool,
    /// The hash by which whole contents are told apart, and which is reported.
    pub hash: HashKind,
    /// How much of the beginning is read before anything else, by default 4 KiB, and 16 KiB of
    /// disks that rotate.
    pub head_bytes: Option<u64>,
    /// How much of the end is read then; as much by default.
    pub tail_bytes: Option<u64>,
    /// Files that agree in head, tail and samples between are taken to be equal.
    pub skip_content: bool,
    /// What is compared instead of the bytes of files.
    pub transform: Option<&'a Transform>,
    /// The file with the digests of earlier searches; it is made when it is not there.
    pub cache: Option<PathBuf>,
    /// How files are read.
    pub read: ReadOptions<'a>,
    /// The contents of big files, which are read after samples of them, go past the page cache:
    /// what was not in memory before does not stay there.
    pub spare_big: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            replication: Replication::Over(1),
            isolate: false,
            match_links: false,
            hash: HashKind::Xxh3,
            head_bytes: None,
            tail_bytes: None,
            skip_content: false,
            transform: None,
            cache: None,
            read: ReadOptions::default(),
            spare_big: true,
        }
    }
}

/// What a search is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding files.
    Walking,
    /// Reading what tells most files apart: small files, and samples of others.
    Sampling,
    /// Reading on in what is still alike.
    Reading,
    /// Running the command that transforms files.
    Transforming,
}

/// Hears how a search goes. It is called from several threads.
pub trait Events: Sync {
    /// A file or directory is left out, or something else is not as it should be; the search goes
    /// on.
    fn failed(&self, error: Error);

    /// The next phase begins: so many things are to do, of so many bytes, as far as that is known.
    fn phase(&self, _phase: Phase, _things: u64, _bytes: u64) {}

    /// How far the phase is.
    fn progress(&self, _things: u64, _bytes: u64) {}

    /// Something is left out that is no file, or was met before.
    fn skipped(&self, _path: &std::path::Path, _why: Skipped) {}
}

struct Walking<'a>(&'a dyn Events);

impl WalkEvents for Walking<'_> {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.0.failed(error.into());
    }

    fn skipped(&self, path: &std::path::Path, why: Skipped) {
        self.0.skipped(path, why);
    }

    fn progress(&self, files: u64, bytes: u64) {
        self.0.progress(files, bytes);
    }
}

/// Finds the groups of files below `roots` that hold the same bytes.
///
/// What cannot be read, or changes while it is read, is told to `events` and left out.
pub fn find(
    roots: &[PathBuf],
    walk: &WalkOptions<'_>,
    options: &Options<'_>,
    events: &dyn Events,
) -> Found {
    events.phase(Phase::Walking, 0, 0);
    let walk = WalkOptions { sort: true, ..walk.clone() };
    let tree = haul_bulk_read::walk(roots, &walk, &Walking(events));
    find_in(tree, options, events)
}

/// The same in a tree that was walked already; in the order of its paths.
fn find_in(tree: Tree, options: &Options<'_>, events: &dyn Events) -> Found {
    let counting = Counting {
        replication: options.replication,
        isolate: options.isolate,
        match_links: options.match_links,
    };
    if let Some(transform) = options.transform {
        return transformed::find(tree, transform, &counting, events);
    }
    let candidates = Candidates::of(&tree, &counting);
    let kind = kinds::look(&tree, &candidates, &options.read);
    let options =
        &Options { read: ReadOptions { kind, ..options.read.clone() }, ..options.clone() };
    let mut cache = options.cache.as_deref().map(|path| {
        Cache::open(path, options.hash, plan_of(options).fingerprint()).unwrap_or_else(|error| {
            events.failed(error);
            Cache::empty(options.hash, plan_of(options).fingerprint())
        })
    });
    let rounds = Rounds::new(&tree, &candidates, options, counting, events);
    let found = rounds.run(plan_of(options), cache.as_mut());
    if let (Some(cache), Some(path)) = (cache, &options.cache)
        && let Err(error) = cache.save(path, &tree, &candidates)
    {
        events.failed(error);
    }
    found.with(tree, &counting)
}

fn plan_of(options: &Options<'_>) -> Plan {
    let plan = match options.read.kind {
        Some(Kind::Rotating) => Plan::rotating(),
        _ => Plan::solid(),
    };
    Plan {
        head_bytes: options.head_bytes.unwrap_or(plan.head_bytes),
        tail_bytes: options.tail_bytes.unwrap_or(plan.tail_bytes),
        skip_content: options.skip_content,
        ..plan
    }
}
