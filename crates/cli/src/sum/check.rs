//! `haul sum --check`: the files of a list, compared with their sums.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haul_bulk_read::{Error, Skipped, WalkEvents, WalkOptions, walk};
use parking_lot::Mutex;

use super::hash::{Job, hash};
use super::line::{self, Line};
use super::{Troubles, as_path, found, progress, read_options, tell_devices, text_of};
use crate::args::SumArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Failure, Result, say};
use crate::units::Count;

/// What was found out about one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Changed,
    Missing,
    Unread,
}

/// The check of one list.
struct Check<'a> {
    args: &'a SumArgs,
    lines: Vec<Line>,
    verdicts: Vec<Option<Verdict>>,
    /// The lines of each name, as it is written in the list.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

pub(super) fn run(
    args: &SumArgs,
    list: &Path,
    output: &mut Output,
    troubles: &Troubles,
    verbose: u8,
) -> Result {
    let text = text_of(list)?;
    let kind = args.hash.into();
    let rows: Vec<&[u8]> = split(&text);
    let lines: Vec<Line> = rows.iter().filter_map(|row| line::read(row, kind)).collect();
    let malformed = rows.len() - lines.len();
    if lines.is_empty() {
        let what = format!("no line of {} is a sum and a name", list.display());
        return Err(Failure::new(what).advise("name the hash of the list with --hash"));
    }
    let mut check = Check::new(args, lines);
    check.all(verbose)?;
    let added = if args.paths.is_empty() { Vec::new() } else { check.added(list, troubles) };
    check.tell(output, &added)?;
    check.warn(malformed, added.len(), list, troubles);
    Ok(())
}

/// The lines of a list: they end with a zero byte where there is any.
fn split(text: &[u8]) -> Vec<&[u8]> {
    let end = if text.contains(&0) { 0 } else { b'\n' };
    let rows = text.split(|byte| *byte == end);
    rows.filter(|row| !row.is_empty() && !row.starts_with(b"#")).collect()
}

