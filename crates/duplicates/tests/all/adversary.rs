//! Somebody changes the files while they are dealt with: no content that was there is ever lost.

use std::fs::{self, File};
use std::hint::spin_loop;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use haul_duplicates::act::{Action, Actor};
use tempfile::TempDir;

use crate::acting::{Heard, group, options};
use crate::disk_dir;
use crate::random::Random;

const OLD: &[u8] = b"what both held in the beginning";
const NEW: &[u8] = b"what the adversary wrote ......";

/// What the adversary does, to the file that is kept or to the one that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// Opens it and writes other bytes of the same length.
    Write,
    /// Puts another file in its place.
    Replace,
    /// Removes it.
    Remove,
    /// Gives it another name.
    Rename,
}

const DEEDS: [Deed; 4] = [Deed::Write, Deed::Replace, Deed::Remove, Deed::Rename];

/// What must be so in the end, as far as the adversary could see when it had done its deed.
#[derive(Debug, Default)]
struct Claim {
    /// What it wrote must be under some name.
    new: bool,
    /// The old content must be under some name.
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

    fn deed(&self, deed: Deed, to_keep: bool) -> Claim {
        let (path, other) = (self.path(to_keep), self.path(!to_keep));
        match deed {
            Deed::Write => {
                let Ok(mut file) = File::options().write(true).open(path) else {
                    return Claim { new: false, old: true };
                };
                // While it is open for writing nobody removes it, and nothing that equals it: what
                // is seen now must stay. What was gone before went by right.
                let is_named = file.metadata().unwrap().nlink() > 0;
                let old = Self::holds_old(other) && !is_same(path, other);
                file.write_all(NEW).unwrap();
                Claim { new: is_named, old }
            }
            Deed::Replace => {
                let new = self.dir.join("new");
                fs::write(&new, NEW).unwrap();
                fs::rename(&new, path).unwrap();
                let old = Self::holds_old(other) && !is_same(path, other);
                Claim { new: true, old }
            }
            Deed::Remove => {
                fs::remove_file(path).ok();
                Claim { new: false, old: Self::holds_old(other) }
            }
            Deed::Rename => {
                fs::rename(path, self.dir.join("elsewhere")).ok();
                Claim { new: false, old: true }
            }
        }
    }

    /// All contents that have a name.
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

/// A directory where syncing costs nothing, if there is one.
fn memory_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| disk_dir())
}

fn trials(action: &Action, count: usize, dir: &Path, random: &mut Random) -> (usize, usize) {
    let (mut done, mut left) = (0, 0);
    let mut actor = Actor::new(options(action.clone()));
    let barrier = Barrier::new(2);
    for number in 0..count {
        let trial = Trial { dir, keep: dir.join("a"), drop: dir.join("b") };
        fs::write(&trial.keep, OLD).unwrap();
        fs::write(&trial.drop, OLD).unwrap();
        let (deed, to_keep) = (*random.pick(&DEEDS), random.below(2) == 0);
        let spins = random.below(30_000);
        let group = group(&[trial.keep.clone(), trial.drop.clone()]);
        let mut heard = Heard::default();
        let claim = thread::scope(|scope| {
            let adversary = scope.spawn(|| {
                barrier.wait();
                (0..spins).for_each(|_| spin_loop());
                trial.deed(deed, to_keep)
            });
            barrier.wait();
            actor.act(&group, &mut heard);
            adversary.join().unwrap()
        });
        done += heard.done.len();
        left += heard.left.len();
        let contents = trial.contents();
        let what =
            format!("trial {number}: {deed:?} to_keep={to_keep}, {claim:?}, {:?}", heard.left);
        assert!(!claim.new || contents.iter().any(|bytes| bytes == NEW), "{what}");
        assert!(!claim.old || contents.iter().any(|bytes| bytes == OLD), "{what}");
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    (done, left)
}

#[test]
fn nothing_that_was_there_is_lost_whatever_is_done_meanwhile() {
    let mut random = Random::from_environment();
    let (memory, disk) = (memory_dir(), disk_dir());
    for action in [Action::Remove, Action::HardLink, Action::SymLink] {
        for (dir, count) in [(memory.path(), 4000), (disk.path(), 100)] {
            let (done, left) = trials(&action, count, dir, &mut random);
            println!("{action:?}: {done} done, {left} left alone of {count}");
            assert!(count < 1000 || done > 0 && left > 0, "the adversary came always or never");
        }
    }
}
