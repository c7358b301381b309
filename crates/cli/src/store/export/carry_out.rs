//! Walks the plan: several threads read objects and write them as files.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::{Disk, File, Open, OsDisk, Pace, Pacer, write_full};
use haul_file_store::{Object, Store};
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};

use super::plan::{Plan, Planned};
use crate::output::Name;
use crate::progress::{Amount, Done, Part, Progress};
use crate::report::{Failure, OrFail, Result, chain};
use crate::signals::Stop;
use crate::store::content;
use crate::store::mtime::Mtime;
use crate::store::workers::{self, Queue};

/// What to carry out.
pub(super) struct Work<'a> {
    pub(super) store: &'a Store,
    pub(super) bucket: &'a str,
    pub(super) plan: &'a Plan,
    /// Where to write. Names cannot leave it, whatever links lie in the way.
    pub(super) root: &'a OsDisk,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) written: Done,
    pub(super) failed: u64,
}

/// Writes everything in the plan with `jobs` threads. What fails is told; the others are written.
pub(super) fn carry_out(work: &Work<'_>, jobs: usize, stop: &Stop) -> Result<Outcome> {
    let all = Amount { things: work.plan.files.len() as u64, bytes: work.plan.bytes };
    let progress = Progress::new("object", all);
    let failed = AtomicU64::new(0);
    for directory in &work.plan.directories {
        match work.root.create_dir(directory) {
            Err(error) if error.is_full() => {
                return Err(Failure::new("cannot export").because(error));
            }
            // The files below it count as failed.
            Err(error) => progress.say(&chain("cannot export", Some(&error))),
            Ok(()) => {}
        }
    }
    let queue = Queue::new(work.plan.files.len(), stop);
    // Unlike any key, so that no object can be written over another's unfinished file.
    let nonce = RandomState::new().hash_one(());
    workers::run(jobs, &queue, || {
        while let Some(index) = queue.take() {
            let file = &work.plan.files[index];
            let unfinished = unfinished_path(file.path(), nonce, index);
            let mut part = progress.part();
            match work.write(file, &unfinished, &mut part) {
                Ok(()) => part.finish(),
                // No other object would fare better.
                Err(failure) if failure.is_disk_full() => return Err(failure),
                Err(failure) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    progress.say(&failure.text().unwrap_or_default());
                }
            }
        }
        Ok(())
    })?;
    Ok(Outcome { written: progress.finish(), failed: failed.into_inner() })
}

impl Work<'_> {
    /// Writes one object under a name of its own, then gives it the one it is to have.
    fn write(&self, file: &Planned, unfinished: &str, part: &mut Part<'_>) -> Result {
        let name = || format!("{}/{}", self.bucket, Name(&file.key));
        let cannot = || format!("cannot export {}", name());
        let object = self.store.get(self.bucket, &file.key).or_fail(cannot)?;
        let new = self.root.create(unfinished, Open::default()).or_fail(cannot)?;
        let written = fill(&*new, &object, name, part).and_then(|()| {
            set_mtime(&*new, &object).or_fail(cannot)?;
            self.root.rename(unfinished, file.path()).or_fail(cannot)
        });
        if written.is_err() {
            // The first failure is the one to tell.
            self.root.remove(unfinished).ok();
        }
        written
    }
}

fn fill(
    file: &dyn File,
    object: &Object,
    name: impl Fn() -> String,
    part: &mut Part<'_>,
) -> Result {
    let cannot = || format!("cannot export {}", name());
    // A big object must not make everybody else on the machine wait for its pages.
    let (mut at, mut pacer) = (0, Pacer::of(file, Pace::default()));
    content::read(object, 0..object.info.bytes, &name, |bytes| {
        write_full(file, bytes, at).or_fail(cannot)?;
        pacer.wrote(at, bytes.len() as u64).or_fail(cannot)?;
        at += bytes.len() as u64;
        part.more(bytes.len());
        Ok(())
    })
}

/// Gives a file the time its original had, or else the time its object was stored.
fn set_mtime(file: &dyn File, object: &Object) -> io::Result<()> {
    let modified = Mtime::kept(&object.attributes).unwrap_or(object.info.modified.into());
    let (Some((seconds, nanos)), Some(descriptor)) = (modified.parts(), file.descriptor()) else {
        return Ok(());
    };
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos },
    };
    Ok(rustix::fs::futimens(descriptor, &times)?)
}

/// Where a file is written until it is complete: in the directory it belongs to.
fn unfinished_path(path: &str, nonce: u64, index: usize) -> String {
    let directory = path.rfind('/').map_or("", |slash| &path[..=slash]);
    format!("{directory}.haul-{nonce:016x}-{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_finished_in_its_own_directory() {
        assert_eq!(unfinished_path("a/b/c", 10, 2), "a/b/.haul-000000000000000a-2");
        assert_eq!(unfinished_path("c", 10, 2), ".haul-000000000000000a-2");
    }
}
