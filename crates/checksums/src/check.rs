//! Verifies the files of a checksum list and finds files that the list lacks.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haul_bulk_read::{
    Error, ReadOptions, ReadStats, SkipReason, Tree, WalkEvents, WalkOptions, exists, walk,
};
use parking_lot::Mutex;

use crate::hash::hash;
use crate::job::Job;
use crate::line::Line;
use crate::stream::StreamDigests;
use crate::{STDIN, as_path};

/// The result of verifying one line of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The file has the digest of the line.
    Same,
    /// The digest of the file differs from the digest of the line.
    Changed,
    /// The file does not exist.
    Missing,
    /// The file could not be read or is not a regular file, or the hash function of the line is
    /// unknown.
    Unread,
}

/// A receiver of the events of [`Check::run`]. A check runs in rounds: one round reads each file
/// once. A file listed under two names is read again, for its second name, in the next round.
pub trait CheckEvents: Sync {
    /// Reports the start of a round that reads the files of `tree`.
    fn begin_round(&self, tree: &Tree);

    /// Reports the numbers of files and bytes hashed so far in this round. Several threads may call
    /// this.
    fn progress(&self, files: u64, bytes: u64);

    /// Reports that all files of the round have been read.
    fn end_round(&self, stats: &ReadStats);

    /// Reports that a file could not be read. Several threads may call this.
    fn failed(&self, error: &Error);
}

/// A checksum list with the result of verifying each line.
#[derive(Debug)]
pub struct Check {
    lines: Vec<Line>,
    verdicts: Vec<Verdict>,
    /// The indexes of the lines of each name but stdin; the names are as written in the list.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl Check {
    /// Verifies all lines. Reads each file once per name under which the list has the file. `stdin`
    /// has the digests of the lines for stdin. The result of a line without a known hash function,
    /// and of one for stdin without digests, is [`Verdict::Unread`].
    #[must_use]
    pub fn run(
        mut lines: Vec<Line>,
        stdin: Option<&StreamDigests>,
        options: &ReadOptions<'_>,
        events: &dyn CheckEvents,
    ) -> Self {
        lines.iter_mut().for_each(resolve);
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            by_name.entry(line.name.clone()).or_default().push(index);
        }
        // The initial value remains for directories and for lines without a hash function.
        let mut verdicts = vec![Verdict::Unread; lines.len()];
        for index in by_name.remove(STDIN).into_iter().flatten() {
            verdicts[index] = stdin_verdict(&lines[index], stdin);
        }
        let mut check = Self { lines, verdicts, by_name };
        let mut names: Vec<_> = check.by_name.keys().map(|name| as_path(name).to_owned()).collect();
        names.sort_unstable();
        while !names.is_empty() {
            names = check.round(&names, options, events);
        }
        check
    }

    /// Returns the lines and their results, in the order of the list.
    pub fn results(&self) -> impl Iterator<Item = (&Line, Verdict)> {
        self.lines.iter().zip(self.verdicts.iter().copied())
    }

    /// Returns the number of lines whose result is `verdict`.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|found| **found == verdict).count()
    }

    /// Returns the files of `tree` that are not in the list, except the file that stores the list.
    /// `list` is the device and inode number of that file.
    #[must_use]
    pub fn unlisted(&self, tree: &Tree, list: Option<(u64, u64)>) -> Vec<PathBuf> {
        let listed: HashSet<&Path> = self.by_name.keys().map(|name| plain(as_path(name))).collect();
        let others = tree.ids().filter(|id| {
            let meta = tree.meta(*id);
            Some((meta.device, meta.inode)) != list
        });
        others.map(|id| tree.path(id)).filter(|path| !listed.contains(plain(path))).collect()
    }

    /// Verifies the files of `names`. Returns the names left for another round: this round read
    /// their files under other names.
    fn round(
        &mut self,
        names: &[PathBuf],
        options: &ReadOptions<'_>,
        events: &dyn CheckEvents,
    ) -> Vec<PathBuf> {
        let log = WalkLog::default();
        let depth_max = Some(0);
        let tree = walk(names, &WalkOptions { depth_max, ..WalkOptions::default() }, &log);
        let mut jobs = Vec::new();
        let mut index_by_job = Vec::new();
        for file in tree.ids() {
            let name = &names[tree.root(file)];
            for index in &self.by_name[name.as_os_str().as_bytes()] {
                if let Some(kind) = self.lines[*index].kind {
                    jobs.push(Job { file, kind });
                    index_by_job.push(*index);
                }
            }
        }
        events.begin_round(&tree);
        let (lines, verdicts) = (&self.lines, &mut self.verdicts);
        let progress = |files, bytes| events.progress(files, bytes);
        let read = hash(&tree, &jobs, options, &progress, |job, outcome| {
            let index = index_by_job[job];
            verdicts[index] = match outcome {
                Ok(sum) if sum.as_bytes() == lines[index].sum => Verdict::Same,
                Ok(_) => Verdict::Changed,
                Err(error) => failure(&error, events),
            };
            Ok::<(), Infallible>(())
        });
        let Ok(stats) = read;
        events.end_round(&stats);
        self.settle(log.0.into_inner(), events)
    }

    /// Sets the results of the names whose files the walk could not reach. Returns the names whose
    /// files this round read under another name; the next round reads them again.
    fn settle(&mut self, log: Vec<WalkEvent>, events: &dyn CheckEvents) -> Vec<PathBuf> {
        let mut again = Vec::new();
        for event in log {
            match event {
                WalkEvent::SeenBefore(path) => again.push(path),
                WalkEvent::Failed(error) => {
                    let verdict = failure(&error, events);
                    let name = error.path().as_os_str().as_bytes();
                    for index in self.by_name.get(name).into_iter().flatten() {
                        self.verdicts[*index] = verdict;
                    }
                }
            }
        }
        again
    }
}

/// Selects, of the names that a line may mean, the first one that exists. If none does, the line
/// keeps its first one.
pub(crate) fn resolve(line: &mut Line) {
    let others = std::mem::take(&mut line.other_names);
    if others.is_empty() || line.is_stdin() || exists(as_path(&line.name)) {
        return;
    }
    if let Some(name) = others.into_iter().find(|name| name == STDIN || exists(as_path(name))) {
        line.name = name;
    }
}

fn stdin_verdict(line: &Line, stdin: Option<&StreamDigests>) -> Verdict {
    match line.kind.and_then(|kind| stdin?.get(kind)) {
        Some(digest) if digest.as_bytes() == line.sum => Verdict::Same,
        Some(_) => Verdict::Changed,
        None => Verdict::Unread,
    }
}

fn failure(error: &Error, events: &dyn CheckEvents) -> Verdict {
    events.failed(error);
    if error.is_not_found() { Verdict::Missing } else { Verdict::Unread }
}

/// Returns `path` without a leading `./`, so that `./a` and `a` compare equal.
fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// A recorder of the events of a walk over the names of a list.
#[derive(Default)]
struct WalkLog(Mutex<Vec<WalkEvent>>);

enum WalkEvent {
    Failed(Error),
    SeenBefore(PathBuf),
}

impl WalkEvents for WalkLog {
    fn failed(&self, error: Error) {
        self.0.lock().push(WalkEvent::Failed(error));
    }

    fn skipped(&self, path: &Path, why: SkipReason) {
        if why == SkipReason::AlreadyVisited {
            self.0.lock().push(WalkEvent::SeenBefore(path.to_owned()));
        }
    }
}
