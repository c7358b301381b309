//! Hashes all files of a tree, and gives the sums in the order of the files, whatever order they
//! were read in.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use haul_bulk_read::digest::{Digest, HashKind, PartHasher, PartSum, Parts};
use haul_bulk_read::{
    Consumer, Error, FileId, Finished, Opened, ReadOptions, ReadStats, Tree, Want, read,
};
use haul_disk::{Error as DiskError, Op};
use parking_lot::Mutex;

use crate::progress::{Amount, Progress};
use crate::report::Result;

/// One file to be hashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) file: FileId,
    pub(super) kind: HashKind,
}

/// A part of a file, and what came of it.
type PartDone = (u64, std::result::Result<PartSum, Error>);

/// What came of it.
pub(super) type Outcome = std::result::Result<Digest, Error>;

/// Hashes all, and calls `tell` with each index and its outcome, in the order of the jobs, as soon
/// as those before it are done. When `tell` fails, nothing more is told.
pub(super) fn hash(
    tree: &Tree,
    jobs: &[Job],
    options: &ReadOptions<'_>,
    progress: &Progress,
    tell: impl FnMut(usize, Outcome) -> Result + Send,
) -> Result<ReadStats> {
    let (mut wants, mut parts) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
    for (index, job) in jobs.iter().enumerate() {
        let of = Parts::of(job.kind, tree.meta(job.file).bytes);
        for part in 0..of.count() {
            let range = of.range(part);
            // The last one asks for all there is: of what has no length, or has grown, too.
            let is_last = part + 1 == of.count();
            let bytes = if is_last { u64::MAX } else { range.end - range.start };
            wants.push(Want { file: job.file, offset: range.start, bytes });
            parts.push((index, part));
        }
    }
    let hashing = Hashing {
        tree,
        jobs,
        parts,
        progress,
        state: Mutex::new(State {
            next: 0,
            done: BTreeMap::new(),
            open: BTreeMap::new(),
            tell,
            result: Ok(()),
        }),
    };
    let stats = read(tree, &wants, options, &hashing);
    hashing.state.into_inner().result.map(|()| stats)
}

struct Hashing<'a, T> {
    tree: &'a Tree,
    jobs: &'a [Job],
    /// For each want, which job it is of, and which part of the file.
    parts: Vec<(usize, u64)>,
    progress: &'a Progress,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Which job is told next.
    next: usize,
    /// Those that were done before their turn.
    done: BTreeMap<usize, Outcome>,
    /// Those of several parts of which some are done.
    open: BTreeMap<usize, Vec<PartDone>>,
    tell: T,
    result: Result,
}

impl<T: FnMut(usize, Outcome) -> Result + Send> State<T> {
    fn put(&mut self, job: usize, outcome: Outcome) {
        self.done.insert(job, outcome);
        while let Some(outcome) = self.done.remove(&self.next) {
            if self.result.is_ok() {
                self.result = (self.tell)(self.next, outcome);
            }
            self.next += 1;
        }
    }
}

/// A part that is being hashed.
struct Hashed {
    hasher: PartHasher,
    /// The file is not what it was when its parts were made.
    changed: bool,
}

impl<T> Hashing<'_, T> {
    fn parts(&self, job: usize) -> Parts {
        Parts::of(self.jobs[job].kind, self.tree.meta(self.jobs[job].file).bytes)
    }

    fn changed(&self, job: usize) -> Error {
        let why = "somebody wrote to it while it was read; try again when nobody does";
        let path = self.tree.path(self.jobs[job].file);
        DiskError::new(Op::Read, path, std::io::Error::other(why)).into()
    }
}

impl<T: FnMut(usize, Outcome) -> Result + Send> Consumer for Hashing<'_, T> {
    type State = Hashed;

    fn begin(&self, want: usize, opened: &Opened) -> Hashed {
        let (job, part) = self.parts[want];
        let (parts, meta) = (self.parts(job), self.tree.meta(self.jobs[job].file));
        let same = (meta.bytes, meta.modified_ns, meta.inode)
            == (opened.bytes, opened.modified_ns, opened.inode);
        // Of one part, any length will do.
        Hashed { hasher: parts.hasher(part), changed: !same && parts.count() > 1 }
    }

    fn piece(&self, state: &mut Hashed, _want: usize, bytes: &[u8]) -> ControlFlow<()> {
        if state.changed {
            return ControlFlow::Break(());
        }
        state.hasher.update(bytes);
        ControlFlow::Continue(())
    }

    fn end(
        &self,
        state: Option<Hashed>,
        want: usize,
        outcome: std::result::Result<Finished, Error>,
    ) {
        let (job, part) = self.parts[want];
        let parts = self.parts(job);
        let sum = outcome.and_then(|_| {
            let finished =
                state.filter(|state| !state.changed).and_then(|state| state.hasher.finish());
            finished.ok_or_else(|| self.changed(job))
        });
        let mut state = self.state.lock();
        let mut all = state.open.remove(&job).unwrap_or_default();
        all.push((part, sum));
        if (all.len() as u64) < parts.count() {
            state.open.insert(job, all);
            return;
        }
        all.sort_unstable_by_key(|(part, _)| *part);
        let sums: std::result::Result<Vec<_>, _> = all.into_iter().map(|(_, sum)| sum).collect();
        let outcome = sums.and_then(|sums| parts.join(&sums).ok_or_else(|| self.changed(job)));
        state.put(job, outcome);
    }

    fn progress(&self, _wants: u64, bytes: u64) {
        let things = self.state.lock().next as u64;
        self.progress.set(Amount { things, bytes });
    }
}
