//! Tests that no content is lost if another thread changes the files during an action.

use std::fs::{self, File};
use std::hint::spin_loop;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use haul_duplicates::act::{Action, Executor};
use haul_testing::Random;
use tempfile::TempDir;

use crate::actions::{RecordedActions, group, options};
use crate::disk_dir;

const OLD: &[u8] = b"initial content of both files!!";
const NEW: &[u8] = b"content written by the thread!!";

/// A change that the adversary, a second thread, makes to the file to keep or to the file to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Opens the file and writes other bytes of the same length.
    Write,
    /// Replaces the file by another file.
    Replace,
    /// Removes the file.
    Remove,
    /// Renames the file.
    Rename,
}

const CHANGES: [Change; 4] = [Change::Write, Change::Replace, Change::Remove, Change::Rename];

/// The contents that must exist at the end, according to the adversary.
#[derive(Debug, Default)]
struct Expected {
    /// `true` if a file with the new content must exist.
    new: bool,
    /// `true` if a file with the old content must exist.
    old: bool,
}

struct Trial<'a> {
    dir: &'a Path,
    keep: PathBuf,
    drop: PathBuf,
}

impl Trial<'_> {
    fn path(&self, to_keep: bool) -> &Path {
        if to_keep { &self.keep } else { &self.drop }
    }

    fn holds_old(path: &Path) -> bool {
        fs::read(path).is_ok_and(|bytes| bytes == OLD)
    }

    fn change(&self, change: Change, to_keep: bool) -> Expected {
        let (path, other) = (self.path(to_keep), self.path(!to_keep));
        match change {
            Change::Write => {
                let Ok(mut file) = File::options().write(true).open(path) else {
                    return Expected { new: false, old: true };
                };
                // While this file is open for writing, the action may remove neither the file nor
                // its duplicate. The action may have removed one of them before this open.
                let is_named = file.metadata().unwrap().nlink() > 0;
                let old = Self::holds_old(other) && !is_same(path, other);
                file.write_all(NEW).unwrap();
                Expected { new: is_named, old }
            }
            Change::Replace => {
                let new = self.dir.join("new");
                fs::write(&new, NEW).unwrap();
                fs::rename(&new, path).unwrap();
                let old = Self::holds_old(other) && !is_same(path, other);
                Expected { new: true, old }
            }
            Change::Remove => {
                fs::remove_file(path).ok();
                Expected { new: false, old: Self::holds_old(other) }
            }
            Change::Rename => {
                fs::rename(path, self.dir.join("elsewhere")).ok();
                Expected { new: false, old: true }
            }
        }
    }

    /// Returns the contents of all files.
    fn contents(&self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(self.dir).unwrap().map(Result::unwrap);
        entries.filter_map(|entry| fs::read(entry.path()).ok()).collect()
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.ino() == b.ino(),
        _ => false,
    }
}

/// Creates a directory, if possible on a tmpfs, where syncs take no time.
fn memory_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| disk_dir())
}

fn trials(action: &Action, count: usize, dir: &Path, random: &mut Random) -> (usize, usize) {
    let (mut done, mut skipped) = (0, 0);
    let mut executor = Executor::new(options(action.clone()));
    let barrier = Barrier::new(2);
    for number in 0..count {
        let trial = Trial { dir, keep: dir.join("a"), drop: dir.join("b") };
        fs::write(&trial.keep, OLD).unwrap();
        fs::write(&trial.drop, OLD).unwrap();
        let (change, to_keep) = (*random.pick(&CHANGES), random.index(2) == 0);
        let spins = random.index(30_000);
        let group = group(&[trial.keep.clone(), trial.drop.clone()]);
        let mut actions = RecordedActions::default();
        let expected = thread::scope(|scope| {
            let adversary = scope.spawn(|| {
                barrier.wait();
                (0..spins).for_each(|_| spin_loop());
                trial.change(change, to_keep)
            });
            barrier.wait();
            executor.process(&group, &mut actions);
            adversary.join().unwrap()
        });
        done += actions.done.len();
        skipped += actions.skipped.len();
        let contents = trial.contents();
        let context = format!(
            "trial {number}: {change:?} to_keep={to_keep}, {expected:?}, {:?}",
            actions.skipped
        );
        assert!(!expected.new || contents.iter().any(|bytes| bytes == NEW), "{context}");
        assert!(!expected.old || contents.iter().any(|bytes| bytes == OLD), "{context}");
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    (done, skipped)
}

#[test]
fn no_content_is_lost_under_concurrent_changes() {
    let mut random = Random::from_environment();
    let (memory, disk) = (memory_dir(), disk_dir());
    for action in [Action::Remove, Action::HardLink, Action::SymLink] {
        for (dir, count) in [(memory.path(), 4000), (disk.path(), 100)] {
            let (done, skipped) = trials(&action, count, dir, &mut random);
            println!("{action:?}: {done} done, {skipped} skipped of {count}");
            assert!(count < 1000 || done > 0 && skipped > 0, "the race was always or never lost");
        }
    }
}
