//! Executes an import plan: several threads read files and store them, and share syncs of the
//! store.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use haul_file_store::{
    Attributes, Error as StoreError, Precondition, Result as StoreResult, WrittenContent,
};
use haul_store_pool::Pool;
use parking_lot::{Mutex, MutexGuard};

use super::plan::{ImportPlan, PlannedFile, one_reader};
use super::source::{Reading, Source};
use crate::counter::{Counter, Part};
use crate::error::Error;
use crate::mtime::{MTIME_ATTRIBUTE, Mtime};
use crate::pieces::PIECE_BYTES;
use crate::workers::{self, Queue};

/// A receiver of the events of an import. Several threads may call it.
pub trait ImportEvents: Sync {
    /// Returns `true` to end the import after the files in progress.
    fn is_stopped(&self) -> bool;

    /// Reports the number of files stored, and the number of bytes of files stored or in progress.
    fn progress(&self, files: u64, bytes: u64);

    /// Reports that a file could not be read or stored. The import continues.
    fn failed(&self, path: &Path, error: &(dyn StdError + 'static));
}

/// An import of the files of a plan.
#[derive(Debug)]
pub struct Import<'a> {
    /// The store to import into.
    pub store: &'a Pool,
    /// The destination bucket, which must exist.
    pub bucket: &'a str,
    /// The directory or file to import from.
    pub source: &'a Source,
    /// The files to import, with their keys, in order.
    pub plan: &'a ImportPlan,
    /// The length in bytes from which on a file is streamed to the store instead of read into
    /// memory. It should equal [`haul_file_store::Options::big_object_bytes`].
    pub big_object_bytes: u64,
    /// `true` to skip files that are already stored with the same size and modification time.
    pub skip_existing: bool,
    /// The number of threads.
    pub jobs: usize,
}

/// The numbers of files and bytes processed by an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// The number of files stored. They are durable.
    pub files: u64,
    /// The total length of the files stored, in bytes.
    pub bytes: u64,
    /// The number of files skipped because they were already stored.
    pub same: u64,
    /// The number of files that could not be read or stored.
    pub failed: u64,
}

impl Imported {
    /// Returns the number of files processed.
    #[must_use]
    pub fn processed(&self) -> u64 {
        self.files + self.same + self.failed
    }
}

impl Import<'_> {
    /// Stores all files of the plan. Returns the numbers of files processed, even if the import
    /// failed, and an error if the store failed or no thread could be started.
    pub fn run(&self, events: &dyn ImportEvents) -> (Imported, Result<(), Error>) {
        let progress = |files, bytes| events.progress(files, bytes);
        let is_stopped = || events.is_stopped();
        let rotational = haul_disk::probe(self.source.path()).ok().and_then(|s| s.queue.rotational);
        let importer = Importer {
            work: self,
            events,
            queue: Queue::new(self.plan.files.len(), &is_stopped),
            reading: one_reader(rotational).then(Mutex::default),
            counter: Counter::new(&progress),
            same: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        let result = workers::run(self.jobs, &importer.queue, || importer.run());
        let (files, bytes) = importer.counter.done();
        let (same, failed) = (importer.same.into_inner(), importer.failed.into_inner());
        (Imported { files, bytes, same, failed }, result)
    }
}

/// The reason why a file was not stored.
enum ImportError {
    /// The file cannot be read or stored; other files may still be imported.
    File(Box<dyn StdError + Send + Sync>),
    /// The store failed, so the import ends.
    Store(StoreError),
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        Self::File(Box::new(error))
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InvalidKey { .. } | StoreError::Invalid { .. } => {
                Self::File(Box::new(error))
            }
            other => Self::Store(other),
        }
    }
}

/// The content of a file.
enum Content<'a> {
    Small(Vec<u8>),
    /// A file streamed to the store, whose bytes were counted while they were read.
    Big(WrittenContent, Part<'a>),
}

/// The content and modification time of a file; `None` if the file is already stored.
type ReadResult<'a> = Result<Option<(Content<'a>, Mtime)>, ImportError>;