impl<'a> Check<'a> {
    fn new(args: &'a SumArgs, lines: Vec<Line>) -> Self {
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            by_name.entry(line.name.clone()).or_default().push(index);
        }
        let verdicts = vec![None; lines.len()];
        Self { args, lines, verdicts, by_name }
    }

    /// Reads all files, each once.
    fn all(&mut self, verbose: u8) -> Result {
        let mut names: Vec<_> = self.by_name.keys().map(|name| as_path(name).to_owned()).collect();
        names.sort_unstable();
        // A file that has two names in the list comes again in a round of its own.
        while !names.is_empty() {
            names = self.round(&names, verbose)?;
        }
        Ok(())
    }

    /// Reads the files of these names, and gives those that were left for another round.
    fn round(&mut self, names: &[PathBuf], verbose: u8) -> Result<Vec<PathBuf>> {
        let met = Met::default();
        let depth_max = Some(0);
        let tree = walk(names, &WalkOptions { depth_max, ..WalkOptions::default() }, &met);
        let mut jobs = Vec::new();
        let mut of_job = Vec::new();
        for file in tree.ids() {
            let name = &names[tree.root(file)];
            for index in &self.by_name[name.as_os_str().as_bytes()] {
                jobs.push(Job { file, kind: self.lines[*index].kind });
                of_job.push(*index);
            }
        }
        let progress = progress(&tree);
        let (lines, verdicts) = (&self.lines, &mut self.verdicts);
        let ignore_missing = self.args.ignore_missing;
        let is_loud = !self.args.status;
        let stats = hash(&tree, &jobs, &read_options(self.args), &progress, |job, outcome| {
            let index = of_job[job];
            verdicts[index] = Some(match outcome {
                Ok(sum) if sum.as_bytes() == lines[index].sum => Verdict::Same,
                Ok(_) => Verdict::Changed,
                Err(error) => unread(&error, &progress, is_loud, ignore_missing),
            });
            Ok(())
        })?;
        progress.finish();
        tell_devices(&stats, verbose);
        Ok(self.settle(met.0.into_inner(), names))
    }

    /// Gives those names their verdicts that were not read.
    fn settle(&mut self, met: Vec<Meeting>, names: &[PathBuf]) -> Vec<PathBuf> {
        let mut again = Vec::new();
        for meeting in met {
            let (path, verdict) = match meeting {
                Meeting::SeenBefore(path) => {
                    again.push(path);
                    continue;
                }
                Meeting::Failed(error) => {
                    let is_missing = error.is_not_found();
                    let is_silent = self.args.status || is_missing && self.args.ignore_missing;
                    if !is_silent {
                        say(&error.to_string());
                    }
                    let verdict = if is_missing { Verdict::Missing } else { Verdict::Unread };
                    (error.path().to_owned(), verdict)
                }
                Meeting::NotAFile(path) => (path, Verdict::Unread),
            };
            self.judge(&path, verdict);
        }
        // A directory of that name has no sum.
        let is_left = |name: &&PathBuf| {
            !again.contains(name)
                && self.by_name[name.as_os_str().as_bytes()]
                    .iter()
                    .any(|index| self.verdicts[*index].is_none())
        };
        let left: Vec<_> = names.iter().filter(is_left).cloned().collect();
        left.iter().for_each(|name| self.judge(name, Verdict::Unread));
        again
    }

    fn judge(&mut self, name: &Path, verdict: Verdict) {
        for index in self.by_name.get(name.as_os_str().as_bytes()).into_iter().flatten() {
            self.verdicts[*index] = Some(verdict);
        }
    }

    /// The files below the directories given that are not in the list.
    fn added(&self, list: &Path, troubles: &Troubles) -> Vec<PathBuf> {
        let tree = found(&self.args.paths, troubles);
        let itself = std::fs::metadata(list).ok().map(|status| (status.dev(), status.ino()));
        let listed: HashSet<&Path> = self.by_name.keys().map(|name| plain(as_path(name))).collect();
        let is_added = |path: &PathBuf| !listed.contains(plain(path));
        let others = tree.ids().filter(|id| {
            let meta = tree.meta(*id);
            Some((meta.device, meta.inode)) != itself
        });
        others.map(|id| tree.path(id)).filter(is_added).collect()
    }

    fn tell(&self, output: &mut Output, added: &[PathBuf]) -> Result {
        if self.args.status {
            return Ok(());
        }
        for (line, verdict) in self.lines.iter().zip(&self.verdicts) {
            let words = match verdict {
                Some(Verdict::Same) if self.args.quiet => continue,
                Some(Verdict::Missing) if self.args.ignore_missing => continue,
                Some(Verdict::Same) => "OK",
                Some(Verdict::Changed) => "FAILED",
                Some(Verdict::Missing | Verdict::Unread) | None => "FAILED open or read",
            };
            result(output, &line.name, words)?;
        }
        added.iter().try_for_each(|path| result(output, path.as_os_str().as_bytes(), "ADDED"))
    }

    /// Says on stderr how many are not as they should be, and counts them.
    fn warn(&self, malformed: usize, added: usize, list: &Path, troubles: &Troubles) {
        let count = |which: Verdict| {
            self.verdicts.iter().filter(|verdict| **verdict == Some(which)).count()
        };
        let missing = if self.args.ignore_missing { 0 } else { count(Verdict::Missing) };
        let ignored = count(Verdict::Missing) - missing;
        for (number, noun, what, is_failure) in [
            (malformed, "line", "no sum and a name", self.args.strict),
            (count(Verdict::Changed), "file", "changed", true),
            (missing, "file", "missing", true),
            (count(Verdict::Unread), "file", "not to be read", true),
            (added, "file", "not in the list", true),
            (
                usize::from(ignored == self.lines.len()),
                "list",
                "of files that are all missing",
                true,
            ),
        ] {
            if number > 0 {
                if !self.args.status {
                    let number = Count(number as u64, noun);
                    say(&format!("{}: {number} {what}", list.display()));
                }
                if is_failure {
                    troubles.count();
                }
            }
        }
    }
}

fn unread(error: &Error, progress: &Progress, is_loud: bool, ignore_missing: bool) -> Verdict {
    let is_missing = error.is_not_found();
    if is_loud && !(is_missing && ignore_missing) {
        progress.say(&error.to_string());
    }
    if is_missing { Verdict::Missing } else { Verdict::Unread }
}

/// `name: words`, escaped as in the list.
fn result(output: &mut Output, name: &[u8], words: &str) -> Result {
    let mut text = Vec::with_capacity(name.len() + 24);
    line::escape(&mut text, name);
    text.extend_from_slice(b": ");
    text.extend_from_slice(words.as_bytes());
    text.push(b'\n');
    output.bytes(&text)
}

/// The path without what leads nowhere.
fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// What a walk over the names of a list meets.
#[derive(Default)]
struct Met(Mutex<Vec<Meeting>>);

enum Meeting {
    Failed(Error),
    SeenBefore(PathBuf),
    NotAFile(PathBuf),
}

impl WalkEvents for Met {
    fn failed(&self, error: Error) {
        self.0.lock().push(Meeting::Failed(error));
    }

    fn skipped(&self, path: &Path, why: Skipped) {
        self.0.lock().push(match why {
            Skipped::SeenBefore => Meeting::SeenBefore(path.to_owned()),
            _ => Meeting::NotAFile(path.to_owned()),
        });
    }
}
