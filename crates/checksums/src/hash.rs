//! Hashes the files of a tree. Digests are reported in the order of the jobs, although the files
//! may be read in another order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use haul_bulk_read::digest::{Digest, PartHasher, PartSum, Parts};
use haul_bulk_read::{
    Consumer, DigestCache, DigestForm, Error, FileStatus, ReadOptions, ReadStats, ReadSummary,
    Tree, read,
};
use haul_disk::{Error as DiskError, Op};
use parking_lot::Mutex;

use crate::job::Job;
use crate::read_plan::ReadPlan;
use crate::reorder::{Outcome, ReorderBuffer};

/// A finished part of a file: its index, and its digest or an error.
type PartDone = (u64, Result<PartSum, Error>);

/// Hashes the files of all jobs. Calls `report` with the index and the outcome of each job, in the
/// order of the jobs, as soon as all earlier jobs are done. Calls `progress` with the numbers of
/// files and bytes hashed so far.
///
/// If a file cannot be read, or changes while it is read in parts, its outcome is an error; hashing
/// continues.
///
/// # Errors
/// The first error of `report`. After an error, `report` is not called again.
pub fn hash<E: Send>(
    tree: &Tree,
    jobs: &[Job],
    options: &ReadOptions<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
    report: impl FnMut(usize, Outcome) -> Result<(), E> + Send,
) -> Result<ReadStats, E> {
    hash_others(tree, jobs, &vec![None; jobs.len()], options, progress, report)
}

/// Hashes the files of all jobs like [`hash()`], except of unchanged files whose digest is in
/// `cache`, and adds the other digests to `cache`. Jobs with another hash function than that of the
/// cache are hashed.
///
/// # Errors
/// The first error of `report`. After an error, `report` is not called again.
pub fn hash_cached<E: Send>(
    tree: &Tree,
    jobs: &[Job],
    cache: &mut DigestCache,
    options: &ReadOptions<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
    mut report: impl FnMut(usize, Outcome) -> Result<(), E> + Send,
) -> Result<ReadStats, E> {
    let is_cacheable = |job: &Job| job.kind == cache.hash();
    let cached = |job: &Job| cache.digest(&tree.meta(job.file), DigestForm::Bytes);
    let known: Vec<_> =
        jobs.iter().map(|job| is_cacheable(job).then(|| cached(job)).flatten()).collect();
    let is_new: Vec<_> =
        jobs.iter().zip(&known).map(|(job, sum)| is_cacheable(job) && sum.is_none()).collect();
    for (job, _) in jobs.iter().zip(&is_new).filter(|(_, is_new)| **is_new) {
        cache.check_writers(job.file, tree);
    }
    hash_others(tree, jobs, &known, options, progress, |index, outcome| {
        if let (Ok(sum), true) = (&outcome, is_new[index]) {
            cache.add(jobs[index].file, DigestForm::Bytes, sum);
        }
        report(index, outcome)
    })
}

/// Hashes the files of the jobs whose digest is not `known`, and reports the digests of all jobs.
fn hash_others<E: Send>(
    tree: &Tree,
    jobs: &[Job],
    known: &[Option<Digest>],
    options: &ReadOptions<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
    report: impl FnMut(usize, Outcome) -> Result<(), E> + Send,
) -> Result<ReadStats, E> {
    let sum_bytes = jobs.iter().map(|job| job.kind.bytes()).max().unwrap_or(0);
    let reorder = ReorderBuffer::new(jobs.len(), sum_bytes);
    let mut state = State { reorder, partial: BTreeMap::new(), report, result: Ok(()) };
    let mut indexes = Vec::with_capacity(jobs.len());
    for (index, sum) in known.iter().enumerate() {
        match sum {
            Some(sum) => state.complete(index, Ok(*sum)),
            None => indexes.push(index),
        }
    }
    let jobs: Vec<_> = indexes.iter().map(|index| jobs[*index]).collect();
    let (jobs, indexes) = (&jobs[..], &indexes[..]);
    let plan = ReadPlan::of(jobs, |job| tree.meta(job.file).bytes);
    let hashing = Hashing { tree, jobs, indexes, plan: &plan, progress, state: Mutex::new(state) };
    let stats = read(tree, &plan.all, options, &hashing);
    hashing.state.into_inner().result.map(|()| stats)
}