struct Importer<'a> {
    work: &'a Import<'a>,
    events: &'a dyn ImportEvents,
    queue: Queue<'a>,
    /// Locked while a file is read, so that only one thread reads; `None` if all threads may read.
    reading: Option<Mutex<()>>,
    counter: Counter<'a>,
    same: AtomicU64,
    failed: AtomicU64,
}

impl Importer<'_> {
    fn run(&self) -> Result<(), Error> {
        while let Some((file, read)) = self.next() {
            let stored = read.and_then(|content| match content {
                Some((content, modified)) => Ok(self.store(file, content, modified)?),
                None => {
                    self.same.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            });
            match stored {
                Ok(()) => {}
                Err(ImportError::Store(source)) => {
                    return Err(Error::Import { path: self.path(file), source });
                }
                Err(ImportError::File(error)) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    self.events.failed(&self.path(file), &*error);
                }
            }
        }
        Ok(())
    }

    fn path(&self, file: &PlannedFile) -> PathBuf {
        self.work.source.path().join(self.work.plan.path(file))
    }

    /// Takes the next file from the queue and reads it. On a rotational disk, a lock keeps the
    /// reads in the order of the plan, while other threads store files that were read.
    fn next(&self) -> Option<(&PlannedFile, ReadResult<'_>)> {
        let _reading: Option<MutexGuard<'_, ()>> = self.reading.as_ref().map(Mutex::lock);
        let file = &self.work.plan.files[self.queue.take()?];
        Some((file, self.read(file)))
    }

    fn read(&self, file: &PlannedFile) -> ReadResult<'_> {
        let Import { store, bucket, skip_existing, .. } = *self.work;
        if skip_existing && is_stored(store, bucket, &file.key, file.bytes, file.modified)? {
            return Ok(None);
        }
        let reading = self.work.source.read(self.work.plan.path(file))?;
        let modified = Mtime::from(reading.status());
        let content = if reading.status().len() < self.work.big_object_bytes {
            Content::Small(reading.read_all()?)
        } else {
            self.stream(&file.key, reading)?
        };
        Ok(Some((content, modified)))
    }

    fn stream(&self, key: &str, mut reading: Reading) -> Result<Content<'_>, ImportError> {
        let mut part = self.counter.part();
        let Import { store, bucket, .. } = *self.work;
        let mut writer = store.object_writer(bucket, key, Some(reading.status().len()))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match reading.read_some(&mut piece)? {
                0 => break,
                read => {
                    writer.write(&piece[..read])?;
                    part.more(read);
                }
            }
        }
        reading.finish(writer.bytes())?;
        Ok(Content::Big(writer.finish()?, part))
    }

    fn store(&self, file: &PlannedFile, content: Content<'_>, modified: Mtime) -> StoreResult<()> {
        let Import { store, bucket, .. } = self.work;
        let mut attributes = Attributes::new();
        attributes.set(MTIME_ATTRIBUTE, modified.to_string());
        let (key, always) = (&file.key, Precondition::None);
        match content {
            Content::Small(bytes) => {
                store.put(bucket, key, &bytes, &attributes, &always)?;
                self.counter.add(bytes.len() as u64);
            }
            Content::Big(written, part) => {
                store.put_written(*bucket, key, written, &attributes, &always)?;
                part.finish();
            }
        }
        Ok(())
    }
}

/// Returns `true` if the store has an object with this size and modification time. The store has
/// sizes in memory or in its index; the time is read from disk only if the sizes are equal.
pub(crate) fn is_stored(
    store: &Pool,
    bucket: &str,
    key: &str,
    bytes: u64,
    modified: Mtime,
) -> StoreResult<bool> {
    let object = match store.stat(bucket, key) {
        Ok(info) if info.bytes == bytes => store.head(bucket, key),
        Ok(_) => return Ok(false),
        Err(error) => Err(error),
    };
    let object = match object {
        // Importing the file again replaces a damaged object.
        Err(StoreError::NoSuchKey { .. } | StoreError::Damaged { .. }) => return Ok(false),
        other => other?,
    };
    Ok(Mtime::from_attributes(&object.attributes) == Some(modified))
}
