//! Executes an export plan: several threads read objects and write them as files.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::{
    Disk, Error as DiskError, File, Open, OsDisk, Pace, PaceBudget, Pacer, write_full,
};
use haul_file_store::Object;
use haul_store_pool::Pool;
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};

use super::plan::{ExportPlan, PlannedFile};
use crate::counter::{Counter, Part};
use crate::error::{Error, ExportError};
use crate::mtime::Mtime;
use crate::pieces::pieces;
use crate::workers::{self, Queue};

/// A receiver of the events of an export. Several threads may call it.
pub trait ExportEvents: Sync {
    /// Returns `true` to end the export after the objects in progress.
    fn is_stopped(&self) -> bool;

    /// Reports the numbers of objects written completely, and of bytes written so far.
    fn progress(&self, objects: u64, bytes: u64);

    /// Reports that a directory could not be created. The export of the objects below it will fail,
    /// too.
    fn directory_failed(&self, error: DiskError);

    /// Reports that an object could not be exported. The export continues.
    fn failed(&self, key: &str, error: ExportError);
}

/// An export of the objects of a plan.
#[derive(Debug)]
pub struct Export<'a> {
    /// The store that contains the objects.
    pub store: &'a Pool,
    /// The bucket of the objects.
    pub bucket: &'a str,
    /// The objects and their paths.
    pub plan: &'a ExportPlan,
    /// The target directory. Paths cannot leave it through symbolic links.
    pub root: &'a OsDisk,
    /// The number of threads.
    pub jobs: usize,
}

/// The numbers of objects and bytes processed by an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// The number of objects written. [`crate::sync_file_system`] makes them durable.
    pub objects: u64,
    /// The total length of the objects written, in bytes.
    pub bytes: u64,
    /// The number of objects that could not be exported.
    pub failed: u64,
}

impl Export<'_> {
    /// Writes all objects of the plan as files. Existing files are replaced.
    ///
    /// # Errors
    /// Fails if the disk is full or no thread could be started. All other failures are passed to
    /// `events`, and the export continues.
    pub fn run(&self, events: &dyn ExportEvents) -> Result<Exported, Error> {
        for directory in &self.plan.directories {
            match self.root.create_dir(directory) {
                Err(error) if error.is_full() => return Err(Error::Directory(error)),
                // The objects below the directory fail later, and are counted then.
                Err(error) => events.directory_failed(error),
                Ok(()) => {}
            }
        }
        let progress = |objects, bytes| events.progress(objects, bytes);
        let is_stopped = || events.is_stopped();
        let (counter, failed) = (Counter::new(&progress), AtomicU64::new(0));
        let queue = Queue::new(self.plan.files.len(), &is_stopped);
        // The name of each temporary file contains this random number, so that no key can equal the
        // name of another object's temporary file.
        let nonce = RandomState::new().hash_one(());
        let budget = PaceBudget::default();
        workers::run(self.jobs, &queue, || {
            while let Some(index) = queue.take() {
                let file = &self.plan.files[index];
                let unfinished = unfinished_path(file.path(), nonce, index);
                let mut part = counter.part();
                match self.write(file, &unfinished, &budget, &mut part) {
                    Ok(()) => part.finish(),
                    // The disk is full, so the next object would fail, too.
                    Err(source) if source.is_full() => {
                        return Err(Error::Export { key: file.key.clone(), source });
                    }
                    Err(error) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        events.failed(&file.key, error);
                    }
                }
            }
            Ok(())
        })?;
        let (objects, bytes) = counter.done();
        Ok(Exported { objects, bytes, failed: failed.into_inner() })
    }

    /// Writes one object to a temporary file, then renames the file to the path of the object.
    fn write(
        &self,
        file: &PlannedFile,
        unfinished: &str,
        budget: &PaceBudget,
        part: &mut Part<'_>,
    ) -> Result<(), ExportError> {
        let object = self.store.get(self.bucket, &file.key).map_err(ExportError::Open)?;
        let new = self.root.create(unfinished, Open::default())?;
        let written = fill(&*new, &object, budget, part).and_then(|()| {
            set_mtime(&*new, &object).map_err(ExportError::SetTime)?;
            Ok(self.root.rename(unfinished, file.path())?)
        });
        if written.is_err() {
            // An error of the removal is ignored: the first failure is reported.
            self.root.remove(unfinished).ok();
        }
        written
    }
}

fn fill(
    file: &dyn File,
    object: &Object,
    budget: &PaceBudget,
    part: &mut Part<'_>,
) -> Result<(), ExportError> {
    // The pacer writes dirty pages to the disk every few MiB. Otherwise the kernel would write a
    // big object in one burst, and other writers would stall.
    let (mut at, mut pacer) = (0, Pacer::of(file, Pace::default()).sharing(budget));
    for piece in pieces(object, 0..object.info.bytes) {
        let bytes = piece?;
        write_full(file, &bytes, at)?;
        pacer.wrote(at, bytes.len() as u64)?;
        at += bytes.len() as u64;
        part.more(bytes.len());
    }
    Ok(())
}

/// Sets the modification time of `file`: to the time of the original file if the object has it as
/// an attribute, otherwise to the time at which the object was stored.
fn set_mtime(file: &dyn File, object: &Object) -> io::Result<()> {
    let modified =
        Mtime::from_attributes(&object.attributes).unwrap_or(object.info.modified.into());
    let (Some((seconds, nanos)), Some(descriptor)) = (modified.parts(), file.descriptor()) else {
        return Ok(());
    };
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos },
    };
    Ok(rustix::fs::futimens(descriptor, &times)?)
}

/// Returns the path of a temporary file in the same directory as `path`.
fn unfinished_path(path: &str, nonce: u64, index: usize) -> String {
    let directory = path.rfind('/').map_or("", |slash| &path[..=slash]);
    format!("{directory}.haul-{nonce:016x}-{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_is_in_the_same_directory() {
        assert_eq!(unfinished_path("a/b/c", 10, 2), "a/b/.haul-000000000000000a-2");
        assert_eq!(unfinished_path("c", 10, 2), ".haul-000000000000000a-2");
    }
}