struct Hashing<'a, T, E> {
    tree: &'a Tree,
    jobs: &'a [Job],
    /// The index of each job in the list of the caller.
    indexes: &'a [usize],
    plan: &'a ReadPlan,
    progress: &'a (dyn Fn(u64, u64) + Sync),
    state: Mutex<State<T, E>>,
}

struct State<T, E> {
    reorder: ReorderBuffer,
    /// The finished parts of each job that still has unfinished parts, by the index of the job.
    partial: BTreeMap<usize, Vec<PartDone>>,
    report: T,
    result: Result<(), E>,
}

impl<T: FnMut(usize, Outcome) -> Result<(), E> + Send, E> State<T, E> {
    fn complete(&mut self, job: usize, outcome: Outcome) {
        if job != self.reorder.next_index() {
            return self.reorder.insert(job, outcome);
        }
        self.report_next(outcome);
        while let Some(outcome) = self.reorder.pop() {
            self.report_next(outcome);
        }
    }

    fn report_next(&mut self, outcome: Outcome) {
        if self.result.is_ok() {
            self.result = (self.report)(self.reorder.next_index(), outcome);
        }
        self.reorder.advance();
    }

    /// Adds a finished part of a job of `count` parts. Returns all parts, in the order of the file,
    /// if this part was the last.
    fn gather(&mut self, job: usize, part: PartDone, count: u64) -> Option<Vec<PartDone>> {
        if count == 1 {
            return Some(vec![part]);
        }
        let parts = self.partial.entry(job).or_default();
        parts.push(part);
        if (parts.len() as u64) < count {
            return None;
        }
        let mut parts = self.partial.remove(&job)?;
        parts.sort_unstable_by_key(|(part, _)| *part);
        Some(parts)
    }
}

/// The state of hashing one part.
struct Hashed {
    hasher: PartHasher,
    /// `true` if the file has several parts and changed after it was divided into them.
    changed: bool,
}

impl<T, E> Hashing<'_, T, E> {
    fn parts(&self, job: usize) -> Parts {
        Parts::of(self.jobs[job].kind, self.tree.meta(self.jobs[job].file).bytes)
    }

    fn changed(&self, job: usize) -> Error {
        let message = "modified while being read; try again when it is not written to";
        let path = self.tree.path(self.jobs[job].file);
        DiskError::new(Op::Read, path, std::io::Error::other(message)).into()
    }
}

impl<T, E> Consumer for Hashing<'_, T, E>
where
    T: FnMut(usize, Outcome) -> Result<(), E> + Send,
    E: Send,
{
    type State = Hashed;

    fn begin(&self, want: usize, opened: &FileStatus) -> Hashed {
        let (job, part) = self.plan.job(want);
        let (parts, meta) = (self.parts(job), self.tree.meta(self.jobs[job].file));
        let same = (meta.bytes, meta.modified_ns, meta.inode)
            == (opened.bytes, opened.modified_ns, opened.inode);
        // A file with one part may have changed since the walk: the read uses its current length.
        Hashed { hasher: parts.hasher(part), changed: !same && parts.count() > 1 }
    }

    fn piece(&self, state: &mut Hashed, _want: usize, bytes: &[u8]) -> ControlFlow<()> {
        if state.changed {
            return ControlFlow::Break(());
        }
        state.hasher.update(bytes);
        ControlFlow::Continue(())
    }

    fn end(&self, state: Option<Hashed>, want: usize, outcome: Result<ReadSummary, Error>) {
        let (job, part) = self.plan.job(want);
        let parts = self.parts(job);
        let sum = outcome.and_then(|_| {
            let finished =
                state.filter(|state| !state.changed).and_then(|state| state.hasher.finish());
            finished.ok_or_else(|| self.changed(job))
        });
        let mut state = self.state.lock();
        let Some(all) = state.gather(job, (part, sum), parts.count()) else { return };
        let sums: Result<Vec<_>, _> = all.into_iter().map(|(_, sum)| sum).collect();
        let outcome = sums.and_then(|sums| parts.join(&sums).ok_or_else(|| self.changed(job)));
        state.complete(self.indexes[job], outcome);
    }

    fn progress(&self, _wants: u64, bytes: u64) {
        let files = self.state.lock().reorder.next_index() as u64;
        (self.progress)(files, bytes);
    }
}
