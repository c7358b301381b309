//! Hashes all files of a tree, and gives the sums in the order of the files, whatever order they
//! were read in.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use haul_bulk_read::digest::{HashKind, PartHasher, PartSum, Parts};
use haul_bulk_read::{
    Consumer, Error, FileId, Finished, Opened, ReadOptions, ReadStats, Tree, read,
};
use haul_disk::{Error as DiskError, Op};
use parking_lot::Mutex;

use super::turns::{Outcome, Turns};
use super::wants::Wants;
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

/// Hashes all, and calls `tell` with each index and its outcome, in the order of the jobs, as soon
/// as those before it are done. When `tell` fails, nothing more is told.
pub(super) fn hash(
    tree: &Tree,
    jobs: &[Job],
    options: &ReadOptions<'_>,
    progress: &Progress,
    tell: impl FnMut(usize, Outcome) -> Result + Send,
) -> Result<ReadStats> {
    let wants = Wants::of(jobs, |job| tree.meta(job.file).bytes);
    let sum_bytes = jobs.iter().map(|job| job.kind.bytes()).max().unwrap_or(0);
    let turns = Turns::new(jobs.len(), sum_bytes);
    let state = State { turns, open: BTreeMap::new(), tell, result: Ok(()) };
    let hashing = Hashing { tree, jobs, wants: &wants, progress, state: Mutex::new(state) };
    let stats = read(tree, &wants.all, options, &hashing);
    hashing.state.into_inner().result.map(|()| stats)
}

struct Hashing<'a, T> {
    tree: &'a Tree,
    jobs: &'a [Job],
    wants: &'a Wants,
    progress: &'a Progress,
    state: Mutex<State<T>>,
}

struct State<T> {
    turns: Turns,
    /// Those of several parts of which some are done.
    open: BTreeMap<usize, Vec<PartDone>>,
    tell: T,
    result: Result,
}

impl<T: FnMut(usize, Outcome) -> Result + Send> State<T> {
    fn put(&mut self, job: usize, outcome: Outcome) {
        if job != self.turns.next() {
            return self.turns.keep(job, outcome);
        }
        self.tell(outcome);
        while let Some(outcome) = self.turns.take() {
            self.tell(outcome);
        }
    }

    fn tell(&mut self, outcome: Outcome) {
        if self.result.is_ok() {
            self.result = (self.tell)(self.turns.next(), outcome);
        }
        self.turns.pass();
    }

    /// Adds a part of a job that has `count`, and gives all once it has the last, in their order.
    fn gather(&mut self, job: usize, part: PartDone, count: u64) -> Option<Vec<PartDone>> {
        if count == 1 {
            return Some(vec![part]);
        }
        let parts = self.open.entry(job).or_default();
        parts.push(part);
        if (parts.len() as u64) < count {
            return None;
        }
        let mut parts = self.open.remove(&job)?;
        parts.sort_unstable_by_key(|(part, _)| *part);
        Some(parts)
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
        let (job, part) = self.wants.job(want);
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
        let (job, part) = self.wants.job(want);
        let parts = self.parts(job);
        let sum = outcome.and_then(|_| {
            let finished =
                state.filter(|state| !state.changed).and_then(|state| state.hasher.finish());
            finished.ok_or_else(|| self.changed(job))
        });
        let mut state = self.state.lock();
        let Some(all) = state.gather(job, (part, sum), parts.count()) else { return };
        let sums: std::result::Result<Vec<_>, _> = all.into_iter().map(|(_, sum)| sum).collect();
        let outcome = sums.and_then(|sums| parts.join(&sums).ok_or_else(|| self.changed(job)));
        state.put(job, outcome);
    }

    fn progress(&self, _wants: u64, bytes: u64) {
        let things = self.state.lock().turns.next() as u64;
        self.progress.set(Amount { things, bytes });
    }
}
